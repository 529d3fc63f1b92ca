"""Balanced placement: the same number of slices in each domain, as far as possible, in as few domains as possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from math import log2

from jobgen.features.kueue.topology.counts import sum_subtree
from jobgen.features.kueue.topology.order import order_for_leader, order_for_workers
from jobgen.features.kueue.topology.request import Plan
from jobgen.features.kueue.topology.tree import Domain, TopologyTree
from jobgen.model.named_tuple import NamedTuple


class _Greedy(NamedTuple):
    """What the largest domains give if they are used first."""

    used: int
    """How many domains are used."""
    last_leader: Domain | None
    last: Domain | None


class _Choice(NamedTuple):
    domains: list[Domain]
    threshold: int
    """The least number of slices that each domain gets."""
    used: int


def find_balanced(tree: TopologyTree, plan: Plan) -> tuple[int, list[Domain]] | None:
    """Find the level and the domains for a balanced placement, with the pods that each gets; None if there is none.

    All domains are copies, so that the numbers of the tree stay as they were.
    """
    best: _Choice | None = None
    for siblings in _list_siblings(tree, plan.level):
        choice = _choose(siblings, plan, best)
        if choice is not None:
            best = choice
    if best is None:
        return None
    domains, depth = best.domains, plan.level
    if plan.level < plan.slice_level:
        chosen = _select(sorted(domains, key=_entropy_order), plan)
        if chosen is None:
            return None
        domains, depth = _list_children(chosen), plan.level + 1
    placed = _place(domains, plan, best.threshold)
    return None if placed is None else (depth, placed)


def _list_siblings(tree: TopologyTree, level: int) -> Iterable[Iterable[Domain]]:
    if level == 0:
        return [tree.by_level[0].values()]
    above = sorted(tree.by_level[level - 1].values(), key=lambda each: each.rank)
    return [each.children for each in above]


def _list_children(domains: Iterable[Domain]) -> list[Domain]:
    return list(chain.from_iterable(each.children for each in domains))


def _choose(siblings: Iterable[Domain], plan: Plan, best: _Choice | None) -> _Choice | None:
    """Return domains of one parent if they are better than the best so far."""
    domains = list(siblings)
    below = _list_children(domains) if plan.level < plan.slice_level else domains
    greedy = _use_greedily(below, plan)
    if greedy is None:
        return None
    least = max(best.threshold if best else 0, 1)
    for threshold in _list_thresholds(greedy, plan):
        if threshold < least:
            return None
        candidates = [each.copy() for each in domains]
        _prune(candidates, plan, threshold)
        left = _use_greedily(candidates, plan)
        if left is not None:
            is_better = best is None or threshold > best.threshold or left.used < best.used
            return _Choice(candidates, threshold, left.used) if is_better else None
    return None


def _list_thresholds(greedy: _Greedy, plan: Plan) -> list[int]:
    """List the numbers of slices to try: the greatest, and one that leaves room for a leader."""
    threshold = plan.slices // greedy.used if greedy.used else 0
    if greedy.last_leader is not None:
        threshold = min(threshold, greedy.last_leader.slices_with_leader)
    if greedy.last is None:
        return [threshold]
    threshold = min(threshold, greedy.last.slices)
    reserved = min(threshold, greedy.last.slices_with_leader) if plan.leaders else threshold
    return [threshold] if reserved == threshold else [threshold, reserved]


def _use_greedily(domains: Sequence[Domain], plan: Plan) -> _Greedy | None:
    """Use the largest domains first; None if they do not hold everything."""
    need, leaders, count = plan.slices, plan.leaders, 0
    last_leader = last = None
    rest = list(domains)
    if leaders:
        rest = order_for_leader(domains, is_least_free=False)
        while leaders and rest and rest[0].leaders:
            last_leader, *rest = rest
            count += 1
            leaders -= last_leader.leaders
            need -= last_leader.slices_with_leader
    if leaders:
        return None
    for domain in order_for_workers(rest, is_least_free=False):
        if need <= 0 or not domain.slices:
            break
        last = domain
        count += 1
        need -= domain.slices
    return None if need > 0 else _Greedy(count, last_leader, last)


def _prune(domains: Sequence[Domain], plan: Plan, threshold: int) -> None:
    """Remove the room of domains that have less than the threshold, and count the others again."""
    plain = replace(plan, inner={})
    for child in _list_children(domains):
        _prune_domain(child, plan, threshold)
    for domain in domains:
        sum_subtree(domain, plan.level, plain)
        _prune_domain(domain, plan, threshold)


def _prune_domain(domain: Domain, plan: Plan, threshold: int) -> None:
    if domain.slices < threshold:
        for each in _walk(domain):
            each.pods = each.slices = 0
            each.pods_with_leader = each.slices_with_leader = each.leaders = 0
    elif plan.leaders and domain.leaders and domain.slices_with_leader < threshold:
        for each in _walk(domain):
            each.pods_with_leader = each.slices_with_leader = each.leaders = 0


def _walk(domain: Domain) -> Iterable[Domain]:
    yield domain
    for child in domain.children:
        yield from _walk(child)


def _select(ordered: Sequence[Domain], plan: Plan) -> list[Domain] | None:
    """Select the least number of domains that hold everything, with the least room together.

    `reached[i]` has the domains by (leaders, pods) that are left to place after the use of i domains.
    """
    greedy = _use_greedily(ordered, plan)
    if greedy is None:
        return None
    reached: list[dict[tuple[int, int], list[Domain]]] = [{} for _ in range(greedy.used + 1)]
    reached[0][plan.leaders, plan.slices * plan.slice_size] = []
    for domain in ordered:
        for number in range(greedy.used, 0, -1):
            for (leaders, pods), used in sorted(reached[number - 1].items(), key=lambda item: item[0]):
                if leaders <= 0 and pods <= 0:
                    continue
                if leaders > 0 and domain.leaders > 0:
                    after = (leaders - domain.leaders, pods - domain.pods_with_leader)
                    reached[number].setdefault(after, [*used, domain])
                if domain.slices > 0:
                    reached[number].setdefault((leaders, pods - domain.pods), [*used, domain])
    enough = [left for left in reached[greedy.used] if left[0] == 0 and left[1] <= 0]
    return reached[greedy.used][max(enough)] if enough else None


def _place(domains: Sequence[Domain], plan: Plan, threshold: int) -> list[Domain] | None:
    """Give each domain the threshold, and what is left to the largest ones."""
    chosen = _select(sorted(domains, key=lambda each: each.values), plan)
    if chosen is None or plan.slices < len(chosen) * threshold:
        return None
    chosen = order_for_leader(chosen, is_least_free=False)
    extra, leaders = plan.slices - len(chosen) * threshold, plan.leaders
    for domain in chosen:
        room = domain.slices_with_leader if leaders else domain.slices
        more = min(room - threshold, extra) if leaders or extra > 0 else 0
        domain.leaders = 1 if leaders else 0
        leaders -= domain.leaders
        extra -= more
        domain.slices = domain.slices_with_leader = threshold + more
        domain.pods = domain.slices * plan.slice_size
        domain.pods_with_leader = domain.pods - domain.leaders
    return None if extra > 0 or leaders else chosen


def _entropy_order(domain: Domain) -> tuple[int, int, float, tuple[str, ...]]:
    return -domain.leaders, -domain.slices_with_leader, -_measure_entropy(domain.children), domain.values


def _measure_entropy(domains: Sequence[Domain]) -> float:
    """Measure how evenly the room is spread over domains."""
    total = sum(each.pods for each in domains)
    return -sum(each.pods / total * log2(each.pods / total) for each in domains if each.pods > 0) if total else 0.0
