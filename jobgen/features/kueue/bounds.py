"""The most that a waiting workload could get: what is free, and what it could preempt.

A workload that needs more gets nothing, so that a cycle need not try it. What is free and what a queue can reclaim
grows only if something in the same tree ends, or the queue itself changes: until then, a bound stays one.
"""

from __future__ import annotations

from math import inf

from jobgen.features.kueue.cluster_objects import Gates
from jobgen.features.kueue.nominate import Nominator
from jobgen.features.kueue.objects import Preemption
from jobgen.features.kueue.quota import UNLIMITED, FlavorResource, QuotaNode, Tree, add
from jobgen.features.kueue.workloads import REPLACES, Workload
from jobgen.model.named_tuple import NamedTuple

_Option = tuple[tuple[FlavorResource, int], ...]
"""What a workload needs at least of a flavor."""


class _Bound(NamedTuple):
    """What a workload of some priority could get of a flavor and resource in its queue."""

    changed: int
    freed: int
    version: int
    room: int
    """What is free and what it could preempt in its own queue, in this version of the tree."""
    most: float
    """The most that it could get until the queue changes, or something in the tree ends."""


class Bounds:
    """What workloads of all queues could get at most in the state of a snapshot."""

    def __init__(self, nominator: Nominator) -> None:
        self._nominator = nominator
        self._snapshot = nominator.snapshot
        self._is_fair = nominator.rules.is_fair
        self._gates: Gates = nominator.gates
        self._needs: dict[tuple[str, int], tuple[tuple[_Option, ...], ...]] = {}
        self._bounds: dict[tuple[str, FlavorResource, int], _Bound] = {}
        self._queues: dict[Tree, list[QuotaNode]] = {}
        self._totals: dict[tuple[Tree, FlavorResource], tuple[int, int]] = {}
        self._reclaimable: dict[tuple[str, FlavorResource], tuple[int, int]] = {}

    def forget(self) -> None:
        """Forget all bounds, because the policies of queues have changed."""
        self._bounds.clear()

    def is_blocked(self, workload: Workload, queue: str, shape: int) -> bool:
        """Return True if a workload certainly gets nothing; `shape` is that of its queue."""
        needs = self._needs.get((queue, shape))
        if needs is None:
            needs = self._needs[queue, shape] = self._list_needs(workload, queue)
        if not needs or (self._gates.elastic_jobs and REPLACES in workload.annotations):
            return False
        node, priority = self._snapshot.nodes[queue], workload.priority
        for options in needs:
            for option in options:
                for pair, amount in option:
                    if self._exceeds(node, pair, priority, amount):
                        break
                else:
                    # Nothing of this flavor exceeds its bound.
                    break
            else:
                return True
        return False

    def is_harmless(self, queue: str, *, is_preemptor: bool) -> bool:
        """Return True if a workload that gets nothing keeps nothing from others, and does not change their order."""
        always_reclaims = self._snapshot.queues[queue].preemption.reclaim == "Any"
        return always_reclaims and not self._is_fair and not (self._gates.prefers_preemptors and is_preemptor)

    def _list_needs(self, workload: Workload, queue: str) -> tuple[tuple[_Option, ...], ...]:
        """List choices of flavors; a workload that has nothing to choose gets nothing.

        Of pod sets or resource groups that choose separately, one that finds a flavor goes on with the next one in
        the next cycle, although another finds none. So only the only one that has a choice is listed.
        """
        gates = self._gates
        if not gates.is_fungible or gates.concurrent_admission:
            return ()
        plan = self._nominator.plan(workload, queue)
        steps = [step.options for part in plan for step in part.steps]
        several = [options for options in steps if len(options) > 1]
        return tuple(
            tuple(
                tuple((pair, amount) for pair, amount, _ in option.needs)
                for option in options
                if not option.mismatch and all(amount <= most for _, amount, most in option.needs)
            )
            for options in (several if len(several) == 1 else steps if not several else ())
        )

    def _exceeds(self, node: QuotaNode, pair: FlavorResource, priority: int, amount: int) -> bool:
        """Return True if an amount is more than a workload of this priority could get."""
        key, tree = (node.name, pair, priority), node.tree
        found, freed = self._bounds.get(key), tree.freed.get(pair, 0)
        if found is None or found.changed != node.changed or found.freed != freed:
            found = self._bounds[key] = self._find_bound(node, pair, priority)
        if amount > found.most:
            return True
        if found.version != tree.version:
            found = self._bounds[key] = self._find_bound(node, pair, priority)
        if amount <= found.room or amount > found.most:
            return amount > found.room
        others = self._sum_reclaimable(node, pair) - self._find_reclaimable(node, pair)
        return amount > add(found.room, others)

    def _find_bound(self, node: QuotaNode, pair: FlavorResource, priority: int) -> _Bound:
        policies = self._snapshot.queues[node.name].preemption
        own = self._sum_own(node, pair, priority, policies)
        room = max(0, add(node.available(pair), own))
        most: float = room
        if policies.reclaim != "Never" and node.parent is not None:
            most = inf if self._is_fair or policies.borrow != "Never" else _find_quota(node, pair, own)
            limit = node.find_quota(pair).borrowing_limit
            if limit is not None:
                # Whatever others lose, the queue borrows no more than this.
                most = min(most, _find_unused(node, pair) + limit + own)
            most = max(room, most)
        return _Bound(node.changed, node.tree.freed.get(pair, 0), node.tree.version, room, most)

    def _sum_own(self, node: QuotaNode, pair: FlavorResource, priority: int, policies: Preemption) -> int:
        """Sum what the workload could preempt in its own queue."""
        if policies.within_queue == "Never":
            return 0
        most = priority - (policies.within_queue == "LowerPriority")
        return sum(
            each.usage.get(pair, 0)
            for each in self._snapshot.list_users(node.name, frozenset((pair,)))
            if each.priority <= most or policies.within_queue == "Any"
        )

    def _sum_reclaimable(self, node: QuotaNode, pair: FlavorResource) -> int:
        """Sum what all queues of a tree could lose."""
        tree = node.tree
        version, found = self._totals.get((tree, pair), (-1, 0))
        if version != tree.version:
            queues = self._queues.get(tree)
            if queues is None:
                queues = self._queues[tree] = list(node.root.list_queues())
            found = sum(self._find_reclaimable(each, pair) for each in queues)
            self._totals[tree, pair] = tree.version, found
        return found

    def _find_reclaimable(self, node: QuotaNode, pair: FlavorResource) -> int:
        """Return the most that a queue could lose to others: it loses workloads while it borrows anything."""
        changed, amount = self._reclaimable.get((node.name, pair), (-1, 0))
        if changed != node.changed:
            amount = node.usage.get(pair, 0)
            borrowed = {each for each in node.usage if node.is_borrowing(each)} if amount else ()
            if not borrowed:
                amount = 0
            elif borrowed == {pair} and not self._is_fair:
                largest = max(each.usage.get(pair, 0) for each in self._snapshot.workloads[node.name].values())
                amount = min(amount, amount - node.subtree_quota(pair) + largest)
            self._reclaimable[node.name, pair] = node.changed, amount
        return amount


def _find_quota(node: QuotaNode, pair: FlavorResource, own: int) -> float:
    """Return the most that fits in the quota of a queue without `own`, or in that of a cohort above, but for the root.

    A workload that does not borrow there can reclaim what others use.
    """
    found, kept = _find_unused(node, pair) + own, node.local_available(pair)
    for cohort in node.list_ancestors():
        if cohort.parent is not None and (unused := _find_unused(cohort, pair)) >= 0:
            found = max(found, unused + kept)
        kept += cohort.local_available(pair)
    return found


def _find_unused(node: QuotaNode, pair: FlavorResource) -> float:
    quota = node.subtree_quota(pair)
    return inf if quota >= UNLIMITED else quota - node.usage.get(pair, 0)
