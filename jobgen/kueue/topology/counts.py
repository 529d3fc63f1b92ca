"""How many pods and slices fit in each domain, from the leaves up, with and without a leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.kueue.requests import Amounts
from jobgen.kueue.topology.request import Plan
from jobgen.kueue.topology.tree import Domain, TopologyTree

_MOST = 2**31 - 1

PodAmounts = tuple[tuple[str, int], ...]
"""What one pod takes of a node by resource, in the order of names."""


def take_one_pod(requests: Mapping[str, int]) -> PodAmounts:
    """Return what one pod takes: its requests, and one of `pods`."""
    return tuple(sorted({**requests, "pods": requests.get("pods", 0) + 1}.items()))


def count_fitting(free: Mapping[str, int], pod: PodAmounts) -> int:
    """Count the pods that fit."""
    found = _MOST
    for name, amount in pod:
        if amount:
            found = min(found, free.get(name, 0) // amount)
    return max(found, 0)


def find_lacking(free: Mapping[str, int], pod: PodAmounts) -> str:
    """Return the first resource of which there is not enough for one pod."""
    return next((name for name, amount in pod if amount and free.get(name, 0) < amount), "")


def subtract_amounts(free: Mapping[str, int], taken: Iterable[tuple[str, int]]) -> Amounts:
    """Subtract amounts by resource."""
    left = dict(free)
    for name, amount in taken:
        left[name] = left.get(name, 0) - amount
    return left


def count_leaf(leaf: Domain, free: Mapping[str, int], pod: PodAmounts, leader: PodAmounts | None) -> None:
    """Count what fits in a leaf."""
    leaf.pods = leaf.pods_with_leader = count_fitting(free, pod)
    if leader is not None and count_fitting(free, leader):
        leaf.leaders = 1
        leaf.pods_with_leader = count_fitting(subtract_amounts(free, leader), pod)


def sum_counts(tree: TopologyTree, plan: Plan) -> None:
    """Sum what fits in the leaves for all domains above them."""
    lowest = len(tree.levels) - 1
    for depth in range(lowest, -1, -1):
        for domain in tree.by_level[depth].values():
            _sum_domain(domain, depth, plan)


def sum_subtree(domain: Domain, depth: int, plan: Plan) -> None:
    """Sum what fits for a domain and all below it."""
    for child in domain.children:
        sum_subtree(child, depth + 1, plan)
    _sum_domain(domain, depth, plan)


def _sum_domain(domain: Domain, depth: int, plan: Plan) -> None:
    if domain.children:
        _sum_children(domain, plan.inner.get(depth + 1, 1), plan)
    if depth == plan.slice_level:
        domain.slices = domain.pods // plan.slice_size
        domain.slices_with_leader = domain.pods_with_leader // plan.slice_size


def _sum_children(domain: Domain, size: int, plan: Plan) -> None:
    """Sum the numbers of children. A child gives only whole inner slices.

    A leader costs what it costs in the child where it takes the least room.
    """
    pods = slices = score = leaders = 0
    pod_loss = slice_loss = _MOST
    for child in domain.children:
        own = child.pods - child.pods % size
        pods += own
        slices += child.slices
        score += child.score
        leaders = max(leaders, child.leaders)
        if child.leaders or not plan.leaders:
            with_leader = child.pods_with_leader
            pod_loss = min(pod_loss, own - (with_leader - with_leader % size))
            slice_loss = min(slice_loss, child.slices - child.slices_with_leader)
    domain.pods, domain.slices, domain.score, domain.leaders = pods, slices, score, leaders
    has_place = pod_loss < _MOST
    domain.pods_with_leader = pods - pod_loss if has_place else 0
    domain.slices_with_leader = slices - slice_loss if has_place else 0
