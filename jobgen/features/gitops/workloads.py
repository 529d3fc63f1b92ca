"""Kinds that run pods and have no kind description: what Argo CD and Flux must know about them. One table."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.features.gitops.status_rules import ConditionTest, FieldTest, StatusRules
from jobgen.model.named_tuple import NamedTuple


class EngineWorkload(NamedTuple):
    """A kind for GitOps engines."""

    version: str
    rules: StatusRules | None = None
    """Its health; None if its conditions decide, or if it has none."""
    has_health: bool = True
    """Whether Argo CD has no health check of its own, and the status of the object says how it is."""
    filled_in: Mapping[str, tuple[str, ...]] = {}
    """What the server fills in below items of lists: for each jq path, fields with their value in jq."""
    ignored: tuple[str, ...] = ()
    """Fields that controllers write, in jq."""
    queued: tuple[str, ...] = ()
    """Fields that Kueue writes beside `suspend` and pod templates, in jq."""


_DEPLOYMENT, _JOB = "jobDeploymentStatus", "jobStatus"
_RAY_JOB = StatusRules(
    healthy=((FieldTest(_DEPLOYMENT, ("Complete",)), FieldTest(_JOB, ("SUCCEEDED",))),),
    # A job that somebody stopped is also complete.
    failed=(
        (FieldTest(_DEPLOYMENT, ("Failed", "ValidationFailed")),),
        (FieldTest(_DEPLOYMENT, ("Complete",)), FieldTest(_JOB, ("SUCCEEDED",), negated=True)),
    ),
    suspended=((FieldTest(_DEPLOYMENT, ("Suspended", "Suspending")),),),
    message=("message", _DEPLOYMENT),
)
_RAY_CLUSTER = StatusRules(
    healthy=((ConditionTest("RayClusterProvisioned"),),),
    failed=((ConditionTest("ReplicaFailure"),),),
    suspended=((ConditionTest("RayClusterSuspended"),), (ConditionTest("RayClusterSuspending"),)),
    message=("reason",),
)
_RAY_SERVICE = StatusRules(
    healthy=((ConditionTest("Ready"),),),
    failed=((ConditionTest("Ready", "False", ("ValidationFailed", "InitializingTimeout")),),),
    suspended=((ConditionTest("Suspended"),), (ConditionTest("Suspending"),)),
)
_VOLCANO_JOB = StatusRules(
    healthy=((FieldTest("state.phase", ("Completed",)),),),
    failed=((FieldTest("state.phase", ("Failed", "Aborted", "Terminated")),),),
    message=("state.message", "state.reason", "state.phase"),
)
_LEADER_WORKER_SET = StatusRules(healthy=((ConditionTest("Available"),),))
_APP_WRAPPER = StatusRules(
    healthy=((FieldTest("phase", ("Succeeded",)),),),
    failed=((FieldTest("phase", ("Failed",)),),),
    suspended=((FieldTest("phase", ("Suspended", "Suspending")),),),
    message=("phase",),
)
# The defaults of the CRD in items of a list.
_WORKER_GROUP = ("replicas == 0", "minReplicas == 0", "maxReplicas == 2147483647", "numOfHosts == 1")
_TENSORSTACK = EngineWorkload("v1beta1")

ENGINE_WORKLOADS: Mapping[tuple[str, str], EngineWorkload] = {
    ("batch", "CronJob"): EngineWorkload("v1", has_health=False),
    ("batch", "Job"): EngineWorkload("v1", has_health=False),
    ("batch.tensorstack.dev", "BeamJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "ColossalAIJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "DeepSpeedJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "GenericJob"): _TENSORSTACK,
    ("batch.tensorstack.dev", "MPIJob"): _TENSORSTACK,
    ("batch.volcano.sh", "CronJob"): EngineWorkload("v1alpha1", has_health=False),
    ("batch.volcano.sh", "Job"): EngineWorkload(
        "v1alpha1",
        _VOLCANO_JOB,
        filled_in={".spec.tasks[]?": ("maxRetry == 3", 'name | strings | test("^default[0-9]+$")')},
    ),
    ("jobset.x-k8s.io", "JobSet"): EngineWorkload(
        "v1alpha2",
        filled_in={
            ".spec.replicatedJobs[]?": ("replicas == 1", 'groupName == "default"'),
            ".spec.replicatedJobs[]?.template.spec": ('completionMode == "Indexed"',),
            ".spec.replicatedJobs[]?.template.spec.template.spec": ('restartPolicy == "OnFailure"',),
        },
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): EngineWorkload("v1", _LEADER_WORKER_SET),
    ("ray.io", "RayCluster"): EngineWorkload(
        "v1",
        _RAY_CLUSTER,
        filled_in={".spec.workerGroupSpecs[]?": _WORKER_GROUP},
        # The autoscaler writes these; `scaleStrategy` has only the workers to delete.
        ignored=(
            ".spec | select(.enableInTreeAutoscaling == true) | .workerGroupSpecs[]?.replicas",
            ".spec | select(.enableInTreeAutoscaling == true) | .workerGroupSpecs[]?.scaleStrategy",
        ),
    ),
    ("ray.io", "RayCronJob"): EngineWorkload(
        "v1", has_health=False, filled_in={".spec.jobTemplate.rayClusterSpec.workerGroupSpecs[]?": _WORKER_GROUP}
    ),
    ("ray.io", "RayJob"): EngineWorkload(
        "v1", _RAY_JOB, filled_in={".spec.rayClusterSpec.workerGroupSpecs[]?": _WORKER_GROUP}
    ),
    ("ray.io", "RayService"): EngineWorkload(
        "v1", _RAY_SERVICE, filled_in={".spec.rayClusterConfig.workerGroupSpecs[]?": _WORKER_GROUP}
    ),
    ("workload.codeflare.dev", "AppWrapper"): EngineWorkload(
        "v1beta2", _APP_WRAPPER, queued=(".spec.components[]?.podSetInfos",)
    ),
}


def find_engine_workload(group: str, kind: str) -> EngineWorkload | None:
    """The entry of a kind, if it is in the table."""
    return ENGINE_WORKLOADS.get((group, kind))


def list_differences(workload: EngineWorkload) -> list[str]:
    """Differences from Git that no edit causes, in jq: a value that the server fills in where Git has none."""
    # Only the filled-in value is ignored, so that another value in Git is still a difference.
    defaults = [
        f"{path} | select(.{test}) | .{test.partition(' ')[0]}"
        for path, tests in workload.filled_in.items()
        for test in tests
    ]
    return [*defaults, *workload.ignored]
