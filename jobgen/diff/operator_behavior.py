"""What an edit does to a running job, by operator: one table. The first behavior that matches a field applies."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from jobgen.diff.effects import RANK, Behavior, Effect, JobState, Outcome
from jobgen.diff.workload_behavior import WORKLOAD_BEHAVIORS
from jobgen.spec.kinds import VersionRange

_KUEUE = "training-operator mpi-operator trainer kubernetes jobset kuberay appwrapper leaderworkerset"
_KUEUE_LABELS = (
    "metadata/labels/kueue.x-k8s.io~1queue-name metadata/labels/kueue.x-k8s.io~1priority-class "
    "metadata/labels/kueue.x-k8s.io~1max-exec-time-seconds"
)
_NOT_SUSPENDED = "Kueue rejects the change while the job is not suspended"
_V1 = "training-operator mpi-operator"
_TEMPLATE = "running pods are never changed; only pods created later use the new value"
_SUSPENDED = "the job is suspended; its pods will be created with the new value"
_IMMUTABLE = "the field is immutable after creation"
_RECONCILED = "the operator reads it at every reconciliation"

BEHAVIORS: tuple[Behavior, ...] = (
    Behavior("", "status", Effect.NO_EFFECT, "the operator owns the status"),
    # Kueue's webhook compares these labels while the job is not suspended.
    Behavior(_KUEUE, _KUEUE_LABELS, Effect.REJECTED, _NOT_SUSPENDED, suspended=False, queued=True),
    Behavior("", "metadata", Effect.IN_PLACE, "metadata is updated; pods are not affected"),
    # training-operator and mpi-operator
    Behavior(
        "training-operator",
        "spec/runPolicy/schedulingPolicy/queue",
        Effect.REJECTED,
        _IMMUTABLE,
        span=VersionRange("1.8.0"),
        on_both_sides=True,
    ),
    Behavior(
        "training-operator",
        "spec/runPolicy/managedBy",
        Effect.REJECTED,
        "the operator's webhook rejects the change",
        kinds="TFJob XGBoostJob PaddleJob",
        span=VersionRange("1.9.0"),
    ),
    Behavior(
        "mpi-operator",
        "spec/runPolicy/ttlSecondsAfterFinished spec/runPolicy/activeDeadlineSeconds spec/runPolicy/backoffLimit",
        Effect.NO_EFFECT,
        "it is copied to the launcher's Job, which is created once",
        suspended=False,
    ),
    Behavior(_V1, "spec/runPolicy spec/cleanPodPolicy", Effect.IN_PLACE, _RECONCILED),
    Behavior(
        _V1,
        "role/replicas role/template/spec/containers role/template/spec/initContainers",
        Effect.RESTART,
        "Kueue stops the job and queues it again, because it differs from what was admitted; "
        "newer Kueue versions do so only for replicas and resources",
        suspended=False,
        queued=True,
    ),
    Behavior(_V1, "role/replicas", Effect.IN_PLACE, "the job is elastic, so pods are added or removed", elastic=True),
    Behavior(
        _V1,
        "role/replicas",
        Effect.IN_PLACE,
        "pods are added or removed; running pods keep the number of peers that they started with",
    ),
    Behavior(_V1, "spec role", Effect.IN_PLACE, _SUSPENDED, suspended=True),
    Behavior(
        "training-operator",
        "spec/elasticPolicy/minReplicas spec/elasticPolicy/maxReplicas spec/elasticPolicy/metrics",
        Effect.IN_PLACE,
        "the job's autoscaler is updated",
    ),
    Behavior("training-operator", "spec/successPolicy", Effect.IN_PLACE, _RECONCILED),
    Behavior(_V1, "role spec", Effect.NO_EFFECT, _TEMPLATE),
    # Trainer. Changes that its CRD rejects are found by `immutability` first.
    Behavior(
        "trainer",
        "spec/runtimePatches spec/podTemplateOverrides spec/podSpecOverrides",
        Effect.REJECTED,
        "the webhook accepts patches of the runtime only while the job is suspended",
        kinds="TrainJob",
        suspended=False,
    ),
    Behavior("trainer", "spec", Effect.IN_PLACE, _SUSPENDED, kinds="TrainJob", suspended=True),
    Behavior(
        "trainer",
        "spec",
        Effect.NO_EFFECT,
        "the running JobSet is never changed",
        kinds="TrainJob",
    ),
    Behavior("trainer", "spec", Effect.IN_PLACE, "running jobs keep their values; new jobs use the new value"),
    # TensorStack, as far as its reference documents it.
    Behavior(
        "tensorstack",
        "spec/elastic/minReplicas spec/elastic/maxReplicas spec/runMode/pause/resumeSpecs",
        Effect.REJECTED,
        _IMMUTABLE,
    ),
    Behavior(
        "tensorstack",
        "spec/elastic/expectedReplicas spec/tensorboardSpec spec/runPolicy",
        Effect.IN_PLACE,
        _RECONCILED,
    ),
    Behavior("tensorstack", "spec role", Effect.IN_PLACE, _SUSPENDED, suspended=True),
    Behavior("tensorstack", "spec role", Effect.NO_EFFECT, "TensorStack does not document changes of running pods"),
    # Kinds that a repository describes in its own kind files.
    Behavior("", "role", Effect.NO_EFFECT, "operators do not change running pods"),
    Behavior("unknown", "spec", Effect.NO_EFFECT, "its operator is unknown; most operators do not change running pods"),
    *WORKLOAD_BEHAVIORS,
    # Other kinds. Changes that are rejected are found by `immutable_fields` first.
    Behavior(
        "-",
        "spec/resources spec/volumeAttributesClassName",
        Effect.IN_PLACE,
        "a claim can be expanded",
        kinds="PersistentVolumeClaim",
    ),
    Behavior("-", "spec/template", Effect.RESTART, "its pods are replaced", kinds="Deployment StatefulSet DaemonSet"),
)
_DEFAULT = Outcome(Effect.IN_PLACE, "the API server updates the object")


@lru_cache(maxsize=8192)
def predict_outcome(path: str, state: JobState) -> Outcome:
    """The outcome of an edit of the field at a path."""
    found = next((behavior for behavior in BEHAVIORS if behavior.matches(path, state)), None)
    return Outcome(found.effect, found.reason) if found else _DEFAULT


def select_worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The first of the most severe outcomes."""
    return max(outcomes, key=lambda one: RANK[one.effect])
