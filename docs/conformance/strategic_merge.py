"""The tests of strategic merges in Kubernetes 1.36.4 and kustomize."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conformance import Verdict
from jobgen.spec.merge import Deletion, merge


def run(data: Any) -> Iterator[Verdict]:
    """Merge each base and patch; the order of lists does not count."""
    for case in data["cases"]:
        deletions: list[Deletion] = []
        found = merge(case["base"], case["patch"], deletions)
        errors = [deletion.fault for deletion in deletions if deletion.fault]
        agrees = not errors and _sort_lists(found) == _sort_lists(case["expect"])
        said = f"error: {errors[0]}" if errors else json.dumps(found)[:300]
        shown = f"{case['about']}: {json.dumps(case['base'])[:250]} + {json.dumps(case['patch'])[:250]}"
        wanted = json.dumps(case["expect"])[:250]
        yield Verdict(case["id"], agrees, f"{shown}: expected {wanted}, got {said}", case["id"].partition("/")[0])


def _sort_lists(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _sort_lists(value) for key, value in node.items()}
    if isinstance(node, list):
        return sorted(map(_sort_lists, node), key=lambda item: json.dumps(item, sort_keys=True))
    return node
