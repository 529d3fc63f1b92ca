"""Scheduling cycles: one workload of each queue is tried at a time, against the same state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.kueue.amounts import add, subtract
from jobgen.kueue.assignment import Assignment, Mode
from jobgen.kueue.flavors import QueueFacts, assign_flavors
from jobgen.kueue.match import matches_selector
from jobgen.kueue.objects import STRICT_FIFO
from jobgen.kueue.partial_admission import search_counts
from jobgen.kueue.preemption import Preemptor, Rules, Target, find_targets
from jobgen.kueue.quota import FlavorResource, QuotaNode, Usage, compare_shares, compute_share, find_borrowing_level
from jobgen.kueue.snapshot import Snapshot
from jobgen.kueue.workloads import PodSetAdmission, Workload

NO_LONGER_FITS = "Workload no longer fits after processing another workload"
OVERLAPPING = "Workload has overlapping preemption targets with another workload"
WAITING_FOR_PREEMPTED, MISCONFIGURED, WAITING = "WaitingForPreemptedWorkloads", "Misconfigured", "WaitingForQuota"


class Outcome(NamedTuple):
    """What a cycle decided about a workload."""

    state: str
    """`admitted`, `preempting`, `waiting` or `inadmissible`."""
    reason: str = ""
    message: str = ""
    admission: tuple[PodSetAdmission, ...] = ()
    targets: tuple[Target, ...] = ()
    level: int = 0


class _Entry:
    """A workload that is tried in a cycle."""

    __slots__ = ("assignment", "outcome", "queue", "requeue", "targets", "workload")

    def __init__(self, workload: Workload, queue: str) -> None:
        self.workload = workload
        self.queue = queue
        self.assignment: Assignment | None = None
        self.targets: list[Target] = []
        self.outcome: Outcome | None = None
        self.requeue = False
        """Whether it is tried again at once, instead of waiting for a change."""


class Scheduler:
    """Pending workloads of all queues, and the state that they are admitted to."""

    def __init__(
        self,
        snapshot: Snapshot,
        rules: Rules,
        topologies: Mapping[str, Sequence[str]],
        namespaces: Mapping[str, Mapping[str, str] | None],
        *,
        local_queues: Mapping[tuple[str, str], str],
        inactive: frozenset[str] = frozenset(),
    ) -> None:
        self.snapshot = snapshot
        self.rules = rules
        self.topologies = topologies
        self.namespaces = namespaces
        self.local_queues = local_queues
        self.inactive = inactive
        self.pending: dict[str, list[Workload]] = {name: [] for name in snapshot.queues}
        self.parked: dict[str, list[Workload]] = {name: [] for name in snapshot.queues}
        self.outcomes: dict[str, Outcome] = {}
        self.evicted: dict[str, Target] = {}
        self.progress: dict[str, dict[tuple[str, str], int]] = {}
        self._cycle = 0
        """The number of cycles so far: the time at which quota is reserved."""
        self._waiting: set[str] = set()
        self._reserved: list[tuple[str, Usage]] = []

    def add(self, workload: Workload) -> None:
        """Add a workload: an admitted one uses quota, any other waits in its queue."""
        if workload.cluster_queue and workload.reserved:
            self.snapshot.add_workload(workload)
            return
        queue = self.local_queues.get((workload.namespace, workload.queue), "")
        if queue in self.pending and workload.is_active:
            self.pending[queue].append(workload)
            self.pending[queue].sort(key=self._order)

    def _order(self, workload: Workload) -> tuple[Any, ...]:
        return (workload.key not in self._waiting, -workload.priority, workload.timestamp, workload.uid)

    def run_cycle(self) -> bool:
        """Try one workload of each queue; return whether there was any."""
        entries = [
            _Entry(several.pop(0), queue)
            for queue, several in sorted(self.pending.items())
            if several and queue not in self.inactive
        ]
        if not entries:
            return False
        self._cycle += 1
        for entry in entries:
            self._nominate(entry)
        self._process([entry for entry in entries if entry.outcome is None])
        for queue, usage in reversed(self._reserved):
            self.snapshot.remove_usage(queue, usage)
        self._reserved.clear()
        for entry in entries:
            self._finish(entry)
        return True

    def release_evicted(self) -> list[Target]:
        """Remove the evicted workloads and queue them again, and try what was parked in their cohorts; return them."""
        released, roots = list(self.evicted.values()), set[int]()
        self.evicted.clear()
        for target in released:
            workload = self.snapshot.workloads[target.workload.cluster_queue].get(target.workload.key)
            if workload is not None:
                self.snapshot.remove_workload(workload)
                roots.add(id(self.snapshot.nodes[workload.cluster_queue].root))
                self.add(workload._replace(cluster_queue="", admission=(), reserved=""))
        self.retry_parked(queue for queue, node in self.snapshot.nodes.items() if id(node.root) in roots)
        return released

    def find_head(self, queue: str) -> Workload | None:
        """Return the workload that is tried next in a queue."""
        return self.pending[queue][0] if self.pending[queue] else None

    def retry_parked(self, queues: Iterable[str]) -> None:
        """Queue again what was parked in these queues."""
        for queue in queues:
            parked, self.parked[queue] = self.parked[queue], []
            for workload in parked:
                self.add(workload)

    # Nomination: each workload alone, against the state at the start of the cycle.

    def _nominate(self, entry: _Entry) -> None:
        queue = self.snapshot.queues[entry.queue]
        labels = self.namespaces.get(entry.workload.namespace, {})
        if not matches_selector(queue.namespace_selector, labels):
            message = "workload namespace doesn't match ClusterQueue selector"
            entry.outcome = Outcome("inadmissible", MISCONFIGURED, message)
            return
        entry.assignment, entry.targets = self.assign(entry.workload, entry.queue)

    def assign(self, workload: Workload, queue: str) -> tuple[Assignment, list[Target]]:
        """Assign flavors to a workload in the current state, and find what it would preempt. Nothing changes."""
        facts = self._facts(workload, queue)
        full = assign_flavors(workload.pod_sets, facts)
        if full.mode is Mode.FIT:
            return full, []
        targets = self._find_targets(workload, queue, full)
        if targets or (full.mode is Mode.NO_FIT and not any(each.min_count is not None for each in workload.pod_sets)):
            return full, targets
        if any(each.min_count is not None for each in workload.pod_sets):

            def fits(counts: Sequence[int]) -> tuple[Assignment, list[Target]] | None:
                partial = assign_flavors(workload.pod_sets, facts, counts)
                if partial.mode is Mode.FIT:
                    return partial, []
                found = self._find_targets(workload, queue, partial)
                return (partial, found) if found else None

            reduced = search_counts(workload.pod_sets, fits)
            if reduced is not None:
                found: tuple[Assignment, list[Target]] = reduced[1]
                return found
        return full, []

    def _find_targets(self, workload: Workload, queue: str, assignment: Assignment) -> list[Target]:
        if assignment.mode in (Mode.FIT, Mode.NO_FIT):
            return []
        needed = frozenset(
            FlavorResource(choice.flavor, resource)
            for each in assignment.pod_sets
            for resource, choice in each.flavors.items()
            if choice.mode is not Mode.FIT
        )
        return find_targets(Preemptor(workload, queue, assignment.usage, needed), self.snapshot, self.rules)

    def _facts(self, workload: Workload, queue: str) -> QueueFacts:
        node = self.snapshot.nodes[queue]

        def simulate(pair: FlavorResource, amount: int) -> tuple[Mode, int]:
            preemptor = Preemptor(workload, queue, {pair: amount}, frozenset((pair,)))
            targets = find_targets(preemptor, self.snapshot, self.rules)
            if not targets:
                return Mode.NO_CANDIDATES, find_borrowing_level(node, pair, amount)[0]
            for target in targets:
                self.snapshot.remove_workload(target.workload)
            level, _ = find_borrowing_level(node, pair, amount)
            for target in targets:
                self.snapshot.add_workload(target.workload)
            own = any(target.workload.cluster_queue == queue for target in targets)
            return Mode.PREEMPT if own else Mode.RECLAIM, level

        return QueueFacts(
            queue=self.snapshot.queues[queue],
            node=node,
            flavors=self.snapshot.flavors,
            topologies=self.topologies,
            oracle=simulate,
            is_fair=self.rules.is_fair,
            progress=self.progress.get(workload.key, {}),
        )

    # Processing: in order, each against what the ones before left.

    def _process(self, entries: list[_Entry]) -> None:
        taken: dict[str, Target] = {}
        for entry in self._order_entries(entries):
            self._process_entry(entry, taken)

    def _process_entry(self, entry: _Entry, taken: dict[str, Target]) -> None:
        assignment = entry.assignment
        assert assignment is not None, "entries are nominated"
        if assignment.mode is Mode.NO_FIT:
            entry.outcome = Outcome("waiting", assignment.no_fit or WAITING, assignment.message)
            return
        if assignment.mode is not Mode.FIT and not entry.targets:
            if self.snapshot.queues[entry.queue].preemption.reclaim != "Any":
                reserved = self._reserve(entry.queue, assignment)
                self.snapshot.add_usage(entry.queue, reserved)
                self._reserved.append((entry.queue, reserved))
            entry.outcome = Outcome("waiting", WAITING, assignment.message)
            return
        if any(target.workload.key in taken for target in entry.targets):
            entry.outcome, entry.requeue = Outcome("waiting", WAITING, OVERLAPPING), True
            return
        if not self._still_fits(entry, assignment, [*taken.values(), *entry.targets]):
            entry.outcome, entry.requeue = Outcome("waiting", WAITING, NO_LONGER_FITS), True
            return
        taken.update((target.workload.key, target) for target in entry.targets)
        self.snapshot.add_usage(entry.queue, assignment.usage)
        if assignment.mode is Mode.FIT:
            entry.outcome = Outcome("admitted", "", "", _build_admission(assignment), level=assignment.level)
        else:
            count = len(entry.targets)
            message = f"{assignment.message}. Pending the preemption of {count} workload(s)"
            entry.outcome = Outcome("preempting", WAITING_FOR_PREEMPTED, message, targets=tuple(entry.targets))
            entry.requeue = True

    def _still_fits(self, entry: _Entry, assignment: Assignment, gone: Sequence[Target]) -> bool:
        for target in gone:
            self.snapshot.remove_workload(target.workload)
        node = self.snapshot.nodes[entry.queue]
        fits = all(amount <= max(0, node.available(pair)) for pair, amount in assignment.usage.items())
        for target in gone:
            self.snapshot.add_workload(target.workload)
        return fits

    def _reserve(self, queue: str, assignment: Assignment) -> Usage:
        """What a workload without anything to preempt takes from others in this cycle."""
        node = self.snapshot.nodes[queue]
        found: Usage = {}
        for pair, amount in assignment.usage.items():
            quota, used = node.find_quota(pair), node.usage.get(pair, 0)
            if assignment.level > 0:
                if quota.borrowing_limit is None:
                    found[pair] = amount
                else:
                    found[pair] = min(amount, subtract(add(quota.nominal, quota.borrowing_limit), used))
            else:
                found[pair] = max(0, min(amount, subtract(quota.nominal, used)))
        return found

    def _order_entries(self, entries: list[_Entry]) -> list[_Entry]:
        if self.rules.is_fair:
            return list(_FairOrder(entries, self.snapshot).iterate())
        return sorted(entries, key=_classical_order)

    def _finish(self, entry: _Entry) -> None:
        outcome = entry.outcome
        assert outcome is not None, "every entry is decided"
        workload = entry.workload
        self.outcomes[workload.key] = outcome
        if outcome.state == "admitted":
            # Its usage has been added already.
            admitted = workload._replace(
                cluster_queue=entry.queue, admission=outcome.admission, reserved=f"{self._cycle:08}"
            )
            self.snapshot.workloads[entry.queue][workload.key] = admitted
            return
        self._waiting.discard(workload.key)
        if outcome.state == "preempting":
            self.snapshot.remove_usage(entry.queue, entry.assignment.usage if entry.assignment else {})
            self.evicted.update((target.workload.key, target) for target in outcome.targets)
        is_strict = self.snapshot.queues[entry.queue].strategy == STRICT_FIFO
        has_more = self._note_progress(entry)
        if outcome.state == "inadmissible" or not (is_strict or entry.requeue or has_more):
            self.parked[entry.queue].append(workload)
            return
        self.pending[entry.queue].append(workload)
        self.pending[entry.queue].sort(key=self._order)

    def _note_progress(self, entry: _Entry) -> bool:
        """Remember which flavors were tried; return whether others are left."""
        if entry.assignment is None:
            return False
        tried = {
            (each.name, resource): choice.tried
            for each in entry.assignment.pod_sets
            for resource, choice in each.flavors.items()
        }
        left = {key: index for key, index in tried.items() if index >= 0}
        self.progress[entry.workload.key] = left
        return bool(left)


def _classical_order(entry: _Entry) -> tuple[Any, ...]:
    level = entry.assignment.level if entry.assignment else 0
    return (level, -entry.workload.priority, entry.workload.timestamp)


def _build_admission(assignment: Assignment) -> tuple[PodSetAdmission, ...]:
    return tuple(
        PodSetAdmission(
            each.name,
            each.count,
            {resource: choice.flavor for resource, choice in each.flavors.items()},
            {resource: each.requests.get(resource, 0) for resource in each.flavors},
        )
        for each in assignment.pod_sets
    )


class _FairOrder:
    """The order of fair sharing: at each cohort, the entry whose side has the least share comes first."""

    def __init__(self, entries: Sequence[_Entry], snapshot: Snapshot) -> None:
        self._entries = {entry.queue: entry for entry in entries}
        self._snapshot = snapshot

    def iterate(self) -> Any:
        """Yield entries; the caller adds the usage of each before it asks for the next."""
        while self._entries:
            queue = next(iter(self._entries))
            root = self._snapshot.nodes[queue].root
            best = self._run(root) if not root.is_queue else self._entries[queue]
            assert best is not None, "the tree has an entry"
            del self._entries[best.queue]
            yield best

    def _run(self, cohort: QuotaNode) -> _Entry | None:
        candidates: list[tuple[QuotaNode, _Entry]] = []
        for child in cohort.children:
            found = self._entries.get(child.name) if child.is_queue else self._run(child)
            if found is not None:
                candidates.append((child, found))
        if not candidates:
            return None
        best = candidates[0]
        for other in candidates[1:]:
            if self._is_before(other, best):
                best = other
        return best[1]

    def _is_before(self, one: tuple[QuotaNode, _Entry], other: tuple[QuotaNode, _Entry]) -> bool:
        borrows, shares = zip(*(self._measure(*pair) for pair in (one, other)), strict=True)
        if borrows[0] != borrows[1]:
            return bool(borrows[1])
        order = compare_shares(shares[0], shares[1])
        if order:
            return order < 0
        first, second = one[1].workload, other[1].workload
        if first.priority != second.priority:
            return first.priority > second.priority
        return first.timestamp < second.timestamp

    def _measure(self, node: QuotaNode, entry: _Entry) -> tuple[bool, Any]:
        usage = entry.assignment.usage if entry.assignment else {}
        self._snapshot.add_usage(entry.queue, usage)
        share = compute_share(node)
        borrows = any(node.is_borrowing(pair) for pair in usage)
        self._snapshot.remove_usage(entry.queue, usage)
        return borrows, share
