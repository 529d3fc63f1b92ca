"""What an edit does to Jobs, JobSets, objects of Ray and Volcano, LeaderWorkerSets and AppWrappers: one table.

Changes that the API server or a webhook rejects are found by `immutable_fields` first.
"""

from __future__ import annotations

from jobgen.diff.effects import Behavior, Effect
from jobgen.spec.kinds import VersionRange

_IN_PLACE, _NO_EFFECT, _RESTART, _REJECTED = Effect.IN_PLACE, Effect.NO_EFFECT, Effect.RESTART, Effect.REJECTED
_RECREATE, _NEVER = "Recreate", "None"
_REQUEUED = "Kueue stops the {} and queues it again, because it differs from what was admitted"
_SUSPENDED = "the job is suspended; its pods will be created with the new value"
_SCALED = "pods are added or removed"
_READ_LATER = "the operator reads it when it is needed"


def _below(prefix: str, paths: str) -> str:
    return " ".join(f"{prefix}/{path}" for path in paths.split())


# Fields of a RayCluster, relative to its spec; `+` and `-` stand for an appended and a removed group of workers.
# Kueue compares counts and containers with what it admitted.
_SCALES = """workerGroupSpecs/*/replicas workerGroupSpecs/*/minReplicas workerGroupSpecs/*/maxReplicas
    workerGroupSpecs/*/scaleStrategy workerGroupSpecs/*/suspend"""
_NOT_COMPARED = """upgradeStrategy headGroupSpec/template/spec/tolerations headGroupSpec/template/spec/schedulingGates
    workerGroupSpecs/*/template/spec/tolerations workerGroupSpecs/*/template/spec/schedulingGates"""
_COUNTS = "workerGroupSpecs/*/replicas workerGroupSpecs/*/numOfHosts"
_ADMITTED = f"""{_COUNTS} workerGroupSpecs/+ workerGroupSpecs/-
    headGroupSpec/template/spec/containers headGroupSpec/template/spec/initContainers
    workerGroupSpecs/*/template/spec/containers workerGroupSpecs/*/template/spec/initContainers"""
_SINCE_RECREATE = VersionRange("1.6.0")

