"""Why a workload can never be admitted, however empty the cluster is, and the smallest change that would admit it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobgen.kueue.amounts import show_amount, subtract
from jobgen.kueue.assignment import EXCEEDS_MAX_QUOTA, TOPOLOGY_FAILED, Assignment, Attempt, PodSetAssignment
from jobgen.kueue.match import find_untolerated_taint, matches_affinity
from jobgen.kueue.objects import ClusterQueue, Flavor
from jobgen.kueue.quota import FlavorResource, QuotaNode
from jobgen.kueue.snapshot import Snapshot
from jobgen.kueue.workloads import PodSet, Workload


class Obstacle(NamedTuple):
    """A reason why a workload is never admitted."""

    code: str
    """`unmanaged`, `queue`, `namespace`, `invalid`, `resource`, `selector`, `taint`, `topology` or `quota`."""
    message: str
    change: str
    """The smallest change that would admit it."""
    pod_set: str = ""
    resource: str = ""
    flavor: str = ""


class Limit(NamedTuple):
    """What limits how much a queue can ever use of a resource in a flavor."""

    amount: int
    node: QuotaNode
    is_borrowing: bool
    """Whether it is the borrowing limit of the node, rather than the quota of the whole tree."""


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


def explain_no_fit(workload: Workload, queue: ClusterQueue, assignment: Assignment, snapshot: Snapshot) -> Obstacle:
    """Explain why flavors could not be assigned in an empty cluster."""
    pod_sets = {each.name: each for each in workload.pod_sets}
    for number, each in enumerate(assignment.pod_sets):
        found = list(_list_obstacles(pod_sets[each.name], each, assignment.pod_sets[:number], queue, snapshot))
        if found:
            return max(found, key=lambda pair: pair[0])[1]
    return Obstacle("topology", assignment.message, "request a placement that the topology allows")


_MISMATCH = -1
"""The rank of a flavor that does not match. One that lacks quota is closer to fitting, even if no pod fits."""


def _list_obstacles(
    pod_set: PodSet,
    assigned: PodSetAssignment,
    before: Sequence[PodSetAssignment],
    queue: ClusterQueue,
    snapshot: Snapshot,
) -> Iterator[tuple[int, Obstacle]]:
    """Yield the obstacles of a pod set in each flavor, with a rank: how many of its pods would fit."""
    for resource, amount in assigned.requests.items():
        if amount and queue.find_group(resource) is None:
            message = f"no resource group of ClusterQueue `{queue.name}` covers `{resource}`"
            change = f"add `{resource}` to `coveredResources` of the queue, or request none of it"
            yield _MISMATCH, Obstacle("resource", message, change, pod_set.name, resource)
    for attempt in assigned.attempts:
        if attempt.no_fit == EXCEEDS_MAX_QUOTA:
            node = snapshot.nodes[queue.name]
            excesses = list(_list_excesses(pod_set, assigned, before, attempt.flavor, node))
            if excesses:
                yield min(each.pods for each in excesses), _explain_quota(pod_set, excesses, attempt.flavor, node)
        elif attempt.no_fit and attempt.flavor in snapshot.flavors:
            yield _MISMATCH, _explain_mismatch(pod_set, assigned, attempt, snapshot.flavors[attempt.flavor])


class _Excess(NamedTuple):
    """A resource of which a pod set requests more than its queue can ever have in a flavor."""

    resource: str
    wanted: int
    """What the pod set requests, with the pod sets before it."""
    limit: Limit
    pods: int
    """How many pods of the pod set would fit."""

    @property
    def missing(self) -> str:
        return show_amount(self.resource, subtract(self.wanted, self.limit.amount))


def _list_excesses(
    pod_set: PodSet, assigned: PodSetAssignment, before: Sequence[PodSetAssignment], flavor: str, node: QuotaNode
) -> Iterator[_Excess]:
    for resource, own in assigned.requests.items():
        pair = FlavorResource(flavor, resource)
        if pair not in node.quotas:
            continue
        used = sum(
            each.requests.get(resource, 0)
            for each in before
            if resource in each.flavors and each.flavors[resource].flavor == flavor
        )
        limit = find_limit(node, pair)
        if used + own > limit.amount:
            each = 1 if resource == "pods" else pod_set.requests.get(resource, 0)
            yield _Excess(resource, used + own, limit, max(0, limit.amount - used) // each if each else 0)


def _explain_quota(pod_set: PodSet, excesses: Sequence[_Excess], flavor: str, node: QuotaNode) -> Obstacle:
    """Explain that a flavor has too little quota, by the resource of which the fewest pods fit."""
    worst = min(excesses, key=lambda each: each.pods)
    wanted, allowed = (show_amount(worst.resource, amount) for amount in (worst.wanted, worst.limit.amount))
    message = (
        f"it requests `{wanted}` of `{worst.resource}`, but {_describe_limit(worst.limit, node)} allows `{allowed}` "
        f"in flavor `{flavor}`"
    )
    change = _suggest(pod_set, excesses, worst.pods)
    return Obstacle("quota", message, change, pod_set.name, worst.resource, flavor)


def _describe_limit(limit: Limit, node: QuotaNode) -> str:
    if limit.is_borrowing:
        kind = "ClusterQueue" if limit.node.is_queue else "Cohort"
        return f"the quota with the `borrowingLimit` of {kind} `{limit.node.name}`"
    if limit.node is node:
        return f"the quota of ClusterQueue `{node.name}`, which has no cohort,"
    return f"the whole quota of cohort `{limit.node.name}`"


def _suggest(pod_set: PodSet, excesses: Sequence[_Excess], pods: int) -> str:
    """Suggest fewer pods if some fit, else smaller requests; or more quota of every resource that lacks it."""
    several = len(excesses) > 1
    quota = f"raise {' and '.join(_describe_raise(each, with_resource=several) for each in excesses)}"
    if pods > 0:
        return f"reduce `{pod_set.name}` from {pod_set.count} to {pods} pods, or {quota}"
    less = " and ".join(f"`{each.missing}` less{f' of `{each.resource}`' if several else ''}" for each in excesses)
    return f"request {less}, or {quota}"


def _describe_raise(excess: _Excess, *, with_resource: bool) -> str:
    limit = excess.limit
    field = "borrowingLimit" if limit.is_borrowing else "nominalQuota"
    kind = "ClusterQueue" if limit.node.is_queue else "cohort"
    where = "of" if limit.is_borrowing or limit.node.is_queue else "in"
    resource = f" of `{excess.resource}`" if with_resource else ""
    return f"`{field}` {where} {kind} `{limit.node.name}` by `{excess.missing}`{resource}"


def _explain_mismatch(pod_set: PodSet, assigned: PodSetAssignment, attempt: Attempt, flavor: Flavor) -> Obstacle:
    taint = find_untolerated_taint(flavor, pod_set.spec)
    if taint is not None:
        shown = f"{taint.get('key', '')}={taint.get('value') or ''}:{taint.get('effect', '')}"
        message = f"the pods do not tolerate the taint `{shown}` of flavor `{flavor.name}`"
        return Obstacle("taint", message, f"add a toleration for `{shown}`", pod_set.name, "", flavor.name)
    if not matches_affinity(flavor.labels, pod_set.spec):
        labels = ", ".join(f"{key}={value}" for key, value in sorted(flavor.labels.items()))
        message = f"the node selector or affinity of the pods does not match flavor `{flavor.name}` (`{labels}`)"
        return Obstacle("selector", message, f"select nodes with `{labels}`", pod_set.name, "", flavor.name)
    reason = "; ".join(attempt.reasons)
    if attempt.no_fit == TOPOLOGY_FAILED:
        change = f"reduce the pods of `{pod_set.name}`, allow them a higher level, or add nodes"
        return Obstacle("topology", "; ".join(assigned.reasons), change, pod_set.name, "", flavor.name)
    change = "remove the topology annotations, or use a queue whose flavors have a topology"
    if flavor.topology:
        change = "request a level that the topology has, or use a queue without it"
    return Obstacle("topology", reason, change, pod_set.name, "", flavor.name)
