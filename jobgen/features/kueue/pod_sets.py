"""From a job object to the pod sets of its Workload, as the integrations of Kueue make them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jobgen.features.kueue.completed_pod_sets import (
    fill_ray_defaults,
    list_app_wrapper,
    list_ray_cluster,
    list_ray_job,
    list_spark_application,
)
from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.raw_pod_set import (
    DOMAIN,
    MAIN,
    Gates,
    Labels,
    RawPodSet,
    get_spec,
    make_found_pod_set,
    make_pod_set,
    parse_integer,
    read_count,
)
from jobgen.k8s.pod_sets import POD_SETS, REPLICA_TYPES, count_pod_set, find_pods

ALL_GATES: Final = Gates()
_MIN_PARALLELISM = DOMAIN + "job-min-parallelism"
# Labels that the Job controller sets.
_MANAGED_LABELS = frozenset(("job-name", "controller-uid", "batch.kubernetes.io/controller-uid"))
_GROUP_NAME = DOMAIN + "pod-group-name"
_TOTAL_COUNT = DOMAIN + "pod-group-total-count"
_FAST_ADMISSION = DOMAIN + "pod-group-fast-admission"
_ROLE_HASH = DOMAIN + "role-hash"
_GROUP_INDEX = Labels(DOMAIN + "pod-group-pod-index")
_STATEFUL_INDEX = Labels("apps.kubernetes.io/pod-index")
_LWS_DOMAIN = "leaderworkerset.sigs.k8s.io"
_LWS_NAME = _LWS_DOMAIN + "/name"
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


def _list_job_set(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a JobSet: one for each replicated job."""
    return [make_found_pod_set(found, gates) for found in find_pods(obj, POD_SETS["jobset.x-k8s.io", "JobSet"])]


