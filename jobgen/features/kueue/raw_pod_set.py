"""Raw pod sets: plain mappings, as in the spec of a Workload, with the topology request of their pods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.k8s.pod_sets import FoundPods
from jobgen.model.lazy_re import lazy_pattern

RawPodSet = dict[str, Any]
"""A pod set as in the spec of a Workload: name, count, template; perhaps minCount and topologyRequest."""

MAIN: Final = "main"
"""The name of the only pod set of a workload."""
_MAX_COUNT = 2**31 - 1
DOMAIN: Final = "kueue.x-k8s.io/"
_REQUIRED = DOMAIN + "podset-required-topology"
_PREFERRED = DOMAIN + "podset-preferred-topology"
_UNCONSTRAINED = DOMAIN + "podset-unconstrained-topology"
_SLICE_LEVEL = DOMAIN + "podset-slice-required-topology"
_SLICE_SIZE = DOMAIN + "podset-slice-size"
_SLICE_LAYERS = DOMAIN + "podset-slice-required-topology-constraints"
_GROUP = DOMAIN + "podset-group-name"

# What Go's strconv.ParseBool accepts.
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_INTEGER = lazy_pattern(r"[+-]?[0-9]{1,10}\Z")
_MAX_LAYERS = 3


class Labels(NamedTuple):
    """The labels by which the pods of a kind are numbered."""

    pod_index: str = ""
    sub_group_index: str = ""
    sub_group_count: int | None = None


NO_LABELS = Labels()


class Gates(NamedTuple):
    """The feature gates that change pod sets."""

    topology_aware: bool = True
    multi_layer: bool = True
    unknown: frozenset[str] = frozenset()
    """Annotations that this version of Kueue does not know."""


def parse_gates(gates: Mapping[str, bool]) -> Gates:
    """Read feature gates; those that are missing have the defaults of 0.19."""
    return Gates(gates.get("TopologyAwareScheduling", True), gates.get("TASMultiLayerTopology", True))


def parse_integer(text: Any) -> int | None:
    """Parse an integer as Go does; None if it is not one."""
    return int(text) if isinstance(text, str) and _INTEGER.match(text) else None


def build_topology_request(metadata: Any, labels: Labels, gates: Gates) -> dict[str, Any] | None:
    """Build the topology request of pods with this metadata; None if they have none.

    Kinds that number their pods always have a request; it asks for a placement only if an annotation does. An
    annotation with an invalid value is ignored, because Kueue rejects the job.
    """
    if not gates.topology_aware:
        return None
    annotations = as_mapping(as_mapping(metadata).get("annotations"))
    if gates.unknown:
        annotations = {name: value for name, value in annotations.items() if name not in gates.unknown}
    request = _find_mode(annotations)
    has_slices = _SLICE_LAYERS in annotations or (_SLICE_LEVEL in annotations and _SLICE_SIZE in annotations)
    if not request and not has_slices and labels == NO_LABELS:
        return None
    request |= _find_slices(annotations, gates)
    request |= {"podIndexLabel": labels.pod_index} if labels.pod_index else {}
    request |= {"subGroupIndexLabel": labels.sub_group_index} if labels.sub_group_index else {}
    request |= {"subGroupCount": labels.sub_group_count} if labels.sub_group_count is not None else {}
    if _GROUP in annotations and ("required" in request or "preferred" in request):
        request["podSetGroupName"] = annotations[_GROUP]
    return request


def _find_mode(annotations: Mapping[str, Any]) -> dict[str, Any]:
    if _REQUIRED in annotations:
        return {"required": annotations[_REQUIRED]}
    if _PREFERRED in annotations:
        return {"preferred": annotations[_PREFERRED]}
    value = annotations.get(_UNCONSTRAINED)
    return {"unconstrained": _BOOLEANS[value]} if isinstance(value, str) and value in _BOOLEANS else {}


def _find_slices(annotations: Mapping[str, Any], gates: Gates) -> dict[str, Any]:
    if gates.multi_layer and _SLICE_LAYERS in annotations:
        layers = _parse_layers(annotations[_SLICE_LAYERS])
        return {"podsetSliceRequiredTopologyConstraints": layers} if 0 < len(layers) <= _MAX_LAYERS else {}
    size = parse_integer(annotations.get(_SLICE_SIZE))
    if size is None or _SLICE_LEVEL not in annotations:
        return {}
    return {"podSetSliceRequiredTopology": annotations[_SLICE_LEVEL], "podSetSliceSize": size}


def _parse_layers(text: Any) -> list[Any]:
    try:
        return [each for each in as_list(json.loads(text)) if isinstance(each, dict)]
    except (TypeError, ValueError, RecursionError):
        return []


def get_spec(obj: Any) -> Mapping[str, Any]:
    """Return the spec of an object or template."""
    return as_mapping(as_mapping(obj).get("spec"))


def read_count(value: Any, default: int = 1) -> int:
    """Read a number of pods; what is missing or not an integer is the default."""
    return min(max(value, 0), _MAX_COUNT) if type(value) is int else default


def make_pod_set(name: Any, count: int, template: Any, gates: Gates, labels: Labels = NO_LABELS) -> RawPodSet:
    """Make a pod set of a template. Names of pod sets are in lower case."""
    found = as_mapping(template)
    request = build_topology_request(found.get("metadata"), labels, gates)
    made: RawPodSet = {"name": str(name or "").lower(), "count": count, "template": found}
    return made if request is None else {**made, "topologyRequest": request}


def make_found_pod_set(found: FoundPods, gates: Gates, *, name: str = "", count: int | None = None) -> RawPodSet:
    """Make a pod set of the pods that an object describes; `name` and `count` override what it says."""
    name = name or (found.role if found.pod_set.role else MAIN)
    wanted = min(found.total if count is None else count, _MAX_COUNT)
    return make_pod_set(name, wanted, found.template, gates, number_pods(found))


def number_pods(found: FoundPods) -> Labels:
    """Return the labels that number the pods of an object."""
    pod_index, sub_group_index = (*found.pod_set.index_labels, "", "")[:2]
    return Labels(pod_index, sub_group_index, read_count(found.item.get("replicas")) if sub_group_index else None)
