"""What admission checks add to pod sets before their pods are placed: node selectors and tolerations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.workload.workloads import PodSet, Workload

Update = Mapping[str, Any]


def list_updates(workload: Workload, pod_set: PodSet) -> list[Update]:
    """List what the ready checks of a workload add to a pod set."""
    return [update for name, update in workload.updates if name == pod_set.name]


def merge_updates(pod_set: PodSet, updates: Iterable[Update]) -> Mapping[str, Any]:
    """Return the pod spec with all updates."""
    spec = pod_set.spec
    for update in updates:
        selector = {**as_mapping(spec.get("nodeSelector")), **as_mapping(update.get("nodeSelector"))}
        tolerations = [*as_list(spec.get("tolerations")), *as_list(update.get("tolerations"))]
        spec = {**spec, "nodeSelector": selector, "tolerations": tolerations}
    return spec


def find_conflict(pod_set: PodSet, updates: Iterable[Update]) -> str:
    """Say which update changes a node selector instead of adding to it; empty if none does."""
    selector = dict(as_mapping(pod_set.spec.get("nodeSelector")))
    for update in updates:
        for key, value in as_mapping(update.get("nodeSelector")).items():
            if selector.setdefault(key, value) != value:
                return (
                    f"invalid podSetUpdate for PodSet {pod_set.name}, error: invalid admission check PodSetUpdate: "
                    f"conflict for nodeSelector: conflict for key={key}, value1={selector[key]}, value2={value}"
                )
    return ""
