"""Strategic merge patches, as Kubernetes applies them to pod templates, Jobs and JobSets.

Source: kubernetes/kubernetes, staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go, and the patch keys of
the types in staging/src/k8s.io/api and of JobSet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MERGE_KEYS = {
    "containers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "replicatedJobs": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""The fields with lists that are merged, and the field that identifies an item. Other lists are replaced."""


def merge_strategically(target: Any, patch: Any, field: str = "") -> Any:
    """Return the target with a patch merged into it. Trainer decodes a patch before, which drops null."""
    if isinstance(target, dict) and isinstance(patch, dict):
        merged = dict(target)
        for name, value in patch.items():
            if value is not None:
                merged[name] = merge_strategically(merged[name], value, name) if name in merged else _drop_null(value)
        return merged
    if isinstance(target, list) and isinstance(patch, list):
        key = "containerPort" if field == "ports" else _MERGE_KEYS.get(field)
        if key and all(isinstance(item, dict) and item.get(key) is not None for item in (*target, *patch)):
            # Merge items with the same key. New items are first, and items of the patch keep their order.
            order = [item[key] for item in target]
            own = {str(item[key]) for item in patch}
            by_key = {str(item[key]): item for item in target}
            changed = [
                merge_strategically(by_key[str(item[key])], item) if str(item[key]) in by_key else _drop_null(item)
                for item in patch
            ]
            return _interleave([item for item in target if str(item[key]) not in own], changed, order, key)
    return _drop_null(patch)


def _interleave(kept: list[Any], changed: list[Any], order: Sequence[Any], key: str) -> list[Any]:
    merged: list[Any] = []
    left, right = list(kept), list(changed)
    while left and right:
        known = right[0][key] in order
        first = known and order.index(left[0][key]) < order.index(right[0][key])
        merged.append(left.pop(0) if first else right.pop(0))
    return [*merged, *left, *right]


def _drop_null(value: Any) -> Any:
    """Return a new value without fields that are null."""
    if isinstance(value, dict):
        return {name: _drop_null(item) for name, item in value.items() if item is not None}
    return [_drop_null(item) for item in value] if isinstance(value, list) else value