_JOB = (
    Behavior(
        "kubernetes",
        "spec/parallelism",
        _REJECTED,
        "Kueue rejects the change while the Job is not suspended, because it can be admitted in part",
        kinds="Job",
        queued=True,
        partial=True,
    ),
    Behavior(
        "kubernetes",
        "spec/parallelism",
        _IN_PLACE,
        "the Job is elastic, so Kueue admits added pods separately",
        kinds="Job",
        queued=True,
        elastic=True,
    ),
    Behavior("kubernetes", "spec/parallelism", _RESTART, _REQUEUED.format("Job"), kinds="Job", queued=True),
    Behavior("kubernetes", "spec/parallelism spec/completions", _IN_PLACE, _SCALED, kinds="Job"),
)
_JOBSET = (
    Behavior("jobset", "spec/coordinator", _IN_PLACE, "Jobs that are created later use the new value", suspended=True),
    Behavior("jobset", "spec/coordinator", _NO_EFFECT, "it is copied to Jobs and pods when they are created"),
)
# Scheduled kinds: `suspend` keeps the next runs from starting and does not stop a run.
_CRON = tuple(
    behavior
    for operator, kind in (("kubernetes", "CronJob"), ("volcano", "CronJob"), ("kuberay", "RayCronJob"))
    for behavior in (
        Behavior(operator, "spec/suspend", _IN_PLACE, "it decides about later runs; a started run goes on", kinds=kind),
        Behavior(operator, "spec", _IN_PLACE, "later runs use the new value; a started run keeps its own", kinds=kind),
    )
)
_RAY_CLUSTER = (
    Behavior(
        "kuberay",
        _below("spec", _COUNTS),
        _IN_PLACE,
        "the RayCluster is elastic, so Kueue admits added pods separately",
        kinds="RayCluster",
        queued=True,
        elastic=True,
    ),
    Behavior(
        "kuberay",
        _below("spec", _ADMITTED),
        _RESTART,
        _REQUEUED.format("RayCluster"),
        kinds="RayCluster",
        suspended=False,
        queued=True,
    ),
    Behavior("kuberay", "spec", _IN_PLACE, _SUSPENDED, kinds="RayCluster", suspended=True),
    Behavior("kuberay", _below("spec", _SCALES), _IN_PLACE, _SCALED, kinds="RayCluster"),
    Behavior("kuberay", "spec/upgradeStrategy", _IN_PLACE, "it decides what later changes do", kinds="RayCluster"),
    Behavior(
        "kuberay",
        _below("spec", _NOT_COMPARED),
        _NO_EFFECT,
        "KubeRay does not compare it; only pods that are created later use the new value",
        kinds="RayCluster",
    ),
    Behavior(
        "kuberay",
        "spec",
        _RESTART,
        "`upgradeStrategy` is `Recreate`, so KubeRay deletes all pods and creates them again",
        kinds="RayCluster",
        span=_SINCE_RECREATE,
        upgrade=_RECREATE,
    ),
    Behavior(
        "kuberay",
        "spec/workerGroupSpecs/*/numOfHosts spec/workerGroupSpecs/+",
        _IN_PLACE,
        _SCALED,
        kinds="RayCluster",
    ),
    Behavior(
        "kuberay",
        "spec/workerGroupSpecs/-",
        _NO_EFFECT,
        "KubeRay does not delete the pods of a worker group that is removed",
        kinds="RayCluster",
    ),
    Behavior(
        "kuberay",
        "spec",
        _NO_EFFECT,
        "KubeRay does not change pods that exist; only pods that are created later use the new value",
        kinds="RayCluster",
    ),
)
_RAY_JOB = (
    Behavior(
        "kuberay",
        "spec/activeDeadlineSeconds spec/preRunningDeadlineSeconds spec/backoffLimit spec/shutdownAfterJobFinishes "
        "spec/ttlSecondsAfterFinished spec/deletionStrategy",
        _IN_PLACE,
        _READ_LATER,
        kinds="RayJob",
    ),
    Behavior(
        "kuberay",
        _below("spec/rayClusterSpec", _ADMITTED),
        _RESTART,
        _REQUEUED.format("RayJob"),
        kinds="RayJob",
        suspended=False,
        queued=True,
        elastic=False,
    ),
    Behavior("kuberay", "spec", _IN_PLACE, _SUSPENDED, kinds="RayJob", suspended=True),
    Behavior(
        "kuberay",
        "spec",
        _NO_EFFECT,
        "KubeRay reads it when the job starts; suspend and resume the job to start it with the new value",
        kinds="RayJob",
    ),
)
_RAY_SERVICE = (
    Behavior("kuberay", "spec/rayClusterConfig", _IN_PLACE, _SUSPENDED, kinds="RayService", suspended=True),
    Behavior(
        "kuberay",
        f"{_below('spec/rayClusterConfig', _SCALES)} spec/rayClusterConfig/workerGroupSpecs/+",
        _IN_PLACE,
        _SCALED,
        kinds="RayService",
    ),
    Behavior(
        "kuberay",
        _below("spec/rayClusterConfig", _NOT_COMPARED),
        _NO_EFFECT,
        "KubeRay does not compare it; only pods that are created later use the new value",
        kinds="RayService",
        span=_SINCE_RECREATE,
    ),
    Behavior(
        "kuberay",
        "spec/rayClusterConfig",
        _NO_EFFECT,
        "`upgradeStrategy` is `None`, so KubeRay keeps the running cluster",
        kinds="RayService",
        upgrade=_NEVER,
    ),
    Behavior(
        "kuberay",
        "spec/rayClusterConfig",
        _RESTART,
        "KubeRay starts a second cluster and deletes the first when it is ready; both hold their GPUs until then",
        kinds="RayService",
    ),
    Behavior("kuberay", "spec/serveConfigV2", _IN_PLACE, "KubeRay sends it to the running cluster", kinds="RayService"),
)
_OTHERS = (
    Behavior(
        "volcano", "spec/tasks spec/minAvailable", _IN_PLACE, "pods are added or removed, and the gang changes", "Job"
    ),
    Behavior("leaderworkerset", "spec/replicas", _IN_PLACE, "groups of pods are added or removed"),
    Behavior(
        "leaderworkerset",
        "spec/leaderWorkerTemplate spec/networkConfig",
        _RESTART,
        "the groups of pods are replaced one after another",
    ),
)

WORKLOAD_BEHAVIORS: tuple[Behavior, ...] = (
    *_JOB,
    *_JOBSET,
    *_CRON,
    *_RAY_CLUSTER,
    *_RAY_JOB,
    *_RAY_SERVICE,
    *_OTHERS,
)
