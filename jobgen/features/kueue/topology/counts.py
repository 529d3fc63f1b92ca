"""How many pods and slices fit in each domain, from the leaves up, with and without a leader."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.features.kueue.topology.request import Plan
from jobgen.features.kueue.topology.tree import Domain, TopologyTree

_MOST = 2**31 - 1


def sum_counts(tree: TopologyTree, plan: Plan) -> None:
    """Sum what fits in the leaves for all domains above them."""
    lowest = len(tree.levels) - 1
    if plan.slice_level == lowest:
        for leaf in tree.leaves.values():
            _count_slices(leaf, plan)
    for depth in range(lowest - 1, -1, -1):
        for domain in tree.by_level[depth].values():
            _sum_children(domain, depth, plan)


def sum_above(leaves: Iterable[Domain], tree: TopologyTree, plan: Plan) -> None:
    """Sum what fits for the domains above some leaves, after the numbers of these leaves have changed."""
    below = list(leaves)
    if plan.slice_level == len(tree.levels) - 1:
        for leaf in below:
            _count_slices(leaf, plan)
    for depth in range(len(tree.levels) - 2, -1, -1):
        below = list({id(domain.parent): domain.parent for domain in below if domain.parent is not None}.values())
        for domain in below:
            _sum_children(domain, depth, plan)


def sum_subtree(domain: Domain, depth: int, plan: Plan) -> None:
    """Sum what fits for a domain and all below it."""
    if domain.children:
        for child in domain.children:
            sum_subtree(child, depth + 1, plan)
        _sum_children(domain, depth, plan)
    elif depth == plan.slice_level:
        _count_slices(domain, plan)


def _count_slices(domain: Domain, plan: Plan) -> None:
    domain.slices = domain.pods // plan.slice_size
    domain.slices_with_leader = domain.pods_with_leader // plan.slice_size


def _sum_children(domain: Domain, depth: int, plan: Plan) -> None:
    """Sum the numbers of children. A child gives only whole inner slices.

    A leader costs what it costs in the child where it takes the least room.
    """
    size = plan.inner.get(depth + 1, 1)
    pods = slices = score = leaders = 0
    pod_loss = slice_loss = _MOST
    for child in domain.children:
        own = child.pods - child.pods % size
        pods += own
        slices += child.slices
        score += child.score
        if child.leaders or not plan.leaders:
            leaders |= child.leaders
            with_leader = child.pods_with_leader
            pod_loss = min(pod_loss, own - (with_leader - with_leader % size))
            slice_loss = min(slice_loss, child.slices - child.slices_with_leader)
    domain.pods, domain.slices, domain.score, domain.leaders = pods, slices, score, leaders
    has_place = pod_loss < _MOST
    domain.pods_with_leader = pods - pod_loss if has_place else 0
    domain.slices_with_leader = slices - slice_loss if has_place else 0
    if depth == plan.slice_level:
        _count_slices(domain, plan)