def _list_replica_types(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of a kind with a map of replicas; types that are missing are skipped."""
    pod_sets = REPLICA_TYPES["kubeflow.org", str(obj.get("kind"))]
    return [make_found_pod_set(found, gates) for found in find_pods(obj, pod_sets) if found.item]


def _list_job(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of a Job."""
    (found,) = find_pods(obj, POD_SETS["batch", "Job"])
    made = make_found_pod_set(found, gates)
    made["template"] = _remove_managed_labels(made["template"])
    annotations = as_mapping(as_mapping(obj.get("metadata")).get("annotations"))
    least = parse_integer(annotations.get(_MIN_PARALLELISM))
    return [made if least is None else {**made, "minCount": least}]


def _remove_managed_labels(template: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = as_mapping(template.get("metadata"))
    labels = as_mapping(metadata.get("labels"))
    if not labels.keys() & _MANAGED_LABELS:
        return template
    kept = {name: value for name, value in labels.items() if name not in _MANAGED_LABELS}
    rest = {name: value for name, value in metadata.items() if name != "labels"}
    return {**template, "metadata": {**rest, "labels": kept} if kept else rest}


def get_group_name(pod: Mapping[str, Any]) -> str:
    """Return the group of a pod; empty if it is alone."""
    metadata = as_mapping(pod.get("metadata"))
    for field in ("annotations", "labels"):
        found = as_mapping(metadata.get(field)).get(_GROUP_NAME)
        if isinstance(found, str) and found:
            return found
    return ""


def _list_pod(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of a single pod."""
    return [_make_pod(MAIN, 1, obj, gates)]


def _list_group(pods: Sequence[Mapping[str, Any]], gates: Gates) -> list[RawPodSet]:
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


def _list_stateful_set(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of a StatefulSet: all of its pods are one group."""
    spec = get_spec(obj)
    made = make_pod_set(MAIN, read_count(spec.get("replicas")), spec.get("template"), gates, _STATEFUL_INDEX)
    return [{**made, "template": {"spec": get_spec(made["template"])}}]


def _list_deployment(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod set of one pod of a Deployment: each of its pods is a workload."""
    return _list_pod(as_mapping(get_spec(obj).get("template")), gates)


def _list_leader_worker_set(obj: Mapping[str, Any], gates: Gates) -> list[RawPodSet]:
    """List the pod sets of one replica of a LeaderWorkerSet: each of its replicas is a workload."""
    leader, worker = find_pods(obj, POD_SETS["leaderworkerset.x-k8s.io", "LeaderWorkerSet"])
    has_leader = isinstance(leader.template, dict)
    made = [make_found_pod_set(leader, gates, count=1)] if has_leader else []
    count = count_pod_set(worker.pod_set, worker.item, is_one_group=True)
    made.append(make_found_pod_set(worker, gates, name="" if has_leader else MAIN, count=count))
    return [{**each, "template": _remove_controller_metadata(each["template"])} for each in made]


def _remove_controller_metadata(template: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a template without the labels and annotations that the controller sets."""
    metadata = as_mapping(template.get("metadata"))
    kept = {
        field: {key: value for key, value in values.items() if key == _LWS_NAME or not key.startswith(_LWS_DOMAIN)}
        if field in ("labels", "annotations") and isinstance(values, dict)
        else values
        for field, values in metadata.items()
    }
    return {**template, "metadata": kept} if kept != metadata else template


_ListPodSets = Callable[[Mapping[str, Any], Gates], list[RawPodSet] | None]


# By API group and version, and kind. Of an MPIJob, Kueue knows only the version of the MPI Operator.
_KINDS: Final[Mapping[tuple[str, str], _ListPodSets]] = {
    ("apps/v1", "Deployment"): _list_deployment,
    ("apps/v1", "StatefulSet"): _list_stateful_set,
    ("batch/v1", "Job"): _list_job,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): _list_job_set,
    ("kubeflow.org/v1", "JAXJob"): _list_replica_types,
    ("kubeflow.org/v1", "PaddleJob"): _list_replica_types,
    ("kubeflow.org/v1", "PyTorchJob"): _list_replica_types,
    ("kubeflow.org/v1", "TFJob"): _list_replica_types,
    ("kubeflow.org/v1", "XGBoostJob"): _list_replica_types,
    ("kubeflow.org/v2beta1", "MPIJob"): _list_replica_types,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): _list_leader_worker_set,
    ("ray.io/v1", "RayCluster"): list_ray_cluster,
    ("ray.io/v1", "RayJob"): list_ray_job,
    ("ray.io/v1", "RayService"): list_ray_cluster,
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): list_spark_application,
    ("v1", "Pod"): _list_pod,
    ("workload.codeflare.dev/v1beta2", "AppWrapper"): list_app_wrapper,
}
_TRAIN_JOB = ("trainer.kubeflow.org/v1alpha1", "TrainJob")
# Kinds of which each replica is a workload.
_BY_REPLICA = frozenset((("apps/v1", "Deployment"), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")))


def list_pod_sets(
    obj: Mapping[str, Any],
    gates: Gates = ALL_GATES,
    *,
    job_set: Mapping[str, Any] | None = None,
    members: Sequence[Mapping[str, Any]] = (),
) -> list[RawPodSet] | None:
    """List the pod sets of a job object, as in the spec of a Workload; None if Kueue has no integration for it.

    `job_set` is the JobSet that a TrainJob expands to; without it the TrainJob has no pod sets. `members` are all pods
    of the group that a Pod belongs to. Of a kind with one workload for each replica, the pod sets are those of one
    replica; `count_workloads` returns how many there are.
    """
    key = _find_key(obj)
    if key == _TRAIN_JOB:
        return [] if job_set is None else _list_job_set(job_set, gates)
    if members and key == ("v1", "Pod"):
        return _list_group(members, gates)
    found = _KINDS.get(key)
    return None if found is None else found(obj, gates)


def fill_defaults(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill in what the API server fills in of a new job and what changes its pod sets.

    Most kinds have the same defaults in their integration; Ray does not.
    """
    return fill_ray_defaults(obj) if str(obj.get("apiVersion")) == "ray.io/v1" else obj


def count_workloads(obj: Mapping[str, Any]) -> int:
    """Return how many workloads of the same shape an object makes."""
    return read_count(get_spec(obj).get("replicas")) if _find_key(obj) in _BY_REPLICA else 1


def _find_key(obj: Mapping[str, Any]) -> tuple[str, str]:
    return str(obj.get("apiVersion")), str(obj.get("kind"))
