"""The search for domains: which of them hold the pods, from the highest level to the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, takewhile
from math import log2

from jobgen.features.kueue.topology.capacity import sum_subtree
from jobgen.features.kueue.topology.tree import Domain, Plan, TopologyTree


def order_for_leader(domains: Iterable[Domain], *, is_least_free: bool) -> list[Domain]:
    """Sort domains by their room beside a leader: the most room first, or the least."""
    sign = 1 if is_least_free else -1

    def order(each: Domain) -> tuple[int, ...]:
        return -each.leaders, -each.score, sign * each.slices_with_leader, each.pods_with_leader, each.rank

    return sorted(domains, key=order)


def order_for_workers(domains: Iterable[Domain], *, is_least_free: bool) -> list[Domain]:
    """Sort domains by their room: the most room first, or the least."""
    sign = 1 if is_least_free else -1
    return sorted(domains, key=lambda each: (-each.score, sign * each.slices, each.pods, each.rank))


def get_room(domain: Domain, leaders: int, *, by_slices: bool) -> int:
    """Return the room of a domain for slices or pods, beside a leader if there is one."""
    if by_slices:
        return domain.slices_with_leader if leaders else domain.slices
    return domain.pods_with_leader if leaders else domain.pods


def find_best_fit(domains: Sequence[Domain], need: int, leaders: int, *, by_slices: bool) -> Domain:
    """Return the first domain with the least room that is enough; the first domain if there is none.

    Only domains with the highest score count.
    """
    first = domains[0]
    best, least = first, None
    for domain in takewhile(lambda each: each.score == first.score, domains):
        room = get_room(domain, leaders, by_slices=by_slices)
        if domain.leaders >= leaders and room >= need and (least is None or room < least):
            best, least = domain, room
    return best


def put_leader_first(domains: list[Domain], need: int, leaders: int, *, by_slices: bool) -> list[Domain]:
    """Move the first domain to the front that can take the leader and leaves enough room for all workers."""
    if not leaders or len(domains) < 2:
        return domains
    spare = sum(get_room(each, 0, by_slices=by_slices) for each in domains) - need
    for index, domain in enumerate(domains):
        loss = get_room(domain, 0, by_slices=by_slices) - get_room(domain, 1, by_slices=by_slices)
        if domain.leaders >= leaders and loss <= spare:
            return [domain, *domains[:index], *domains[index + 1 :]]
    return domains


Explain = Callable[[int, int], str]
"""Makes the text of a failure of the level and the number of slices that fit."""


def find_domains(tree: TopologyTree, depth: int, plan: Plan, explain: Explain) -> tuple[int, list[Domain]] | str:
    """Find the level and the domains there that hold all slices, or say why there are none.

    One domain is best. If none has the room, a preferred level falls back to the next one above, and at the top to
    several domains.
    """
    domains = tree.by_level[depth].values()
    if not domains:
        return f"no topology domains at level: {tree.levels[depth]}"
    ordered = order_for_leader(domains, is_least_free=plan.is_least_free)
    alone = _find_one(ordered, plan)
    if alone is not None:
        return depth, [alone]
    if plan.is_required:
        # The number of pods under least free capacity is Kueue's, too.
        return explain(depth, ordered[-1].pods if plan.is_least_free else ordered[0].slices)
    if depth > 0 and not plan.is_unconstrained:
        return find_domains(tree, depth - 1, plan, explain)
    found = _find_several(ordered, plan)
    return explain(depth, found) if isinstance(found, int) else (depth, found)


def _find_one(ordered: list[Domain], plan: Plan) -> Domain | None:
    """Find a domain that holds everything.

    If nodes have scores, a preferred level uses only the domain with the best one; otherwise no later domain in this
    order has more room.
    """
    considered = ordered if plan.is_least_free or plan.is_required else ordered[:1]
    for index, domain in enumerate(considered):
        if domain.leaders >= plan.leaders and get_room(domain, plan.leaders, by_slices=True) >= plan.slices:
            if plan.is_least_free:
                return domain
            return find_best_fit(ordered[index:], plan.slices, plan.leaders, by_slices=True)
    return None


def _find_several(ordered: list[Domain], plan: Plan) -> list[Domain] | int:
    """Find domains that hold everything together, or return the number of slices that fit."""
    need, leaders = plan.slices, plan.leaders
    domains = put_leader_first(ordered, need, leaders, by_slices=True)
    found: list[Domain] = []
    while leaders and len(found) < len(domains) and domains[len(found)].leaders:
        start = len(found)
        domain = domains[start]
        if not plan.is_least_free and domain.slices_with_leader >= need:
            domain = find_best_fit(domains[start:], need, leaders, by_slices=True)
        found.append(domain)
        leaders -= domain.leaders
        need -= domain.slices_with_leader
    if leaders:
        return plan.leaders - leaders
    rest = order_for_workers(domains[len(found) :], is_least_free=plan.is_least_free)
    for index, domain in enumerate(rest):
        if need <= 0:
            break
        is_last = domain.slices >= need and not plan.is_least_free
        found.append(find_best_fit(rest[index:], need, 0, by_slices=True) if is_last else domain)
        need -= found[-1].slices
    return found if need <= 0 else plan.slices - need


def distribute(
    tree: TopologyTree, depth: int, domains: list[Domain], plan: Plan, *, is_balanced: bool = False
) -> list[Domain]:
    """Distribute the pods from domains of a level to leaves.

    Above the level of slices, all domains below share the slices; from there on, each domain keeps what it got.
    """
    chosen = _assign(domains, plan.count, plan.leaders, plan.slice_size, plan, by_slices=True)
    lowest = len(tree.levels) - 1
    while depth < min(lowest, plan.slice_level) and not is_balanced:
        below = order_for_workers(_list_children(chosen), is_least_free=plan.is_least_free)
        chosen = _assign(below, plan.count, plan.leaders, plan.slice_size, plan, by_slices=True)
        depth += 1
    while depth < lowest:
        size = plan.inner.get(depth + 1, 1) if depth >= plan.slice_level else plan.slice_size
        chosen = [child for domain in chosen for child in _split(domain, size, plan)]
        depth += 1
    return chosen


def _list_children(domains: Iterable[Domain]) -> list[Domain]:
    return list(chain.from_iterable(each.children for each in domains))


def _split(domain: Domain, size: int, plan: Plan) -> list[Domain]:
    """Distribute the pods of a domain to its children, in slices of a size."""
    ordered = order_for_workers(domain.children, is_least_free=plan.is_least_free)
    if size > 1:
        for child in ordered:
            child.slices, child.slices_with_leader = child.pods // size, child.pods_with_leader // size
    return _assign(ordered, domain.pods, domain.leaders, size, plan, by_slices=size > 1)


def _assign(domains: list[Domain], count: int, leaders: int, size: int, plan: Plan, *, by_slices: bool) -> list[Domain]:
    """Give pods to domains in their order until all have a place, and return the domains used.

    The leader goes first. Where the rest fits in one domain, the one that fits best gets it.
    """
    unit = size if by_slices else 1
    need = count // unit
    domains = put_leader_first(domains, need, leaders, by_slices=by_slices)
    found: list[Domain] = []
    for index, each in enumerate(domains):
        domain = each
        fits = domain.leaders >= leaders and get_room(domain, leaders, by_slices=by_slices) >= need
        if fits and not plan.is_least_free:
            domain = find_best_fit(domains[index:], need, leaders, by_slices=by_slices)
        given = min(get_room(domain, leaders, by_slices=by_slices), need)
        domain.leaders = min(domain.leaders, leaders)
        domain.pods = given * unit
        if by_slices:
            domain.slices = given
        found.append(domain)
        need -= given
        leaders -= domain.leaders
        if fits:
            return found
    return []


def find_balanced(tree: TopologyTree, plan: Plan) -> tuple[int, list[Domain]] | None:
    """Find the level and the domains for a balanced placement, with the pods that each gets; None if there is none.

    All domains are copies, so that the numbers of the tree stay as they were.
    """
    best: tuple[list[Domain], int, int] | None = None
    siblings = [list(tree.by_level[0].values())]
    if plan.level > 0:
        above = sorted(tree.by_level[plan.level - 1].values(), key=lambda each: each.rank)
        siblings = [each.children for each in above]
    for several in siblings:
        best = _choose(several, plan, best) or best
    if best is None:
        return None
    domains, threshold, _ = best
    depth = plan.level
    if plan.level < plan.slice_level:
        chosen = _select(sorted(domains, key=_entropy_order), plan)
        if chosen is None:
            return None
        domains, depth = _list_children(chosen), plan.level + 1
    placed = _place(domains, plan, threshold)
    return None if placed is None else (depth, placed)


def _choose(
    domains: list[Domain], plan: Plan, best: tuple[list[Domain], int, int] | None
) -> tuple[list[Domain], int, int] | None:
    """Return domains of one parent if they are better than the best so far.

    With them come the least number of slices that each domain gets, and how many domains are used.
    """
    below = _list_children(domains) if plan.level < plan.slice_level else domains
    greedy = _use_greedily(below, plan)
    if greedy is None:
        return None
    for threshold in _list_thresholds(*greedy, plan):
        if threshold < max(best[1] if best else 0, 1):
            return None
        candidates = [each.copy() for each in domains]
        _prune(candidates, plan, threshold)
        left = _use_greedily(candidates, plan)
        if left is not None:
            is_better = best is None or threshold > best[1] or left[0] < best[2]
            return (candidates, threshold, left[0]) if is_better else None
    return None


def _list_thresholds(used: int, last_leader: Domain | None, last: Domain | None, plan: Plan) -> list[int]:
    """List the numbers of slices to try: the greatest, and one that leaves room for a leader."""
    threshold = plan.slices // used if used else 0
    if last_leader is not None:
        threshold = min(threshold, last_leader.slices_with_leader)
    if last is None:
        return [threshold]
    threshold = min(threshold, last.slices)
    if plan.leaders and last.slices_with_leader < threshold:
        return [threshold, last.slices_with_leader]
    return [threshold]


def _use_greedily(domains: Sequence[Domain], plan: Plan) -> tuple[int, Domain | None, Domain | None] | None:
    """Use the largest domains first; None if they do not hold everything.

    Return how many are used, the last that has a leader, and the last that has only workers.
    """
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
    return None if need > 0 else (count, last_leader, last)


def _prune(domains: Sequence[Domain], plan: Plan, threshold: int) -> None:
    """Remove the room of domains that have less than the threshold, and count the others again."""

    def remove_room(domain: Domain, *, of_leader: bool) -> None:
        if not of_leader:
            domain.pods = domain.slices = 0
        domain.pods_with_leader = domain.slices_with_leader = domain.leaders = 0
        for child in domain.children:
            remove_room(child, of_leader=of_leader)

    def prune_domain(domain: Domain) -> None:
        if domain.slices < threshold:
            remove_room(domain, of_leader=False)
        elif plan.leaders and domain.leaders and domain.slices_with_leader < threshold:
            remove_room(domain, of_leader=True)

    plain = replace(plan, inner={})
    for child in _list_children(domains):
        prune_domain(child)
    for domain in domains:
        sum_subtree(domain, plan.level, plain)
        prune_domain(domain)


def _select(ordered: Sequence[Domain], plan: Plan) -> list[Domain] | None:
    """Select the least number of domains that hold everything, with the least room together.

    `reached[i]` has the domains by (leaders, pods) that are left to place after the use of i domains.
    """
    greedy = _use_greedily(ordered, plan)
    if greedy is None:
        return None
    most = greedy[0]
    reached: list[dict[tuple[int, int], list[Domain]]] = [{} for _ in range(most + 1)]
    reached[0][plan.leaders, plan.slices * plan.slice_size] = []
    for domain in ordered:
        for number in range(most, 0, -1):
            for (leaders, pods), used in sorted(reached[number - 1].items(), key=lambda item: item[0]):
                if leaders <= 0 and pods <= 0:
                    continue
                if leaders > 0 and domain.leaders > 0:
                    after = (leaders - domain.leaders, pods - domain.pods_with_leader)
                    reached[number].setdefault(after, [*used, domain])
                if domain.slices > 0:
                    reached[number].setdefault((leaders, pods - domain.pods), [*used, domain])
    enough = [left for left in reached[most] if left[0] == 0 and left[1] <= 0]
    return reached[most][max(enough)] if enough else None


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
    """Order domains by their room, then by how evenly it is spread over their children."""
    total = sum(each.pods for each in domain.children)
    shares = [each.pods / total for each in domain.children if each.pods > 0] if total else []
    entropy = -sum(share * log2(share) for share in shares)
    return -domain.leaders, -domain.slices_with_leader, -entropy, domain.values
