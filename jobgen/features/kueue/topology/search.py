"""The search for domains: find the level where all pods fit, then distribute them down to the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from jobgen.features.kueue.topology.order import (
    find_best_fit,
    get_room,
    order_for_leader,
    order_for_workers,
    put_leader_first,
)
from jobgen.features.kueue.topology.request import Plan
from jobgen.features.kueue.topology.tree import Domain, TopologyTree

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


def _list_children(domains: Iterable[Domain]) -> Iterable[Domain]:
    return chain.from_iterable(each.children for each in domains)


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
