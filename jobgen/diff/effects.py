"""The effect of an edit of one field, and the entries of the tables that predict it."""

from __future__ import annotations

from enum import StrEnum

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
    Effect.NO_EFFECT: "accepted, but ignored by running pods",
    Effect.NEW_RUN: "training starts from the beginning, or for the first time",
    Effect.RESTART: "the running job is stopped and started again",
    Effect.STOPS_RUNNING: "the running job is stopped",
    Effect.REJECTED: "rejected by the API server; nothing is applied",
}


class Outcome(NamedTuple):
    """The effect of an edit, and the reason."""

    effect: Effect
    reason: str


class JobState(NamedTuple):
    """The facts about a job that decide what an edit does to it."""

    operator: str = ""
    kind: str = ""
    version: str = ""
    suspended: bool = False
    """Whether it has no pods because it is suspended."""
    queued: bool = False
    """Whether Kueue manages it."""
    elastic: bool = False
    on_both_sides: bool = True
    """Whether the field has a value on both sides."""
    partial: bool = False
    """Whether Kueue may admit only some of its pods."""
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
    suspended: bool | None = None
    queued: bool | None = None
    elastic: bool | None = None
    on_both_sides: bool | None = None
    partial: bool | None = None
    upgrade: str | None = None

    def matches(self, path: str, state: JobState) -> bool:
        """Whether this behavior applies to a field of a job in that state."""
        return (
            state.operator in (self.operators or state.operator).split()
            and (not self.kinds or state.kind in self.kinds.split())
            and all(wanted in (None, known) for wanted, known in zip(self[6:], state[3:], strict=True))
            and self.span.contains(state.version)
            and any(path == known or path.startswith(f"{known}/") for known in self.paths.split())
        )
