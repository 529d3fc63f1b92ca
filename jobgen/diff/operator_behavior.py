"""What an edit does to a job that runs, by its operator: the table, and how it is read.

The laws stand in the order in which they are asked; the first that speaks of a field decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from jobgen.spec.kinds import VersionRange


class Effect(StrEnum):
    """What becomes of an edit, mildest first."""

    IN_PLACE = "in-place"
    NO_EFFECT = "no-effect"
    NEW_RUN = "new-run"
    RESTART = "restart"
    STOPS_RUNNING = "stops-running"
    REJECTED = "rejected"


RANK = {effect: rank for rank, effect in enumerate(Effect)}

MEANING = {
    Effect.IN_PLACE: "applied to the job as it runs",
    Effect.NO_EFFECT: "accepted, and ignored by the pods that run",
    Effect.NEW_RUN: "training starts from the beginning, or for the first time",
    Effect.RESTART: "the running job is stopped and started again",
    Effect.STOPS_RUNNING: "the running job is stopped",
    Effect.REJECTED: "refused by the API server, so that nothing of it is applied",
}


class Outcome(NamedTuple):
    """The effect of an edit, and why."""

    effect: Effect
    why: str


class JobState(NamedTuple):
    """What must be known of a job to say what an edit does to it."""

    operator: str = ""
    kind: str = ""
    version: str = ""
    suspended: bool = False
    """Told to wait on both sides: it has no pods."""
    queued: bool = False
    """In the hands of Kueue."""
    elastic: bool = False
    both: bool = True
    """Whether the field has a value on both sides."""


class Behavior(NamedTuple):
    """What an operator does about fields at or below a place; empty conditions always hold."""

    operators: str
    places: str
    effect: Effect
    why: str
    kinds: str = ""
    span: VersionRange = VersionRange()
    suspended: bool | None = None
    queued: bool | None = None
    elastic: bool | None = None
    both: bool | None = None

    def speaks_of(self, place: str, state: JobState) -> bool:
        """Whether this law decides about a field of a job in that state."""
        return (
            state.operator in (self.operators or state.operator).split()
            and (not self.kinds or state.kind in self.kinds.split())
            and all(wanted in (None, known) for wanted, known in zip(self[6:], state[3:], strict=True))
            and self.span.holds(state.version)
            and any(place == known or place.startswith(f"{known}/") for known in self.places.split())
        )


_KUEUE = "training-operator mpi-operator trainer"
_V1 = "training-operator mpi-operator"
_TEMPLATE = "pods that run are never changed; only pods made later get it"
_WAITING = "the job is suspended, and its pods will be made with it"
_FIXED = "the field cannot be changed once the job exists"

BEHAVIORS: tuple[Behavior, ...] = (
    Behavior("", "status", Effect.NO_EFFECT, "the status is the operator's"),
    # Kueue's webhook compares these while the job is not suspended.
    Behavior(
        _KUEUE,
        "metadata/labels/kueue.x-k8s.io~1queue-name metadata/labels/kueue.x-k8s.io~1priority-class "
        "metadata/labels/kueue.x-k8s.io~1max-exec-time-seconds",
        Effect.REJECTED,
        "Kueue lets nobody change it while the job is not suspended",
        suspended=False,
        queued=True,
    ),
    Behavior("", "metadata", Effect.IN_PLACE, "metadata is updated, and no pod sees it"),
    # training-operator and mpi-operator
    Behavior(
        "training-operator",
        "spec/runPolicy/schedulingPolicy/queue",
        Effect.REJECTED,
        _FIXED,
        span=VersionRange("1.8.0"),
        both=True,
    ),
    Behavior(
        "training-operator",
        "spec/runPolicy/managedBy",
        Effect.REJECTED,
        "the operator's webhook lets nobody change it",
        kinds="TFJob XGBoostJob PaddleJob",
        span=VersionRange("1.9.0"),
    ),
    Behavior(
        "mpi-operator",
        "spec/runPolicy/ttlSecondsAfterFinished spec/runPolicy/activeDeadlineSeconds spec/runPolicy/backoffLimit",
        Effect.NO_EFFECT,
        "it stands in the launcher's Job, which is made once",
        suspended=False,
    ),
    Behavior(
        _V1, "spec/runPolicy spec/cleanPodPolicy", Effect.IN_PLACE, "the operator reads it whenever it looks at the job"
    ),
    Behavior(
        _V1,
        "role/replicas role/template/spec/containers role/template/spec/initContainers",
        Effect.RESTART,
        "Kueue stops the job and queues it again, for it no longer is what was admitted; "
        "newer Kueue does so for replicas and resources only",
        suspended=False,
        queued=True,
    ),
    Behavior(_V1, "role/replicas", Effect.IN_PLACE, "pods are added or removed, as the job is elastic", elastic=True),
    Behavior(
        _V1,
        "role/replicas",
        Effect.IN_PLACE,
        "pods are added or removed; those that run keep the number of peers that they were told",
    ),
    Behavior(_V1, "spec role", Effect.IN_PLACE, _WAITING, suspended=True),
    Behavior(
        "training-operator",
        "spec/elasticPolicy/minReplicas spec/elasticPolicy/maxReplicas spec/elasticPolicy/metrics",
        Effect.IN_PLACE,
        "the autoscaler of the job is updated",
    ),
    Behavior(
        "training-operator", "spec/successPolicy", Effect.IN_PLACE, "the operator reads it whenever it looks at the job"
    ),
    Behavior(_V1, "role spec", Effect.NO_EFFECT, _TEMPLATE),
    # Trainer; what its CRD's own rules refuse has been told before.
    Behavior(
        "trainer",
        "spec/runtimePatches spec/podTemplateOverrides spec/podSpecOverrides",
        Effect.REJECTED,
        "the webhook takes patches of the runtime only while the job is suspended",
        kinds="TrainJob",
        suspended=False,
    ),
    Behavior("trainer", "spec", Effect.IN_PLACE, _WAITING, kinds="TrainJob", suspended=True),
    Behavior(
        "trainer",
        "spec",
        Effect.NO_EFFECT,
        "the JobSet that runs is never changed",
        kinds="TrainJob",
    ),
    Behavior("trainer", "spec", Effect.IN_PLACE, "jobs that run keep what they were started with; new ones get it"),
    # TensorStack, as far as its reference says anything.
    Behavior(
        "tensorstack",
        "spec/elastic/minReplicas spec/elastic/maxReplicas spec/runMode/pause/resumeSpecs",
        Effect.REJECTED,
        _FIXED,
    ),
    Behavior(
        "tensorstack",
        "spec/elastic/expectedReplicas spec/tensorboardSpec spec/runPolicy",
        Effect.IN_PLACE,
        "the operator reads it whenever it looks at the job",
    ),
    Behavior("tensorstack", "spec role", Effect.IN_PLACE, _WAITING, suspended=True),
    Behavior("tensorstack", "spec role", Effect.NO_EFFECT, "TensorStack does not say that it changes pods that run"),
    # Kinds that a repository describes itself.
    Behavior("", "role", Effect.NO_EFFECT, "operators do not change pods that run"),
    Behavior("unknown", "spec", Effect.NO_EFFECT, "its operator is not known, and most do not change pods that run"),
    # Kinds of others, which stand beside jobs.
    Behavior("-", "spec/parallelism spec/suspend", Effect.IN_PLACE, "the Job takes it", kinds="Job"),
    Behavior(
        "-", "spec/template", Effect.REJECTED, "the template of a Job cannot be changed", kinds="Job", suspended=False
    ),
    Behavior("-", "spec/selector spec/completions spec/completionMode", Effect.REJECTED, _FIXED, kinds="Job"),
    Behavior("-", "spec/replicatedJobs", Effect.REJECTED, "the jobs of a JobSet cannot be changed", kinds="JobSet"),
    Behavior(
        "-",
        "spec/resources spec/volumeAttributesClassName",
        Effect.IN_PLACE,
        "a claim may grow",
        kinds="PersistentVolumeClaim",
    ),
    Behavior("-", "spec", Effect.REJECTED, "a claim cannot be changed once it is bound", kinds="PersistentVolumeClaim"),
    Behavior("-", "spec/selector", Effect.REJECTED, _FIXED, kinds="Deployment StatefulSet DaemonSet"),
    Behavior("-", "spec/template", Effect.RESTART, "its pods are replaced", kinds="Deployment StatefulSet DaemonSet"),
)
_OTHERWISE = Outcome(Effect.IN_PLACE, "the API server updates it")


@lru_cache(maxsize=8192)
def predict_outcome(place: str, state: JobState) -> Outcome:
    """What an edit of a field does; the field by its place, where `role` stands for the way to any role."""
    law = next((law for law in BEHAVIORS if law.speaks_of(place, state)), None)
    return Outcome(law.effect, law.why) if law else _OTHERWISE


def worst(verdicts: Iterable[Outcome]) -> Outcome:
    """The verdict that counts for all of them: the first of the worst."""
    return max(verdicts, key=lambda one: RANK[one.effect])
