"""The topology of a flavor: what is used in it, and the places that pods get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jobgen.features.kueue.objects import Flavor
from jobgen.features.kueue.requests import Amounts
from jobgen.features.kueue.topology.capacity import (
    Eligible,
    Exclusions,
    LeafCapacity,
    LeafCount,
    PodAmounts,
    change_amounts,
    count_leaf,
    explain_failure,
    explain_layers,
    find_eligible,
    fit_pods,
    multiply_pods,
    sum_above,
    sum_counts,
    take_one_pod,
)
from jobgen.features.kueue.topology.search import distribute, find_balanced, find_domains
from jobgen.features.kueue.topology.tree import (
    DEFAULT_GATES,
    Domain,
    Failure,
    Node,
    Placement,
    Plan,
    PodSetRequest,
    TopologyGates,
    TopologyTree,
    Values,
    find_level,
    is_inside,
    list_leaves,
    make_plan,
    select_nodes,
)
from jobgen.features.kueue.workloads import TopologyRequest

_KEPT = 64
"""For how many different pod specs the nodes that may take them are kept."""

AssumedUsage = dict[Values, Amounts]
"""What pods will use of leaves that are placed, but not admitted."""


class _Pods(NamedTuple):
    """The pods to count."""

    pod: PodAmounts
    leader: PodAmounts | None
    ignore_usage: bool


class TopologySnapshot:
    """A topology with its free capacity.

    Snapshots may share a tree: a search leaves nothing there that the next one reads.
    """

    def __init__(
        self,
        name: str,
        tree: TopologyTree,
        *,
        tolerations: Sequence[Mapping[str, Any]] = (),
        other_pods: Mapping[str, Mapping[str, int]] | None = None,
        gates: TopologyGates = DEFAULT_GATES,
    ) -> None:
        """Make a snapshot without usage of workloads.

        `tolerations` are those of the flavor; `other_pods` has the usage by node of pods that Kueue has not placed.
        """
        self.name = name
        self.tree = tree
        self.gates = gates
        self._tolerations = tuple(tolerations)
        self._capacity = LeafCapacity(tree, other_pods or {})
        self._eligible: dict[str, Eligible] = {}

    # Usage

    @property
    def usage(self) -> Mapping[Values, Mapping[str, int]]:
        """What workloads use of each leaf."""
        return self._capacity.used

    def add_usage(self, values: Values, requests: Mapping[str, int], count: int) -> None:
        """Add pods to a leaf. A leaf that has no node any more is passed over."""
        self._capacity.add(values, multiply_pods(requests, count))

    def remove_usage(self, values: Values, requests: Mapping[str, int], count: int) -> None:
        """Remove pods from a leaf."""
        self._capacity.add(values, multiply_pods(requests, count), -1)

    def fits(self, placement: Placement, requests: Mapping[str, int]) -> bool:
        """Return whether pods still fit where they were placed."""
        pod, free, leaves = tuple(sorted(requests.items())), self._capacity.list_free(), self.tree.leaves
        return all(
            values in leaves and fit_pods(free[leaves[values].index], pod)[0] >= count
            for values, count in placement.domains
        )

    def is_stale(self, placement: Placement) -> str:
        """Return the first value of a domain of a placement that the topology does not have; empty if it has all."""
        return next((values[0] for values, _ in placement.domains if values not in self.tree.leaves), "")

    # Search

    def place(
        self,
        request: PodSetRequest,
        leader: PodSetRequest | None = None,
        *,
        assumed: Mapping[Values, Mapping[str, int]] | None = None,
        ignore_usage: bool = False,
        inside: str = "",
    ) -> tuple[Placement, Placement | None] | Failure:
        """Find places for the pods of a pod set, and for a leader with them.

        `assumed` is usage in addition to that of admitted workloads; `ignore_usage` assumes that no workload is
        admitted; `inside` is the path of a domain that the pods must not leave.
        """
        plan = make_plan(self.tree.levels, request, leaders=int(leader is not None), gates=self.gates)
        if isinstance(plan, Failure):
            return plan
        eligible = self._find_eligible(request.spec)
        pods = _Pods(take_one_pod(request.requests), take_one_pod(leader.requests) if leader else None, ignore_usage)
        self._count(plan, eligible, pods, assumed or {}, inside)
        found = self._find(plan, eligible, inside)
        if isinstance(found, str):
            return Failure(found)
        workers = self._build((domain, domain.pods) for domain in found)
        if leader is None:
            return workers, None
        return workers, self._build((domain, domain.leaders) for domain in found)

    def _find(self, plan: Plan, eligible: Eligible, inside: str) -> list[Domain] | str:
        if self.gates.balanced_placement and not plan.is_required and not plan.is_unconstrained:
            balanced = find_balanced(self.tree, plan)
            if balanced is not None:
                return distribute(self.tree, *balanced, plan, is_balanced=True)

        def explain(depth: int, fitting: int) -> str:
            exclusions = self._list_exclusions(eligible, inside)
            if plan.layers:
                return explain_layers(self.name, self.tree, depth, plan, exclusions)
            return explain_failure(self.name, fitting, plan, exclusions)

        found = find_domains(self.tree, plan.level, plan, explain)
        if isinstance(found, str):
            return found
        self.tree.touched = [leaf.index for domain in found[1] for leaf in list_leaves(domain)]
        return distribute(self.tree, *found, plan)

    def _count(
        self, plan: Plan, eligible: Eligible, pods: _Pods, assumed: Mapping[Values, Mapping[str, int]], inside: str
    ) -> None:
        """Count what fits in each domain.

        A search replaces only counts below the domains that it found. If the next one counts the same pods, as
        preemption and workloads of the same shape do, only those domains and the ones with changed usage are counted.
        """
        slices = (plan.leaders, plan.slice_level, plan.slice_size, plan.inner)
        counted, asked = self.tree.counted, (self, slices, eligible.key, pods, inside)
        counts = self._capacity.count(pods.pod, pods.leader, ignore_usage=pods.ignore_usage)
        if counted is not None and counted[1:] == asked and not assumed:
            changed = {*self._capacity.list_changed(counted[0]), *self.tree.touched}
            leaves = [eligible.by_index[index] for index in changed if index in eligible.by_index]
            _set_counts(leaves, counts, inside)
            sum_above(leaves, self.tree, plan)
        else:
            for leaf in self.tree.leaves.values():
                leaf.reset()
            for leaf, score in zip(eligible.leaves, eligible.scores, strict=False):
                leaf.score = score
            _set_counts(eligible.leaves, counts, inside)
            if assumed:
                self._count_assumed(eligible, pods, assumed, inside)
            sum_counts(self.tree, plan)
        self.tree.counted = None if assumed else (self._capacity.version, *asked)
        self.tree.touched = []

    def _count_assumed(
        self, eligible: Eligible, pods: _Pods, assumed: Mapping[Values, Mapping[str, int]], inside: str
    ) -> None:
        """Count again where pods are assumed in addition to usage."""
        free = self._capacity.list_free(ignore_usage=pods.ignore_usage)
        for values, amounts in assumed.items():
            leaf = self.tree.leaves.get(values)
            if leaf is not None and leaf.index in eligible.by_index:
                left = dict(free[leaf.index])
                change_amounts(left, amounts, -1)
                _set_counts([leaf], {leaf.index: count_leaf(left, pods.pod, pods.leader)}, inside)

    @staticmethod
    def _list_exclusions(eligible: Eligible, inside: str) -> Exclusions:
        """List why nodes take no pod, after their room was counted."""
        exclusions = Exclusions(eligible.exclusions.total, eligible.exclusions.counts)
        for leaf in eligible.leaves:
            if inside and not is_inside(leaf, inside):
                exclusions.note("topologyDomain")
            elif leaf.lacking:
                exclusions.note(f'resource "{leaf.lacking}"')
        return exclusions

    def _find_eligible(self, spec: Mapping[str, Any]) -> Eligible:
        key = repr([spec.get(name) for name in ("tolerations", "nodeSelector", "affinity")])
        found = self._eligible.get(key)
        if found is None:
            if len(self._eligible) >= _KEPT:
                self._eligible.clear()
            with_scores = self.gates.respect_preferred_affinity
            made = find_eligible(self.tree, spec, self._tolerations, with_scores=with_scores)
            found = self._eligible[key] = made._replace(key=key)
        return found

    def _build(self, parts: Iterable[tuple[Domain, int]]) -> Placement:
        """Make a placement: domains in the order of their values, hosts by their name alone."""
        ordered = sorted(((domain, count) for domain, count in parts if count), key=lambda part: part[0].rank)
        levels = self.tree.levels[-1:] if self.tree.has_hostnames else self.tree.levels
        return Placement(levels, tuple((domain.key, count) for domain, count in ordered))

    def merge(self, one: Placement, other: Placement) -> Placement:
        """Merge two placements."""
        counts: dict[Values, int] = {}
        for values, count in (*one.domains, *other.domains):
            counts[values] = counts.get(values, 0) + count
        leaves = self.tree.leaves
        return Placement(one.levels, tuple(sorted(counts.items(), key=lambda item: leaves[item[0]].path)))


def _set_counts(leaves: Iterable[Domain], counts: Sequence[LeafCount] | Mapping[int, LeafCount], inside: str) -> None:
    for leaf in leaves:
        if not inside or is_inside(leaf, inside):
            leaf.pods, leaf.leaders, leaf.pods_with_leader, leaf.lacking = counts[leaf.index]
            leaf.slices = leaf.slices_with_leader = 0


def add_assumed(assumed: AssumedUsage, placement: Placement, requests: Mapping[str, int]) -> None:
    """Add what pods will use where they are placed."""
    for values, count in placement.domains:
        change_amounts(assumed.setdefault(values, {}), multiply_pods(requests, count))


class FailedNode(NamedTuple):
    """A node that failed under an admitted workload."""

    name: str
    placements: Mapping[str, Placement]
    """Where the pods of each pod set are."""
    is_single_pod: bool = False
    """Whether the workload belongs to one plain pod, which cannot move."""


def replace_node(
    snapshot: TopologySnapshot, request: PodSetRequest, failed: FailedNode, assumed: AssumedUsage
) -> Placement | Failure | None:
    """Find a new place for the pods of a pod set on a failed node; None if the pod set has no place."""
    current = failed.placements.get(request.name)
    if current is None:
        return None
    if snapshot.gates.keep_single_pods and failed.is_single_pod:
        return current
    kept = tuple(part for part in current.domains if part[0][-1:] != (failed.name,))
    count = next((count for values, count in reversed(current.domains) if values[-1:] == (failed.name,)), 0)
    left = Placement(current.levels, kept)
    stale = snapshot.is_stale(left)
    if stale:
        return Failure(
            "Cannot replace the node, because the existing topologyAssignment is invalid, "
            f"as it contains the stale domain {stale}"
        )
    lost = replace(request, count=count)
    topology = request.topology or TopologyRequest()
    if topology.slices and topology.slices[0][1] <= 0:
        return Failure("slice topology requested, but slice size not provided")
    inside = _find_domain(snapshot, lost, left)
    if inside and topology.slices and count % topology.slices[0][1]:
        lost = replace(lost, topology=topology._replace(slices=_keep_whole_slices(topology, count)))
    found = snapshot.place(lost, assumed=assumed, inside=inside)
    if isinstance(found, Failure):
        return found
    if not found[0].domains:
        return Failure(f"cannot find replacement assignment for unhealthy node: {failed.name}")
    add_assumed(assumed, found[0], request.requests)
    return snapshot.merge(found[0], left)


def _keep_whole_slices(topology: TopologyRequest, count: int) -> tuple[tuple[str, int], ...]:
    """Keep the innermost slices of which the lost pods are a multiple."""
    whole = next((layer for layer in reversed(topology.slices) if layer[1] > 0 and count % layer[1] == 0), None)
    return (whole,) if whole else ()


def _find_domain(snapshot: TopologySnapshot, lost: PodSetRequest, left: Placement) -> str:
    """Return the path of the domain that new pods must not leave; empty if any will do."""
    levels = snapshot.tree.levels
    named = find_level(levels, lost)
    if named is None or named not in levels or not left.domains:
        return ""
    topology = lost.topology or TopologyRequest()
    if topology.slices and lost.count % topology.slices[0][1]:
        broken = [layer for layer in topology.slices if layer[1] > 0 and lost.count % layer[1]]
        return _find_incomplete(snapshot, left, lost.count, *broken[-1])
    if not topology.required:
        return ""
    return _get_path(_climb(snapshot, left.domains[0][0], levels.index(named)))


def _find_incomplete(snapshot: TopologySnapshot, left: Placement, lost: int, level: str, size: int) -> str:
    """Return the path of a domain whose slices the lost pods complete."""
    if level not in snapshot.tree.levels:
        return ""
    pods: dict[str, int] = {}
    for values, count in left.domains:
        path = _get_path(_climb(snapshot, values, snapshot.tree.levels.index(level)))
        pods[path] = pods.get(path, 0) + count
    return next((path for path, count in pods.items() if (count + lost) % size == 0), "")


def _climb(snapshot: TopologySnapshot, values: tuple[str, ...], depth: int) -> Domain:
    domain = snapshot.tree.leaves[values]
    while domain.parent is not None and len(domain.values) > depth + 1:
        domain = domain.parent
    return domain


def _get_path(domain: Domain) -> str:
    return ",".join(domain.key)


class Resized(NamedTuple):
    """Where the pods of an elastic job and of its leader are."""

    workers: Placement
    leader: Placement | None


def place_resized(
    snapshot: TopologySnapshot,
    workers: PodSetRequest,
    leader: PodSetRequest | None,
    assumed: AssumedUsage,
    *,
    ignore_usage: bool,
) -> Resized | Failure | None:
    """Place the pods that an elastic job adds; None if it has no place yet, or lost a node of it."""
    previous, lead = workers.previous, leader.previous if leader else None
    if previous is None or any(snapshot.is_stale(each) for each in (previous, lead) if each is not None):
        return None
    if workers.count > previous.count:
        return _grow(snapshot, workers, leader, previous, assumed, ignore_usage=ignore_usage)
    kept = _truncate(previous, workers.count)
    add_assumed(assumed, kept, workers.requests)
    if leader is not None and lead is not None:
        add_assumed(assumed, lead, leader.requests)
    return Resized(kept, lead)


def _grow(
    snapshot: TopologySnapshot,
    workers: PodSetRequest,
    leader: PodSetRequest | None,
    previous: Placement,
    assumed: AssumedUsage,
    *,
    ignore_usage: bool,
) -> Resized | Failure:
    add_assumed(assumed, previous, workers.requests)
    lead = leader.previous if leader else None
    if leader is not None and lead is not None:
        add_assumed(assumed, lead, leader.requests)
    more = replace(workers, count=workers.count - previous.count, previous=None)
    new_leader = None if lead is not None else leader
    found = snapshot.place(more, new_leader, assumed=assumed, ignore_usage=ignore_usage)
    if isinstance(found, Failure):
        return found
    added, new_lead = found
    if new_leader is not None and new_lead is not None:
        lead = new_lead
        add_assumed(assumed, new_lead, new_leader.requests)
    add_assumed(assumed, added, workers.requests)
    return Resized(snapshot.merge(added, previous), lead)


def _truncate(placement: Placement, count: int) -> Placement:
    """Keep the first pods of a placement."""
    kept = []
    for values, number in placement.domains:
        if count <= 0:
            break
        kept.append((values, min(number, count)))
        count -= number
    return replace(placement, domains=tuple(kept))


Results = dict[str, Placement | Failure]
"""Placements or failures by pod set. After a failure, later pod sets are not tried."""


def build_snapshots(
    flavors: Iterable[Flavor],
    topologies: Mapping[str, Sequence[str]],
    nodes: Sequence[Node],
    *,
    other_pods: Mapping[str, Mapping[str, int]] | None = None,
    gates: TopologyGates = DEFAULT_GATES,
) -> dict[str, TopologySnapshot]:
    """Build the snapshots of all flavors that have a topology, without usage of workloads."""
    found = {}
    for flavor in flavors:
        levels = topologies.get(flavor.topology)
        if levels:
            tree = TopologyTree(levels, select_nodes(nodes, flavor.labels, levels))
            found[flavor.name] = TopologySnapshot(
                flavor.topology, tree, tolerations=flavor.tolerations, other_pods=other_pods, gates=gates
            )
    return found


def shares_hosts(snapshot: TopologySnapshot) -> bool:
    """Return whether what other flavors use of hosts counts for this one."""
    return snapshot.gates.handle_overlapping_flavors and snapshot.tree.has_hostnames


def find_all_assignments(
    snapshots: Mapping[str, TopologySnapshot],
    requests: Mapping[str, Sequence[PodSetRequest]],
    *,
    ignore_usage: bool = False,
    failed: FailedNode | None = None,
) -> Results:
    """Find places for the pod sets of a workload by flavor, in the order of the names of flavors."""
    results: Results = {}
    shared: AssumedUsage = {}
    for flavor in sorted(requests):
        snapshot = snapshots[flavor]
        assumed = shared if shares_hosts(snapshot) else {}
        results |= find_assignments(
            snapshot, requests[flavor], assumed=assumed, ignore_usage=ignore_usage, failed=failed
        )
    return results


def find_assignments(
    snapshot: TopologySnapshot,
    requests: Sequence[PodSetRequest],
    *,
    assumed: AssumedUsage | None = None,
    ignore_usage: bool = False,
    failed: FailedNode | None = None,
) -> Results:
    """Find places for pod sets one after the other in one flavor; `assumed` gets what they will use."""
    taken: AssumedUsage = {} if assumed is None else assumed
    results: Results = {}
    for group in _list_groups(requests):
        if failed is not None:
            found = _replace_group(snapshot, group, failed, taken)
        else:
            found = _place_group(snapshot, group, taken, ignore_usage=ignore_usage)
        results |= found
        if any(isinstance(each, Failure) for each in found.values()):
            break
    return results


def _list_groups(requests: Sequence[PodSetRequest]) -> Iterable[list[PodSetRequest]]:
    """List pod sets that are placed together: those with the same name of a group."""
    groups: dict[str, list[PodSetRequest]] = {}
    for index, request in enumerate(requests):
        groups.setdefault(request.group or str(index), []).append(request)
    return groups.values()


def _replace_group(
    snapshot: TopologySnapshot, group: Sequence[PodSetRequest], failed: FailedNode, assumed: AssumedUsage
) -> Results:
    results: Results = {}
    for request in group:
        found = replace_node(snapshot, request, failed, assumed)
        if found is not None:
            results[request.name] = found
        if isinstance(found, Failure):
            break
    return results


def _place_group(
    snapshot: TopologySnapshot, group: Sequence[PodSetRequest], assumed: AssumedUsage, *, ignore_usage: bool
) -> Results:
    workers, leader = _split_group(group)
    if snapshot.gates.elastic:
        resized = place_resized(snapshot, workers, leader, assumed, ignore_usage=ignore_usage)
        if isinstance(resized, Failure):
            return {workers.name: resized}
        if resized is not None:
            lead: Results = {leader.name: resized.leader} if leader and resized.leader else {}
            return {workers.name: resized.workers, **lead}
    found = snapshot.place(workers, leader, assumed=assumed, ignore_usage=ignore_usage)
    if isinstance(found, Failure):
        return {request.name: found for request in group}
    results: Results = {workers.name: found[0]}
    add_assumed(assumed, found[0], workers.requests)
    if leader is not None and found[1] is not None:
        results[leader.name] = found[1]
        add_assumed(assumed, found[1], leader.requests)
    return results


def _split_group(group: Sequence[PodSetRequest]) -> tuple[PodSetRequest, PodSetRequest | None]:
    """Return the workers and the leader: the pod set with fewer pods; the second if both have the same number."""
    if len(group) == 1:
        return group[0], None
    first, second = group[:2]
    return (second, first) if second.count > first.count else (first, second)
