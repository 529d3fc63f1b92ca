"""Scheduling cycles: the head of each queue is tried, all of them against the same state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from jobgen.features.kueue.assign_flavors import Planner
from jobgen.features.kueue.assignment import Assignment
from jobgen.features.kueue.bounds import Bounds
from jobgen.features.kueue.cluster_objects import DEFAULT_GATES, Gates
from jobgen.features.kueue.match import matches_selector
from jobgen.features.kueue.nominate import (
    ADMITTED,
    EVICTED,
    INADMISSIBLE,
    MISCONFIGURED,
    NOT_SELECTED,
    PENDING_EVALUATION,
    SUSPENDED,
    Decision,
    Eviction,
    Nominator,
    Outcome,
    Processing,
)
from jobgen.features.kueue.objects import STRICT_FIFO
from jobgen.features.kueue.preemption import Rules, Target
from jobgen.features.kueue.queue_order import Entry, FairOrder, PendingQueue, order_classically
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import Workload

_STEPS_TO_ASSIGN = 30
"""An assignment takes as long as this many changes of usage."""


_Nomination = tuple[Workload, tuple[int, str, Mapping[tuple[str, str], int]], tuple[Assignment, list[Target]]]
"""A workload, the state in which it was tried, and what it would get."""


class LocalUsage(Protocol):
    """What LocalQueues have used lately, if the cluster has admission fair sharing."""

    def measure(self, workload: Workload) -> float:
        """Return the usage of the workload's LocalQueue; the smallest is tried first."""

    def add_penalty(self, workload: Workload) -> None:
        """Count a workload that is admitted."""


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
        suspended: frozenset[str] = frozenset(),
        gates: Gates = DEFAULT_GATES,
        local_usage: LocalUsage | None = None,
        check: Callable[[Workload], str] | None = None,
        now: str = "",
        controllers: Mapping[str, str] | None = None,
        planner: Planner | None = None,
    ) -> None:
        """Make a scheduler without workloads.

        Nothing of the queues in `inactive` is tried. What waits in those in `suspended` is tried and refused: they are
        active, but their topology is missing. `controllers` are those of admission checks, by the name of the check.
        `check` says what is wrong with the requests of a workload.
        """
        self.snapshot = snapshot
        if local_usage:
            rules = rules._replace(measure=self._measure_local_queue)
        self.rules = rules
        self.topologies = topologies
        self.namespaces = namespaces
        self.local_queues = local_queues
        self.inactive = inactive
        self.suspended = suspended
        snapshot.hide_queues(inactive | suspended)
        self.gates = gates
        self.nominator = Nominator(snapshot, rules, topologies, gates, controllers, planner)
        self.local_usage = local_usage
        self.pending = {
            name: PendingQueue(local_usage.measure if local_usage and queue.is_usage_based else None)
            for name, queue in snapshot.queues.items()
        }
        self.bounds = Bounds(self.nominator)
        self.changes = 0
        """How many workloads were admitted, removed and parked."""
        self.tries = 0
        """How many heads were tried."""
        self.outcomes: dict[str, Outcome] = {}
        self.assignments: dict[str, Assignment] = {}
        """The last assignment of workloads that were tried and not admitted."""
        self.refused: set[str] = set()
        """Workloads that were not admitted in some cycle."""
        self.evicted: dict[str, Target] = {}
        self.evictions: dict[str, Eviction] = {}
        """The same by key, with the workload that needs the room."""
        self.replaced: dict[str, Workload] = {}
        """Admitted workloads that have been replaced, and by which."""
        self.gated: set[str] = set()
        """Workloads that would preempt, but have a closed gate."""
        self.skipped_preemptions: dict[str, int] = {}
        self.second_pass: dict[str, Workload] = {}
        """Workloads that have quota and need a place, by key: they are tried in the next cycle."""
        self.unplaced: dict[str, Workload] = {}
        """Workloads of the second pass that found no place, and wait for a change."""
        self.progress: dict[str, dict[tuple[str, str], int]] = {}
        self._check = check
        self._now = now
        self._cycle = 0
        self._tried: dict[str, int] = {}
        self._generation = 0
        self._seen: dict[str, int] = {}
        self._nominations: dict[str, _Nomination] = {}
        self._obstacles: dict[str, tuple[Workload, Outcome | None]] = {}
        self._names = sorted(snapshot.queues)

    def add(self, workload: Workload) -> None:
        """Add a workload: an admitted one uses quota, any other waits in its queue."""
        if workload.cluster_queue and workload.reserved:
            self.snapshot.admit(workload)
            if workload.cluster_queue in self.pending and workload.needs_second_pass:
                self.second_pass[workload.key] = workload
            return
        queue = self.local_queues.get((workload.namespace, workload.queue), "")
        # Only the variants of a parent are queued.
        is_parent = (
            self.gates.concurrent_admission
            and workload.labels.get("kueue.x-k8s.io/concurrent-admission-parent") == "true"
        )
        if queue not in self.pending or not workload.is_active or workload.is_held or is_parent:
            return
        pending = self.pending[queue]
        pending.push(workload, is_held=workload.waits_until > self._now > "")
        if tried := pending.find_tried(workload):
            self._share_outcome([workload], tried)

    def run_cycle(self, *, skips_blocked: bool = False) -> bool:
        """Try the head of each queue; return whether there was any.

        Heads that certainly get nothing are parked without a try if `skips_blocked`. What they lack is not known then.
        """
        heads = [
            (head, queue)
            for queue in self._names
            if queue not in self.inactive and (head := self.pending[queue].peek()) is not None
        ]
        # With fair sharing, a queue has one head only.
        busy = {queue for _, queue in heads} if self.rules.is_fair else frozenset()
        before = self.changes
        self._cycle += bool(heads or self.second_pass)
        self.snapshot.steps += len(heads)
        if skips_blocked:
            heads = self._pass_blocked(heads)
        for workload in [each for each in self.second_pass.values() if each.cluster_queue not in busy]:
            del self.second_pass[workload.key]
            heads.append((workload, workload.cluster_queue))
        if not heads:
            return self.changes > before
        self.tries += len(heads)
        processing = Processing(self.nominator)
        entries: list[Entry] = []
        for workload, queue in heads:
            outcome = self._find_obstacle(workload, queue)
            if outcome is None:
                is_preemptor = self.pending[queue].preemptor == workload.key
                entries.append(Entry(workload, queue, *self._nominate(workload, queue), is_preemptor=is_preemptor))
            else:
                self._requeue(workload, queue, Decision(outcome))
        is_fair = self.rules.is_fair
        ordered = FairOrder(entries, self.snapshot, self.gates) if is_fair else order_classically(entries, self.gates)
        decided = [(entry, processing.process(entry)) for entry in ordered]
        processing.release()
        self.skipped_preemptions.update(processing.skipped)
        self.gated |= processing.gated
        for entry, decision in decided:
            self._finish(entry, decision)
        return True

    def _pass_blocked(self, heads: list[tuple[Workload, str]]) -> list[tuple[Workload, str]]:
        """Park heads that certainly get nothing, and return the others.

        A try that gets nothing may keep something from others, which matters if others in its tree may get something.
        """
        nodes, has_places = self.snapshot.nodes, bool(self.snapshot.topologies)
        kept: list[tuple[Workload, str]] = []
        blocked: list[tuple[Workload, str]] = []
        for head, queue in heads:
            shape = self.pending[queue].find_shape(head)
            is_blocked = self.bounds.is_blocked(head, queue, shape) and self._find_obstacle(head, queue) is None
            (blocked if is_blocked else kept).append((head, queue))
        busy = {None if has_places else nodes[queue].tree for _, queue in kept}
        if has_places and self.second_pass:
            busy.add(None)
        for head, queue in blocked:
            pending = self.pending[queue]
            is_alone = (None if has_places else nodes[queue].tree) not in busy
            if not is_alone and not self.bounds.is_harmless(queue, is_preemptor=pending.preemptor == head.key):
                kept.append((head, queue))
            elif self.snapshot.queues[queue].strategy != STRICT_FIFO:
                self.assignments.pop(head.key, None)
                self.progress.pop(head.key, None)
                self.changes += 1
                pending.park(head, with_shape=self.gates.parks_same_shape)
        return sorted(kept, key=lambda pair: pair[1])

    def _measure_local_queue(self, workload: Workload) -> float | None:
        """What the LocalQueue of an admitted workload used lately, if its ClusterQueue admits by usage."""
        queue = self.snapshot.queues.get(workload.cluster_queue)
        if self.local_usage is None or queue is None or not queue.is_usage_based:
            return None
        return self.local_usage.measure(workload)

    def remove(self, key: str) -> None:
        """Remove an admitted workload, and try what was parked in its cohorts."""
        workload = self.find_admitted(key)
        if workload is None:
            return
        self.snapshot.release(workload)
        self.changes += 1
        self._leave_second_pass(key)
        self._retry_around({workload.cluster_queue})

    def release_evicted(self, held: Collection[str] = ()) -> list[Target]:
        """Remove the evicted workloads and queue them again, and try what was parked in their cohorts; return them.

        Those in `held`, by key, are not queued again.
        """
        released, queues = list(self.evicted.values()), set[str]()
        self.evicted.clear()
        self.evictions.clear()
        replaced = [key for key in self.replaced if self.find_admitted(key) is not None]
        for key in [*(target.workload.key for target in released), *replaced]:
            workload = self.find_admitted(key)
            if workload is None:
                continue
            self.snapshot.release(workload)
            self.changes += 1
            queues.add(workload.cluster_queue)
            if key not in self.replaced and key not in held:
                queued = workload._replace(cluster_queue="", admission=(), reserved="", unhealthy_nodes=(), cluster="")
                self.add(queued._replace(is_evicted=False, is_admitted=False))
        self._retry_around(queues)
        return released

    def find_admitted(self, key: str) -> Workload | None:
        """Return a workload that has quota."""
        return next((several[key] for several in self.snapshot.workloads.values() if key in several), None)

    def _retry_around(self, queues: set[str]) -> None:
        self._generation += 1
        trees = {self.snapshot.nodes[queue].tree for queue in queues}
        self.retry_parked(queue for queue, node in self.snapshot.nodes.items() if node.tree in trees)

    @property
    def parked(self) -> dict[str, list[Workload]]:
        """The workloads that were parked, by queue."""
        return {name: pending.list_parked() for name, pending in self.pending.items()}

    def find_head(self, queue: str) -> Workload | None:
        """Return the workload that is tried next in a queue."""
        return self.pending[queue].peek()

    def retry_parked(self, queues: Iterable[str]) -> None:
        """Queue again what was parked in these queues, and try again what found no place."""
        self.second_pass |= self.unplaced
        self.unplaced.clear()
        for queue in queues:
            self.pending[queue].retry()

    # Nomination: each workload alone, against the state at the start of the cycle.

    def _find_obstacle(self, workload: Workload, queue: str) -> Outcome | None:
        """Return why a workload is not even tried."""
        known, outcome = self._obstacles.get(workload.key, (None, None))
        if known is not workload:
            outcome = self._explain_obstacle(workload, queue)
            self._obstacles[workload.key] = workload, outcome
        return outcome

    def _explain_obstacle(self, workload: Workload, queue: str) -> Outcome | None:
        if any(state in ("Retry", "Rejected") for _, state in workload.checks):
            return Outcome(INADMISSIBLE, PENDING_EVALUATION, "The workload has failed admission checks")
        if queue in self.inactive or queue in self.suspended:
            return Outcome(INADMISSIBLE, SUSPENDED, f"ClusterQueue {queue} is inactive")
        labels = self.namespaces.get(workload.namespace, {})
        if not matches_selector(self.snapshot.queues[queue].namespace_selector, labels):
            return Outcome(INADMISSIBLE, MISCONFIGURED, NOT_SELECTED)
        problem = self._check(workload) if self._check else ""
        return Outcome(INADMISSIBLE, MISCONFIGURED, problem) if problem else None

    def _nominate(self, workload: Workload, queue: str) -> tuple[Assignment, list[Target]]:
        """Assign flavors to a workload; in a state in which it was tried before, they are known."""
        if self.snapshot.topologies or self.local_usage:
            return self.assign(workload, queue)
        state = (self.snapshot.nodes[queue].tree.version, queue, self._find_progress(workload.key))
        known = self._nominations.get(workload.key)
        if known is None or known[0] is not workload or known[1] != state:
            known = self._nominations[workload.key] = workload, state, self.assign(workload, queue)
        return known[2]

    def assign(self, workload: Workload, queue: str, *, is_resumed: bool = True) -> tuple[Assignment, list[Target]]:
        """Assign flavors to a workload in the current state, and find what it would preempt. Nothing changes.

        It goes on after the flavors that were tried in its last cycle, unless it is not `is_resumed`.
        """
        self.snapshot.steps += _STEPS_TO_ASSIGN
        return self.nominator.assign(workload, queue, self._find_progress(workload.key) if is_resumed else {})

    def _find_progress(self, key: str) -> dict[tuple[str, str], int]:
        """Return which flavors were tried, as long as that still describes the state."""
        is_recent = self.gates.preserves_progress and self._cycle - self._tried.get(key, 0) <= 1
        if not is_recent and self._generation > self._seen.get(key, 0):
            return {}
        return self.progress.get(key, {})

    # The end of a cycle: what is not admitted goes back to its queue, or is parked until something changes.

    def _finish(self, entry: Entry, decision: Decision) -> None:
        workload, outcome = entry.workload, decision.outcome
        if outcome.state == EVICTED:
            self.outcomes[workload.key] = outcome
            self._evict(Target(workload, outcome.reason), entry)
            return
        if outcome.state != ADMITTED:
            self.assignments[workload.key] = entry.assignment
            for target in outcome.targets:
                self._evict(target, entry)
            progress = {
                (each.name, resource): choice.tried
                for each in entry.assignment.pod_sets
                for resource, choice in each.flavors.items()
                if decision.keeps_progress and choice.tried >= 0
            }
            self._end_try(workload, entry.queue, decision, progress)
            return
        self.outcomes[workload.key] = outcome
        is_usage_based = self.snapshot.queues[entry.queue].is_usage_based
        if self.local_usage and is_usage_based and not workload.reserved:
            self.local_usage.add_penalty(workload)
        replaced = self.nominator.find_replaced(workload, entry.queue)
        # It is the latest, whatever times the others have.
        admitted = workload._replace(
            cluster_queue=entry.queue,
            admission=outcome.admission,
            reserved=workload.reserved or f"~{self._cycle:08}",
            is_evicted=False,
            unhealthy_nodes=(),
        )
        if workload.reserved:
            self.snapshot.release(workload)
        self.snapshot.admit(admitted)
        self.pending[entry.queue].remove(workload.key)
        self.changes += 1
        if replaced is not None:
            self.replaced[replaced.key] = workload

    def _end_try(
        self, workload: Workload, queue: str, decision: Decision, progress: dict[tuple[str, str], int]
    ) -> None:
        """End a try that did not admit a workload; `progress` are the flavors that were tried, if others are left."""
        self._tried[workload.key], self._seen[workload.key] = self._cycle, self._generation
        self.progress[workload.key] = progress
        self._requeue(workload, queue, decision)

    def _evict(self, target: Target, entry: Entry) -> None:
        key = target.workload.key
        if target.workload.is_evicted or key in self.evicted:
            return
        self._leave_second_pass(key)
        self.evicted[key] = target
        self.evictions[key] = Eviction(target, entry.workload, entry.queue)
        self.snapshot.replace_workload(target.workload._replace(is_evicted=True))

    def _leave_second_pass(self, key: str) -> None:
        self.second_pass.pop(key, None)
        self.unplaced.pop(key, None)

    def _requeue(self, workload: Workload, queue: str, decision: Decision) -> None:
        if workload.reserved:
            self.outcomes[workload.key] = decision.outcome
            self.unplaced[workload.key] = workload
            return
        key, pending = workload.key, self.pending[queue]
        is_strict = self.snapshot.queues[queue].strategy == STRICT_FIFO
        self.outcomes[key] = decision.outcome
        self.refused.add(key)
        if decision.becomes_head and not is_strict:
            pending.preemptor = key
        not_selected = decision.outcome.message == NOT_SELECTED
        if (is_strict and not not_selected) or decision.requeue or self.progress.get(key):
            return
        self.changes += 1
        with_shape = decision.parks_shape and self.gates.parks_same_shape and not is_strict
        pending.park(workload, with_shape=with_shape)
        if with_shape:
            self._share_outcome(pending.list_shape(workload), key)

    def _share_outcome(self, workloads: Iterable[Workload], tried: str) -> None:
        for workload in workloads:
            if tried in self.outcomes:
                self.outcomes.setdefault(workload.key, self.outcomes[tried])
