"""Why a workload can never be admitted, however empty the cluster is, and the smallest change that would admit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.features.kueue.assignment import EXCEEDS_MAX_QUOTA, TOPOLOGY_FAILED, Assignment, PodSetAssignment
from jobgen.features.kueue.match import list_untolerated_taints, matches_affinity
from jobgen.features.kueue.objects import ClusterQueue, Flavor, ResourceGroup
from jobgen.features.kueue.quota import FlavorResource, QuotaNode, add, show_amount, subtract
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import PodSet, Workload
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

PODS = "pods"


class Shortfall(NamedTuple):
    """A resource of which a workload requests more than its queue can ever have in a flavor."""

    resource: str
    requested: int
    allowed: int
    node: QuotaNode
    """What limits it: a node by its borrowing limit, or the top of the tree by all of its quota."""
    pod_set: str
    """The pod set that requests most of it."""

    @property
    def is_borrowing(self) -> bool:
        """Return True if a borrowing limit limits it."""
        return self.node.parent is not None


def find_limit(node: QuotaNode, pair: FlavorResource) -> tuple[int, QuotaNode]:
    """Find how much a node can use if the tree is empty, and the node that limits it."""
    kept, current = 0, node
    while True:
        limit = current.find_quota(pair).borrowing_limit
        if current.parent is None or (
            limit is not None and current.subtree_quota(pair) + limit <= _potential_with_parent(current, pair)
        ):
            return kept + current.potential(pair), current
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
        allowed, limiting = find_limit(node, FlavorResource(flavor, resource))
        if amount > allowed:
            largest = max(pod_sets, key=lambda each: count_least(each) * _count_each(each, resource))
            found.append(Shortfall(resource, amount, allowed, limiting, largest.name))
    return found


def describe_shortfall(lack: Shortfall, flavor: str, node: QuotaNode, *, is_least: bool) -> str:
    """Return what a workload lacks; `is_least` if it can be admitted with fewer pods."""
    requested, allowed = (show_amount(lack.resource, each) for each in (lack.requested, lack.allowed))
    least = "at least " if is_least else ""
    limit = f"the whole quota of cohort `{lack.node.name}`"
    if lack.is_borrowing:
        kind = "ClusterQueue" if lack.node.is_queue else "Cohort"
        limit = f"the quota with the `borrowingLimit` of {kind} `{lack.node.name}`"
    elif lack.node is node:
        limit = f"the quota of ClusterQueue `{node.name}`, which has no cohort,"
    return f"it requests {least}`{requested}` of `{lack.resource}`, but {limit} allows `{allowed}` in flavor `{flavor}`"


def suggest_change(lacking: Sequence[Shortfall], pod_sets: Sequence[PodSet], flavor: str, node: QuotaNode) -> str:
    """Return the smallest changes of the job or of the quota, each of which is enough for all that is lacking."""
    quota = _suggest_quota(lacking, flavor, node)
    pod_set, pods = find_fitting(lacking, pod_sets)
    noun = "pod" if pods == 1 else "pods"
    if pods and pod_set.min_count is not None:
        reduced = f"admit `{pod_set.name}` with {pods} {noun} instead of {count_least(pod_set)}"
        return f"{reduced} (`kueue.x-k8s.io/job-min-parallelism`), or {quota}"
    if pods:
        return f"reduce `{pod_set.name}` from {pod_set.count} to {pods} {noun}, or {quota}"
    less = _join([_show_missing(each, is_named=len(lacking) > 1) for each in lacking])
    return f"request {less} less, or {quota}"


def find_fitting(lacking: Sequence[Shortfall], pod_sets: Sequence[PodSet]) -> tuple[PodSet, int]:
    """Find the pod set of which the most pods fit if only that is reduced; 0 if no reduction is enough."""

    def count_fitting(pod_set: PodSet, lack: Shortfall) -> int:
        each = _count_each(pod_set, lack.resource)
        others = lack.requested - each * count_least(pod_set)
        return (lack.allowed - others) // each if each else 0

    by_name = {each.name: each for each in pod_sets}
    reduced = [by_name[name] for name in dict.fromkeys(each.pod_set for each in lacking)]
    fitting = [(each, max(0, min(count_fitting(each, lack) for lack in lacking))) for each in reduced]
    return max(fitting, key=lambda found: found[1])


def _count_each(pod_set: PodSet, resource: str) -> int:
    return 1 if resource == PODS else pod_set.requests.get(resource, 0)


def _suggest_quota(lacking: Sequence[Shortfall], flavor: str, node: QuotaNode) -> str:
    """Suggest to raise the borrowing limit if that is enough; the quota of the queue itself always is."""
    raised: dict[str, list[str]] = {}
    for lack in lacking:
        shown = _show_missing(lack, is_named=len(lacking) > 1)
        where = f"`nominalQuota` of ClusterQueue `{node.name}`"
        if lack.is_borrowing and _is_enough(lack, flavor, node):
            kind = "ClusterQueue" if lack.node.is_queue else "cohort"
            where = f"`borrowingLimit` of {kind} `{lack.node.name}`"
        raised.setdefault(where, []).append(shown)
    return "raise " + " and ".join(f"{where} by {_join(amounts)}" for where, amounts in raised.items())


def _is_enough(lack: Shortfall, flavor: str, node: QuotaNode) -> bool:
    """Return True if it is enough to raise the borrowing limit that limits a queue; other nodes can also limit it."""
    pair, kept, current = FlavorResource(flavor, lack.resource), 0, node
    while current is not lack.node and current.parent is not None:
        limit = current.find_quota(pair).borrowing_limit
        if limit is not None and add(current.subtree_quota(pair), limit) < subtract(lack.requested, kept):
            return False
        kept += current.local_quota(pair)
        current = current.parent
    return add(kept, _potential_with_parent(current, pair)) >= lack.requested


def _show_missing(lack: Shortfall, *, is_named: bool) -> str:
    shown = f"`{show_amount(lack.resource, subtract(lack.requested, lack.allowed))}`"
    return f"{shown} of `{lack.resource}`" if is_named else shown


def _join(texts: Sequence[str]) -> str:
    return " and ".join(texts) if len(texts) < 3 else f"{', '.join(texts[:-1])} and {texts[-1]}"


_FITTING = lazy_pattern(r"allows to fit only ([0-9]+) out of [0-9]+ pod\(s\)")
"""How many pods fit, in the message of Kueue."""
_NO_DOMAINS = "no topology domains at level"
"""No node has the labels of all levels, in the message of Kueue."""


class Obstacle(NamedTuple):
    """A reason why a workload is never admitted."""

    code: str
    """What is wrong: `unmanaged`, `version`, `queue`, `namespace`, `priority` or `invalid`, or what does not fit:
    `resource`, `selector`, `taint`, `topology` or `quota`.
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
    different = {each.message: each for each in found}
    changes = dict.fromkeys(each.change for each in different.values())
    first = next(iter(different.values()))
    return first._replace(message="; ".join(different), change="; also ".join(changes))


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
        seen: set[str] = set()
        for pod_set in self._pod_sets:
            for resource, amount in pod_set.total(count_least(pod_set)).items():
                if amount and resource not in seen and self._queue.find_group(resource) is None:
                    seen.add(resource)
                    message = f"no resource group of ClusterQueue `{self._queue.name}` covers `{resource}`"
                    change = f"add `{resource}` to `coveredResources` of the queue with a quota in each flavor"
                    change += ", or request none"
                    yield Obstacle("resource", message, change, pod_set.name, resource)

    def list_mismatches(self) -> Iterator[Obstacle]:
        """Yield what stands in the way of each pod set in each resource group, in the flavor that suits best."""
        for pod_set in self._pod_sets:
            # If pods cannot be placed in a flavor that has quota, Kueue tries no later one.
            assigned = self._assigned.get(pod_set.name) if self._is_placed else None
            tried = {attempt.flavor for attempt in assigned.attempts} if assigned else None
            for group in self._queue.groups:
                names = [name for name in group.flavors if tried is None or name in tried]
                if names and any(self._sum_requests((pod_set,), group).values()):
                    trials = [self._try_flavor(pod_set, group, name) for name in names]
                    yield from min(trials, key=lambda trial: trial[0])[1]

    def _try_flavor(self, pod_set: PodSet, group: ResourceGroup, name: str) -> tuple[tuple[float, ...], list[Obstacle]]:
        """Find what stands in the way of a pod set in a flavor, and how large a change it needs.

        The least needs a flavor that only lacks quota, then that in which the most pods fit, then that which lacks the
        least of what is requested. Pods that select nodes do so on purpose, so a flavor of other nodes comes last.
        """
        flavor, assigned = self._flavors.get(name), self._assigned.get(pod_set.name)
        found = list(_list_selections(pod_set, flavor)) if flavor else []
        if flavor is not None and assigned is not None:
            found += _list_placements(pod_set, assigned, flavor)
        is_other, mismatches = any(each.code == "selector" for each in found), len(found)
        # With one flavor all pod sets need it. With several, each pod set has that in which it fits.
        together = self._pod_sets
        if len(group.flavors) > 1:
            before = self._pod_sets[: self._pod_sets.index(pod_set)]
            together = (*(each for each in before if self._has_flavor(each, name, group)), pod_set)
        lacking = find_shortfalls(together, self._sum_requests(together, group), name, self._node)
        if not lacking:
            return (is_other, mismatches, mismatches, 0, 0), found
        is_least = any(each.min_count is not None for each in together)
        text = "; ".join(describe_shortfall(each, name, self._node, is_least=is_least) for each in lacking)
        change = suggest_change(lacking, together, name, self._node)
        found.append(Obstacle("quota", text, change, lacking[0].pod_set, lacking[0].resource, name))
        missing = sum(subtract(each.requested, each.allowed) / each.requested for each in lacking)
        return (is_other, mismatches, len(found), -find_fitting(lacking, together)[1], missing), found

    def _has_flavor(self, pod_set: PodSet, flavor: str, group: ResourceGroup) -> bool:
        chosen = self._assigned[pod_set.name].flavors if pod_set.name in self._assigned else {}
        return any(name in group.resources and choice.flavor == flavor for name, choice in chosen.items())

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
            change = f"request less for each pod of `{pod_set.name}`, or add nodes that have room for one"
            if _NO_DOMAINS in reason:
                labels = f"the labels of all levels of its topology `{flavor.topology}`"
                change = f"give the nodes of flavor `{flavor.name}` {labels}, or remove the levels that they lack"
            elif fitting := _FITTING.search(reason):
                reduced = f"from {pod_set.count} to {fitting[1]} {'pod' if fitting[1] == '1' else 'pods'}"
                change = f"reduce `{pod_set.name}` {reduced}, allow them a higher level, or add nodes"
            yield Obstacle("topology", reason, change, pod_set.name, "", flavor.name)
        elif not any(_list_selections(pod_set, flavor)):
            change = "remove the topology annotations, or use a queue whose flavors have a topology"
            if flavor.topology:
                change = "request a level that the topology has, or use a queue without it"
            yield Obstacle("topology", "; ".join(attempt.reasons), change, pod_set.name, "", flavor.name)
