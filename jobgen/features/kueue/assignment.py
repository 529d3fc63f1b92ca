"""Assignments: the flavors of a workload, how well they suit, and which were tried before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from jobgen.features.kueue.objects import ClusterQueue, Flavor, Fungibility, ResourceGroup
from jobgen.features.kueue.quota import Usage
from jobgen.features.kueue.requests import Amounts, charge_pod
from jobgen.features.kueue.topology.snapshot import (
    FailedNode,
    Results,
    TopologySnapshot,
    find_all_assignments,
    shares_hosts,
)
from jobgen.features.kueue.topology.tree import Failure, Placement, PodSetRequest
from jobgen.features.kueue.workloads import PodSet, Workload, find_conflict, merge_updates
from jobgen.k8s.kueue_integrations import MULTIKUEUE
from jobgen.model.named_tuple import NamedTuple


class PlacedPods(NamedTuple):
    """Pods of one template, and where they are."""

    placement: Placement
    requests: Amounts
    """What one pod requests, before any exclusion or transformation."""


PlacedUsage = Mapping[str, tuple[PlacedPods, ...]]

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
            if each.name in pod_sets:
                requests = get_pod_requests(pod_sets[each.name])
            else:
                requests = {name: amount // max(each.count, 1) for name, amount in each.usage.items()}
            placed = PlacedPods(Placement(each.levels, each.domains), requests)
            for flavor in sorted(set(each.flavors.values())):
                found[flavor] = (*found.get(flavor, ()), placed)
    return found


class Topologies:
    """The topologies of all flavors that have one, with what placed pods use."""

    def __init__(self, snapshots: Mapping[str, TopologySnapshot]) -> None:
        self.snapshots = snapshots

    def __bool__(self) -> bool:
        return bool(self.snapshots)

    def add(self, usage: PlacedUsage) -> None:
        """Add placed pods to their flavors, for the rest of a cycle."""
        for flavor, several in usage.items():
            if flavor in self.snapshots:
                _add_pods(self.snapshots[flavor], several)

    def remove(self, usage: PlacedUsage) -> None:
        """Remove placed pods from their flavors, for the rest of a cycle."""
        for flavor, several in usage.items():
            if flavor in self.snapshots:
                _add_pods(self.snapshots[flavor], several, -1)

    def share(self, usage: PlacedUsage, *, is_gone: bool = False) -> None:
        """Add placed pods to the other flavors that have the same hosts, or remove them.

        Kueue does this once before each cycle. What changes within a cycle counts for one flavor only.
        """
        for flavor, several in usage.items():
            own = self.snapshots.get(flavor)
            if own is not None and shares_hosts(own):
                for other in self.snapshots.values():
                    if other is not own and shares_hosts(other):
                        _add_pods(other, several, -1 if is_gone else 1)

    def fits(self, usage: PlacedUsage) -> bool:
        """Return True if pods still fit where they were placed."""
        return all(
            flavor in self.snapshots and self.snapshots[flavor].fits(placed.placement, placed.requests)
            for flavor, several in usage.items()
            for placed in several
        )


NO_TOPOLOGIES = Topologies({})


def _add_pods(snapshot: TopologySnapshot, several: Iterable[PlacedPods], sign: int = 1) -> None:
    for placed in several:
        for values, count in placed.placement.domains:
            snapshot.add_usage(values, placed.requests, sign * count)


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
    """Return True if a flavor with this mode and borrowing level is better than another."""
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
    for pod_set in (each for each in assignment.pod_sets if each.mode is Mode.NO_FIT):
        least: dict[int, str] = {} if pod_set.attempts else {0: NO_MATCHING_FLAVOR}
        for number, attempt in enumerate(pod_set.attempts):
            if attempt.mode is Mode.NO_FIT:
                groups = [index for index, group in enumerate(queue.groups) if attempt.flavor in group.flavors]
                for index in groups or [-1 - number]:
                    least[index] = min(least.get(index, attempt.no_fit), attempt.no_fit, key=_SEVERITY.index)
        overall = most_severe(overall, *least.values())
    return overall


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
        mode, level = min(before.mode, attempt.mode), max(before.level, attempt.level)
        reasons = tuple(sorted({*before.reasons, *attempt.reasons}))
        no_fit = most_severe(before.no_fit, attempt.no_fit)
        found[attempt.flavor] = Attempt(attempt.flavor, mode, level, reasons, no_fit, min(possible, default=None))
    if len(found) == len(tried):
        return
    for name in (found.keys() & set(group.flavors)) - tried if tried else ():
        missing = f"flavor {name} does not provide resource {resource}"
        reasons = tuple(sorted({*found[name].reasons, missing}))
        found[name] = found[name]._replace(mode=Mode.NO_FIT, reasons=reasons, no_fit=NO_MATCHING_FLAVOR)


# Placement of whole workloads: which pod sets need a topology, and where their pods go once quota is found.

PENDING, READY = "Pending", "Ready"
"""States of a placement that waits for admission checks."""

PROVISIONING = "kueue.x-k8s.io/provisioning-request"
"""The controller of admission checks that delay placement, as does MultiKueue."""

NO_TOPOLOGY = "workload requires Topology, but there is no TAS cache information"
NO_FLAVOR = "no TAS flavor assigned"

Requests = dict[str, list[PodSetRequest]]
"""Pod sets to place, by flavor."""


class QueueTopologies(NamedTuple):
    """What placement needs to know of a queue."""

    flavors: frozenset[str]
    """The flavors of the queue whose topology is known."""
    is_topology_only: bool
    """True if all flavors have a topology. Its pods are placed even if they do not ask for it."""
    is_multikueue: bool = False
    """True if other clusters run, and place, the workloads."""
    provisioned: frozenset[str] = frozenset()
    """Flavors whose nodes are provisioned after quota is reserved, before pods are placed."""


class Placements:
    """Placement for the workloads of all queues."""

    def __init__(
        self,
        queues: Mapping[str, ClusterQueue],
        flavors: Mapping[str, Flavor],
        topologies: Topologies,
        controllers: Mapping[str, str],
    ) -> None:
        """`controllers` are those of admission checks, by the name of the check."""
        self._topologies = topologies
        self._queues: dict[str, QueueTopologies] = {}
        for queue in queues.values():
            names = [name for group in queue.groups for name in group.flavors]
            placed = frozenset(name for name in names if name in flavors and flavors[name].topology)
            checks = [(controllers.get(check), only) for check, only in queue.checks]
            self._queues[queue.name] = QueueTopologies(
                placed & topologies.snapshots.keys(),
                placed.issuperset(names),
                any(controller == MULTIKUEUE for controller, _ in checks),
                frozenset(name for controller, only in checks if controller == PROVISIONING for name in only or names),
            )

    def make_placer(self, workload: Workload, queue: str, replaced: Workload | None = None) -> Placer | None:
        """Return what places a workload, or the one that replaces it in an elastic job; None if nothing is placed."""
        found = self._queues[queue]
        if not found.is_topology_only and not any(each.asks_for_placement for each in workload.pod_sets):
            return None
        return Placer(workload, found, self._topologies, _list_placements(replaced) if replaced else {})


def _list_placements(workload: Workload) -> dict[str, Placement]:
    return {each.name: Placement(each.levels, each.domains) for each in workload.admission if each.levels}


class Placer:
    """Places the pod sets of one workload in the topologies of its queue."""

    def __init__(
        self,
        workload: Workload,
        queue: QueueTopologies,
        topologies: Topologies,
        previous: Mapping[str, Placement],
    ) -> None:
        """`previous` is where the pods of the workload slice are that this one replaces, by pod set."""
        self._workload = workload
        self._queue = queue
        self._topologies = topologies
        self._previous = previous
        self._pod_sets = {each.name: each for each in workload.pod_sets}

    def place(self, assignment: Assignment) -> Assignment:
        """Place pod sets that have quota.

        Without a placement, the workload has to preempt others; if it has none in empty topologies, it does not fit.
        """
        assignment, requests = self._list_requests(assignment)
        if assignment.mode is Mode.FIT:
            found = self._find(requests)
            failure = _find_failure(found)
            if failure is None:
                return _set_placements(assignment, found)
            assignment = _change(assignment, failure[0], Mode.PREEMPT, reason=failure[1])
        # Nothing is preempted to replace a failed node.
        if assignment.mode is Mode.NO_FIT or self._workload.unhealthy_nodes:
            return assignment
        flavors = {each.name: flavor for flavor, several in requests.items() for each in several}
        failure = _find_failure(self._find(requests, ignore_usage=True))
        if failure is not None:
            name = failure[0]
            each = next(each for each in assignment.pod_sets if each.name == name)
            # The topology of the flavor is too small.
            attempts = tuple(
                attempt._replace(mode=Mode.NO_FIT, no_fit=TOPOLOGY_FAILED)
                if attempt.flavor == flavors[name]
                else attempt
                for attempt in each.attempts
            )
            return _change(_replace(assignment, name, attempts=attempts), name, Mode.NO_FIT)
        for name in flavors:
            # The quota that is free may be enough, but its nodes in pieces that are too small.
            assignment = _change(assignment, name, Mode.PREEMPT)
        return assignment

    def make_check(self, assignment: Assignment) -> Callable[[], bool]:
        """Make a function that says whether the pods of an assignment that preempts have a placement now."""
        _, requests = self._list_requests(assignment)
        return lambda: not requests or _find_failure(self._find(requests)) is None

    def reserve(self, assignment: Assignment, *, is_empty: bool) -> Assignment:
        """Place an assignment that preempts, so that no other workload takes its place in this cycle.

        The caller has removed what it preempts; without anything to preempt, topologies count as empty.
        """
        if self._workload.has_unhealthy_placement:
            return assignment
        assignment, requests = self._list_requests(assignment)
        return _set_placements(assignment, self._find(requests, ignore_usage=is_empty))

    def find_usage(self, assignment: Assignment) -> PlacedUsage:
        """Find what an assignment uses of topologies beyond what the workload uses already."""
        admitted = {each.name: dict(each.domains) for each in self._workload.admission}
        usage: dict[str, tuple[PlacedPods, ...]] = {}
        for each in assignment.pod_sets:
            flavors = self._list_topology_flavors(each)
            if each.placement is None or len(flavors) != 1 or each.name not in self._pod_sets:
                continue
            before = admitted.get(each.name, {})
            counts = ((values, count - before.get(values, 0)) for values, count in each.placement.domains)
            more = tuple((values, count) for values, count in counts if count > 0)
            if more:
                requests = get_pod_requests(self._pod_sets[each.name])
                placed = PlacedPods(Placement(each.placement.levels, more), requests)
                usage[flavors[0]] = (*usage.get(flavors[0], ()), placed)
        return usage

    def _list_requests(self, assignment: Assignment) -> tuple[Assignment, Requests]:
        """List the pod sets to place by flavor; note those that are placed later, and errors."""
        requests: Requests = {}
        for each in assignment.pod_sets:
            pod_set = self._pod_sets.get(each.name)
            if pod_set is None or not (self._queue.is_topology_only or pod_set.asks_for_placement):
                continue
            if each.error or not each.count:
                continue
            failed = self._workload.unhealthy_nodes
            if each.placement and not any(values[-1] in failed for values, _ in each.placement.domains):
                continue
            error = self._find_error(pod_set, each)
            if error:
                assignment = _replace(assignment, each.name, error=error)._replace(placed_mode=None)
                continue
            [flavor] = self._list_topology_flavors(each)
            is_first = not self._workload.reserved
            if self._queue.is_multikueue or (is_first and flavor in self._queue.provisioned):
                assignment = _replace(assignment, each.name, delayed=PENDING)
                continue
            request = PodSetRequest(
                pod_set.name,
                each.count,
                get_pod_requests(pod_set),
                pod_set.topology,
                merge_updates(self._workload, pod_set),
                is_implied=not pod_set.asks_for_placement,
                group=pod_set.topology.group if pod_set.topology else "",
                previous=self._previous.get(pod_set.name) if self._is_elastic else None,
            )
            requests.setdefault(flavor, []).append(request)
        return assignment, requests

    def _find_error(self, pod_set: PodSet, assigned: PodSetAssignment) -> str:
        topology = pod_set.topology
        if topology is not None and (topology.required or topology.preferred) and self._is_elastic:
            word = "required" if topology.required else "preferred"
            return f"{word} topology is not supported with ElasticJobsViaWorkloadSlices"
        if not self._queue.flavors:
            return NO_TOPOLOGY
        flavors = self._list_topology_flavors(assigned)
        if len(flavors) > 1:
            return f"more than one TAS flavor assigned: {', '.join(flavors)}"
        return "" if flavors else NO_FLAVOR

    @property
    def _is_elastic(self) -> bool:
        is_on = any(snapshot.gates.elastic for snapshot in self._topologies.snapshots.values())
        return is_on and self._workload.annotations.get("kueue.x-k8s.io/elastic-job") == "true"

    def _list_topology_flavors(self, assigned: PodSetAssignment) -> list[str]:
        return sorted({choice.flavor for choice in assigned.flavors.values()} & self._queue.flavors)

    def _find(self, requests: Requests, *, ignore_usage: bool = False) -> Results:
        workload = self._workload
        for pod_set in (self._pod_sets[each.name] for several in requests.values() for each in several):
            # An admission check may not change the node selector of a pod set.
            conflict = find_conflict(workload, pod_set) if workload.updates else ""
            if conflict:
                return {pod_set.name: Failure(conflict)}
        failed = None
        if workload.unhealthy_nodes:
            placements = _list_placements(workload)
            failed = FailedNode(workload.unhealthy_nodes[0], placements, is_single_pod=workload.is_single_pod)
        return find_all_assignments(self._topologies.snapshots, requests, ignore_usage=ignore_usage, failed=failed)


def reuse_admission(workload: Workload) -> Assignment:
    """Return the assignment of a workload that has quota already, to place its pods."""
    counts = {each.name: each.count for each in workload.pod_sets}
    pod_sets = tuple(
        PodSetAssignment(
            each.name,
            each.count or counts.get(each.name, 0),
            each.usage,
            {resource: Choice(flavor, Mode.FIT, 0, -1) for resource, flavor in each.flavors.items()},
            placement=Placement(each.levels, each.domains) if each.levels else None,
            delayed=each.delayed,
        )
        for each in workload.admission
    )
    return Assignment(pod_sets, dict(workload.usage))


def _find_failure(found: Results) -> tuple[str, str] | None:
    return next(((name, each.message) for name, each in found.items() if isinstance(each, Failure)), None)


def _replace(assignment: Assignment, name: str, **changes: Any) -> Assignment:
    return assignment._replace(
        pod_sets=tuple(replace(each, **changes) if each.name == name else each for each in assignment.pod_sets)
    )


def _change(assignment: Assignment, name: str, mode: Mode, reason: str = "") -> Assignment:
    """Change the mode of a pod set for all its flavors, and add the reason."""
    each = next(each for each in assignment.pod_sets if each.name == name)
    flavors = {resource: choice._replace(mode=mode) for resource, choice in each.flavors.items()}
    reasons = (*each.reasons, reason) if reason else each.reasons
    return _replace(assignment, name, flavors=flavors, reasons=reasons)._replace(placed_mode=mode)


def _set_placements(assignment: Assignment, found: Results) -> Assignment:
    placed = {name: None if isinstance(result, Failure) else result for name, result in found.items()}
    for each in assignment.pod_sets:
        if placed.get(each.name) is not None:
            delayed = READY if each.delayed else ""
            assignment = _replace(assignment, each.name, placement=placed[each.name], delayed=delayed)
        elif each.name in placed:
            assignment = _replace(assignment, each.name, placement=None)
    return assignment
