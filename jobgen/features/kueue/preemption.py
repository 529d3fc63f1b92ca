"""Preemption: which admitted workloads are evicted so that another one fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key
from typing import NamedTuple

from jobgen.features.kueue.objects import Preemption
from jobgen.features.kueue.quota import FlavorResource, QuotaNode, Share, Usage, compare_shares, compute_share, subtract
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import Workload

IN_QUEUE, RECLAIM = "InClusterQueue", "InCohortReclamation"
WHILE_BORROWING, FAIR_SHARING = "InCohortReclaimWhileBorrowing", "InCohortFairSharing"

FINAL_SHARE, INITIAL_SHARE = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
DEFAULT_STRATEGIES = (FINAL_SHARE, INITIAL_SHARE)

_BUFFER = timedelta(minutes=5)
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
    """Whether resources that a queue does not cover need no quota."""


Placement = Callable[[], bool]
"""Whether the pods can be placed now."""


def satisfies(policy: str, preemptor: Workload, candidate: Workload, *, has_buffer: bool = False) -> bool:
    """Return whether a policy lets a workload preempt another."""
    if policy == "Any":
        return True
    if candidate.priority < preemptor.priority:
        return policy in ("LowerPriority", "LowerOrNewerEqualPriority")
    if policy != "LowerOrNewerEqualPriority" or candidate.priority != preemptor.priority:
        return False
    is_newer = candidate.timestamp > preemptor.timestamp
    if is_newer and has_buffer:
        return _parse_time(candidate.timestamp) - _parse_time(preemptor.timestamp) > _BUFFER
    return is_newer


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text or "0001-01-01T00:00:00Z")


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
        return _compare_queues(one, other, measure) or one.priority - other.priority

    return sorted(ordered, key=cmp_to_key(compare))


def _rank(candidate: Workload, queue: str) -> tuple[bool, bool]:
    return not candidate.is_evicted, candidate.cluster_queue == queue


def _compare_queues(one: Workload, other: Workload, measure: Measure) -> int:
    """Of two LocalQueues of the same ClusterQueue, the one that used more comes first."""
    if one.cluster_queue != other.cluster_queue or one.queue == other.queue:
        return 0
    first, second = measure(one), measure(other)
    if first is None or second is None:
        return 0
    return (first < second) - (first > second)


def list_candidates(
    policy: str, preemptor: Preemptor, queue: str, snapshot: Snapshot, rules: Rules
) -> Sequence[Workload]:
    """Return the workloads of a queue that a policy allows to evict, and that use what is needed."""
    if policy == "Never":
        return []
    users = snapshot.list_users(queue, preemptor.needed)
    if policy == "Any" or not users or users[0].priority > preemptor.workload.priority:
        return users if policy == "Any" else []
    return [each for each in users if satisfies(policy, preemptor.workload, each, has_buffer=rules.has_buffer)]


def fits(node: QuotaNode, usage: Usage, *, may_borrow: bool) -> bool:
    """Return whether there is room for a usage; without borrowing, in the quota of the queue itself."""
    if not may_borrow and any(node.is_borrowing(pair, amount) for pair, amount in usage.items()):
        return False
    return node.fits(usage)


def put_back(targets: list[Target], snapshot: Snapshot, has_room: Callable[[], bool]) -> list[Target]:
    """Keep targets that are not needed after all, the last ones first; the one that made it fit is needed."""
    kept = list(targets)
    for target in reversed(targets[:-1]):
        snapshot.charge_usage(target.workload)
        if has_room():
            kept.remove(target)
        else:
            snapshot.free_usage(target.workload)
    return kept


class _Candidate(NamedTuple):
    workload: Workload
    ancestor: QuotaNode | None
    """The cohort above both queues; None for the queue of the preemptor itself."""
    is_hierarchical: bool = False
    """Whether the preemptor is closer to the quota that the candidate uses."""
    without_borrowing: bool = False
    """Whether it is only evicted for a workload that does not borrow then."""

    @property
    def reason(self) -> str:
        if self.ancestor is None:
            return IN_QUEUE
        return RECLAIM if self.is_hierarchical or self.without_borrowing else WHILE_BORROWING


def find_classical_targets(
    preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement
) -> list[Target]:
    """Return the workloads to evict, none if no allowed set of them makes enough room."""
    own, others = _collect_classical_candidates(preemptor, snapshot, rules)
    hierarchical = [each for each in others if each.is_hierarchical]
    by_priority = [each for each in others if not each.is_hierarchical]
    groups = [_order(group, preemptor.queue, rules) for group in (hierarchical, by_priority, own)]
    ordered = [each for group in groups for each in group if each.workload.is_evicted]
    ordered += [each for group in groups for each in group if not each.workload.is_evicted]
    for may_borrow in _list_attempts(preemptor, snapshot, others, hierarchical):
        found = _attempt(ordered, preemptor, snapshot, can_place, may_borrow=may_borrow)
        if found:
            return found
    return []


def _list_attempts(
    preemptor: Preemptor, snapshot: Snapshot, others: list[_Candidate], hierarchical: list[_Candidate]
) -> list[bool]:
    """Return True if the workload may borrow, for each attempt. Without borrowing there are more candidates."""
    node = snapshot.nodes[preemptor.queue]
    is_below = all(node.usage.get(pair, 0) < node.find_quota(pair).nominal for pair in preemptor.needed)
    is_never = snapshot.queues[preemptor.queue].preemption.borrow == "Never"
    if not others or (is_never and not is_below):
        return [True]
    return [False, True] if is_never and not hierarchical else [True, False]


def _order(candidates: list[_Candidate], queue: str, rules: Rules) -> list[_Candidate]:
    by_key = {each.workload.key: each for each in candidates}
    ordered = order_candidates((each.workload for each in candidates), queue, rules.measure)
    return [by_key[each.key] for each in ordered]


def _collect_classical_candidates(
    preemptor: Preemptor, snapshot: Snapshot, rules: Rules
) -> tuple[list[_Candidate], list[_Candidate]]:
    """The candidates of the queue itself, and those of other queues."""
    policies = snapshot.queues[preemptor.queue].preemption
    own = list_candidates(policies.within_queue, preemptor, preemptor.queue, snapshot, rules)
    others = list(_list_others(preemptor, snapshot, rules)) if policies.reclaim != "Never" else []
    return [_Candidate(each, None) for each in own], others


def _list_others(preemptor: Preemptor, snapshot: Snapshot, rules: Rules) -> Iterator[_Candidate]:
    """Yield candidates of other queues: from each cohort above, those below it that exceed their quota."""
    node = done = snapshot.nodes[preemptor.queue]
    policies = snapshot.queues[preemptor.queue].preemption
    has_advantage, left = _fit_quota(node, preemptor.usage)
    for ancestor in node.list_ancestors():
        for queue in _list_exceeding(ancestor, done, preemptor.needed):
            for workload in list_candidates(policies.reclaim, preemptor, queue.name, snapshot, rules):
                without = not has_advantage and _is_without_borrowing(policies, preemptor.workload, workload)
                yield _Candidate(workload, ancestor, has_advantage, without)
        fits_here, left = _fit_quota(ancestor, left)
        has_advantage = has_advantage or fits_here
        done = ancestor


def _fit_quota(node: QuotaNode, requests: Mapping[FlavorResource, int]) -> tuple[bool, Usage]:
    """Return True if requests fit in the quota of a node, and what of them its own quota does not cover."""
    is_fitting = all(not node.is_borrowing(pair, amount) for pair, amount in requests.items())
    left = {pair: max(0, subtract(amount, node.local_available(pair))) for pair, amount in requests.items()}
    return is_fitting, left


def _list_exceeding(node: QuotaNode, done: QuotaNode, needed: frozenset[FlavorResource]) -> Iterator[QuotaNode]:
    left = [child for child in node.tree.list_exceeding(node, needed) if child is not done]
    left.reverse()
    while left:
        child = left.pop()
        if child.is_queue:
            yield child
        else:
            left += reversed(child.tree.list_exceeding(child, needed))


def _is_without_borrowing(policies: Preemption, preemptor: Workload, candidate: Workload) -> bool:
    if policies.borrow == "Never":
        return True
    threshold = policies.max_priority
    return candidate.priority >= preemptor.priority or (threshold is not None and candidate.priority > threshold)


def _attempt(
    candidates: Sequence[_Candidate],
    preemptor: Preemptor,
    snapshot: Snapshot,
    can_place: Placement,
    *,
    may_borrow: bool,
) -> list[Target]:
    """Evict candidates until there is room, then put back those that were not needed."""
    node = snapshot.nodes[preemptor.queue]

    def has_room() -> bool:
        return fits(node, preemptor.usage, may_borrow=may_borrow) and can_place()

    targets: list[Target] = []
    found: list[Target] = []
    for each in candidates:
        if not _is_valid(each, preemptor, snapshot, may_borrow=may_borrow):
            continue
        snapshot.free_usage(each.workload)
        targets.append(Target(each.workload, each.reason))
        if has_room():
            targets = found = put_back(targets, snapshot, has_room)
            break
    for target in targets:
        snapshot.charge_usage(target.workload)
    return found


def _is_valid(candidate: _Candidate, preemptor: Preemptor, snapshot: Snapshot, *, may_borrow: bool) -> bool:
    """Return True if a candidate may be evicted in an attempt; evicting others can change that."""
    if candidate.ancestor is None:
        return True
    if candidate.without_borrowing and may_borrow:
        return False
    node: QuotaNode | None = snapshot.nodes[candidate.workload.cluster_queue]
    while node is not None and node is not candidate.ancestor:
        if not any(node.is_borrowing(pair) for pair in preemptor.needed):
            return False
        node = node.parent
    return True


def find_fair_targets(preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement) -> list[Target]:
    """Return the workloads to evict, none if no allowed set of them makes enough room."""
    candidates = _collect_fair_candidates(preemptor, snapshot, rules)
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


def _collect_fair_candidates(preemptor: Preemptor, snapshot: Snapshot, rules: Rules) -> list[Workload]:
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


def find_targets(
    preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement = lambda: True
) -> list[Target]:
    """Return the workloads to evict, none if no allowed set of them makes enough room. The snapshot is unchanged."""
    find = find_fair_targets if rules.is_fair else find_classical_targets
    with snapshot.keep_version((preemptor.queue,)):
        return find(preemptor, snapshot, rules, can_place)
