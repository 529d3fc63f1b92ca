"""Preemption by priority and position: a workload takes back what its queue or cohort lends to others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.features.kueue.amounts import subtract
from jobgen.features.kueue.objects import Preemption
from jobgen.features.kueue.preemption.candidates import (
    IN_QUEUE,
    RECLAIM,
    WHILE_BORROWING,
    Placement,
    Preemptor,
    Rules,
    Target,
    fits,
    list_candidates,
    order_candidates,
    put_back,
)
from jobgen.features.kueue.quota import FlavorResource, QuotaNode, Usage
from jobgen.features.kueue.scheduling.snapshot import Snapshot
from jobgen.features.kueue.workload.workloads import Workload
from jobgen.model.named_tuple import NamedTuple


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
    own, others = _collect(preemptor, snapshot, rules)
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
    """Whether the workload may borrow, for each attempt. Without borrowing there are more candidates."""
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


def _collect(preemptor: Preemptor, snapshot: Snapshot, rules: Rules) -> tuple[list[_Candidate], list[_Candidate]]:
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
    """Whether requests fit in the quota of a node, and what of them its own quota does not cover."""
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


def _exceeds(node: QuotaNode, needed: frozenset[FlavorResource]) -> bool:
    return any(node.is_borrowing(pair) for pair in needed)


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
    """Whether a candidate may be evicted in an attempt; evicting others can change that."""
    if candidate.ancestor is None:
        return True
    if candidate.without_borrowing and may_borrow:
        return False
    node: QuotaNode | None = snapshot.nodes[candidate.workload.cluster_queue]
    while node is not None and node is not candidate.ancestor:
        if not _exceeds(node, preemptor.needed):
            return False
        node = node.parent
    return True
