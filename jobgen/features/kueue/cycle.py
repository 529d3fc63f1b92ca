"""Scheduling cycles: the head of each queue is tried, all of them against the same state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from jobgen.features.kueue.assign_flavors import Planner
from jobgen.features.kueue.assignment import Assignment
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
    WAITS,
    Decision,
    Eviction,
    Nominator,
    Outcome,
    Processing,
)
from jobgen.features.kueue.objects import STRICT_FIFO
from jobgen.features.kueue.preemption import Rules, Target
from jobgen.features.kueue.queue_order import Entry, FairOrder, PendingQueue, Shape, order_classically
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
        self.parked: dict[str, list[Workload]] = {name: [] for name in snapshot.queues}
        self.parked_with: dict[str, str] = {}
        """Workloads that were parked without a try, and the one of the same shape whose outcome is theirs."""
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
        self._bulk_parked: dict[str, dict[Shape, str]] = {name: {} for name in snapshot.queues}

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
        if workload.waits_until > self._now > "":
            self.parked[queue].append(workload)
            return
        same = self._bulk_parked[queue].get(self.pending[queue].find_shape(workload))
        if same is not None:
            self._park_with(queue, [workload], same)
            return
        self.pending[queue].push(workload)

    def run_cycle(self) -> bool:
        """Try the head of each queue; return whether there was any."""
        heads = [
            (head, queue)
            for queue in sorted(self.pending)
            if queue not in self.inactive and (head := self.pending[queue].pop()) is not None
        ]
        # With fair sharing, a queue has one head only.
        busy = {queue for _, queue in heads} if self.rules.is_fair else frozenset()
        for workload in [each for each in self.second_pass.values() if each.cluster_queue not in busy]:
            del self.second_pass[workload.key]
            heads.append((workload, workload.cluster_queue))
        if not heads:
            return False
        self._cycle += 1
        self.snapshot.steps += len(heads)
        processing = Processing(self.nominator)
        entries: list[Entry] = []
        for workload, queue in heads:
            outcome = self._find_obstacle(workload, queue)
            is_preemptor = self.pending[queue].preemptor == workload.key
            if outcome is None and self._is_still_blocked(workload, queue, is_preemptor=is_preemptor):
                self._park_again(workload, queue)
            elif outcome is None:
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
            queues.add(workload.cluster_queue)
            if key not in self.replaced and key not in held:
                queued = workload._replace(cluster_queue="", admission=(), reserved="", unhealthy_nodes=())
                self.add(queued._replace(is_evicted=False, is_admitted=False))
        self._retry_around(queues)
        return released

    def find_admitted(self, key: str) -> Workload | None:
        """Return a workload that has quota."""
        return next((several[key] for several in self.snapshot.workloads.values() if key in several), None)

    def _retry_around(self, queues: set[str]) -> None:
        self._generation += 1
        roots = {id(self.snapshot.nodes[queue].root) for queue in queues}
        self.retry_parked(queue for queue, node in self.snapshot.nodes.items() if id(node.root) in roots)

    def find_head(self, queue: str) -> Workload | None:
        """Return the workload that is tried next in a queue."""
        return self.pending[queue].peek()

    def retry_parked(self, queues: Iterable[str]) -> None:
        """Queue again what was parked in these queues, and try again what found no place."""
        self.second_pass |= self.unplaced
        self.unplaced.clear()
        for queue in queues:
            parked, self.parked[queue] = self.parked[queue], []
            self._bulk_parked[queue].clear()
            for workload in parked:
                self.parked_with.pop(workload.key, None)
                self.add(workload)

    # Nomination: each workload alone, against the state at the start of the cycle.

    def _find_obstacle(self, workload: Workload, queue: str) -> Outcome | None:
        """Return why a workload is not even tried."""
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

    def _is_still_blocked(self, workload: Workload, queue: str, *, is_preemptor: bool) -> bool:
        """Return True if a workload was refused before, and would certainly be refused again."""
        before = self.outcomes.get(workload.key)
        is_refused = before is not None and before.state == WAITS and workload.key in self.refused
        return is_refused and self.nominator.is_blocked(workload, queue, is_preemptor=is_preemptor)

    def _park_again(self, workload: Workload, queue: str) -> None:
        """Do with a workload what a try that finds nothing would do. What it lacks is found when it is asked for."""
        self.assignments.pop(workload.key, None)
        self._end_try(workload, queue, Decision(self.outcomes[workload.key], parks_shape=True), {})

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
            pending.push(workload)
            return
        self.parked[queue].append(workload)
        if decision.parks_shape and self.gates.parks_same_shape and not is_strict:
            shape = pending.find_shape(workload)
            self._bulk_parked[queue][shape] = key
            self._park_with(queue, pending.remove_shape(shape), key)

    def _park_with(self, queue: str, workloads: Iterable[Workload], key: str) -> None:
        for workload in workloads:
            self.parked[queue].append(workload)
            self.parked_with[workload.key] = key
            self.outcomes.setdefault(workload.key, self.outcomes[key])
