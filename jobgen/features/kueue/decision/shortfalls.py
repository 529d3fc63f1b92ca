"""Quota that a workload lacks however empty the cluster is, and the smallest changes that would be enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobgen.features.kueue.amounts import add, show_amount, subtract
from jobgen.features.kueue.quota import FlavorResource, QuotaNode
from jobgen.features.kueue.workload.workloads import PodSet
from jobgen.model.named_tuple import NamedTuple

PODS = "pods"


class Limit(NamedTuple):
    """What limits how much a queue can ever use of a resource in a flavor."""

    amount: int
    node: QuotaNode
    is_borrowing: bool
    """Whether it is the borrowing limit of the node, rather than the quota of the whole tree."""


class Shortfall(NamedTuple):
    """A resource of which a workload requests more than its queue can ever have in a flavor."""

    resource: str
    requested: int
    limit: Limit
    pod_set: str
    """The pod set that requests most of it."""


def find_limit(node: QuotaNode, pair: FlavorResource) -> Limit:
    """Find the term that limits what a node can use if the tree is empty."""
    kept, current = 0, node
    while True:
        limit = current.find_quota(pair).borrowing_limit
        if current.parent is None or (
            limit is not None and current.subtree_quota(pair) + limit <= _potential_with_parent(current, pair)
        ):
            return Limit(kept + current.potential(pair), current, current.parent is not None)
        kept += current.local_quota(pair)
        current = current.parent


def _potential_with_parent(node: QuotaNode, pair: FlavorResource) -> int:
    return node.local_quota(pair) + (node.parent.potential(pair) if node.parent else 0)


def count_least(pod_set: PodSet) -> int:
    """Return with how many pods a pod set can be admitted."""
    return pod_set.count if pod_set.min_count is None else min(pod_set.min_count, pod_set.count)


def find_shortfalls(
    pod_sets: Sequence[PodSet], requested: Mapping[str, int], flavor: str, node: QuotaNode
) -> list[Shortfall]:
    """Find the resources of which less than `requested` can ever be used in a flavor."""
    found = []
    for resource, amount in requested.items():
        limit = find_limit(node, FlavorResource(flavor, resource))
        if amount > limit.amount:
            largest = max(pod_sets, key=lambda each: count_least(each) * _count_each(each, resource))
            found.append(Shortfall(resource, amount, limit, largest.name))
    return found


def describe_shortfall(lack: Shortfall, flavor: str, node: QuotaNode, *, is_least: bool) -> str:
    """Return what a workload lacks; `is_least` if it can be admitted with fewer pods."""
    requested, allowed = (show_amount(lack.resource, each) for each in (lack.requested, lack.limit.amount))
    least = "at least " if is_least else ""
    limit = _describe_limit(lack.limit, node)
    return f"it requests {least}`{requested}` of `{lack.resource}`, but {limit} allows `{allowed}` in flavor `{flavor}`"


def _describe_limit(limit: Limit, node: QuotaNode) -> str:
    if limit.is_borrowing:
        kind = "ClusterQueue" if limit.node.is_queue else "Cohort"
        return f"the quota with the `borrowingLimit` of {kind} `{limit.node.name}`"
    if limit.node is node:
        return f"the quota of ClusterQueue `{node.name}`, which has no cohort,"
    return f"the whole quota of cohort `{limit.node.name}`"


def suggest_change(lacking: Sequence[Shortfall], pod_sets: Sequence[PodSet], flavor: str, node: QuotaNode) -> str:
    """Return the smallest changes of the job or of the quota, each of which is enough for all that is lacking."""
    quota = _suggest_quota(lacking, flavor, node)
    pod_set, pods = find_fitting(lacking, pod_sets)
    if pods:
        return f"{_suggest_pods(pod_set, pods)}, or {quota}"
    less = _join([_show_missing(each, is_named=len(lacking) > 1) for each in lacking])
    return f"request {less} less, or {quota}"


def find_fitting(lacking: Sequence[Shortfall], pod_sets: Sequence[PodSet]) -> tuple[PodSet, int]:
    """Find the pod set of which the most pods fit if only that is reduced; 0 if no reduction is enough."""
    by_name = {each.name: each for each in pod_sets}
    reduced = (by_name[name] for name in dict.fromkeys(each.pod_set for each in lacking))
    return max(
        ((each, max(0, min(_count_fitting(each, lack) for lack in lacking))) for each in reduced),
        key=lambda found: found[1],
    )


def _suggest_pods(pod_set: PodSet, pods: int) -> str:
    noun = "pod" if pods == 1 else "pods"
    if pod_set.min_count is not None:
        least = count_least(pod_set)
        return f"admit `{pod_set.name}` with {pods} {noun} instead of {least} (`kueue.x-k8s.io/job-min-parallelism`)"
    return f"reduce `{pod_set.name}` from {pod_set.count} to {pods} {noun}"


def _count_fitting(pod_set: PodSet, lack: Shortfall) -> int:
    """Return with how many pods of a pod set the workload would fit."""
    each = _count_each(pod_set, lack.resource)
    others = lack.requested - each * count_least(pod_set)
    return (lack.limit.amount - others) // each if each else 0


def _count_each(pod_set: PodSet, resource: str) -> int:
    return 1 if resource == PODS else pod_set.requests.get(resource, 0)


def _suggest_quota(lacking: Sequence[Shortfall], flavor: str, node: QuotaNode) -> str:
    """Suggest to raise the borrowing limit if that is enough; the quota of the queue itself always is."""
    raised: dict[str, list[str]] = {}
    for lack in lacking:
        shown = _show_missing(lack, is_named=len(lacking) > 1)
        where = f"`nominalQuota` of ClusterQueue `{node.name}`"
        if lack.limit.is_borrowing and _is_enough(lack, flavor, node):
            kind = "ClusterQueue" if lack.limit.node.is_queue else "cohort"
            where = f"`borrowingLimit` of {kind} `{lack.limit.node.name}`"
        raised.setdefault(where, []).append(shown)
    return "raise " + " and ".join(f"{where} by {_join(amounts)}" for where, amounts in raised.items())


def _is_enough(lack: Shortfall, flavor: str, node: QuotaNode) -> bool:
    """Whether it is enough to raise the borrowing limit that limits a queue; other nodes could limit it, too."""
    pair, limited = FlavorResource(flavor, lack.resource), lack.limit.node
    return add(_sum_kept(node, limited, pair), _potential_with_parent(limited, pair)) >= lack.requested and all(
        add(each.subtree_quota(pair), limit) >= subtract(lack.requested, _sum_kept(node, each, pair))
        for each in _list_below(node, limited)
        if (limit := each.find_quota(pair).borrowing_limit) is not None
    )


def _list_below(node: QuotaNode, top: QuotaNode) -> list[QuotaNode]:
    """List the nodes from one up to another, without the latter."""
    found: list[QuotaNode] = []
    current: QuotaNode | None = node
    while current is not None and current is not top:
        found.append(current)
        current = current.parent
    return found


def _sum_kept(node: QuotaNode, top: QuotaNode, pair: FlavorResource) -> int:
    return sum(each.local_quota(pair) for each in _list_below(node, top))


def _show_missing(lack: Shortfall, *, is_named: bool) -> str:
    shown = f"`{show_amount(lack.resource, subtract(lack.requested, lack.limit.amount))}`"
    return f"{shown} of `{lack.resource}`" if is_named else shown


def _join(texts: Sequence[str]) -> str:
    return " and ".join(texts) if len(texts) < 3 else f"{', '.join(texts[:-1])} and {texts[-1]}"
