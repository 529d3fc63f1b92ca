"""Pods of the tests of pkg/apis/core/validation, validated by an API server 1.36.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance import Verdict, lint_pods, list_errors


def run(data: Any) -> Iterator[Verdict]:
    """Lint each pod as the template of a PyTorchJob."""
    cases = data["cases"]
    for case, findings in zip(cases, lint_pods([case["pod"] for case in cases]), strict=True):
        errors = list_errors(findings)
        agrees = bool(errors) == (case["expect"] == "refused")
        yield Verdict(case["id"], agrees, f"expected {case['expect']} {case.get('why', '')[:250]}, got {errors[:2]}")
