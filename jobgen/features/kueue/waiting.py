"""Workloads that wait for others to end: cycles without trying those that certainly get nothing.

After each end, Kueue tries again all that waits in the same cohorts, one workload of each queue in a cycle. A workload
that needs more than is free, and more than it could ever preempt, gets nothing: the only effect of its try is that the
next one of its queue is tried one cycle later. `Waiting` counts these cycles, and runs only the others.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.features.kueue.cycle import Scheduler
from jobgen.features.kueue.nominate import INADMISSIBLE, NO_LONGER_FITS, OVERLAPPING
from jobgen.features.kueue.objects import STRICT_FIFO
from jobgen.features.kueue.obstacles import PODS, count_least
from jobgen.features.kueue.queue_order import Shape, find_shape, order_in_queue
from jobgen.features.kueue.quota import FlavorResource, QuotaNode, Tree
from jobgen.features.kueue.workloads import Workload


class _Need(NamedTuple):
    """What a workload needs of a resource at least: in one flavor, or in any of several."""

    pairs: tuple[FlavorResource, ...]
    amount: int


_Member = tuple[tuple[int, str, str], Workload, int]
"""The place of a workload in the order of its queue, the workload, and the number of its shape."""


class _Line:
    """The workloads that wait in one queue, in their order, and how far the cycles have come."""

    def __init__(self, name: str, *, is_strict: bool) -> None:
        self.name = name
        self.is_strict = is_strict
        self.members: list[_Member] = []
        self.preemptor = ""
        self.restart()

    def restart(self) -> None:
        """Begin with the first again."""
        self.at = 0
        self.parked: set[int] = set()
        self.tried: set[str] = set()

    def remove(self, key: str) -> None:
        """Remove a workload."""
        place = next(number for number, (_, each, _) in enumerate(self.members) if each.key == key)
        del self.members[place]
        self.at -= place < self.at


class Waiting:
    """The waiting workloads of all queues of a scheduler, which holds the heads of a cycle only."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Take over what waits."""
        self._scheduler = scheduler
        self._snapshot = snapshot = scheduler.snapshot
        self._parks_shape = scheduler.gates.parks_same_shape
        self._lines = {
            name: _Line(name, is_strict=queue.strategy == STRICT_FIFO)
            for name, queue in snapshot.queues.items()
            if name not in scheduler.inactive
        }
        self._trees: dict[Tree, list[_Line]] = {}
        for name, line in self._lines.items():
            self._trees.setdefault(snapshot.nodes[name].tree, []).append(line)
        self._shapes: dict[Shape, int] = {}
        self._needs: dict[tuple[str, int], list[_Need]] = {}
        self._known: dict[tuple[str, int], bool] = {}
        self._bounds: dict[tuple[str, FlavorResource, int], int] = {}
        self._versions: dict[Tree, int] = {}
        self._before: dict[Tree, int] = {}
        self._futile: set[str] = set()
        self._freed: set[Tree] = set()
        self._refused = {key for key, each in scheduler.outcomes.items() if each.state == INADMISSIBLE}
        self.passed = 0
        """How many workloads were tried without success."""
        self._take_over()

    def retry(self) -> None:
        """Begin with the first of each queue again."""
        for line in self._lines.values():
            line.restart()
            line.preemptor = self._scheduler.pending[line.name].preemptor = ""
        self._futile.clear()
        self._take_over()

    def run_cycle(self) -> bool:
        """Run the next cycle in which something may change; return False if there is none."""
        scheduler, heads = self._scheduler, dict[str, Workload]()
        self._take_over()
        for tree, lines in self._trees.items():
            distances = [self._measure_distance(line) for line in lines]
            nearest = min((each for each in distances if each is not None), default=None)
            if nearest is None:
                continue
            self._before[tree] = tree.version
            for line in lines:
                for _ in range(nearest):
                    self._pass(line)
                member = next(self._iterate(line), None)
                if member is None:
                    continue
                if self._is_harmless(line) and not self._may_get(line, *member):
                    self._pass(line)
                else:
                    heads[line.name] = member[0]
                    scheduler.pending[line.name].push(member[0])
        if not heads and not scheduler.second_pass:
            return False
        scheduler.run_cycle()
        evicted = (target.workload.cluster_queue for target in scheduler.evicted.values())
        self._freed = {self._snapshot.nodes[name].tree for name in evicted}
        for name, head in heads.items():
            self._settle_head(self._lines[name], head)
        return True

    def _settle_head(self, line: _Line, head: Workload) -> None:
        """Note what became of a head: it was admitted, it stays the head, or the next one is the head."""
        scheduler = self._scheduler
        pending = scheduler.pending[line.name]
        line.preemptor = pending.preemptor
        if head.key in self._snapshot.workloads[line.name]:
            line.remove(head.key)
            return
        if pending.remove(head.key) is None:
            scheduler.parked[line.name].clear()
            self._pass(line, is_tried=True)
        elif line.is_strict and not scheduler.progress.get(head.key):
            tree = self._snapshot.nodes[line.name].tree
            if self._before[tree] == tree.version and scheduler.outcomes[head.key].message not in (
                NO_LONGER_FITS,
                OVERLAPPING,
            ):
                self._futile.add(head.key)

    def _take_over(self) -> None:
        """Take what the scheduler queued again. An eviction lets it try all that waits in the same cohorts."""
        for name, line in self._lines.items():
            pending, parked = self._scheduler.pending[name], self._scheduler.parked[name]
            if not len(pending) and not parked:
                continue
            known = {each.key for _, each, _ in line.members}
            for workload in (*pending, *parked):
                pending.remove(workload.key)
                if workload.key not in known:
                    shape = self._shapes.setdefault(find_shape(workload), len(self._shapes))
                    insort(line.members, (order_in_queue(workload), workload, shape), key=lambda member: member[0])
            parked.clear()
            self._freed.add(self._snapshot.nodes[name].tree)
        for tree in self._freed:
            for line in self._trees[tree]:
                line.restart()
            self._futile.clear()
        self._freed = set()

    def _is_harmless(self, line: _Line) -> bool:
        """Return True if a workload that gets nothing keeps nothing from others in its cycle."""
        is_any = self._snapshot.queues[line.name].preemption.reclaim == "Any"
        return is_any and not self._scheduler.gates.prefers_preemptors

    def _iterate(self, line: _Line) -> Iterator[tuple[Workload, int]]:
        """Yield the workloads that are still to be tried, in their order, each with its shape."""
        left, first, parked = line.members[line.at :], line.preemptor, line.parked
        if first and first not in line.tried:
            yield from ((each, shape) for _, each, shape in left if each.key == first and shape not in parked)
        yield from ((each, shape) for _, each, shape in left if shape not in parked and each.key != first)

    def _measure_distance(self, line: _Line) -> int | None:
        """Return after how many cycles the queue has a head that may get something; None if it never has."""
        passed: set[int] = set()
        count = 0
        for workload, shape in self._iterate(line):
            if shape in passed:
                continue
            if self._may_get(line, workload, shape):
                return count
            if self._parks_shape and workload.key not in self._refused:
                passed.add(shape)
            if line.is_strict:
                return None
            count += 1
        return None

    def _pass(self, line: _Line, *, is_tried: bool = False) -> None:
        """Count the head of a queue as tried without success. In strict order, it stays the head."""
        head, shape = next(self._iterate(line), (None, 0))
        if head is None or (line.is_strict and not is_tried):
            return
        self.passed += 1
        if self._parks_shape and head.key not in self._refused and not line.is_strict:
            line.parked.add(shape)
        elif head.key == line.preemptor:
            line.tried.add(head.key)
        else:
            line.at = 1 + next(number for number, (_, each, _) in enumerate(line.members) if each is head)

    # What a workload may get: what is free, and what it could preempt at most.

    def _may_get(self, line: _Line, workload: Workload, shape: int) -> bool:
        """Return False only if a workload certainly gets nothing in the current state."""
        tree = self._snapshot.nodes[line.name].tree
        if self._versions.get(tree) != tree.version:
            self._versions[tree] = tree.version
            self._known.clear()
            self._bounds.clear()
        key = line.name, shape
        found = self._known.get(key)
        if found is None:
            if key not in self._needs:
                self._needs[key] = self._list_needs(workload, line.name)
            found = self._known[key] = all(
                any(
                    self._find_bound(line.name, pair, workload.priority, need.amount) >= need.amount
                    for pair in need.pairs
                )
                for need in self._needs[key]
            )
        return found and workload.key not in self._refused and workload.key not in self._futile

    def _list_needs(self, workload: Workload, queue: str) -> list[_Need]:
        amounts: dict[str, list[int]] = {}
        for pod_set in workload.pod_sets:
            count = count_least(pod_set)
            for resource, amount in pod_set.requests.items():
                amounts.setdefault(resource, []).append(amount * count)
            amounts.setdefault(PODS, []).append(count)
        needs: list[_Need] = []
        for resource, several in amounts.items():
            group = self._snapshot.queues[queue].find_group(resource)
            flavors = group.flavors if group else ()
            if flavors:
                # Pod sets can have different flavors.
                amount = sum(several) if len(flavors) == 1 else max(several)
                needs.append(_Need(tuple(FlavorResource(each, resource) for each in flavors), amount))
        return needs

    def _find_bound(self, queue: str, pair: FlavorResource, priority: int, amount: int) -> int:
        """Return the most that a workload could get of a flavor: what is free, and what it may preempt."""
        node, policies = self._snapshot.nodes[queue], self._snapshot.queues[queue].preemption
        key = queue, pair, priority
        if key not in self._bounds:
            own = max(0, node.available(pair))
            if policies.within_queue != "Never":
                is_any = self._scheduler.gates.boosts_priority or policies.within_queue == "Any"
                own += sum(
                    each.usage.get(pair, 0)
                    for each in self._snapshot.workloads[queue].values()
                    if is_any or each.priority <= priority - (policies.within_queue == "LowerPriority")
                )
            self._bounds[key] = own
        bound = self._bounds[key]
        if bound >= amount or node.parent is None or (policies.reclaim, policies.borrow) == ("Never", "Never"):
            return bound
        is_simple = node.root is node.parent and policies.borrow == "Never" and not self._scheduler.rules.is_fair
        own = bound - max(0, node.available(pair))
        if is_simple and node.usage.get(pair, 0) - own + amount > node.find_quota(pair).nominal:
            # It may reclaim its own quota only.
            return bound
        return bound + self._find_reclaimable(node, pair, is_simple=is_simple)

    def _find_reclaimable(self, node: QuotaNode, pair: FlavorResource, *, is_simple: bool) -> int:
        """Return the most that other queues of the tree could lose."""
        key = node.name, pair, -(2**40)
        if key not in self._bounds:
            total = 0
            for line in self._snapshot.nodes.values():
                used = line.usage.get(pair, 0)
                if line.tree is not node.tree or line is node or not used:
                    continue
                borrowed = used - line.find_quota(pair).nominal
                others = any(
                    amount > line.find_quota(each).nominal for each, amount in line.usage.items() if each != pair
                )
                if is_simple and not others:
                    largest = max(each.usage.get(pair, 0) for each in self._snapshot.workloads[line.name].values())
                    used = min(used, borrowed + largest) if borrowed > 0 else 0
                total += used
            self._bounds[key] = total
        return self._bounds[key]
