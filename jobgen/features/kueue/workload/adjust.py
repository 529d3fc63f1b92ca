"""What Kueue changes in the pods of a workload before it counts their requests.

The pods get the overhead of their RuntimeClass, then the defaults of LimitRanges; then a limit without a request is
the request, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping, name_of
from jobgen.features.kueue.workload.limit_ranges import CONTAINER, POD, Bounds, Summary, keep_first

Overheads = Mapping[str, Mapping[str, Any]]
"""The overhead of the pods of each RuntimeClass."""


def read_overhead(runtime_class: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a RuntimeClass and the overhead of its pods."""
    return name_of(runtime_class), as_mapping(as_mapping(runtime_class.get("overhead")).get("podFixed"))


def adjust_pod_sets(pod_sets: Any, overheads: Overheads, summary: Summary) -> list[dict[str, Any]]:
    """Return pod sets with adjusted pods."""
    found = []
    for pod_set in map(as_mapping, as_list(pod_sets)):
        template = as_mapping(pod_set.get("template"))
        spec = adjust_pod(as_mapping(template.get("spec")), overheads, summary)
        found.append({**pod_set, "template": {**template, "spec": spec}})
    return found


def adjust_pod(spec: Mapping[str, Any], overheads: Overheads, summary: Summary) -> Mapping[str, Any]:
    """Return a pod spec with overhead, defaults, and limits as requests."""
    changed: dict[str, Any] = {}
    if not as_mapping(spec.get("overhead")) and (overhead := overheads.get(str(spec.get("runtimeClassName")))):
        changed["overhead"] = overhead
    bounds = summary.get(CONTAINER, Bounds())
    for field in ("initContainers", "containers"):
        if isinstance(containers := spec.get(field), list):
            changed[field] = [_adjust_resources(as_mapping(each), bounds) for each in containers]
    if isinstance(spec.get("resources"), dict):
        changed["resources"] = _adjust_resources(spec, summary.get(POD, Bounds()))["resources"]
    return {**spec, **changed}


def _adjust_resources(holder: Mapping[str, Any], bounds: Bounds) -> Mapping[str, Any]:
    """Return a container or pod with all requests that it has in effect."""
    resources = as_mapping(holder.get("resources"))
    limits = keep_first(resources.get("limits"), bounds.limits)
    requests = keep_first(keep_first(resources.get("requests"), bounds.requests), limits)
    made = {**resources, "limits": limits, "requests": requests}
    kept = {name: value for name, value in made.items() if value}
    return {**holder, "resources": kept} if kept or resources else holder
