"""Raw pod sets: plain mappings, as in the spec of a Workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.features.kueue.objects import as_mapping
from jobgen.features.kueue.pod_sets.topology_request import NO_LABELS, Gates, Labels, build_topology_request

RawPodSet = dict[str, Any]
"""A pod set as in the spec of a Workload: name, count, template; perhaps minCount and topologyRequest."""

_MAX_COUNT = 2**31 - 1


def get_spec(obj: Any) -> Mapping[str, Any]:
    """Return the spec of an object or template."""
    return as_mapping(as_mapping(obj).get("spec"))


def read_count(value: Any, default: int = 1) -> int:
    """Read a number of pods; what is missing or not an integer is the default."""
    return min(max(value, 0), _MAX_COUNT) if type(value) is int else default


def count_job_pods(spec: Mapping[str, Any]) -> int:
    """The pods of a Job that run at the same time: never more than it has to complete."""
    parallelism = read_count(spec.get("parallelism"))
    return min(parallelism, read_count(spec.get("completions"), parallelism))


def make_pod_set(name: Any, count: int, template: Any, gates: Gates, labels: Labels = NO_LABELS) -> RawPodSet:
    """Make a pod set of a template. Names of pod sets are in lower case."""
    found = as_mapping(template)
    request = build_topology_request(found.get("metadata"), labels, gates)
    made: RawPodSet = {"name": str(name or "").lower(), "count": count, "template": found}
    return made if request is None else {**made, "topologyRequest": request}
