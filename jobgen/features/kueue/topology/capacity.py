"""How many pods fit in each domain: which nodes may take them, what is free there, and why nodes take none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from jobgen.features.kueue.match import is_blocking, is_tolerated, matches_expression
from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.requests import Amounts
from jobgen.features.kueue.topology.tree import Domain, Node, Plan, TopologyTree, Values
from jobgen.model.named_tuple import NamedTuple


def explain_failure(
    name: str, tree: TopologyTree, depth: int, fitting: int, plan: Plan, exclusions: Mapping[str, int]
) -> str:
    """Say how many pods or slices a topology has room for, and how many nodes take none for which reasons.

    If there are layers of slices, say for each how many fit in the domain of a level that has the most room.
    """
    reasons = ", ".join(sorted(f"{reason}: {number}" for reason, number in exclusions.items()))
    excluded = f". Total nodes: {len(tree.leaves)}; excluded: {reasons}" if exclusions else ""
    text = f'topology "{name}" doesn\'t allow to fit'
    unit = "pod(s)" if plan.slice_size == 1 else "slice(s)"
    if fitting and not plan.layers:
        return f'topology "{name}" allows to fit only {fitting} out of {plan.slices} {unit}{excluded}'
    if not plan.layers:
        return f"{text} any of {plan.slices} {unit}{excluded}"
    best = min(tree.by_level[depth].values(), key=lambda each: (-each.slices, ",".join(each.key)))
    for level, size in plan.layers:
        below = [best]
        for _ in range(tree.levels.index(level) - depth):
            below = list(chain.from_iterable(each.children for each in below))
        text += f"; {sum(each.pods // size for each in below)}/{plan.count // size} slice(s) fit on level {level}"
    return f"{text}{excluded}"


class Eligible(NamedTuple):
    """Leaves that may take pods, their scores by preferred affinity, and why the others may not."""

    leaves: Sequence[Domain]
    by_index: Mapping[int, Domain]
    """The same leaves by their position."""
    scores: Sequence[int]
    exclusions: Counter[str]
    key: str = ""
    """Stands for what was asked."""


def find_eligible(
    tree: TopologyTree, spec: Mapping[str, Any], tolerations: Sequence[Mapping[str, Any]], *, with_scores: bool
) -> Eligible:
    """Find the leaves that may take pods. Only leaves that are hosts are checked."""
    leaves, scores = list(tree.leaves.values()), list[int]()
    exclusions = Counter[str]()
    if tree.has_hostnames:
        affinity = as_mapping(as_mapping(spec.get("affinity")).get("nodeAffinity"))
        tolerated = [*_list_terms(spec.get("tolerations")), *tolerations]
        selector = as_mapping(spec.get("nodeSelector"))
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        terms = None if required is None else _list_terms(as_mapping(required).get("nodeSelectorTerms"))
        checked, leaves = leaves, []
        for leaf in checked:
            reason = _find_reason(tree.nodes[leaf.index], tolerated, selector, terms)
            if reason:
                exclusions[reason] += 1
            else:
                leaves.append(leaf)
        preferred = _list_terms(affinity.get("preferredDuringSchedulingIgnoredDuringExecution")) if with_scores else []
        weights = [(each.get("weight"), as_mapping(each.get("preference"))) for each in preferred]
        whole = [(weight, term) for weight, term in weights if isinstance(weight, int)]
        for leaf in leaves if preferred else ():
            scores.append(sum(weight for weight, term in whole if _matches_term(tree.nodes[leaf.index], term)))
    return Eligible(leaves, {leaf.index: leaf for leaf in leaves}, scores, exclusions)


def _find_reason(
    node: Node,
    tolerations: Sequence[Mapping[str, Any]],
    selector: Mapping[str, Any],
    terms: Sequence[Mapping[str, Any]] | None,
) -> str:
    """Return why a node may not take a pod; empty if it may."""
    for taint in node.taints:
        if is_blocking(taint) and not is_tolerated(taint, tolerations):
            value = f"={taint['value']}" if taint.get("value") else ""
            return f'taint "{taint.get("key", "")}{value}:{taint.get("effect", "")}"'
    if any(node.labels.get(str(key)) != value for key, value in selector.items()):
        return "nodeSelector"
    if terms is not None and not any(_matches_term(node, term) for term in terms):
        return "affinity"
    return ""


def _list_terms(raw: Any) -> list[Mapping[str, Any]]:
    return [as_mapping(each) for each in as_list(raw)]


def _matches_term(node: Node, term: Mapping[str, Any]) -> bool:
    """Return True if a node matches all expressions of a term; a term without any matches nothing."""
    expressions, fields = _list_terms(term.get("matchExpressions")), _list_terms(term.get("matchFields"))
    return (
        bool(expressions or fields)
        and all(matches_expression(node.labels, each) for each in expressions)
        and all(matches_expression({"metadata.name": node.name}, each) for each in fields)
    )


_MOST = 2**31 - 1
_KEPT = 32
"""For how many different pods the counts are kept."""

_LOGGED = 10_000
"""How many changes of usage are kept at least."""

PodAmounts = tuple[tuple[str, int], ...]
"""What one pod takes of a node by resource, in the order of names."""


def take_one_pod(requests: Mapping[str, int]) -> PodAmounts:
    """Return what one pod takes: its requests, and one of `pods`."""
    return tuple(sorted({**requests, "pods": requests.get("pods", 0) + 1}.items()))


def multiply_pods(requests: Mapping[str, int], count: int) -> Amounts:
    """Return what pods use together, with the number of `pods`."""
    return {name: amount * count for name, amount in take_one_pod(requests)}


def change_amounts(amounts: Amounts, changes: Mapping[str, int], sign: int = 1) -> None:
    """Add amounts by resource, or subtract them with a sign of -1."""
    for name, amount in changes.items():
        amounts[name] = amounts.get(name, 0) + sign * amount


def fit_pods(free: Mapping[str, int], pod: PodAmounts) -> tuple[int, str]:
    """Return how many pods fit; for none, also the first resource of which there is not enough."""
    least = _MOST
    for name, amount in pod:
        if amount:
            number = free.get(name, 0) // amount
            if number < least:
                if number <= 0:
                    return 0, name
                least = number
    return least, ""


class LeafCount(NamedTuple):
    """What fits in a leaf."""

    pods: int
    leaders: int
    pods_with_leader: int
    lacking: str
    """The resource of which there is not enough for one pod."""


def count_leaf(free: Mapping[str, int], pod: PodAmounts, leader: PodAmounts | None) -> LeafCount:
    """Count what fits in a leaf, also beside a leader if that fits."""
    pods, lacking = fit_pods(free, pod)
    if leader is None or not fit_pods(free, leader)[0]:
        return LeafCount(pods, 0, pods, lacking)
    left = dict(free)
    change_amounts(left, dict(leader), -1)
    return LeafCount(pods, 1, fit_pods(left, pod)[0], lacking)


class LeafCapacity:
    """Capacity and usage of leaves.

    Counts are kept, and only leaves whose usage has changed are counted again: a search for places to preempt for
    changes a few leaves, and counts many times.
    """

    def __init__(self, tree: TopologyTree, other_pods: Mapping[str, Mapping[str, int]]) -> None:
        self._leaves = tree.leaves
        self._capacity = [dict(each) for each in tree.capacity]
        for node, used in other_pods.items():
            leaf = tree.leaf_of_node.get(node)
            if leaf is not None:
                change_amounts(self._capacity[leaf.index], used, -1)
        self._free = [dict(each) for each in self._capacity]
        self.used: dict[Values, Amounts] = {}
        """What workloads use of each leaf."""
        self._changed: list[int] = []
        """The leaves whose usage has changed, in order of time."""
        self._forgotten = 0
        """How many changes came before those."""
        self._counts: dict[tuple[PodAmounts, PodAmounts | None, bool], tuple[list[LeafCount], int]] = {}
        """Counts of all leaves for one pod, and the version of usage that they include."""

    def add(self, values: Values, amounts: Mapping[str, int]) -> None:
        """Add usage to a leaf, or remove negative amounts. A leaf that has no node any more is passed over."""
        leaf = self._leaves.get(values)
        if leaf is not None:
            change_amounts(self.used.setdefault(values, {}), amounts)
            change_amounts(self._free[leaf.index], amounts, -1)
            self._changed.append(leaf.index)
            if len(self._changed) > _LOGGED + 4 * len(self._free):
                # To count all leaves again costs less than to keep all changes.
                self._forgotten += len(self._changed)
                self._changed.clear()

    @property
    def version(self) -> int:
        """The number of changes of usage so far."""
        return self._forgotten + len(self._changed)

    def list_changed(self, since: int) -> Iterable[int]:
        """List the leaves whose usage has changed since a version."""
        if since < self._forgotten:
            return range(len(self._free))
        return set(self._changed[since - self._forgotten :])

    def list_free(self, *, ignore_usage: bool = False) -> list[Amounts]:
        """Return what is free in each leaf, or would be without any workload."""
        return self._capacity if ignore_usage else self._free

    def count(self, pod: PodAmounts, leader: PodAmounts | None, *, ignore_usage: bool) -> list[LeafCount]:
        """Count what fits in each leaf."""
        key = (pod, leader, ignore_usage)
        free = self.list_free(ignore_usage=ignore_usage)
        leaves, version = self._counts.pop(key, (None, 0))
        if leaves is None:
            leaves = [count_leaf(each, pod, leader) for each in free]
            if len(self._counts) >= _KEPT:
                del self._counts[next(iter(self._counts))]
        elif not ignore_usage:
            for index in self.list_changed(version):
                leaves[index] = count_leaf(free[index], pod, leader)
        self._counts[key] = leaves, self.version
        return leaves


def sum_counts(tree: TopologyTree, plan: Plan, changed: Iterable[Domain] | None = None) -> None:
    """Sum what fits in the leaves for all domains above them; with `changed`, only for those above these leaves."""
    lowest = len(tree.levels) - 1
    below: Collection[Domain] = tree.leaves.values() if changed is None else list(changed)
    if plan.slice_level == lowest:
        for leaf in below:
            _count_slices(leaf, plan)
    for depth in range(lowest - 1, -1, -1):
        if changed is None:
            below = tree.by_level[depth].values()
        else:
            below = {id(domain.parent): domain.parent for domain in below if domain.parent is not None}.values()
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
