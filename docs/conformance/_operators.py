"""Compare with the tests of an operator's own validation: what its code and its CRD say of an object on creation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from conformance import Verdict, lint_files, list_errors

_CATEGORIES = frozenset(("yaml", "schema", "spec", "pod", "operator", "scheduling", "resources", "image", "security"))
# The code that validates a RayCronJob runs only with its gate.
_ASSUMED = ("RayCronJob",)
_WITHOUT_PODS = _CATEGORIES - {"pod"}


def run_operator(data: Any) -> Iterator[Verdict]:
    """Lint each object with the feature gates that are on in its test."""
    by_features: dict[tuple[str, ...], dict[str, Any]] = defaultdict(dict)
    for number, case in enumerate(data["cases"]):
        by_features[tuple(case.get("features") or ())][f"jobs/o{number:04}.yaml"] = case
    for features, cases in by_features.items():
        settings = {"jobgen.yaml": {"cluster": {"featureGates": [*features, *_ASSUMED]}}}
        found = lint_files({**settings, **{name: case["object"] for name, case in cases.items()}})
        for name, case in cases.items():
            yield _compare(case, found.get(name, []))


def _compare(case: Any, findings: Any) -> Verdict:
    is_refused = case["crd"] == "refused" or case["webhook"] == "invalid"
    if "old" in case:
        return Verdict(case["id"], False, "an update of an object")
    # These objects are often too short to become pods, so errors about pods count only where the object is invalid.
    errors = list_errors(findings, _CATEGORIES if is_refused else _WITHOUT_PODS)
    said = f"expected {'refused' if is_refused else 'accepted'} {case.get('why', '')[:200]}, got {errors[:1]}"
    return Verdict(case["id"], bool(errors) == is_refused, said)
