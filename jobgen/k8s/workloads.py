"""Kinds that run pods: who runs them, and where they are suspended and deleted. One table, by group and kind.

It holds whether or not a kind file describes the kind, because raw manifests of all these kinds are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Workload(NamedTuple):
    """What is known of a kind that runs pods; a path is empty if the kind has no such field."""

    operator: str
    """The name of its operator, as users write it in `cluster.operators`."""
    suspend: tuple[str, ...] = ()
    """The path of the field that deletes its pods or keeps them from being created."""
    ttl: tuple[str, ...] = ()
    """The path of the field that deletes the whole object some time after it has finished."""
    queue: tuple[str, ...] = ()
    """The path of the field with the queue of its own scheduler."""
    scheduled: bool = False
    """Whether it starts other objects on a schedule."""


_SUSPEND, _TTL = ("spec", "suspend"), ("spec", "ttlSecondsAfterFinished")
_RUN_POLICY_TTL = ("spec", "runPolicy", "ttlSecondsAfterFinished")
_TENSORSTACK = Workload(
    "tensorstack", ("spec", "runMode", "pause", "enabled"), queue=("spec", "scheduler", "t9kScheduler", "queue")
)

WORKLOADS: Mapping[tuple[str, str], Workload] = {
    ("batch", "CronJob"): Workload("kubernetes", scheduled=True),
    ("batch", "Job"): Workload("kubernetes", _SUSPEND, _TTL),
    ("batch.tensorstack.dev", "BeamJob"): _TENSORSTACK._replace(suspend=()),
    ("batch.tensorstack.dev", "ColossalAIJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "DeepSpeedJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "GenericJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "MPIJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "PyTorchTrainingJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "TensorFlowTrainingJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "XGBoostTrainingJob"): _TENSORSTACK,
    ("batch.volcano.sh", "CronJob"): Workload("volcano", scheduled=True),
    ("batch.volcano.sh", "Job"): Workload("volcano", ttl=_TTL, queue=("spec", "queue")),
    ("jobset.x-k8s.io", "JobSet"): Workload("jobset", _SUSPEND, _TTL),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Workload("leaderworkerset"),
    ("ray.io", "RayCluster"): Workload("kuberay", _SUSPEND),
    ("ray.io", "RayCronJob"): Workload("kuberay", scheduled=True),
    # The TTL of a RayJob deletes its RayCluster and keeps the RayJob.
    ("ray.io", "RayJob"): Workload("kuberay", _SUSPEND),
    ("ray.io", "RayService"): Workload("kuberay", _SUSPEND),
    ("workload.codeflare.dev", "AppWrapper"): Workload("appwrapper", _SUSPEND),
}


def find_workload(group: str, kind: str) -> Workload | None:
    """Return what is known of a kind, if it is in the table."""
    return WORKLOADS.get((group, kind))


def find_ttl_path(group: str, kind: str, operator: str) -> tuple[str, ...]:
    """Return the path of the field that deletes a finished object; `operator` is that of its kind description."""
    found = find_workload(group, kind)
    if found is not None:
        return found.ttl
    # mpi-operator deletes only the launcher's pods and keeps the job.
    return () if operator in ("", "mpi-operator") else _RUN_POLICY_TTL
