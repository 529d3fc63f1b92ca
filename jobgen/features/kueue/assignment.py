"""Assignments: the flavors of a workload, how well they suit, and which were tried before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from jobgen.features.kueue.objects import ClusterQueue, Fungibility, ResourceGroup
from jobgen.features.kueue.quota import Usage
from jobgen.features.kueue.requests import Amounts, charge_pod
from jobgen.features.kueue.topology.snapshot import TopologySnapshot, shares_hosts
from jobgen.features.kueue.topology.tree import Placement
from jobgen.features.kueue.workloads import PodSet, PodSetAdmission, Workload


class PlacedPods(NamedTuple):
    """Pods of one template, and where they are."""

    placement: Placement
    requests: Amounts
    """What one pod requests, before any exclusion or transformation."""


PlacedUsage = Mapping[str, tuple[PlacedPods, ...]]
"""Placed pods by flavor."""

NOTHING_PLACED: PlacedUsage = {}


def get_pod_requests(pod_set: PodSet) -> Amounts:
    """Return what one pod takes of a node. Exclusions and transformations concern quota only."""
    return pod_set.requests if pod_set.exact is None else charge_pod(pod_set.exact)


def find_placed_usage(workload: Workload) -> PlacedUsage:
    """Find what the placed pods of an admitted workload use of the topologies of their flavors."""
    if not any(each.levels for each in workload.admission):
        return NOTHING_PLACED
    pod_sets = {each.name: each for each in workload.pod_sets}
    found: dict[str, tuple[PlacedPods, ...]] = {}
    for each in workload.admission:
        if each.levels:
            placed = PlacedPods(Placement(each.levels, each.domains), _find_requests(each, pod_sets.get(each.name)))
            for flavor in sorted(set(each.flavors.values())):
                found[flavor] = (*found.get(flavor, ()), placed)
    return found


def _find_requests(admission: PodSetAdmission, pod_set: PodSet | None) -> Amounts:
    if pod_set is not None:
        return get_pod_requests(pod_set)
    return {name: amount // max(admission.count, 1) for name, amount in admission.usage.items()}


class Topologies:
    """The topologies of all flavors that have one, with what placed pods use."""

    def __init__(self, snapshots: Mapping[str, TopologySnapshot]) -> None:
        self.snapshots = snapshots

    def __bool__(self) -> bool:
        return bool(self.snapshots)

    def add(self, usage: PlacedUsage) -> None:
        """Add placed pods to their flavors, for the rest of a cycle."""
        for snapshot, placed in self._list_placed(usage):
            for values, count in placed.placement.domains:
                snapshot.add_usage(values, placed.requests, count)

    def remove(self, usage: PlacedUsage) -> None:
        """Remove placed pods from their flavors, for the rest of a cycle."""
        for snapshot, placed in self._list_placed(usage):
            for values, count in placed.placement.domains:
                snapshot.remove_usage(values, placed.requests, count)

    def share(self, usage: PlacedUsage, *, is_gone: bool = False) -> None:
        """Add placed pods to the other flavors that have the same hosts, or remove them.

        Kueue does this once before each cycle. What changes within a cycle counts for one flavor only.
        """
        for flavor, several in usage.items():
            own = self.snapshots.get(flavor)
            if own is None or not shares_hosts(own):
                continue
            for other in self.snapshots.values():
                if other is not own and shares_hosts(other):
                    _change(other, several, is_gone=is_gone)

    def fits(self, usage: PlacedUsage) -> bool:
        """Return whether pods still fit where they were placed."""
        return all(
            flavor in self.snapshots and self.snapshots[flavor].fits(placed.placement, placed.requests)
            for flavor, several in usage.items()
            for placed in several
        )

    def _list_placed(self, usage: PlacedUsage) -> Iterator[tuple[TopologySnapshot, PlacedPods]]:
        for flavor, several in usage.items():
            snapshot = self.snapshots.get(flavor)
            if snapshot is not None:
                for placed in several:
                    yield snapshot, placed


NO_TOPOLOGIES = Topologies({})


def _change(snapshot: TopologySnapshot, several: Iterable[PlacedPods], *, is_gone: bool) -> None:
    change = snapshot.remove_usage if is_gone else snapshot.add_usage
    for placed in several:
        for values, count in placed.placement.domains:
            change(values, placed.requests, count)


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
