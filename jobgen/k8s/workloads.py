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
    lifecycle: str = ""
    """The paths in its spec that no pod depends on, separated by spaces: admission, deadlines, retries, cleanup."""

    @property
    def lifecycle_paths(self) -> list[tuple[str, ...]]:
        """The paths in its spec that no pod depends on."""
        return [tuple(path.split(".")) for path in self.lifecycle.split()]


_SUSPEND, _TTL = ("spec", "suspend"), ("spec", "ttlSecondsAfterFinished")
_JOB_LIFECYCLE = "suspend ttlSecondsAfterFinished activeDeadlineSeconds backoffLimit managedBy"
_RAY_LIFECYCLE = "preRunningDeadlineSeconds shutdownAfterJobFinishes deletionStrategy"
_RUN_POLICY_TTL = ("spec", "runPolicy", "ttlSecondsAfterFinished")
_TENSORSTACK = Workload(
    "tensorstack",
    ("spec", "runMode", "pause", "enabled"),
    queue=("spec", "scheduler", "t9kScheduler", "queue"),
    lifecycle="runMode.pause scheduler.t9kScheduler.queue scheduler.t9kScheduler.priority cleanUpPolicy",
)
# The descriptions of these kinds have the fields that no pod depends on.
_TRAINING_JOB = _TENSORSTACK._replace(lifecycle="")

WORKLOADS: Mapping[tuple[str, str], Workload] = {
    ("batch", "CronJob"): Workload("kubernetes", scheduled=True),
    ("batch", "Job"): Workload("kubernetes", _SUSPEND, _TTL, lifecycle=_JOB_LIFECYCLE),
    ("batch.tensorstack.dev", "BeamJob"): _TENSORSTACK._replace(suspend=()),
    ("batch.tensorstack.dev", "ColossalAIJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "DeepSpeedJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "GenericJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "MPIJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "PyTorchTrainingJob"): _TRAINING_JOB,
    ("batch.tensorstack.dev", "TensorFlowTrainingJob"): _TRAINING_JOB,
    ("batch.tensorstack.dev", "XGBoostTrainingJob"): _TRAINING_JOB,
    ("batch.volcano.sh", "CronJob"): Workload("volcano", scheduled=True),
    ("batch.volcano.sh", "Job"): Workload(
        "volcano",
        ttl=_TTL,
        queue=("spec", "queue"),
        lifecycle="queue ttlSecondsAfterFinished maxRetry minAvailable runningEstimate",
    ),
    ("jobset.x-k8s.io", "JobSet"): Workload(
        "jobset", _SUSPEND, _TTL, lifecycle="suspend ttlSecondsAfterFinished managedBy"
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Workload("leaderworkerset"),
    ("ray.io", "RayCluster"): Workload("kuberay", _SUSPEND),
    ("ray.io", "RayCronJob"): Workload("kuberay", scheduled=True),
    # The TTL of a RayJob deletes its RayCluster and keeps the RayJob.
    ("ray.io", "RayJob"): Workload("kuberay", _SUSPEND, lifecycle=f"{_JOB_LIFECYCLE} {_RAY_LIFECYCLE}"),
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
