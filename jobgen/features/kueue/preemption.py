"""Preemption: which admitted workloads are evicted so that another one fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key

from jobgen.features.kueue.quota import (
    FlavorResource,
    QuotaNode,
    Share,
    Usage,
    add,
    compare_shares,
    compute_share,
    subtract,
)
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import Workload
from jobgen.model.named_tuple import NamedTuple

IN_QUEUE, RECLAIM = "InClusterQueue", "InCohortReclamation"
WHILE_BORROWING, FAIR_SHARING = "InCohortReclaimWhileBorrowing", "InCohortFairSharing"

FINAL_SHARE, INITIAL_SHARE = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
DEFAULT_STRATEGIES = (FINAL_SHARE, INITIAL_SHARE)

_LATEST = "~"
"""Later than all times. A workload without a time has reserved its quota just now."""


Measure = Callable[[Workload], float | None]
"""What the LocalQueue of a workload used lately; None if its ClusterQueue does not count it."""


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
    """Settings of Kueue that decide how it assigns flavors and preempts."""

    is_fair: bool = False
    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    within_nominal: bool = True
    """The gate FairSharingPreemptWithinNominal."""
    has_buffer: bool = False
    """The gate SchedulerTimestampPreemptionBuffer: only what is newer by five minutes counts as newer."""
    measure: Measure | None = None
    """What the LocalQueue of a workload used lately, if admission is fair among LocalQueues."""
    ignores_undeclared: bool = False
    """True if resources that a queue does not cover need no quota."""


Placement = Callable[[], bool]
"""True if the pods can be placed now."""


def satisfies(policy: str, preemptor: Workload, candidate: Workload, *, has_buffer: bool = False) -> bool:
    """Return True if a policy lets a workload preempt another."""
    if policy == "Any":
        return True
    if candidate.priority < preemptor.priority:
        return policy in ("LowerPriority", "LowerOrNewerEqualPriority")
    if policy != "LowerOrNewerEqualPriority" or candidate.priority != preemptor.priority:
        return False
    is_newer = candidate.timestamp > preemptor.timestamp
    if is_newer and has_buffer:
        newer, older = (
            datetime.fromisoformat(each.timestamp or "0001-01-01T00:00:00Z") for each in (candidate, preemptor)
        )
        return newer - older > timedelta(minutes=5)
    return is_newer


def order_candidates(candidates: Iterable[Workload], queue: str, measure: Measure | None = None) -> list[Workload]:
    """Return candidates in the order in which they are evicted.

    Those already evicted come first, then those of other queues, then the lower priority, then the latest.
    """
    # The last sort decides first.
    ordered = sorted(candidates, key=lambda each: each.uid)
    ordered.sort(key=lambda each: each.reserved or _LATEST, reverse=True)
    ordered.sort(key=lambda each: (*_rank(each, queue), each.priority))
    if measure is None:
        return ordered

    def compare(one: Workload, other: Workload) -> int:
        first, second = _rank(one, queue), _rank(other, queue)
        if first != second:
            return -1 if first < second else 1
        if one.cluster_queue == other.cluster_queue and one.queue != other.queue:
            # Of two LocalQueues of the same ClusterQueue, the one that used more comes first.
            used, less = measure(one), measure(other)
            if used is not None and less is not None and used != less:
                return -1 if used > less else 1
        return one.priority - other.priority

    return sorted(ordered, key=cmp_to_key(compare))


def _rank(candidate: Workload, queue: str) -> tuple[bool, bool]:
    return not candidate.is_evicted, candidate.cluster_queue == queue


class _Candidate(NamedTuple):
    workload: Workload
    ancestor: QuotaNode | None
    """The cohort above both queues; None for the queue of the preemptor itself."""
    is_hierarchical: bool = False
    """True if the preemptor is closer to the quota that the candidate uses."""
    without_borrowing: bool = False
    """True if it is only evicted for a workload that does not borrow then."""

    @property
    def reason(self) -> str:
        if self.ancestor is None:
            return IN_QUEUE
        return RECLAIM if self.is_hierarchical or self.without_borrowing else WHILE_BORROWING


class _Search:
    """A search for workloads to evict. What it frees in the snapshot, it charges again."""

    def __init__(self, preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement) -> None:
        self._preemptor = preemptor
        self._snapshot = snapshot
        self._rules = rules
        self._can_place = can_place
        self._node = snapshot.nodes[preemptor.queue]
        self._policies = snapshot.queues[preemptor.queue].preemption

    def _list_candidates(self, policy: str, queue: str) -> Sequence[Workload]:
        """Return the workloads of a queue that a policy allows to evict, and that use what is needed."""
        if policy == "Never":
            return []
        preemptor, has_buffer = self._preemptor.workload, self._rules.has_buffer
        users = self._snapshot.list_users(queue, self._preemptor.needed)
        if policy == "Any" or not users or users[0].priority > preemptor.priority:
            return users if policy == "Any" else []
        return [each for each in users if satisfies(policy, preemptor, each, has_buffer=has_buffer)]

    def _has_room(self, *, may_borrow: bool = True) -> bool:
        """Return True if the workload fits; without borrowing, in the quota of its queue itself."""
        node, usage = self._node, self._preemptor.usage
        if not may_borrow and any(node.is_borrowing(pair, amount) for pair, amount in usage.items()):
            return False
        return node.fits(usage) and self._can_place()

    def _put_back(self, targets: list[Target], *, may_borrow: bool = True) -> list[Target]:
        """Keep targets that are not needed after all, the last ones first; the one that made it fit is needed."""
        kept = list(targets)
        for target in reversed(targets[:-1]):
            self._snapshot.charge_usage(target.workload)
            if self._has_room(may_borrow=may_borrow):
                kept.remove(target)
            else:
                self._snapshot.free_usage(target.workload)
        return kept


class _ClassicalSearch(_Search):
    """The search without fair sharing: by priority, and of what others borrow."""

    def find_targets(self) -> list[Target]:
        """Return the workloads to evict, none if no allowed set of them makes enough room."""
        policies, node, queue = self._policies, self._node, self._preemptor.queue
        users = self._list_candidates(policies.within_queue, queue)
        can_reclaim = policies.reclaim != "Never" and self._can_reclaim(users)
        if not can_reclaim and self._lacks_room(users):
            return []
        others = list(self._list_others()) if can_reclaim else []
        own = [_Candidate(each, None) for each in users]
        self._snapshot.steps += len(users) + len(others)
        hierarchical = [each for each in others if each.is_hierarchical]
        ordered: list[_Candidate] = []
        for group in (hierarchical, [each for each in others if not each.is_hierarchical], own):
            by_key = {each.workload.key: each for each in group}
            workloads = order_candidates((each.workload for each in group), queue, self._rules.measure)
            ordered += (by_key[each.key] for each in workloads)
        ordered.sort(key=lambda each: not each.workload.is_evicted)
        # Whether the workload may borrow, for each attempt. Without borrowing there are more candidates.
        is_below = all(node.usage.get(pair, 0) < node.find_quota(pair).nominal for pair in self._preemptor.needed)
        is_never = policies.borrow == "Never"
        attempts = [False, True] if is_never and not hierarchical else [True, False]
        for may_borrow in [True] if not others or (is_never and not is_below) else attempts:
            found = self._attempt(ordered, may_borrow=may_borrow)
            if found:
                return found
        return []

    def _lacks_room(self, own: Sequence[Workload]) -> bool:
        """Return True if it does not fit even if these workloads of its queue are all evicted."""
        return not own or any(
            add(self._node.available(pair), sum(each.usage.get(pair, 0) for each in own)) < amount
            for pair, amount in self._preemptor.usage.items()
        )

    def _can_reclaim(self, own: Sequence[Workload]) -> bool:
        """Return False if evicting workloads of other queues cannot help, whatever they use.

        They help a workload that borrows only if policies allow it, or if a cohort above has quota for it. Without
        borrowing, it has to fit in the quota of its queue once all candidates of that are evicted.
        """
        usage, node = self._preemptor.usage, self._node
        if self._policies.borrow != "Never":
            return True
        freed = {pair: sum(each.usage.get(pair, 0) for each in own) for pair in usage} if own else {}
        if not any(node.is_borrowing(pair, subtract(amount, freed.get(pair, 0))) for pair, amount in usage.items()):
            return True
        fits_here, left = _fit_quota(node, usage)
        for ancestor in node.list_ancestors():
            if fits_here:
                return True
            fits_here, left = _fit_quota(ancestor, left)
        return False

    def _list_others(self) -> Iterator[_Candidate]:
        """Yield candidates of other queues: from each cohort above, those below it that exceed their quota."""
        node = done = self._node
        policies, priority, needed = self._policies, self._preemptor.workload.priority, self._preemptor.needed
        # The greatest priority of workloads that are evicted for one that borrows.
        most = priority - 1 if policies.max_priority is None else min(priority - 1, policies.max_priority)
        has_advantage, left = _fit_quota(node, self._preemptor.usage)
        for ancestor in node.list_ancestors():
            exceeding = [child for child in node.tree.list_exceeding(ancestor, needed) if child is not done]
            exceeding.reverse()
            while exceeding:
                child = exceeding.pop()
                if not child.is_queue:
                    exceeding += reversed(child.tree.list_exceeding(child, needed))
                    continue
                for workload in self._list_candidates(policies.reclaim, child.name):
                    without = not has_advantage and (policies.borrow == "Never" or workload.priority > most)
                    yield _Candidate(workload, ancestor, has_advantage, without)
            fits_here, left = _fit_quota(ancestor, left)
            has_advantage = has_advantage or fits_here
            done = ancestor

    def _attempt(self, candidates: Sequence[_Candidate], *, may_borrow: bool) -> list[Target]:
        """Evict candidates until there is room, then put back those that were not needed."""
        targets: list[Target] = []
        found: list[Target] = []
        for each in candidates:
            if not self._is_valid(each, may_borrow=may_borrow):
                continue
            self._snapshot.free_usage(each.workload)
            targets.append(Target(each.workload, each.reason))
            if self._has_room(may_borrow=may_borrow):
                targets = found = self._put_back(targets, may_borrow=may_borrow)
                break
        for target in targets:
            self._snapshot.charge_usage(target.workload)
        return found

    def _is_valid(self, candidate: _Candidate, *, may_borrow: bool) -> bool:
        """Return True if a candidate may be evicted in an attempt; evicting others can change that."""
        if candidate.ancestor is None:
            return True
        if candidate.without_borrowing and may_borrow:
            return False
        node: QuotaNode | None = self._snapshot.nodes[candidate.workload.cluster_queue]
        while node is not None and node is not candidate.ancestor:
            if not any(node.is_borrowing(pair) for pair in self._preemptor.needed):
                return False
            node = node.parent
        return True


def _fit_quota(node: QuotaNode, requests: Mapping[FlavorResource, int]) -> tuple[bool, Usage]:
    """Return True if requests fit in the quota of a node, and what of them its own quota does not cover."""
    is_fitting = all(not node.is_borrowing(pair, amount) for pair, amount in requests.items())
    left = {pair: max(0, subtract(amount, node.local_available(pair))) for pair, amount in requests.items()}
    return is_fitting, left


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
        """Return True if a queue has candidates left."""
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
                order = 1 if best_queue is None else compare_shares(share, best_queue[1])
                if not order and best_queue is not None:
                    # Of equal shares, the queue whose candidate is evicted first.
                    pair = [self._left[best_queue[0].name][-1], self._left[child.name][-1]]
                    order = 1 if order_candidates(pair, self._node.name)[0] is pair[1] else 0
                if order > 0:
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


class _FairSearch(_Search):
    """The search with fair sharing, in which the workload that needs room counts as usage of its queue."""

    def find_targets(self) -> list[Target]:
        """Return the workloads to evict, none if no allowed set of them makes enough room."""
        queue, usage = self._preemptor.queue, self._preemptor.usage
        candidates = [*self._list_candidates(self._policies.within_queue, queue)]
        if self._node.parent is not None and self._policies.reclaim != "Never":
            for other in self._node.root.list_queues():
                if other is not self._node and any(other.is_borrowing(pair) for pair in self._preemptor.needed):
                    candidates += self._list_candidates(self._policies.reclaim, other.name)
        self._snapshot.steps += len(candidates)
        if not candidates:
            return []
        self._targets: list[Target] = []
        self._snapshot.add_usage(queue, usage)
        is_fitting, retries = self._run_first(order_candidates(candidates, queue, self._rules.measure))
        if not is_fitting and len(self._rules.strategies) > 1:
            is_fitting = self._run_second(retries)
        self._snapshot.remove_usage(queue, usage)
        targets = self._put_back(self._targets) if is_fitting else self._targets
        for target in targets:
            self._snapshot.charge_usage(target.workload)
        return targets if is_fitting else []

    def _evict(self, workload: Workload, reason: str) -> bool:
        """Evict a workload; return True if there is room then."""
        self._snapshot.free_usage(workload)
        self._targets.append(Target(workload, reason))
        self._snapshot.remove_usage(self._preemptor.queue, self._preemptor.usage)
        has_room = self._has_room()
        self._snapshot.add_usage(self._preemptor.queue, self._preemptor.usage)
        return has_room

    def _run_first(self, candidates: Iterable[Workload]) -> tuple[bool, list[Workload]]:
        """Apply the first strategy; return True if there is room then, and the candidates that it did not allow."""
        order = QueueOrder(self._node, candidates)
        retries: list[Workload] = []
        is_borrowing = any(self._node.is_borrowing(pair) for pair in self._preemptor.needed)
        is_within = self._rules.within_nominal and not is_borrowing
        for queue in order.iterate():
            if queue is self._node or is_within:
                has_room = self._evict(order.take(queue), IN_QUEUE if queue is self._node else RECLAIM)
            else:
                has_room = self._evict_fairly(queue, order, retries)
            if has_room:
                return True, retries
        return False, retries

    def _evict_fairly(self, queue: QuotaNode, order: QueueOrder, retries: list[Workload]) -> bool:
        """Evict the first workload of a queue that the shares allow to evict; return True if there is room then."""
        own, other = self._split(queue)
        share, before = compute_share(own), compute_share(other)
        while order.has_candidate(queue):
            candidate = order.take(queue)
            self._snapshot.remove_usage(queue.name, candidate.usage)
            after = compute_share(other)
            self._snapshot.add_usage(queue.name, candidate.usage)
            if self._rules.strategies[0] == FINAL_SHARE:
                is_allowed = compare_shares(share, after) <= 0
            else:
                is_allowed = self._rules.strategies[0] == INITIAL_SHARE and compare_shares(share, before) < 0
            if is_allowed:
                return self._evict(candidate, FAIR_SHARING)
            retries.append(candidate)
        return False

    def _run_second(self, retries: Iterable[Workload]) -> bool:
        """Apply the second strategy to what the first did not allow, once for each queue."""
        order = QueueOrder(self._node, retries)
        for queue in order.iterate():
            own, other = self._split(queue)
            candidate = order.take(queue)
            if compare_shares(compute_share(own), compute_share(other)) < 0 and self._evict(candidate, FAIR_SHARING):
                return True
            order.drop(queue)
        return False

    def _split(self, queue: QuotaNode) -> tuple[QuotaNode, QuotaNode]:
        """Return the nodes of both sides below the cohort that is above both."""
        above = [queue, *queue.list_ancestors()]
        ids = {id(node) for node in above}
        own = self._node
        while own.parent is not None and id(own.parent) not in ids:
            own = own.parent
        return own, next(node for node in above if node.parent is own.parent)


def find_targets(
    preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement = lambda: True
) -> list[Target]:
    """Return the workloads to evict, none if no allowed set of them makes enough room. The snapshot is unchanged."""
    with snapshot.keep_version((preemptor.queue,)):
        if rules.is_fair:
            return _FairSearch(preemptor, snapshot, rules, can_place).find_targets()
        return _ClassicalSearch(preemptor, snapshot, rules, can_place).find_targets()
