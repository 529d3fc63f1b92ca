"""Pod sets of pods, of groups of pods, and of kinds that Kueue manages by their pods."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.pod_sets.jobs import MAIN
from jobgen.features.kueue.pod_sets.raw import RawPodSet, get_spec, make_pod_set, read_count
from jobgen.features.kueue.pod_sets.topology_request import DOMAIN, NO_LABELS, Gates, Labels, parse_integer

GROUP_NAME: Final = DOMAIN + "pod-group-name"
_TOTAL_COUNT = DOMAIN + "pod-group-total-count"
_FAST_ADMISSION = DOMAIN + "pod-group-fast-admission"
_ROLE_HASH = DOMAIN + "role-hash"
_GROUP_INDEX = Labels(DOMAIN + "pod-group-pod-index")
_STATEFUL_INDEX = Labels("apps.kubernetes.io/pod-index")
_LWS_DOMAIN = "leaderworkerset.sigs.k8s.io"
_LWS_NAME = _LWS_DOMAIN + "/name"
_WORKER_INDEX = Labels(_LWS_DOMAIN + "/worker-index")
_SHAPE = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
    "priority",
    "topologySpreadConstraints",
    "overhead",
    "resourceClaims",
)


def get_group_name(pod: Mapping[str, Any]) -> str:
    """Return the group of a pod; empty if it is alone."""
    metadata = as_mapping(pod.get("metadata"))
    for field in ("annotations", "labels"):
        found = as_mapping(metadata.get(field)).get(GROUP_NAME)
        if isinstance(found, str) and found:
            return found
    return ""


def list_pod(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of a single pod."""
    return [_make_pod(MAIN, 1, obj, gates)]


def list_group(pods: Sequence[Mapping[str, Any]], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a group of pods: one for each role, that is for each shape of pods."""
    by_role: dict[str, list[Mapping[str, Any]]] = {}
    for pod in pods:
        by_role.setdefault(_find_role(pod), []).append(pod)
    if not pods:
        return []
    first = pods[0]
    annotations = as_mapping(as_mapping(first.get("metadata")).get("annotations"))
    if annotations.get(_FAST_ADMISSION) == "true":
        total = parse_integer(annotations.get(_TOTAL_COUNT))
        return [_make_pod(_find_role(first), len(pods) if total is None else total, first, gates)]
    return [_make_pod(role, len(members), members[0], gates) for role, members in sorted(by_role.items())]


def _make_pod(name: str, count: int, pod: Mapping[str, Any], gates: Gates) -> RawPodSet:
    """Make a pod set of a pod. Its metadata counts, but is not part of the template."""
    made = make_pod_set(name, count, pod, gates, _GROUP_INDEX)
    return {**made, "template": {"spec": get_spec(pod)}}


def _find_role(pod: Mapping[str, Any]) -> str:
    """Return the role of a pod in its group: pods with the same requests and constraints have the same one."""
    named = as_mapping(as_mapping(pod.get("metadata")).get("annotations")).get(_ROLE_HASH)
    if isinstance(named, str):
        return named
    spec = get_spec(pod)
    shape = {name: spec.get(name) for name in _SHAPE}
    for field in ("initContainers", "containers"):
        containers = map(as_mapping, as_list(spec.get(field)))
        shape[field] = [(as_mapping(each.get("resources")).get("requests"), each.get("ports")) for each in containers]
    text = json.dumps({**shape, "resources": spec.get("resources")}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def list_stateful_set(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of a StatefulSet: all of its pods are one group."""
    spec = get_spec(obj)
    made = make_pod_set(MAIN, read_count(spec.get("replicas")), spec.get("template"), gates, _STATEFUL_INDEX)
    return [{**made, "template": {"spec": get_spec(made["template"])}}]


def list_deployment(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of one pod of a Deployment: each of its pods is a workload."""
    return list_pod(as_mapping(get_spec(obj).get("template")), gates)


def list_leader_worker_set(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of one replica of a LeaderWorkerSet: each of its replicas is a workload."""
    templates = as_mapping(get_spec(obj).get("leaderWorkerTemplate"))
    size, leader, worker = (templates.get(name) for name in ("size", "leaderTemplate", "workerTemplate"))
    count = read_count(size)
    if not isinstance(leader, dict):
        return [_make_member(MAIN, count, worker, gates, _WORKER_INDEX)]
    return [
        _make_member("leader", 1, leader, gates, NO_LABELS),
        _make_member("worker", max(count - 1, 0), worker, gates, _WORKER_INDEX),
    ]


def _make_member(name: str, count: int, template: Any, gates: Gates, labels: Labels) -> RawPodSet:
    """Make a pod set of a template, without the labels and annotations that the controller sets."""
    made = make_pod_set(name, count, template, gates, labels)
    metadata = as_mapping(made["template"].get("metadata"))
    kept = {
        field: {key: value for key, value in values.items() if key == _LWS_NAME or not key.startswith(_LWS_DOMAIN)}
        if field in ("labels", "annotations") and isinstance(values, dict)
        else values
        for field, values in metadata.items()
    }
    return {**made, "template": {**made["template"], "metadata": kept}} if kept != metadata else made
