"""Processing: the entries of a cycle in order, each against what the ones before left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jobgen.features.kueue.assign.assignment import Assignment, Mode
from jobgen.features.kueue.assign.placed_usage import PlacedUsage
from jobgen.features.kueue.objects import as_mapping
from jobgen.features.kueue.preemption import Target
from jobgen.features.kueue.quota import Tree, Usage, reserve_for_blocked
from jobgen.features.kueue.scheduling.entry_order import Entry
from jobgen.features.kueue.scheduling.nominate import Nominator, list_allowed, read_flavors
from jobgen.features.kueue.scheduling.outcomes import (
    ADMISSION_GATED,
    ADMITTED,
    BELOW_LAST_ACCEPTABLE,
    EVICTED,
    FITS_LATER,
    GATED,
    MIGRATION,
    MORE_FAVORABLE,
    NO_LONGER_FITS,
    NODE_FAILURES,
    NOT_REPLACED,
    OVERLAPPING,
    PENDING_EVALUATION,
    PREEMPTING,
    WAITING,
    WAITING_FOR_PREEMPTED,
    WAITS,
    Decision,
    Outcome,
)
from jobgen.features.kueue.workload.workloads import PodSetAdmission, Workload


class Processing:
    """One cycle: what has been taken in it so far."""

    def __init__(self, nominator: Nominator) -> None:
        self._nominator = nominator
        self._snapshot = nominator.snapshot
        self._gates = nominator.gates
        self._taken: dict[str, Target] = {}
        self._reserved: list[tuple[str, Usage, PlacedUsage]] = []
        self._versions: dict[Tree, int] = {}
        self.skipped: dict[str, int] = {}
        """Preemptions by queue that another workload of the cycle made impossible."""
        self.gated = set[str]()
        """Workloads that would preempt, but have a closed gate."""

    def release(self) -> None:
        """Free what workloads took in the cycle; those that are admitted then use it."""
        for queue, usage, placed in reversed(self._reserved):
            self._snapshot.remove_usage(queue, usage)
            self._snapshot.topologies.remove(placed)
        for tree, version in self._versions.items():
            tree.version = version
        self._reserved.clear()

    def process(self, entry: Entry) -> Decision:
        """Decide about an entry."""
        if self._find_sibling(entry, lambda other, own: other < own) is not None:
            outcome = Outcome(WAITS, PENDING_EVALUATION, MORE_FAVORABLE)
            return Decision(outcome, requeue=True, keeps_progress=self._gates.preserves_progress)
        fits, fits_later = self._update(entry)
        is_fit = entry.mode is Mode.FIT
        if self._gates.evicts_without_replacement and entry.workload.has_unhealthy_placement and not is_fit:
            nodes = ",".join(entry.workload.unhealthy_nodes)
            return Decision(Outcome(EVICTED, NODE_FAILURES, f"{NOT_REPLACED}: {nodes}"))
        return self._refuse(entry, fits=fits, fits_later=fits_later) or self._take(entry)

    def _update(self, entry: Entry) -> tuple[bool, bool]:
        """Return whether an entry still fits, and whether it will fit once others have preempted.

        If others preempt the same targets, its flavors stay but its targets are searched again, as if the others were
        done. If others have taken its place, its flavors stay but another place is searched.
        """
        if entry.mode is Mode.NO_FIT and not self._snapshot.topologies:
            return False, False
        fits_quota, fits_places = self._check_fit(entry)
        victims: list[Workload] = []
        overlaps = self._gates.recomputes_overlap and self._overlaps(entry)
        if overlaps:
            victims = [target.workload for target in self._taken.values()]
        elif fits_places or not fits_quota or not self._gates.recomputes_placement:
            return fits_quota and fits_places, False
        flavors = read_flavors(entry.assignment)
        with self._snapshot.keep_version(each.cluster_queue for each in victims):
            for workload in victims:
                self._snapshot.remove_workload(workload)
            entry.record(*self._nominator.assign(entry.workload, entry.queue, nominated=flavors))
            for workload in victims:
                self._snapshot.add_workload(workload)
        return all(self._check_fit(entry)), overlaps and entry.mode is Mode.FIT

    def _overlaps(self, entry: Entry) -> bool:
        return any(target.workload.key in self._taken for target in entry.targets)

    def _check_fit(self, entry: Entry) -> tuple[bool, bool]:
        """Return whether an entry still fits in its quota, and in its places."""
        gone = {**self._taken, **{target.workload.key: target for target in entry.targets}}
        with self._snapshot.without([target.workload for target in gone.values()]):
            fits = self._snapshot.nodes[entry.queue].fits(entry.usage)
            return fits, self._snapshot.topologies.fits(entry.assignment.placed)

    def _refuse(self, entry: Entry, *, fits: bool, fits_later: bool) -> Decision | None:
        """Return why an entry gets nothing in this cycle, None if it does."""
        assignment = entry.assignment
        if entry.mode is Mode.NO_FIT:
            outcome = Outcome(WAITS, assignment.no_fit, assignment.message)
            return Decision(outcome, parks_shape=True)
        if entry.mode is not Mode.FIT and not entry.targets:
            self._block(entry)
            return Decision(Outcome(WAITS, WAITING, assignment.message), parks_shape=True)
        if entry.mode is not Mode.FIT and self._is_gated(entry.workload):
            self.gated.add(entry.workload.key)
            return Decision(Outcome(WAITS, ADMISSION_GATED, GATED), keeps_progress=False)
        if fits_later:
            self._reserve(entry.queue, entry.usage, entry.assignment.placed)
            outcome = Outcome(WAITS, WAITING_FOR_PREEMPTED, FITS_LATER)
            return Decision(outcome, requeue=True, becomes_head=True, keeps_progress=False)
        if not self._overlaps(entry) and fits:
            return None
        if entry.mode is not Mode.FIT:
            self.skipped[entry.queue] = self.skipped.get(entry.queue, 0) + 1
        outcome = Outcome(WAITS, WAITING, OVERLAPPING if self._overlaps(entry) else NO_LONGER_FITS)
        return Decision(outcome, requeue=True, keeps_progress=self._gates.preserves_progress)

    def _block(self, entry: Entry) -> None:
        """Take from others what a workload without targets needs, unless its queue can always reclaim its quota."""
        always_reclaims = self._snapshot.queues[entry.queue].preemption.reclaim == "Any"
        if not always_reclaims or (self._gates.prefers_preemptors and entry.is_preemptor):
            node = self._snapshot.nodes[entry.queue]
            usage = reserve_for_blocked(node, entry.usage, entry.assignment.level)
            self._reserve(entry.queue, usage, entry.assignment.placed)

    def _reserve(self, queue: str, usage: Usage, placed: PlacedUsage) -> None:
        tree = self._snapshot.nodes[queue].tree
        self._versions.setdefault(tree, tree.version)
        self._snapshot.add_usage(queue, usage)
        self._snapshot.topologies.add(placed)
        self._reserved.append((queue, usage, placed))

    def _is_gated(self, workload: Workload) -> bool:
        are_used = self._gates.concurrent_admission or self._gates.orchestrated_preemption
        return are_used and workload.has_closed_gate

    def _take(self, entry: Entry) -> Decision:
        """Admit an entry, or let it preempt."""
        assignment = entry.assignment
        self._taken.update((target.workload.key, target) for target in entry.targets)
        self._reserve(entry.queue, entry.usage, assignment.placed)
        if entry.mode is not Mode.FIT:
            return self._preempt(entry)
        sibling = self._find_sibling(entry, lambda other, own: other > own)
        if sibling is not None:
            return self._migrate(entry, sibling)
        return Decision(Outcome(ADMITTED, admission=build_admission(assignment), level=assignment.level))

    def _preempt(self, entry: Entry) -> Decision:
        # What the workload replaces is not preempted, it ends when the workload is admitted.
        replaced = self._nominator.find_replaced(entry.workload, entry.queue)
        targets = tuple(target for target in entry.targets if replaced is None or target.workload.key != replaced.key)
        message = entry.assignment.message
        if targets:
            message += f". Pending the preemption of {len(targets)} workload(s)"
        outcome = Outcome(PREEMPTING, WAITING_FOR_PREEMPTED, message, targets=targets)
        return Decision(outcome, requeue=bool(targets), becomes_head=bool(targets), keeps_progress=False)

    def _migrate(self, entry: Entry, sibling: Workload) -> Decision:
        """Evict the variant of a workload that has a less favorable flavor."""
        queue = self._snapshot.queues[entry.queue]
        migration = as_mapping(as_mapping(as_mapping(queue.spec).get("concurrentAdmissionPolicy")).get("migration"))
        last = as_mapping(migration.get("constraints")).get("lastAcceptableFlavorName")
        flavors = queue.groups[0].flavors
        own = _find_flavor_index(entry.workload, flavors)
        if last is not None and (own is None or own > (flavors.index(last) if last in flavors else -1)):
            message = BELOW_LAST_ACCEPTABLE if own is not None else ""
            return Decision(Outcome(WAITS, PENDING_EVALUATION, message))
        message = f"{entry.assignment.message}. Pending the migration of 1 workload(s)"
        outcome = Outcome(PREEMPTING, WAITING_FOR_PREEMPTED, message, targets=(Target(sibling, MIGRATION),))
        return Decision(outcome, requeue=True, becomes_head=True, keeps_progress=False)

    def _find_sibling(self, entry: Entry, compare: Callable[[int, int], bool]) -> Workload | None:
        """Return another admitted variant of the same workload, if its flavor compares so to that of the entry."""
        groups = self._snapshot.queues[entry.queue].groups
        if not self._gates.concurrent_admission or not entry.workload.parent or not groups:
            return None
        own = _find_flavor_index(entry.workload, groups[0].flavors)
        if own is None:
            return None
        for other in self._snapshot.workloads[entry.queue].values():
            index = _find_flavor_index(other, groups[0].flavors)
            is_sibling = other.parent == entry.workload.parent and other.key != entry.workload.key
            if is_sibling and index is not None and compare(index, own):
                return other
        return None


def _find_flavor_index(workload: Workload, flavors: Sequence[str]) -> int | None:
    allowed = list_allowed(workload)
    return flavors.index(allowed[0]) if allowed and allowed[0] in flavors else None


def build_admission(assignment: Assignment) -> tuple[PodSetAdmission, ...]:
    """Return the admission of an assignment."""
    return tuple(
        PodSetAdmission(
            each.name,
            each.count,
            {resource: choice.flavor for resource, choice in each.flavors.items()},
            {resource: each.requests.get(resource, 0) for resource in each.flavors},
            each.placement.domains if each.placement else (),
            each.placement.levels if each.placement else (),
            each.delayed,
        )
        for each in assignment.pod_sets
    )
