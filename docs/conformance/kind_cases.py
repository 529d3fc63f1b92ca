"""Objects of 48 kinds, validated by an API server 1.36.4 with the CRDs of Kueue, JobSet, KubeRay, Volcano and LWS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance import Verdict, lint_files, list_errors

_REFUSALS = frozenset(("yaml", "schema", "pod", "operator"))


def run(data: Any) -> Iterator[Verdict]:
    """Lint each manifest; webhooks of operators were not part of the reference, so they refuse nothing here."""
    cases = data["cases"]
    found = lint_files({f"{case['id'][:2]}/{case['id']}.yaml": case["manifest"] for case in cases})
    for case in cases:
        findings = found.get(f"{case['id'][:2]}/{case['id']}.yaml", [])
        is_refused = case["verdict"] != "accept"
        errors = list_errors(findings, _REFUSALS) if is_refused else list_errors(findings)
        said = f"expected {case['verdict']} {case['message'][:200]}, got {errors[:1]}"
        yield Verdict(case["id"], bool(errors) == is_refused, said, f"{case['kind']} ({case['apiVersion']})")
