"""Preemption: which admitted workloads are evicted so that another one fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.kueue.amounts import subtract
from jobgen.kueue.objects import Preemption
from jobgen.kueue.quota import FlavorResource, QuotaNode, Share, Usage, compare_shares, compute_share
from jobgen.kueue.snapshot import Snapshot
from jobgen.kueue.workloads import Workload

IN_QUEUE, RECLAIM = "InClusterQueue", "InCohortReclamation"
WHILE_BORROWING, FAIR_SHARING = "InCohortReclaimWhileBorrowing", "InCohortFairSharing"

FINAL_SHARE, INITIAL_SHARE = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
DEFAULT_STRATEGIES = (FINAL_SHARE, INITIAL_SHARE)


class Target(NamedTuple):
    """A workload to evict, and the rule that allows it."""

    workload: Workload
    reason: str


class Preemptor(NamedTuple):
    """A workload that needs room."""

    workload: Workload
    queue: str
    usage: Usage
    """What it would use."""
    needed: frozenset[FlavorResource]
    """The flavors and resources in which there is not enough."""


class Rules(NamedTuple):
    """Settings of Kueue that decide how it preempts."""

    is_fair: bool = False
    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    within_nominal: bool = True
    """The gate FairSharingPreemptWithinNominal."""


Placement = Callable[[], bool]
"""Whether the pods can be placed now."""


def find_targets(
    preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement = lambda: True
) -> list[Target]:
    """Return the workloads to evict, none if no allowed set of them makes enough room. The snapshot is unchanged."""
    if rules.is_fair:
        return _FairSearch(preemptor, snapshot, rules, can_place).run()
    return _find_classical(preemptor, snapshot, can_place)


def satisfies(policy: str, preemptor: Workload, candidate: Workload) -> bool:
    """Return whether a policy lets a workload preempt another."""
    if policy == "Any":
        return True
    if candidate.priority < preemptor.priority:
        return policy in ("LowerPriority", "LowerOrNewerEqualPriority")
    is_newer = candidate.priority == preemptor.priority and candidate.timestamp > preemptor.timestamp
    return policy == "LowerOrNewerEqualPriority" and is_newer


def order_candidates(candidates: Sequence[Workload], queue: str) -> list[Workload]:
    """Return candidates in the order in which they are evicted."""
    # The last sort decides first.
    ordered = sorted(candidates, key=lambda each: each.uid)
    ordered.sort(key=lambda each: each.reserved, reverse=True)
    ordered.sort(key=lambda each: (not each.is_evicted, each.cluster_queue == queue, each.priority))
    return ordered


def _uses(workload: Workload, needed: frozenset[FlavorResource]) -> bool:
    return not needed.isdisjoint(workload.usage)


def _list_own(preemptor: Preemptor, snapshot: Snapshot) -> list[Workload]:
    policy = snapshot.queues[preemptor.queue].preemption.within_queue
    own = snapshot.workloads[preemptor.queue].values()
    return [
        each
        for each in own
        if policy != "Never" and satisfies(policy, preemptor.workload, each) and _uses(each, preemptor.needed)
    ]


class _Candidate(NamedTuple):
    workload: Workload
    ancestor: QuotaNode | None
    """The cohort above both queues; None for the queue of the preemptor itself."""
    is_hierarchical: bool = False
    without_borrowing: bool = False

    @property
    def reason(self) -> str:
        if self.ancestor is None:
            return IN_QUEUE
        return RECLAIM if self.is_hierarchical or self.without_borrowing else WHILE_BORROWING


def _find_classical(preemptor: Preemptor, snapshot: Snapshot, can_place: Placement) -> list[Target]:
    queue, node = snapshot.queues[preemptor.queue], snapshot.nodes[preemptor.queue]
    own = [_Candidate(each, None) for each in _list_own(preemptor, snapshot)]
    others = list(_list_others(preemptor, snapshot)) if queue.preemption.reclaim != "Never" else []
    hierarchical = [each for each in others if each.is_hierarchical]
    by_priority = [each for each in others if not each.is_hierarchical]
    groups = [_order(group, preemptor.queue) for group in (hierarchical, by_priority, own)]
    ordered = [each for group in groups for each in group if each.workload.is_evicted]
    ordered += [each for group in groups for each in group if not each.workload.is_evicted]
    is_below = all(node.usage.get(pair, 0) < node.find_quota(pair).nominal for pair in preemptor.needed)
    is_never = queue.preemption.borrow == "Never"
    if not others or (is_never and not is_below):
        attempts = [True]
    elif is_never and not hierarchical:
        attempts = [False, True]
    else:
        attempts = [True, False]
    for may_borrow in attempts:
        found = _attempt(ordered, preemptor, snapshot, can_place, may_borrow=may_borrow)
        if found:
            return found
    return []


def _order(candidates: list[_Candidate], queue: str) -> list[_Candidate]:
    by_key = {each.workload.key: each for each in candidates}
    return [by_key[each.key] for each in order_candidates([each.workload for each in candidates], queue)]


def _list_others(preemptor: Preemptor, snapshot: Snapshot) -> Iterator[_Candidate]:
    """Yield candidates of other queues: from each cohort above, those below it that exceed their quota."""
    node = done = snapshot.nodes[preemptor.queue]
    preemption = snapshot.queues[preemptor.queue].preemption
    has_advantage, left = _fit_quota(node, preemptor.usage)
    for ancestor in node.list_ancestors():
        for queue in _list_exceeding(ancestor, done, preemptor.needed):
            for workload in snapshot.workloads[queue.name].values():
                if satisfies(preemption.reclaim, preemptor.workload, workload) and _uses(workload, preemptor.needed):
                    without = not has_advantage and _is_without_borrowing(preemption, preemptor.workload, workload)
                    yield _Candidate(workload, ancestor, has_advantage, without)
        fits, left = _fit_quota(ancestor, left)
        has_advantage = has_advantage or fits
        done = ancestor


def _fit_quota(node: QuotaNode, requests: Mapping[FlavorResource, int]) -> tuple[bool, Usage]:
    fits = all(not node.is_borrowing(pair, amount) for pair, amount in requests.items())
    return fits, {pair: subtract(amount, node.local_available(pair)) for pair, amount in requests.items()}


def _list_exceeding(node: QuotaNode, done: QuotaNode, needed: frozenset[FlavorResource]) -> Iterator[QuotaNode]:
    for child in node.children:
        if child is done or not _exceeds(child, needed):
            continue
        if child.is_queue:
            yield child
        else:
            yield from _list_exceeding(child, done, needed)


def _exceeds(node: QuotaNode, needed: frozenset[FlavorResource]) -> bool:
    return any(node.is_borrowing(pair) for pair in needed)


def _is_without_borrowing(preemption: Preemption, preemptor: Workload, candidate: Workload) -> bool:
    """Whether a candidate is only evicted for a workload that does not borrow then."""
    if preemption.borrow == "Never":
        return True
    threshold = preemption.max_priority
    return candidate.priority >= preemptor.priority or (threshold is not None and candidate.priority > threshold)


def _attempt(
    candidates: Sequence[_Candidate],
    preemptor: Preemptor,
    snapshot: Snapshot,
    can_place: Placement,
    *,
    may_borrow: bool,
) -> list[Target]:
    node = snapshot.nodes[preemptor.queue]
    targets: list[Target] = []
    fits = False
    for each in candidates:
        if each.ancestor is not None:
            if each.without_borrowing and may_borrow:
                continue
            if not _still_exceeds(snapshot.nodes[each.workload.cluster_queue], each.ancestor, preemptor.needed):
                continue
        snapshot.remove_workload(each.workload)
        targets.append(Target(each.workload, each.reason))
        if _fits(node, preemptor.usage, may_borrow=may_borrow) and can_place():
            fits = True
            break
    if fits:
        targets = _put_back(
            targets, snapshot, lambda: _fits(node, preemptor.usage, may_borrow=may_borrow) and can_place()
        )
    for target in targets:
        snapshot.add_workload(target.workload)
    return targets if fits else []


def _still_exceeds(queue: QuotaNode, ancestor: QuotaNode, needed: frozenset[FlavorResource]) -> bool:
    node: QuotaNode | None = queue
    while node is not None and node is not ancestor:
        if not _exceeds(node, needed):
            return False
        node = node.parent
    return True


def _fits(node: QuotaNode, usage: Usage, *, may_borrow: bool) -> bool:
    if not all(amount <= max(0, node.available(pair)) for pair, amount in usage.items()):
        return False
    return may_borrow or not any(node.is_borrowing(pair, amount) for pair, amount in usage.items())


def _put_back(targets: list[Target], snapshot: Snapshot, fits: Callable[[], bool]) -> list[Target]:
    """Keep targets that are not needed after all, the last ones first; the one that made it fit is needed."""
    kept = list(targets)
    for target in reversed(targets[:-1]):
        snapshot.add_workload(target.workload)
        if fits():
            kept.remove(target)
        else:
            snapshot.remove_workload(target.workload)
    return kept


class _FairSearch:
    """The search with fair sharing: from the queue with the greatest share, as long as the shares allow it."""

    def __init__(self, preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement) -> None:
        self._preemptor = preemptor
        self._snapshot = snapshot
        self._rules = rules
        self._can_place = can_place
        self._node = snapshot.nodes[preemptor.queue]
        self._candidates = self._collect()
        self._pruned: set[int] = set()

    def _collect(self) -> dict[str, list[Workload]]:
        preemptor, snapshot = self._preemptor, self._snapshot
        found = {preemptor.queue: _list_own(preemptor, snapshot)}
        reclaim = snapshot.queues[preemptor.queue].preemption.reclaim
        if self._node.parent is not None and reclaim != "Never":
            for queue in self._node.root.list_queues():
                if queue.name == preemptor.queue or not any(
                    queue.usage.get(pair, 0) > queue.find_quota(pair).nominal for pair in preemptor.needed
                ):
                    continue
                found[queue.name] = [
                    each
                    for each in snapshot.workloads[queue.name].values()
                    if satisfies(reclaim, preemptor.workload, each) and _uses(each, preemptor.needed)
                ]
        return {name: order_candidates(several, preemptor.queue) for name, several in found.items() if several}

    def run(self) -> list[Target]:
        if not self._candidates:
            return []
        # Shares include the workload that needs room.
        self._snapshot.add_usage(self._preemptor.queue, self._preemptor.usage)
        fits, targets, retries = self._run_first()
        if not fits and len(self._rules.strategies) > 1:
            fits = self._run_second(targets, retries)
        if fits:
            targets = _put_back(targets, self._snapshot, self._fits)
        for target in targets:
            self._snapshot.add_workload(target.workload)
        self._snapshot.remove_usage(self._preemptor.queue, self._preemptor.usage)
        return targets if fits else []

    def _fits(self) -> bool:
        self._snapshot.remove_usage(self._preemptor.queue, self._preemptor.usage)
        fits = _fits(self._node, self._preemptor.usage, may_borrow=True) and self._can_place()
        self._snapshot.add_usage(self._preemptor.queue, self._preemptor.usage)
        return fits

    def _take(self, workload: Workload, reason: str, targets: list[Target]) -> bool:
        self._snapshot.remove_workload(workload)
        targets.append(Target(workload, reason))
        return self._fits()

    def _run_first(self) -> tuple[bool, list[Target], list[Workload]]:
        targets: list[Target] = []
        retries: list[Workload] = []
        left = {name: list(several) for name, several in self._candidates.items()}
        self._pruned = set()
        while (queue := self._next_queue(left)) is not None:
            if queue is self._node:
                if self._take(left[queue.name].pop(0), IN_QUEUE, targets):
                    return True, targets, retries
                continue
            if self._rules.within_nominal and self._is_within_nominal():
                if self._take(left[queue.name].pop(0), RECLAIM, targets):
                    return True, targets, retries
                continue
            if self._take_fair(queue, left, targets, retries):
                return True, targets, retries
        return False, targets, retries

    def _take_fair(
        self, queue: QuotaNode, left: dict[str, list[Workload]], targets: list[Target], retries: list[Workload]
    ) -> bool:
        """Evict the first workload of a queue that the shares allow to evict; return whether there is room then."""
        own, before = self._compare_at(queue)
        while left[queue.name]:
            candidate = left[queue.name].pop(0)
            after = self._share_without(queue, candidate)
            if self._is_allowed(self._rules.strategies[0], own, before, after):
                return self._take(candidate, FAIR_SHARING, targets)
            retries.append(candidate)
        return False

    def _run_second(self, targets: list[Target], retries: list[Workload]) -> bool:
        left: dict[str, list[Workload]] = {}
        for workload in retries:
            left.setdefault(workload.cluster_queue, []).append(workload)
        self._pruned = set()
        while (queue := self._next_queue(left)) is not None:
            own, before = self._compare_at(queue)
            if self._is_allowed(INITIAL_SHARE, own, before, before) and self._take(
                left[queue.name].pop(0), FAIR_SHARING, targets
            ):
                return True
            # Each queue is tried once.
            self._pruned.add(id(queue))
        return False

    @staticmethod
    def _is_allowed(strategy: str, own: Share, before: Share, after: Share) -> bool:
        if strategy == FINAL_SHARE:
            return compare_shares(own, after) <= 0
        return compare_shares(own, before) < 0

    def _is_within_nominal(self) -> bool:
        return all(
            self._node.usage.get(pair, 0) <= self._node.find_quota(pair).nominal for pair in self._preemptor.needed
        )

    def _compare_at(self, queue: QuotaNode) -> tuple[Share, Share]:
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

    def _next_queue(self, left: Mapping[str, Sequence[Workload]]) -> QuotaNode | None:
        """The queue from which to evict next: from the root down, always to the greatest share."""
        root = self._node.root
        if root.is_queue:
            return root if left.get(root.name) else None
        while id(root) not in self._pruned:
            found = self._descend(root, left)
            if found is not None:
                return found
        return None

    def _descend(self, cohort: QuotaNode, left: Mapping[str, Sequence[Workload]]) -> QuotaNode | None:
        best_queue: tuple[QuotaNode, Share] | None = None
        best_cohort: tuple[QuotaNode, Share] | None = None
        for child, share in self._list_children(cohort, left):
            if child.is_queue:
                if best_queue is None or self._is_first(child, share, *best_queue, left):
                    best_queue = child, share
            elif best_cohort is None or compare_shares(share, best_cohort[1]) >= 0:
                best_cohort = child, share
        if best_cohort and (best_queue is None or compare_shares(best_cohort[1], best_queue[1]) >= 0):
            return self._descend(best_cohort[0], left)
        if best_queue is None:
            self._pruned.add(id(cohort))
            return None
        return best_queue[0]

    def _list_children(
        self, cohort: QuotaNode, left: Mapping[str, Sequence[Workload]]
    ) -> Iterator[tuple[QuotaNode, Share]]:
        """Yield the children that may have something to preempt, and prune the others."""
        own = {id(self._node), *(id(node) for node in self._node.list_ancestors())}
        for child in cohort.children:
            if id(child) in self._pruned:
                continue
            share = compute_share(child)
            if (share.ratio == 0 and id(child) not in own) or (child.is_queue and not left.get(child.name)):
                self._pruned.add(id(child))
            else:
                yield child, share

    def _is_first(
        self,
        child: QuotaNode,
        share: Share,
        other: QuotaNode,
        other_share: Share,
        left: Mapping[str, Sequence[Workload]],
    ) -> bool:
        order = compare_shares(share, other_share)
        if order:
            return order > 0
        first = order_candidates([left[child.name][0], left[other.name][0]], self._preemptor.queue)[0]
        return first is left[child.name][0]
