"""Preemption with fair sharing: queues that borrow a greater share give way to those that borrow a smaller one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobgen.features.kueue.preemption.candidates import (
    FAIR_SHARING,
    FINAL_SHARE,
    IN_QUEUE,
    INITIAL_SHARE,
    RECLAIM,
    Placement,
    Preemptor,
    Rules,
    Target,
    fits,
    list_candidates,
    order_candidates,
    put_back,
)
from jobgen.features.kueue.quota import QuotaNode, Share, compare_shares, compute_share
from jobgen.features.kueue.scheduling.snapshot import Snapshot
from jobgen.features.kueue.workload.workloads import Workload


def find_fair_targets(preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement) -> list[Target]:
    """Return the workloads to evict, none if no allowed set of them makes enough room."""
    candidates = _collect(preemptor, snapshot, rules)
    if not candidates:
        return []
    # Shares include the workload that needs room.
    snapshot.add_usage(preemptor.queue, preemptor.usage)
    search = _FairSearch(preemptor, snapshot, rules, can_place)
    is_fitting, retries = search.run_first(candidates)
    if not is_fitting and len(rules.strategies) > 1:
        is_fitting = search.run_second(retries)
    snapshot.remove_usage(preemptor.queue, preemptor.usage)
    targets = search.targets
    if is_fitting:
        targets = put_back(targets, snapshot, search.has_room)
    for target in targets:
        snapshot.charge_usage(target.workload)
    return targets if is_fitting else []


def _collect(preemptor: Preemptor, snapshot: Snapshot, rules: Rules) -> list[Workload]:
    """The candidates in order: those of the queue itself, and of all queues of the tree that borrow what is needed."""
    policies, node = snapshot.queues[preemptor.queue].preemption, snapshot.nodes[preemptor.queue]
    found = [*list_candidates(policies.within_queue, preemptor, preemptor.queue, snapshot, rules)]
    if node.parent is not None and policies.reclaim != "Never":
        for queue in node.root.list_queues():
            if queue is not node and any(queue.is_borrowing(pair) for pair in preemptor.needed):
                found += list_candidates(policies.reclaim, preemptor, queue.name, snapshot, rules)
    return order_candidates(found, preemptor.queue, rules.measure)


class QueueOrder:
    """The order in which queues give up workloads: from the root down, always to the child with the greatest share."""

    def __init__(self, node: QuotaNode, candidates: Iterable[Workload]) -> None:
        """`node` is the queue that needs room, `candidates` are in the order in which they are evicted."""
        self._node = node
        self._own = {id(node), *(id(each) for each in node.list_ancestors())}
        self._pruned: set[int] = set()
        self._left: dict[str, list[Workload]] = {}
        for workload in candidates:
            self._left.setdefault(workload.cluster_queue, []).append(workload)
        for several in self._left.values():
            several.reverse()

    def iterate(self) -> Iterator[QuotaNode]:
        """Yield queues with candidates. After each, take one of its candidates or drop the queue."""
        root = self._node.root
        if root.is_queue:
            while self.has_candidate(root) and id(root) not in self._pruned:
                yield root
            return
        while id(root) not in self._pruned:
            found = self._descend(root)
            if found is not None:
                yield found

    def has_candidate(self, queue: QuotaNode) -> bool:
        """Return whether a queue has candidates left."""
        return bool(self._left.get(queue.name))

    def take(self, queue: QuotaNode) -> Workload:
        """Take the next candidate of a queue."""
        return self._left[queue.name].pop()

    def drop(self, queue: QuotaNode) -> None:
        """Leave a queue out from now on."""
        self._pruned.add(id(queue))

    def _descend(self, cohort: QuotaNode) -> QuotaNode | None:
        best_queue: tuple[QuotaNode, Share] | None = None
        best_cohort: tuple[QuotaNode, Share] | None = None
        for child, share in self._list_children(cohort):
            if child.is_queue:
                if best_queue is None or self._is_first(child, share, *best_queue):
                    best_queue = child, share
            elif best_cohort is None or compare_shares(share, best_cohort[1]) >= 0:
                best_cohort = child, share
        if best_cohort and (best_queue is None or compare_shares(best_cohort[1], best_queue[1]) >= 0):
            return self._descend(best_cohort[0])
        if best_queue is None:
            self._pruned.add(id(cohort))
            return None
        return best_queue[0]

    def _list_children(self, cohort: QuotaNode) -> Iterator[tuple[QuotaNode, Share]]:
        """Yield the children that may have something to preempt, and prune the others."""
        for child in cohort.children:
            if id(child) in self._pruned:
                continue
            share = compute_share(child)
            is_idle = not share.borrowed and id(child) not in self._own
            if is_idle or (child.is_queue and not self.has_candidate(child)):
                self._pruned.add(id(child))
            else:
                yield child, share

    def _is_first(self, child: QuotaNode, share: Share, other: QuotaNode, other_share: Share) -> bool:
        order = compare_shares(share, other_share)
        if order:
            return order > 0
        pair = [self._left[other.name][-1], self._left[child.name][-1]]
        return order_candidates(pair, self._node.name)[0] is pair[1]


class _FairSearch:
    """The search for targets, with the workload that needs room counted as usage of its queue."""

    def __init__(self, preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement) -> None:
        self._preemptor = preemptor
        self._snapshot = snapshot
        self._rules = rules
        self._can_place = can_place
        self._node = snapshot.nodes[preemptor.queue]
        self.targets: list[Target] = []

    def has_room(self) -> bool:
        """Return whether the workload fits; its own usage may not be counted at the moment."""
        return fits(self._node, self._preemptor.usage, may_borrow=True) and self._can_place()

    def _evict(self, workload: Workload, reason: str) -> bool:
        """Evict a workload; return whether there is room then."""
        self._snapshot.free_usage(workload)
        self.targets.append(Target(workload, reason))
        self._snapshot.remove_usage(self._preemptor.queue, self._preemptor.usage)
        has_room = self.has_room()
        self._snapshot.add_usage(self._preemptor.queue, self._preemptor.usage)
        return has_room

    def run_first(self, candidates: Iterable[Workload]) -> tuple[bool, list[Workload]]:
        """Apply the first strategy; return whether there is room then, and the candidates that it did not allow."""
        order = QueueOrder(self._node, candidates)
        retries: list[Workload] = []
        is_within = self._rules.within_nominal and not any(
            self._node.is_borrowing(pair) for pair in self._preemptor.needed
        )
        for queue in order.iterate():
            if queue is self._node:
                has_room = self._evict(order.take(queue), IN_QUEUE)
            elif is_within:
                has_room = self._evict(order.take(queue), RECLAIM)
            else:
                has_room = self._evict_fairly(queue, order, retries)
            if has_room:
                return True, retries
        return False, retries

    def _evict_fairly(self, queue: QuotaNode, order: QueueOrder, retries: list[Workload]) -> bool:
        """Evict the first workload of a queue that the shares allow to evict; return whether there is room then."""
        own, before = self._compute_shares(queue)
        while order.has_candidate(queue):
            candidate = order.take(queue)
            if self._is_allowed(own, before, self._share_without(queue, candidate)):
                return self._evict(candidate, FAIR_SHARING)
            retries.append(candidate)
        return False

    def run_second(self, retries: Iterable[Workload]) -> bool:
        """Apply the second strategy to what the first did not allow, once for each queue."""
        order = QueueOrder(self._node, retries)
        for queue in order.iterate():
            own, before = self._compute_shares(queue)
            candidate = order.take(queue)
            if compare_shares(own, before) < 0 and self._evict(candidate, FAIR_SHARING):
                return True
            order.drop(queue)
        return False

    def _is_allowed(self, own: Share, before: Share, after: Share) -> bool:
        if self._rules.strategies[0] == FINAL_SHARE:
            return compare_shares(own, after) <= 0
        return self._rules.strategies[0] == INITIAL_SHARE and compare_shares(own, before) < 0

    def _compute_shares(self, queue: QuotaNode) -> tuple[Share, Share]:
        """The shares of both sides below the cohort that is above both."""
        own, other = self._split(queue)
        return compute_share(own), compute_share(other)

    def _split(self, queue: QuotaNode) -> tuple[QuotaNode, QuotaNode]:
        above = [queue, *queue.list_ancestors()]
        ids = {id(node) for node in above}
        own = self._node
        while own.parent is not None and id(own.parent) not in ids:
            own = own.parent
        other = next(node for node in above if node.parent is own.parent)
        return own, other

    def _share_without(self, queue: QuotaNode, workload: Workload) -> Share:
        _, other = self._split(queue)
        self._snapshot.remove_usage(queue.name, workload.usage)
        share = compute_share(other)
        self._snapshot.add_usage(queue.name, workload.usage)
        return share
