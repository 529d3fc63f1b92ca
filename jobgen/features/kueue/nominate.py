"""What becomes of a workload in a cycle: it is nominated against the state at its start, then admitted or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from jobgen.features.kueue.assign_flavors import (
    PODS,
    Oracle,
    Plan,
    Planner,
    QueueFacts,
    assign_flavors,
    can_fit,
    search_counts,
)
from jobgen.features.kueue.assignment import Assignment, Mode, PlacedUsage, Placements, Placer, reuse_admission
from jobgen.features.kueue.cluster_objects import DEFAULT_GATES, Gates
from jobgen.features.kueue.obstacles import count_least
from jobgen.features.kueue.preemption import Preemptor, Rules, Target, find_targets
from jobgen.features.kueue.queue_order import Entry
from jobgen.features.kueue.quota import FlavorResource, Tree, Usage, find_borrowing_level, reserve_for_blocked
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import REPLACES, PodSetAdmission, Workload
from jobgen.k8s.nodes import get_path
from jobgen.model.named_tuple import NamedTuple

NO_LONGER_FITS = "Workload no longer fits after processing another workload"
OVERLAPPING = "Workload has overlapping preemption targets with another workload"
FITS_LATER = f"{OVERLAPPING}, but will fit after these preemptions complete"
GATED = "Workload requires preemption, but it's gated"
NOT_SELECTED = "workload namespace doesn't match ClusterQueue selector"
WAITING_FOR_PREEMPTED, MISCONFIGURED, WAITING = "WaitingForPreemptedWorkloads", "Misconfigured", "WaitingForQuota"
PENDING_EVALUATION, ADMISSION_GATED, SUSPENDED = "PendingEvaluation", "AdmissionGated", "Suspended"

ADMITTED, PREEMPTING, WAITS, INADMISSIBLE = "admitted", "preempting", "waiting", "inadmissible"
EVICTED = "evicted"

MIGRATION = "FlavorMigration"
"""Why a variant of a workload is evicted: another one gets a better flavor."""


class Outcome(NamedTuple):
    """What a cycle decided about a workload."""

    state: str
    """`admitted`, `preempting`, `waiting`, `inadmissible`, or `evicted` if a failed node cannot be replaced."""
    reason: str = ""
    message: str = ""
    admission: tuple[PodSetAdmission, ...] = ()
    targets: tuple[Target, ...] = ()
    level: int = 0


class Eviction(NamedTuple):
    """A workload that is evicted, and for whom."""

    target: Target
    preemptor: Workload
    queue: str
    """The ClusterQueue of the preemptor."""


class Decision(NamedTuple):
    """The outcome of an entry, and where the workload goes if it is not admitted."""

    outcome: Outcome
    requeue: bool = False
    """True if it is tried again at once, instead of waiting for a change."""
    parks_shape: bool = False
    """True if workloads of the same shape cannot be admitted either."""
    becomes_head: bool = False
    keeps_progress: bool = True
    """True if the next cycle goes on with the next flavor."""


def list_allowed(workload: Workload) -> tuple[str, ...] | None:
    """Return the flavors to which an annotation limits a workload, None if it has none."""
    text = workload.annotations.get("kueue.x-k8s.io/workload-allowed-resource-flavors")
    return None if text is None else tuple(name.strip() for name in str(text).split(",") if name.strip())


class Nominator:
    """Assigns flavors to workloads against a snapshot, which stays as it is."""

    def __init__(
        self,
        snapshot: Snapshot,
        rules: Rules,
        topologies: Mapping[str, Sequence[str]],
        gates: Gates = DEFAULT_GATES,
        controllers: Mapping[str, str] | None = None,
        planner: Planner | None = None,
    ) -> None:
        """`controllers` are those of admission checks, by the name of the check; `planner` is shared with others."""
        self.snapshot = snapshot
        self.rules = rules
        self.topologies = topologies
        self.gates = gates
        self._placements = Placements(snapshot.queues, snapshot.flavors, snapshot.topologies, controllers or {})
        self._planner = planner or Planner()

    def assign(
        self,
        workload: Workload,
        queue: str,
        progress: Mapping[tuple[str, str], int] | None = None,
        nominated: Mapping[str, Mapping[str, str]] | None = None,
    ) -> tuple[Assignment, list[Target]]:
        """Return the flavors and the placement of a workload, and its targets."""
        replaced = self.find_replaced(workload, queue)
        placer = self._placements.make_placer(workload, queue, replaced)
        facts = self._collect_facts(workload, queue, replaced, progress or {}, nominated, placer)
        assignment, targets = self._assign(workload, facts, placer, replaced)
        if placer is None:
            return assignment, targets
        if assignment.mode not in (Mode.FIT, Mode.NO_FIT):
            with self.snapshot.without([target.workload for target in targets]):
                assignment = placer.reserve(assignment, is_empty=not targets)
        return assignment._replace(placed=placer.find_usage(assignment)), targets

    def _collect_facts(
        self,
        workload: Workload,
        queue: str,
        replaced: Workload | None = None,
        progress: Mapping[tuple[str, str], int] = {},
        nominated: Mapping[str, Mapping[str, str]] | None = None,
        placer: Placer | None = None,
    ) -> QueueFacts:
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
            progress=progress,
            ignores_undeclared=self.rules.ignores_undeclared,
            nominated=nominated,
            place=placer.place if placer else None,
            is_fungible=self.gates.is_fungible,
        )

    def can_ever_fit(self, workload: Workload, queue: str) -> bool:
        """Return True if a workload certainly fits in an empty cluster; False if that is to be tried."""
        if self._placements.make_placer(workload, queue) is not None:
            return False
        facts = self._collect_facts(workload, queue)
        return facts.allowed is None and can_fit(self._planner.plan(workload.pod_sets, facts))

    def plan(self, workload: Workload, queue: str) -> Plan:
        """Plan the assignment of flavors to as few pods as a workload allows."""
        return self._plan_least(workload, self._collect_facts(workload, queue))

    def _plan_least(self, workload: Workload, facts: QueueFacts) -> Plan:
        if all(each.min_count is None for each in workload.pod_sets):
            return self._planner.plan(workload.pod_sets, facts)
        return self._planner.plan_counts(workload.pod_sets, facts, [count_least(each) for each in workload.pod_sets])

    def explain(self, workload: Workload, queue: str) -> Assignment:
        """Return the flavors that as few pods as a workload allows would get now."""
        if self._placements.make_placer(workload, queue) is not None:
            least = tuple(replace(each, count=count_least(each)) for each in workload.pod_sets)
            return self.assign(workload._replace(pod_sets=least), queue)[0]
        facts = self._collect_facts(workload, queue)
        return assign_flavors(self._plan_least(workload, facts), facts)

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
            full = assign_flavors(self._planner.plan(workload.pod_sets, facts), facts)
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
            partial = assign_flavors(self._planner.plan_counts(workload.pod_sets, facts, counts), facts)
            if partial.mode is Mode.FIT:
                return partial, []
            found = self._find_targets(workload, facts.queue.name, partial, placer)
            return (partial, found) if found else None

        result = search_counts(workload.pod_sets, fits)
        return None if result is None else result[1]

    def find_replaced(self, workload: Workload, queue: str) -> Workload | None:
        """Return the admitted workload that an elastic job replaces with this one."""
        slices = workload.annotations if self.gates.elastic_jobs else {}
        key = slices.get(REPLACES)
        found = self.snapshot.workloads[queue].get(str(key)) if key else None
        return found if found is not None and found.namespace == workload.namespace else None

    def _find_targets(
        self, workload: Workload, queue: str, assignment: Assignment, placer: Placer | None
    ) -> list[Target]:
        if assignment.mode in (Mode.FIT, Mode.NO_FIT):
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
        return self._search_targets(preemptor, placer.make_check(assignment) if placer else lambda: True)

    def _search_targets(self, preemptor: Preemptor, can_place: Callable[[], bool] = lambda: True) -> list[Target]:
        preemption = self.snapshot.queues[preemptor.queue].preemption
        if preemption.within_queue == "Never" and preemption.reclaim == "Never":
            return []
        return find_targets(preemptor, self.snapshot, self.rules, can_place)

    def _build_oracle(self, workload: Workload, queue: str) -> Oracle:
        """Return a function that simulates preemption for one resource in one flavor."""
        node = self.snapshot.nodes[queue]

        def simulate(pair: FlavorResource, amount: int) -> tuple[Mode, int]:
            preemptor = Preemptor(workload, queue, {pair: amount}, frozenset((pair,)))
            targets = self._search_targets(preemptor)
            if not targets:
                return Mode.NO_CANDIDATES, find_borrowing_level(node, pair, amount)[0]
            with self.snapshot.without([target.workload for target in targets]):
                level, _ = find_borrowing_level(node, pair, amount)
            own = any(target.workload.cluster_queue == queue for target in targets)
            return Mode.PREEMPT if own else Mode.RECLAIM, level

        return simulate


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
            outcome = Outcome(WAITS, PENDING_EVALUATION, "A more favorable variant is already admitted")
            return Decision(outcome, requeue=True, keeps_progress=self._gates.preserves_progress)
        fits, fits_later = self._update(entry)
        is_fit = entry.mode is Mode.FIT
        if self._gates.evicts_without_replacement and entry.workload.has_unhealthy_placement and not is_fit:
            nodes = ",".join(entry.workload.unhealthy_nodes)
            message = f"Workload was evicted as there was no replacement for unhealthy node(s): {nodes}"
            return Decision(Outcome(EVICTED, "NodeFailures", message))
        return self._refuse(entry, fits=fits, fits_later=fits_later) or self._take(entry)

    def _update(self, entry: Entry) -> tuple[bool, bool]:
        """Return whether an entry still fits, and whether it will fit once others have preempted.

        If others preempt the same targets, its flavors stay but its targets are searched again, as if the others were
        done. If others have taken its place, its flavors stay but another place is searched.
        """
        if entry.mode is not Mode.FIT and not entry.targets and not self._snapshot.topologies:
            return False, False
        fits_quota, fits_places = self._check_fit(entry)
        victims: list[Workload] = []
        overlaps = self._gates.recomputes_overlap and self._overlaps(entry)
        if overlaps:
            victims = [target.workload for target in self._taken.values()]
        elif fits_places or not fits_quota or not self._gates.recomputes_placement:
            return fits_quota and fits_places, False
        flavors = {
            each.name: {resource: choice.flavor for resource, choice in each.flavors.items()}
            for each in entry.assignment.pod_sets
        }
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
            # It takes from others what it needs, unless its queue can always reclaim its quota.
            always_reclaims = self._snapshot.queues[entry.queue].preemption.reclaim == "Any"
            if not always_reclaims or (self._gates.prefers_preemptors and entry.is_preemptor):
                node = self._snapshot.nodes[entry.queue]
                usage = reserve_for_blocked(node, entry.usage, assignment.level)
                self._reserve(entry.queue, usage, assignment.placed)
            return Decision(Outcome(WAITS, WAITING, assignment.message), parks_shape=True)
        has_gates = self._gates.concurrent_admission or self._gates.orchestrated_preemption
        if entry.mode is not Mode.FIT and has_gates and entry.workload.has_closed_gate:
            self.gated.add(entry.workload.key)
            return Decision(Outcome(WAITS, ADMISSION_GATED, GATED), keeps_progress=False)
        if fits_later:
            self._reserve(entry.queue, entry.usage, entry.assignment.placed)
            outcome = Outcome(WAITS, WAITING_FOR_PREEMPTED, FITS_LATER)
            return Decision(outcome, requeue=True, becomes_head=True, keeps_progress=False)
        if not self._overlaps(entry) and fits:
            return None
        if entry.mode is not Mode.FIT or self._overlaps(entry):
            self.skipped[entry.queue] = self.skipped.get(entry.queue, 0) + 1
        outcome = Outcome(WAITS, WAITING, OVERLAPPING if self._overlaps(entry) else NO_LONGER_FITS)
        return Decision(outcome, requeue=True, keeps_progress=self._gates.preserves_progress)

    def _reserve(self, queue: str, usage: Usage, placed: PlacedUsage) -> None:
        tree = self._snapshot.nodes[queue].tree
        self._versions.setdefault(tree, tree.version)
        self._snapshot.add_usage(queue, usage)
        self._snapshot.topologies.add(placed)
        self._reserved.append((queue, usage, placed))

    def _take(self, entry: Entry) -> Decision:
        """Admit an entry, or let it preempt."""
        assignment = entry.assignment
        self._taken.update((target.workload.key, target) for target in entry.targets)
        self._reserve(entry.queue, entry.usage, assignment.placed)
        if entry.mode is not Mode.FIT:
            # What the workload replaces is not preempted, it ends when the workload is admitted.
            replaced = self._nominator.find_replaced(entry.workload, entry.queue)
            targets = tuple(each for each in entry.targets if replaced is None or each.workload.key != replaced.key)
            pending = f". Pending the preemption of {len(targets)} workload(s)" if targets else ""
            outcome = Outcome(PREEMPTING, WAITING_FOR_PREEMPTED, f"{assignment.message}{pending}", targets=targets)
            return Decision(outcome, requeue=bool(targets), becomes_head=bool(targets), keeps_progress=False)
        sibling = self._find_sibling(entry, lambda other, own: other > own)
        if sibling is not None:
            return self._migrate(entry, sibling)
        admission = tuple(
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
        return Decision(Outcome(ADMITTED, admission=admission, level=assignment.level))

    def _migrate(self, entry: Entry, sibling: Workload) -> Decision:
        """Evict the variant of a workload that has a less favorable flavor."""
        queue = self._snapshot.queues[entry.queue]
        path = ("concurrentAdmissionPolicy", "migration", "constraints", "lastAcceptableFlavorName")
        last = get_path(queue.spec, *path)
        flavors = queue.groups[0].flavors
        own = _find_flavor_index(entry.workload, flavors)
        if last is not None and (own is None or own > (flavors.index(last) if last in flavors else -1)):
            message = "Target flavor is below LastAcceptableFlavorName" if own is not None else ""
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
