"""Compare with the tests of an operator's own validation: what its code says of a new object, or of an update.

Its CRD is also asked about new objects. The objects of updates are not whole, so the CRD is not asked about these.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import jobgen
from conformance import Verdict, lint_files, list_errors, temporary_repository

_CATEGORIES = frozenset(("yaml", "schema", "spec", "pod", "operator", "scheduling", "resources", "image", "security"))
# The code that validates a RayCronJob runs only with its gate.
_ASSUMED = ("RayCronJob",)
_WITHOUT_PODS = _CATEGORIES - {"pod"}


def run_operator(data: Any) -> Iterator[Verdict]:
    """Lint each object with the feature gates that are on in its test, and compare the objects of updates."""
    by_features: dict[tuple[str, ...], dict[str, Any]] = defaultdict(dict)
    created = [case for case in data["cases"] if "old" not in case]
    updates = [case for case in data["cases"] if "old" in case]
    for number, case in enumerate(created):
        by_features[tuple(case.get("features") or ())][f"jobs/o{number:04}.yaml"] = case
    for features, cases in by_features.items():
        settings = {"jobgen.yaml": {"cluster": {"featureGates": [*features, *_ASSUMED]}}}
        found = lint_files({**settings, **{name: case["object"] for name, case in cases.items()}})
        for name, case in cases.items():
            yield _compare_created(case, found.get(name, []), "creation" if updates else "")
    yield from _compare_updates(updates)


def _compare_created(case: Any, findings: Any, group: str) -> Verdict:
    is_refused = case["crd"] == "refused" or case["webhook"] == "invalid"
    # These objects are often too short to become pods, so errors about pods count only where the object is invalid.
    errors = list_errors(findings, _CATEGORIES if is_refused else _WITHOUT_PODS)
    said = f"expected {'refused' if is_refused else 'accepted'} {case.get('why', '')[:200]}, got {errors[:1]}"
    return Verdict(case["id"], bool(errors) == is_refused, said, group)


def _compare_updates(cases: Sequence[Any]) -> Iterator[Verdict]:
    """Yield whether `jobgen diff` says that an update is rejected where the webhook rejects it."""
    by_features: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for case in cases:
        by_features[tuple(case.get("features") or ())].append(case)
    for features, group in by_features.items():
        files: dict[str, Any] = {}
        for folder, key in (("old", "old"), ("new", "object")):
            files[f"{folder}/jobgen.yaml"] = {"cluster": {"featureGates": [*features]}}
            for number, case in enumerate(group):
                metadata = {**case[key]["metadata"], "name": f"o{number}", "namespace": "default"}
                files[f"{folder}/jobs/o{number}.yaml"] = {**case[key], "metadata": metadata}
        with temporary_repository(files) as root:
            compared = json.loads(jobgen.diff(root, folders=("old", "new"), format="json").text)
        effects = {each["object"]["name"]: each["effect"] for each in compared["objects"]}
        for number, case in enumerate(group):
            effect = effects.get(f"o{number}", "unchanged")
            said = f"expected {case['webhook']} {case.get('why', '')[:200]}, got {effect}"
            yield Verdict(case["id"], (effect == "rejected") == (case["webhook"] == "invalid"), said, "update")
