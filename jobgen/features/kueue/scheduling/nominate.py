"""Nomination: the flavors that a workload would get in the current state, and what it would preempt for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobgen.features.kueue.assign.assignment import Assignment, Mode
from jobgen.features.kueue.assign.flavors import PODS, Oracle, QueueFacts, assign_flavors
from jobgen.features.kueue.assign.partial_admission import search_counts
from jobgen.features.kueue.assign.placement import Placements, Placer, reuse_admission
from jobgen.features.kueue.preemption import Preemptor, Rules, Target, find_targets
from jobgen.features.kueue.quota import FlavorResource, find_borrowing_level
from jobgen.features.kueue.scheduling.snapshot import Snapshot
from jobgen.features.kueue.version.gates import DEFAULT_GATES, Gates
from jobgen.features.kueue.workload.workloads import Workload

Flavors = Mapping[str, Mapping[str, str]]
"""Flavors by pod set and resource."""

_ALLOWED = "kueue.x-k8s.io/workload-allowed-resource-flavors"
_REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"


def list_allowed(workload: Workload) -> tuple[str, ...] | None:
    """Return the flavors to which an annotation limits a workload, None if it has none."""
    text = workload.annotations.get(_ALLOWED)
    return None if text is None else tuple(name.strip() for name in str(text).split(",") if name.strip())


def read_flavors(assignment: Assignment) -> Flavors:
    """Return the flavors of an assignment."""
    return {
        each.name: {resource: choice.flavor for resource, choice in each.flavors.items()}
        for each in assignment.pod_sets
    }


class Nominator:
    """Assigns flavors to workloads against a snapshot, which stays as it is."""

    def __init__(
        self,
        snapshot: Snapshot,
        rules: Rules,
        topologies: Mapping[str, Sequence[str]],
        gates: Gates = DEFAULT_GATES,
        controllers: Mapping[str, str] | None = None,
    ) -> None:
        """`controllers` are those of admission checks, by the name of the check."""
        self.snapshot = snapshot
        self.rules = rules
        self.topologies = topologies
        self.gates = gates
        self._placements = Placements(snapshot.queues, snapshot.flavors, snapshot.topologies, controllers or {})

    def assign(
        self,
        workload: Workload,
        queue: str,
        progress: Mapping[tuple[str, str], int] | None = None,
        nominated: Flavors | None = None,
    ) -> tuple[Assignment, list[Target]]:
        """Return the flavors and the placement of a workload, and its targets."""
        replaced = self.find_replaced(workload, queue)
        placer = self._placements.make_placer(workload, queue, replaced)
        facts = self._build_facts(workload, queue, replaced)
        facts = facts._replace(progress=progress or {}, nominated=nominated, place=placer.place if placer else None)
        assignment, targets = self._assign(workload, facts, placer, replaced)
        if placer is None:
            return assignment, targets
        if assignment.mode not in (Mode.FIT, Mode.NO_FIT):
            with self.snapshot.without([target.workload for target in targets]):
                assignment = placer.reserve(assignment, is_empty=not targets)
        return assignment._replace(placed=placer.find_usage(assignment)), targets

    def _assign(
        self, workload: Workload, facts: QueueFacts, placer: Placer | None, replaced: Workload | None
    ) -> tuple[Assignment, list[Target]]:
        """Return the flavors of a workload and its targets.

        If all pods neither fit nor have targets, as many pods as do, where the workload allows fewer.
        """
        freed = [Target(replaced, "")] if replaced else []
        if workload.reserved:
            full = reuse_admission(workload)
            full = placer.place(full) if placer else full
        else:
            full = assign_flavors(workload.pod_sets, facts)
        if full.mode is Mode.FIT:
            return full, freed
        targets = self._find_targets(workload, facts.queue.name, full, placer)
        if targets:
            return full, freed + targets
        if self.gates.partial_admission and any(each.min_count is not None for each in workload.pod_sets):
            reduced = self._reduce(workload, facts, placer)
            if reduced is not None:
                return reduced[0], freed + reduced[1]
        return full, []

    def _reduce(
        self, workload: Workload, facts: QueueFacts, placer: Placer | None
    ) -> tuple[Assignment, list[Target]] | None:
        """Return the assignment of the greatest number of pods that fits or has targets."""

        def fits(counts: Sequence[int]) -> tuple[Assignment, list[Target]] | None:
            partial = assign_flavors(workload.pod_sets, facts, counts)
            if partial.mode is Mode.FIT:
                return partial, []
            found = self._find_targets(workload, facts.queue.name, partial, placer)
            return (partial, found) if found else None

        result = search_counts(workload.pod_sets, fits)
        if result is None:
            return None
        found: tuple[Assignment, list[Target]] = result[1]
        return found

    def find_replaced(self, workload: Workload, queue: str) -> Workload | None:
        """Return the admitted workload that an elastic job replaces with this one."""
        key = workload.annotations.get(_REPLACES) if self.gates.elastic_jobs else None
        found = self.snapshot.workloads[queue].get(str(key)) if key else None
        return found if found is not None and found.namespace == workload.namespace else None

    def _find_targets(
        self, workload: Workload, queue: str, assignment: Assignment, placer: Placer | None
    ) -> list[Target]:
        if assignment.mode in (Mode.FIT, Mode.NO_FIT) or not self._may_preempt(queue):
            return []
        needed = frozenset(
            FlavorResource(choice.flavor, resource)
            for each in assignment.pod_sets
            for resource, choice in each.flavors.items()
            if choice.mode is not Mode.FIT
        )
        # Kueue searches room for what the pods request; the number of pods, which may have a quota, is not part of it.
        usage = {pair: amount for pair, amount in assignment.usage.items() if amount and pair.resource != PODS}
        preemptor = Preemptor(workload, queue, usage, needed)
        if placer is None:
            return find_targets(preemptor, self.snapshot, self.rules)
        return find_targets(preemptor, self.snapshot, self.rules, placer.make_check(assignment))

    def _may_preempt(self, queue: str) -> bool:
        preemption = self.snapshot.queues[queue].preemption
        return preemption.within_queue != "Never" or preemption.reclaim != "Never"

    def _build_facts(self, workload: Workload, queue: str, replaced: Workload | None) -> QueueFacts:
        allowed = list_allowed(workload) if self.gates.concurrent_admission else None
        return QueueFacts(
            queue=self.snapshot.queues[queue],
            node=self.snapshot.nodes[queue],
            flavors=self.snapshot.flavors,
            topologies=self.topologies,
            oracle=self._build_oracle(workload, queue),
            is_fair=self.rules.is_fair,
            allowed=None if allowed is None else frozenset(allowed),
            replaced=replaced.admission if replaced else (),
            ignores_undeclared=self.rules.ignores_undeclared,
            is_fungible=self.gates.is_fungible,
        )

    def _build_oracle(self, workload: Workload, queue: str) -> Oracle:
        """Return a function that simulates preemption for one resource in one flavor."""
        node = self.snapshot.nodes[queue]

        def simulate(pair: FlavorResource, amount: int) -> tuple[Mode, int]:
            preemptor = Preemptor(workload, queue, {pair: amount}, frozenset((pair,)))
            targets = find_targets(preemptor, self.snapshot, self.rules) if self._may_preempt(queue) else []
            if not targets:
                return Mode.NO_CANDIDATES, find_borrowing_level(node, pair, amount)[0]
            with self.snapshot.without([target.workload for target in targets]):
                level, _ = find_borrowing_level(node, pair, amount)
            own = any(target.workload.cluster_queue == queue for target in targets)
            return Mode.PREEMPT if own else Mode.RECLAIM, level

        return simulate
