"""From a job object to the pod sets of its Workload, as the integrations of Kueue make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jobgen.features.kueue.pod_sets.app_wrapper import list_app_wrapper
from jobgen.features.kueue.pod_sets.jobs import list_job, list_job_set, list_replica_types
from jobgen.features.kueue.pod_sets.pods import (
    get_group_name,
    list_deployment,
    list_group,
    list_leader_worker_set,
    list_pod,
    list_stateful_set,
)
from jobgen.features.kueue.pod_sets.raw import RawPodSet, get_spec, read_count
from jobgen.features.kueue.pod_sets.ray import fill_ray_defaults, list_ray_cluster, list_ray_job, list_ray_service
from jobgen.features.kueue.pod_sets.spark import list_spark_application
from jobgen.features.kueue.pod_sets.topology_request import Gates, parse_gates

__all__ = [
    "ALL_GATES",
    "Gates",
    "RawPodSet",
    "count_workloads",
    "fill_defaults",
    "get_group_name",
    "list_pod_sets",
    "parse_gates",
]

_ListPodSets = Callable[[Mapping[str, Any], Gates], list[RawPodSet] | None]

ALL_GATES: Final = Gates()

# By API group and version, and kind. Of an MPIJob, Kueue knows only the version of the MPI Operator.
_KINDS: Final[Mapping[tuple[str, str], _ListPodSets]] = {
    ("apps/v1", "Deployment"): list_deployment,
    ("apps/v1", "StatefulSet"): list_stateful_set,
    ("batch/v1", "Job"): list_job,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): list_job_set,
    ("kubeflow.org/v1", "JAXJob"): list_replica_types,
    ("kubeflow.org/v1", "PaddleJob"): list_replica_types,
    ("kubeflow.org/v1", "PyTorchJob"): list_replica_types,
    ("kubeflow.org/v1", "TFJob"): list_replica_types,
    ("kubeflow.org/v1", "XGBoostJob"): list_replica_types,
    ("kubeflow.org/v2beta1", "MPIJob"): list_replica_types,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): list_leader_worker_set,
    ("ray.io/v1", "RayCluster"): list_ray_cluster,
    ("ray.io/v1", "RayJob"): list_ray_job,
    ("ray.io/v1", "RayService"): list_ray_service,
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): list_spark_application,
    ("v1", "Pod"): list_pod,
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
        return [] if job_set is None else list_job_set(job_set, gates)
    if members and key == ("v1", "Pod"):
        return list_group(members, gates)
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
