"""Why a workload can never be admitted, however empty the cluster is, and the smallest change that would admit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.features.kueue.assignment import EXCEEDS_MAX_QUOTA, TOPOLOGY_FAILED, Assignment, PodSetAssignment
from jobgen.features.kueue.match import list_untolerated_taints, matches_affinity
from jobgen.features.kueue.objects import ClusterQueue, Flavor, ResourceGroup
from jobgen.features.kueue.quota import FlavorResource, QuotaNode, add, show_amount, subtract
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import PodSet, Workload
from jobgen.model.lazy_re import lazy_pattern

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
    """Return True if it is enough to raise the borrowing limit that limits a queue; other nodes could limit it, too."""
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


_FITTING = lazy_pattern(r"allows to fit only ([0-9]+) out of [0-9]+ pod\(s\)")
"""How many pods fit, in the message of Kueue."""


class Obstacle(NamedTuple):
    """A reason why a workload is never admitted."""

    code: str
    """What is wrong: `unmanaged`, `queue`, `namespace`, `priority` or `invalid`, or what does not fit: `resource`,
    `selector`, `taint`, `topology` or `quota`.
    """
    message: str
    change: str
    """The smallest change that would admit it."""
    pod_set: str = ""
    resource: str = ""
    flavor: str = ""


def explain_no_fit(
    workload: Workload,
    queue: ClusterQueue,
    assignment: Assignment,
    snapshot: Snapshot,
    *,
    ignores_undeclared: bool = False,
) -> Obstacle:
    """Explain why flavors could not be assigned in an empty cluster: all that stands in the way, the first located."""
    explainer = _Explainer(workload, queue, assignment, snapshot)
    found = [*([] if ignores_undeclared else explainer.list_uncovered()), *explainer.list_mismatches()]
    if not found:
        is_quota = assignment.no_fit == EXCEEDS_MAX_QUOTA or not queue.groups
        change = "request less, or raise the quota" if is_quota else "request a placement that the topology allows"
        return Obstacle("quota" if is_quota else "topology", assignment.message, change)
    different = list({each.message: each for each in found}.values())
    changes = dict.fromkeys(each.change for each in different)
    messages = "; ".join(each.message for each in different)
    return different[0]._replace(message=messages, change="; also ".join(changes))


class _Trial(NamedTuple):
    """What stands in the way of a pod set in a flavor."""

    obstacles: tuple[Obstacle, ...]
    mismatches: int
    """How many of them are not about quota."""
    fitting: int = 0
    """With how many pods it would fit."""

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """The least needs the smallest change: a flavor that only lacks quota, then that in which the most pods fit.

        Pods that select nodes do so on purpose, so a flavor of other nodes comes last.
        """
        is_other = any(each.code == "selector" for each in self.obstacles)
        return is_other, self.mismatches, len(self.obstacles), -self.fitting


class _Explainer:
    """Finds what stands in the way of a workload in an empty cluster."""

    def __init__(self, workload: Workload, queue: ClusterQueue, assignment: Assignment, snapshot: Snapshot) -> None:
        self._pod_sets = workload.pod_sets
        self._queue = queue
        self._node = snapshot.nodes[queue.name]
        self._flavors = snapshot.flavors
        self._assigned = {each.name: each for each in assignment.pod_sets}
        self._is_placed = assignment.no_fit == TOPOLOGY_FAILED

    def list_uncovered(self) -> Iterator[Obstacle]:
        """Yield the resources that have no quota at all."""
        uncovered: dict[str, str] = {}
        for pod_set in self._pod_sets:
            for resource, amount in pod_set.total(count_least(pod_set)).items():
                if amount and self._queue.find_group(resource) is None:
                    uncovered.setdefault(resource, pod_set.name)
        for resource, pod_set_name in uncovered.items():
            message = f"no resource group of ClusterQueue `{self._queue.name}` covers `{resource}`"
            change = f"add `{resource}` to `coveredResources` of the queue, or request none of it"
            yield Obstacle("resource", message, change, pod_set_name, resource)

    def list_mismatches(self) -> Iterator[Obstacle]:
        """Yield what stands in the way of each pod set in each resource group, in the flavor that suits best."""
        for pod_set in self._pod_sets:
            for group in self._queue.groups:
                requested = self._sum_requests((pod_set,), group)
                if any(requested.values()):
                    tried = [self._try_flavor(pod_set, group, name) for name in self._list_flavors(pod_set, group)]
                    yield from min(tried, key=lambda each: each.rank).obstacles if tried else ()

    def _list_flavors(self, pod_set: PodSet, group: ResourceGroup) -> Sequence[str]:
        """List the flavors of a group. If pods cannot be placed in one that has quota, Kueue tries no later one."""
        assigned = self._assigned.get(pod_set.name)
        tried = {attempt.flavor for attempt in assigned.attempts} if self._is_placed and assigned else group.flavors
        return [name for name in group.flavors if name in tried]

    def _try_flavor(self, pod_set: PodSet, group: ResourceGroup, name: str) -> _Trial:
        """Find what stands in the way of a pod set in a flavor."""
        flavor, assigned = self._flavors.get(name), self._assigned.get(pod_set.name)
        found = list(_list_selections(pod_set, flavor)) if flavor else []
        if flavor is not None and assigned is not None:
            found += _list_placements(pod_set, assigned, flavor)
        # With one flavor all pod sets need it. With several, each pod set has that in which it fits.
        together = self._pod_sets if len(group.flavors) == 1 else (*self._list_before(pod_set, name, group), pod_set)
        lacking = find_shortfalls(together, self._sum_requests(together, group), name, self._node)
        if not lacking:
            return _Trial(tuple(found), len(found))
        fitting = find_fitting(lacking, together)[1]
        return _Trial((*found, self._explain_quota(lacking, together, name)), len(found), fitting)

    def _explain_quota(self, lacking: Sequence[Shortfall], pod_sets: Sequence[PodSet], flavor: str) -> Obstacle:
        is_least = any(each.min_count is not None for each in pod_sets)
        texts = [describe_shortfall(each, flavor, self._node, is_least=is_least) for each in lacking]
        change = suggest_change(lacking, pod_sets, flavor, self._node)
        return Obstacle("quota", "; ".join(texts), change, lacking[0].pod_set, lacking[0].resource, flavor)

    def _list_before(self, pod_set: PodSet, flavor: str, group: ResourceGroup) -> Iterator[PodSet]:
        """Yield the pod sets that have got a flavor before."""
        for each in self._pod_sets[: self._pod_sets.index(pod_set)]:
            chosen = self._assigned[each.name].flavors if each.name in self._assigned else {}
            if any(name in group.resources and choice.flavor == flavor for name, choice in chosen.items()):
                yield each

    def _sum_requests(self, pod_sets: Sequence[PodSet], group: ResourceGroup) -> Mapping[str, int]:
        """Sum what pod sets request of the resources of a group, with as few pods as possible."""
        found: dict[str, int] = {}
        for each in pod_sets:
            count = count_least(each)
            for resource, amount in {**each.total(count), PODS: count}.items():
                if resource in group.resources:
                    found[resource] = found.get(resource, 0) + amount
        return found


def _list_selections(pod_set: PodSet, flavor: Flavor) -> Iterator[Obstacle]:
    """Yield the taints and the labels of a flavor that keep the pods away."""
    for taint in list_untolerated_taints(flavor, pod_set.spec):
        shown = f"{taint.get('key', '')}={taint.get('value') or ''}:{taint.get('effect', '')}"
        message = f"the pods do not tolerate the taint `{shown}` of flavor `{flavor.name}`"
        yield Obstacle("taint", message, f"add a toleration for `{shown}`", pod_set.name, "", flavor.name)
    if not matches_affinity(flavor.labels, pod_set.spec):
        labels = ", ".join(f"{key}={value}" for key, value in sorted(flavor.labels.items()))
        message = f"the node selector or affinity of the pods does not match flavor `{flavor.name}` (`{labels}`)"
        yield Obstacle("selector", message, f"select nodes with `{labels}`", pod_set.name, "", flavor.name)


def _list_placements(pod_set: PodSet, assigned: PodSetAssignment, flavor: Flavor) -> Iterator[Obstacle]:
    """Yield why the pods cannot be placed in the topology of a flavor."""
    for attempt in assigned.attempts:
        if attempt.flavor != flavor.name or attempt.no_fit in ("", EXCEEDS_MAX_QUOTA):
            continue
        if attempt.no_fit == TOPOLOGY_FAILED:
            reason = "; ".join(assigned.reasons)
            yield Obstacle("topology", reason, _suggest_placement(pod_set, reason), pod_set.name, "", flavor.name)
        elif not any(_list_selections(pod_set, flavor)):
            change = "remove the topology annotations, or use a queue whose flavors have a topology"
            if flavor.topology:
                change = "request a level that the topology has, or use a queue without it"
            yield Obstacle("topology", "; ".join(attempt.reasons), change, pod_set.name, "", flavor.name)


def _suggest_placement(pod_set: PodSet, reason: str) -> str:
    found = _FITTING.search(reason)
    if found is not None:
        noun = "pod" if found[1] == "1" else "pods"
        reduced = f"reduce `{pod_set.name}` from {pod_set.count} to {found[1]} {noun}"
        return f"{reduced}, allow them a higher level, or add nodes"
    return f"request less for each pod of `{pod_set.name}`, or add nodes that have room for one"
