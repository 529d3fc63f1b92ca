"""What an edit does to a running job, by operator: one table. The first behavior that matches a field applies."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache, partial

from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import VersionRange


class Effect(StrEnum):
    """The effect of an edit, least severe first."""

    IN_PLACE = "in-place"
    NO_EFFECT = "no-effect"
    NEW_RUN = "new-run"
    RESTART = "restart"
    STOPS_RUNNING = "stops-running"
    REJECTED = "rejected"


RANK = {effect: rank for rank, effect in enumerate(Effect)}

MEANING = {
    Effect.IN_PLACE: "applied to the running job",
    Effect.NO_EFFECT: "running pods keep the old value; the next run uses the new one",
    Effect.NEW_RUN: "training starts from the beginning, or for the first time",
    Effect.RESTART: "the running job is stopped and started again",
    Effect.STOPS_RUNNING: "the running job is stopped",
    Effect.REJECTED: "rejected by the API server; nothing is applied",
}


class Manner(StrEnum):
    """What else is known about an effect."""

    USUAL = "usual"
    SCALES = "scales"
    """Pods are added or removed."""
    IGNORED = "ignored"
    """Nothing ever uses the new state: no run, and no later one."""


class Outcome(NamedTuple):
    """The effect of an edit, and the reason."""

    effect: Effect
    reason: str
    manner: Manner = Manner.USUAL


class JobState(NamedTuple):
    """The facts about a job that decide what an edit does to it."""

    operator: str = ""
    kind: str = ""
    version: str = ""
    kueue: str = ""
    """The declared version of Kueue."""
    suspended: bool = False
    """True if it has no pods because it is suspended."""
    queued: bool = False
    """True if Kueue manages it."""
    elastic: bool = False
    on_both_sides: bool = True
    """True if the field has a value on both sides."""
    partial: bool = False
    """True if Kueue may admit only some of its pods."""
    upgrade: str = ""
    """The `upgradeStrategy` of a RayCluster or RayService; empty if it is the default."""


class Behavior(NamedTuple):
    """What an operator does when fields at or below some paths change; empty conditions always hold.

    `role` stands for the path to any role. Paths and names are separated by spaces.
    """

    operators: str
    paths: str
    effect: Effect
    reason: str
    kinds: str = ""
    span: VersionRange = VersionRange()
    kueue: VersionRange = VersionRange()
    suspended: bool | None = None
    queued: bool | None = None
    elastic: bool | None = None
    on_both_sides: bool | None = None
    partial: bool | None = None
    upgrade: str | None = None
    manner: Manner = Manner.USUAL

    def matches(self, path: str, state: JobState) -> bool:
        """Return True if this behavior applies to a field of a job in that state."""
        return (
            state.operator in (self.operators or state.operator).split()
            and (not self.kinds or state.kind in self.kinds.split())
            and all(wanted in (None, known) for wanted, known in zip(self[7:13], state[4:], strict=True))
            and self.span.contains(state.version)
            and self.kueue.contains(state.kueue)
            and any(path == known or path.startswith(f"{known}/") for known in self.paths.split())
        )


_IN_PLACE, _NO_EFFECT, _RESTART, _REJECTED = Effect.IN_PLACE, Effect.NO_EFFECT, Effect.RESTART, Effect.REJECTED
# Every release since 0.3 compares counts, and containers and init containers in all fields.
_REQUEUED = (
    "Kueue stops the {} and queues it again, because the number of pods and every field of containers "
    "must stay as admitted"
)
_SCALED = "pods are added or removed"
_SUSPENDED = "the job is suspended; its pods will be created with the new value"
_NOT_COMPARED_REASON = "KubeRay does not compare it; only pods that are created later use the new value"


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

_Job = partial(Behavior, "kubernetes", kinds="Job")
_RayCluster = partial(Behavior, "kuberay", kinds="RayCluster")
_RayJob = partial(Behavior, "kuberay", kinds="RayJob")
_RayService = partial(Behavior, "kuberay", kinds="RayService")

_WORKLOAD_BEHAVIORS: tuple[Behavior, ...] = (
    _Job(
        "spec/parallelism",
        _REJECTED,
        "Kueue rejects the change while the Job is not suspended, because it can be admitted in part",
        queued=True,
        partial=True,
    ),
    _Job(
        "spec/parallelism",
        _IN_PLACE,
        "the Job is elastic, so Kueue admits added pods separately",
        queued=True,
        elastic=True,
        manner=Manner.SCALES,
    ),
    _Job("spec/parallelism", _RESTART, _REQUEUED.format("Job"), queued=True),
    _Job("spec/parallelism spec/completions", _IN_PLACE, _SCALED, manner=Manner.SCALES),
    Behavior("jobset", "spec/coordinator", _IN_PLACE, "Jobs that are created later use the new value", suspended=True),
    Behavior("jobset", "spec/coordinator", _NO_EFFECT, "it is copied to Jobs and pods when they are created"),
    # Scheduled kinds: `suspend` keeps the next runs from starting and does not stop a run.
    *(
        Behavior(operator, path, _IN_PLACE, reason, kinds=kind)
        for operator, kind in (("kubernetes", "CronJob"), ("volcano", "CronJob"), ("kuberay", "RayCronJob"))
        for path, reason in (
            ("spec/suspend", "it decides about later runs; a started run goes on"),
            ("spec", "later runs use the new value; a started run keeps its own"),
        )
    ),
    _RayCluster(
        _below("spec", _COUNTS),
        _IN_PLACE,
        "the RayCluster is elastic, so Kueue admits added pods separately",
        queued=True,
        elastic=True,
        manner=Manner.SCALES,
    ),
    _RayCluster(_below("spec", _ADMITTED), _RESTART, _REQUEUED.format("RayCluster"), suspended=False, queued=True),
    _RayCluster("spec", _IN_PLACE, _SUSPENDED, suspended=True),
    _RayCluster(_below("spec", _SCALES), _IN_PLACE, _SCALED, manner=Manner.SCALES),
    _RayCluster("spec/upgradeStrategy", _IN_PLACE, "it decides what later changes do"),
    _RayCluster(_below("spec", _NOT_COMPARED), _NO_EFFECT, _NOT_COMPARED_REASON),
    _RayCluster(
        "spec",
        _RESTART,
        "`upgradeStrategy` is `Recreate`, so KubeRay deletes all pods and creates them again",
        span=_SINCE_RECREATE,
        upgrade="Recreate",
    ),
    _RayCluster("spec/workerGroupSpecs/*/numOfHosts spec/workerGroupSpecs/+", _IN_PLACE, _SCALED, manner=Manner.SCALES),
    _RayCluster(
        "spec/workerGroupSpecs/-", _NO_EFFECT, "KubeRay does not delete the pods of a worker group that is removed"
    ),
    _RayCluster(
        "spec",
        _NO_EFFECT,
        "KubeRay does not change pods that exist; only pods that are created later use the new value",
    ),
    _RayJob(
        "spec/activeDeadlineSeconds spec/preRunningDeadlineSeconds spec/backoffLimit spec/shutdownAfterJobFinishes "
        "spec/ttlSecondsAfterFinished spec/deletionStrategy",
        _IN_PLACE,
        "the operator reads it when it is needed",
    ),
    _RayJob(
        _below("spec/rayClusterSpec", _ADMITTED),
        _RESTART,
        _REQUEUED.format("RayJob"),
        suspended=False,
        queued=True,
        elastic=False,
    ),
    _RayJob("spec", _IN_PLACE, _SUSPENDED, suspended=True),
    _RayJob(
        "spec",
        _NO_EFFECT,
        "KubeRay reads it when the job starts; suspend and resume the job to start it with the new value",
    ),
    _RayService("spec/rayClusterConfig", _IN_PLACE, _SUSPENDED, suspended=True),
    _RayService(
        f"{_below('spec/rayClusterConfig', _SCALES)} spec/rayClusterConfig/workerGroupSpecs/+",
        _IN_PLACE,
        _SCALED,
        manner=Manner.SCALES,
    ),
    _RayService(_below("spec/rayClusterConfig", _NOT_COMPARED), _NO_EFFECT, _NOT_COMPARED_REASON, span=_SINCE_RECREATE),
    _RayService(
        "spec/rayClusterConfig",
        _NO_EFFECT,
        "`upgradeStrategy` is `None`, so KubeRay keeps the running cluster",
        upgrade="None",
    ),
    _RayService(
        "spec/rayClusterConfig",
        _RESTART,
        "KubeRay starts a second cluster and deletes the first when it is ready; both hold their GPUs until then",
    ),
    _RayService("spec/serveConfigV2", _IN_PLACE, "KubeRay sends it to the running cluster"),
    Behavior(
        "volcano",
        "spec/tasks spec/minAvailable",
        _IN_PLACE,
        "pods are added or removed, and the gang changes",
        "Job",
        manner=Manner.SCALES,
    ),
    Behavior(
        "leaderworkerset",
        "spec/replicas",
        _IN_PLACE,
        "groups of pods are added or removed",
        manner=Manner.SCALES,
    ),
    Behavior(
        "leaderworkerset",
        "spec/leaderWorkerTemplate spec/networkConfig",
        _RESTART,
        "the groups of pods are replaced one after another",
    ),
)


_KUEUE = "training-operator mpi-operator trainer kubernetes jobset kuberay appwrapper leaderworkerset"
_KUEUE_LABELS = (
    "metadata/labels/kueue.x-k8s.io~1queue-name metadata/labels/kueue.x-k8s.io~1priority-class "
    "metadata/labels/kueue.x-k8s.io~1max-exec-time-seconds"
)
_IMMUTABLE = "the field is immutable after creation"
_RECONCILED = "the operator reads it at every reconciliation"
_TrainingOperator = partial(Behavior, "training-operator")
_V1 = partial(Behavior, "training-operator mpi-operator")
_TrainJob = partial(Behavior, "trainer", kinds="TrainJob")
_TensorStack = partial(Behavior, "tensorstack")

BEHAVIORS: tuple[Behavior, ...] = (
    Behavior("", "status", _NO_EFFECT, "the operator owns the status", manner=Manner.IGNORED),
    Behavior(
        _KUEUE,
        "metadata/labels/kueue.x-k8s.io~1priority-class",
        _IN_PLACE,
        "since 0.15, Kueue changes the priority of the workload, and the job keeps running",
        kueue=VersionRange("0.15"),
        suspended=False,
        queued=True,
        on_both_sides=True,
    ),
    # Kueue's webhook compares these labels while the job is not suspended.
    Behavior(
        _KUEUE,
        _KUEUE_LABELS,
        _REJECTED,
        "Kueue rejects the change while the job is not suspended",
        suspended=False,
        queued=True,
    ),
    Behavior("", "metadata", _IN_PLACE, "metadata is updated; pods are not affected"),
    # training-operator and mpi-operator
    _TrainingOperator(
        "spec/runPolicy/schedulingPolicy/queue", _REJECTED, _IMMUTABLE, span=VersionRange("1.8.0"), on_both_sides=True
    ),
    _TrainingOperator(
        "spec/runPolicy/managedBy",
        _REJECTED,
        "the operator's webhook rejects the change",
        kinds="TFJob XGBoostJob PaddleJob",
        span=VersionRange("1.9.0"),
    ),
    Behavior(
        "mpi-operator",
        "spec/runPolicy/ttlSecondsAfterFinished spec/runPolicy/activeDeadlineSeconds spec/runPolicy/backoffLimit",
        _NO_EFFECT,
        "it is copied to the launcher's Job, which is created once",
        suspended=False,
    ),
    _V1("spec/runPolicy spec/cleanPodPolicy", _IN_PLACE, _RECONCILED),
    _V1(
        "role/replicas role/template/spec/containers role/template/spec/initContainers",
        _RESTART,
        _REQUEUED.format("job"),
        suspended=False,
        queued=True,
    ),
    _V1(
        "role/replicas",
        _IN_PLACE,
        "the job is elastic, so pods are added or removed",
        elastic=True,
        manner=Manner.SCALES,
    ),
    _V1(
        "role/replicas",
        _IN_PLACE,
        "pods are added or removed; running pods keep the number of peers that they started with",
        manner=Manner.SCALES,
    ),
    _V1("spec role", _IN_PLACE, _SUSPENDED, suspended=True),
    _TrainingOperator(
        "spec/elasticPolicy/minReplicas spec/elasticPolicy/maxReplicas spec/elasticPolicy/metrics",
        _IN_PLACE,
        "the job's autoscaler is updated",
    ),
    _TrainingOperator("spec/successPolicy", _IN_PLACE, _RECONCILED),
    _V1("role spec", _NO_EFFECT, "running pods are never changed; only pods created later use the new value"),
    # Trainer. Changes that its CRD rejects are found by `immutability` first.
    _TrainJob(
        "spec/runtimePatches spec/podTemplateOverrides spec/podSpecOverrides",
        _REJECTED,
        "the webhook accepts patches of the runtime only while the job is suspended",
        suspended=False,
    ),
    _TrainJob("spec", _IN_PLACE, _SUSPENDED, suspended=True),
    _TrainJob("spec", _NO_EFFECT, "the running JobSet is never changed"),
    Behavior("trainer", "spec", _IN_PLACE, "running jobs keep their values; new jobs use the new value"),
    # TensorStack, as far as its reference documents it.
    _TensorStack(
        "spec/elastic/minReplicas spec/elastic/maxReplicas spec/runMode/pause/resumeSpecs", _REJECTED, _IMMUTABLE
    ),
    _TensorStack("spec/elastic/expectedReplicas", _IN_PLACE, _RECONCILED, manner=Manner.SCALES),
    _TensorStack("spec/tensorboardSpec spec/runPolicy", _IN_PLACE, _RECONCILED),
    _TensorStack("spec role", _IN_PLACE, _SUSPENDED, suspended=True),
    _TensorStack("spec role", _NO_EFFECT, "TensorStack does not document changes of running pods"),
    # Kinds that a repository describes in its own kind files.
    Behavior("", "role", _NO_EFFECT, "operators do not change running pods"),
    Behavior("unknown", "spec", _NO_EFFECT, "its operator is unknown; most operators do not change running pods"),
    *_WORKLOAD_BEHAVIORS,
    # Other kinds. Changes that are rejected are found by `immutable_fields` first.
    Behavior(
        "-",
        "spec/resources spec/volumeAttributesClassName",
        _IN_PLACE,
        "a claim can be expanded",
        kinds="PersistentVolumeClaim",
    ),
    Behavior("-", "spec/template", _RESTART, "its pods are replaced", kinds="Deployment StatefulSet DaemonSet"),
)


@lru_cache(maxsize=8192)
def predict_outcome(path: str, state: JobState) -> Outcome:
    """The outcome of an edit of the field at a path."""
    found = next((behavior for behavior in BEHAVIORS if behavior.matches(path, state)), None)
    if found is None:
        return Outcome(_IN_PLACE, "the API server updates the object")
    # All versions do the same; who declares one is told that this one does.
    named = found.reason.replace("Kueue stops", f"Kueue {state.kueue} stops") if state.kueue else found.reason
    return Outcome(found.effect, named, found.manner)


def select_worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The first of the most severe outcomes."""
    return max(outcomes, key=lambda one: RANK[one.effect])
