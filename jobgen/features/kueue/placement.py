"""Placement of whole workloads: which pod sets need a topology, and where their pods go once quota is found.

Kueue looks for quota first, and then for a placement in the topologies of the flavors that it found. A workload with
quota but without a placement may preempt others; one without a placement even in empty topologies does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from jobgen.features.kueue.assignment import (
    TOPOLOGY_FAILED,
    Assignment,
    Choice,
    Mode,
    PlacedPods,
    PlacedUsage,
    PodSetAssignment,
    Topologies,
    get_pod_requests,
)
from jobgen.features.kueue.objects import ClusterQueue, Flavor
from jobgen.features.kueue.topology.snapshot import FailedNode, Results, find_all_assignments
from jobgen.features.kueue.topology.tree import Failure, Placement, PodSetRequest
from jobgen.features.kueue.workloads import PodSet, Workload, find_conflict, list_updates, merge_updates

PENDING, READY = "Pending", "Ready"
"""States of a placement that waits for admission checks."""

PROVISIONING, MULTIKUEUE = "kueue.x-k8s.io/provisioning-request", "kueue.x-k8s.io/multikueue"
"""Controllers of admission checks that delay placement."""

NO_TOPOLOGY = "workload requires Topology, but there is no TAS cache information"
NO_FLAVOR = "no TAS flavor assigned"

Requests = dict[str, list[PodSetRequest]]
"""Pod sets to place, by flavor."""


class QueueTopologies(NamedTuple):
    """What placement needs to know of a queue."""

    flavors: frozenset[str]
    """The flavors of the queue whose topology is known."""
    is_topology_only: bool
    """Whether all flavors have a topology. Its pods are placed even if they do not ask for it."""
    is_multikueue: bool = False
    """Whether other clusters run, and place, the workloads."""
    provisioned: frozenset[str] = frozenset()
    """Flavors whose nodes are provisioned after quota is reserved, before pods are placed."""


def find_queue_topologies(
    queue: ClusterQueue, flavors: Mapping[str, Flavor], topologies: Topologies, controllers: Mapping[str, str]
) -> QueueTopologies:
    """Find the flavors of a queue with a topology, and the admission checks (by controller) that delay placement."""
    names = [name for group in queue.groups for name in group.flavors]
    placed = frozenset(name for name in names if name in flavors and flavors[name].topology)
    provisioned = {
        flavor for check, only in queue.checks if controllers.get(check) == PROVISIONING for flavor in only or names
    }
    is_multikueue = any(controllers.get(check) == MULTIKUEUE for check, _ in queue.checks)
    known = placed & topologies.snapshots.keys()
    return QueueTopologies(frozenset(known), placed.issuperset(names), is_multikueue, frozenset(provisioned))


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
        self._queues = {
            name: find_queue_topologies(queue, flavors, topologies, controllers) for name, queue in queues.items()
        }
        self._topologies = topologies

    def make_placer(self, workload: Workload, queue: str, replaced: Workload | None = None) -> Placer | None:
        """Return what places a workload, or the one that replaces it in an elastic job; None if nothing is placed."""
        found = self._queues[queue]
        if not found.is_topology_only and not any(each.asks_for_placement for each in workload.pod_sets):
            return None
        return Placer(workload, found, self._topologies, list_placements(replaced) if replaced else {})


def list_placements(workload: Workload) -> dict[str, Placement]:
    """List where the pods of a workload are, by pod set."""
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

    def _needs_placement(self, pod_set: PodSet) -> bool:
        return self._queue.is_topology_only or pod_set.asks_for_placement

    # Stages

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
        if assignment.mode is not Mode.NO_FIT and not self._workload.unhealthy_nodes:
            # Nothing is preempted to replace a failed node.
            return self._place_in_empty(assignment, requests)
        return assignment

    def _place_in_empty(self, assignment: Assignment, requests: Requests) -> Assignment:
        failure = _find_failure(self._find(requests, ignore_usage=True))
        if failure is not None:
            name = failure[0]
            flavor = next(flavor for flavor, several in requests.items() if any(each.name == name for each in several))
            return _change(_mark_attempt(assignment, name, flavor), name, Mode.NO_FIT)
        for name in (each.name for several in requests.values() for each in several):
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
            more = Placement(each.placement.levels, tuple((values, count) for values, count in counts if count > 0))
            if more.domains:
                placed = PlacedPods(more, get_pod_requests(self._pod_sets[each.name]))
                usage[flavors[0]] = (*usage.get(flavors[0], ()), placed)
        return usage

    # Requests

    def _list_requests(self, assignment: Assignment) -> tuple[Assignment, Requests]:
        """List the pod sets to place by flavor; note those that are placed later, and errors."""
        requests: Requests = {}
        for each in assignment.pod_sets:
            pod_set = self._pod_sets.get(each.name)
            if pod_set is None or not self._needs_placement(pod_set):
                continue
            if each.error or not each.count or self._has_place(each):
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
            requests.setdefault(flavor, []).append(self._make_request(pod_set, each))
        return assignment, requests

    def _has_place(self, assigned: PodSetAssignment) -> bool:
        """Return True if a pod set has a placement without a failed node."""
        if assigned.placement is None:
            return False
        return not any(values[-1] in self._workload.unhealthy_nodes for values, _ in assigned.placement.domains)

    def _find_error(self, pod_set: PodSet, assigned: PodSetAssignment) -> str:
        if (
            self._is_elastic
            and pod_set.topology is not None
            and (pod_set.topology.required or pod_set.topology.preferred)
        ):
            word = "required" if pod_set.topology.required else "preferred"
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

    def _make_request(self, pod_set: PodSet, assigned: PodSetAssignment) -> PodSetRequest:
        topology = pod_set.topology
        return PodSetRequest(
            pod_set.name,
            assigned.count,
            get_pod_requests(pod_set),
            topology,
            merge_updates(pod_set, list_updates(self._workload, pod_set)),
            is_implied=not pod_set.asks_for_placement,
            group=topology.group if topology else "",
            previous=self._previous.get(pod_set.name) if self._is_elastic else None,
        )

    def _find(self, requests: Requests, *, ignore_usage: bool = False) -> Results:
        conflict = self._find_conflict(requests) if self._workload.updates else {}
        if conflict:
            return conflict
        failed = None
        if self._workload.unhealthy_nodes:
            failed = FailedNode(
                self._workload.unhealthy_nodes[0],
                list_placements(self._workload),
                is_single_pod=self._workload.is_single_pod,
            )
        return find_all_assignments(self._topologies.snapshots, requests, ignore_usage=ignore_usage, failed=failed)

    def _find_conflict(self, requests: Requests) -> Results:
        """Return a failure if an admission check changes the node selector of a pod set."""
        for pod_set in (self._pod_sets[each.name] for several in requests.values() for each in several):
            conflict = find_conflict(pod_set, list_updates(self._workload, pod_set))
            if conflict:
                return {pod_set.name: Failure(conflict)}
        return {}


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


# Changes of an assignment


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


def _mark_attempt(assignment: Assignment, name: str, flavor: str) -> Assignment:
    """Note at the attempt for a flavor that its topology is too small."""
    each = next(each for each in assignment.pod_sets if each.name == name)
    attempts = tuple(
        attempt._replace(mode=Mode.NO_FIT, no_fit=TOPOLOGY_FAILED) if attempt.flavor == flavor else attempt
        for attempt in each.attempts
    )
    return _replace(assignment, name, attempts=attempts)


def _set_placements(assignment: Assignment, found: Results) -> Assignment:
    for name, result in found.items():
        placement = None if isinstance(result, Failure) else result
        assignment = _replace(assignment, name, placement=placement)
        if placement is not None:
            each = next(each for each in assignment.pod_sets if each.name == name)
            assignment = _replace(assignment, name, delayed=READY if each.delayed else "")
    return assignment
