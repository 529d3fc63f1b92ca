"""Assignments: the flavors of a workload, how well they suit, and which were tried before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from jobgen.features.kueue.assign.placed_usage import NOTHING_PLACED, PlacedUsage
from jobgen.features.kueue.objects import ClusterQueue, Fungibility, ResourceGroup
from jobgen.features.kueue.quota import Usage
from jobgen.features.kueue.topology.request import Placement
from jobgen.features.kueue.workload.requests import Amounts
from jobgen.model.named_tuple import NamedTuple


class Mode(IntEnum):
    """How well a flavor suits, the worst first."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


NO_MATCHING_FLAVOR, EXCEEDS_MAX_QUOTA = "NoMatchingFlavor", "ExceedsMaxQuota"
WAITING_FOR_QUOTA, TOPOLOGY_FAILED = "WaitingForQuota", "TopologyPlacementFailed"
_SEVERITY = ("", TOPOLOGY_FAILED, WAITING_FOR_QUOTA, EXCEEDS_MAX_QUOTA, NO_MATCHING_FLAVOR)


class Attempt(NamedTuple):
    """A flavor that was tried for the resources of a group."""

    flavor: str
    mode: Mode
    level: int
    """The greatest borrowing level of its resources."""
    reasons: tuple[str, ...] = ()
    no_fit: str = ""
    possibility: Mode | None = None
    """What preemption could do, if it was considered."""


class Choice(NamedTuple):
    """The flavor of one resource."""

    flavor: str
    mode: Mode
    level: int
    tried: int
    """The index of the last flavor that was tried; -1 if none is left to try."""


@dataclass(frozen=True, slots=True)
class PodSetAssignment:
    """The flavors of one pod set."""

    name: str
    count: int
    requests: Amounts
    flavors: Mapping[str, Choice]
    reasons: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    error: str = ""
    placement: Placement | None = None
    delayed: str = ""
    """`Pending` or `Ready` if its pods are placed after admission checks."""

    @property
    def mode(self) -> Mode:
        """The worst mode of its resources."""
        if self.error:
            return Mode.NO_FIT
        if not self.reasons:
            return Mode.FIT
        return min((choice.mode for choice in self.flavors.values()), default=Mode.NO_FIT)


class Assignment(NamedTuple):
    """The flavors of a workload."""

    pod_sets: tuple[PodSetAssignment, ...]
    usage: Usage
    level: int = 0
    no_fit: str = ""
    placed_mode: Mode | None = None
    """The mode once its pods have been placed, or could not be; None before."""
    placed: PlacedUsage = NOTHING_PLACED
    """What its pods use of topologies, beyond what the workload uses already."""

    @property
    def mode(self) -> Mode:
        """The worst mode of its pod sets."""
        if self.placed_mode is not None:
            return self.placed_mode
        return min((each.mode for each in self.pod_sets), default=Mode.NO_FIT)

    @property
    def message(self) -> str:
        """Why it does not fit, as Kueue says it."""
        parts: list[str] = []
        for each in self.pod_sets:
            if each.error:
                return f"failed to assign flavors to pod set {each.name}: {each.error}"
            if each.reasons:
                parts.append(f"couldn't assign flavors to pod set {each.name}: {', '.join(sorted(each.reasons))}")
        return "; ".join(parts)


def is_preferred(mode: Mode, level: int, other_mode: Mode, other_level: int, fungibility: Fungibility) -> bool:
    """Return whether a flavor with this mode and borrowing level is better than another."""
    if mode is Mode.NO_FIT:
        return False
    if other_mode is Mode.NO_FIT:
        return True
    if (mode is Mode.NO_CANDIDATES) != (other_mode is Mode.NO_CANDIDATES):
        return other_mode is Mode.NO_CANDIDATES
    if fungibility.preference == "PreemptionOverBorrowing":
        return (level, -mode) < (other_level, -other_mode)
    return (-mode, level) < (-other_mode, other_level)


def find_no_fit_reason(assignment: Assignment, queue: ClusterQueue) -> str:
    """Return the reason of an assignment that does not fit.

    The flavors of a group are alternatives, so that the least severe of their reasons counts. A workload needs all of
    its groups and pod sets, so that the most severe of theirs counts.
    """
    if assignment.mode is not Mode.NO_FIT:
        return ""
    overall = ""
    for pod_set in assignment.pod_sets:
        if pod_set.mode is Mode.NO_FIT:
            reasons = _list_group_reasons(pod_set.attempts, queue) if pod_set.attempts else [NO_MATCHING_FLAVOR]
            overall = most_severe(overall, *reasons)
    return overall


def _list_group_reasons(attempts: Iterable[Attempt], queue: ClusterQueue) -> Iterable[str]:
    least: dict[int, str] = {}
    for number, attempt in enumerate(attempts):
        if attempt.mode is Mode.NO_FIT:
            groups = [index for index, group in enumerate(queue.groups) if attempt.flavor in group.flavors]
            for index in groups or [-1 - number]:
                least[index] = min(least.get(index, attempt.no_fit), attempt.no_fit, key=_SEVERITY.index)
    return least.values()


def most_severe(*reasons: str) -> str:
    """Return the most severe of several reasons."""
    return max(reasons, key=_SEVERITY.index)


def merge_attempts(found: dict[str, Attempt], attempts: Iterable[Attempt], resource: str, group: ResourceGroup) -> None:
    """Add attempts of a group; a flavor that several groups have keeps the worst of its attempts."""
    tried: set[str] = set()
    for attempt in attempts:
        tried.add(attempt.flavor)
        before = found.get(attempt.flavor)
        if before is None:
            reasons = tuple(sorted(set(attempt.reasons))) if attempt.reasons else ()
            found[attempt.flavor] = attempt._replace(reasons=reasons) if reasons != attempt.reasons else attempt
            continue
        possible = [each for each in (before.possibility, attempt.possibility) if each is not None]
        found[attempt.flavor] = Attempt(
            attempt.flavor,
            min(before.mode, attempt.mode),
            max(before.level, attempt.level),
            tuple(sorted({*before.reasons, *attempt.reasons})),
            most_severe(before.no_fit, attempt.no_fit),
            min(possible, default=None),
        )
    if len(found) == len(tried):
        return
    for name in (found.keys() & set(group.flavors)) - tried if tried else ():
        missing = f"flavor {name} does not provide resource {resource}"
        reasons = tuple(sorted({*found[name].reasons, missing}))
        found[name] = found[name]._replace(mode=Mode.NO_FIT, reasons=reasons, no_fit=NO_MATCHING_FLAVOR)
