"""The topology of a flavor: what is used in it, and the places that pods get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobgen.features.kueue.objects import Flavor
from jobgen.features.kueue.requests import Amounts
from jobgen.features.kueue.topology.capacity import (
    Eligible,
    LeafCapacity,
    LeafCount,
    PodAmounts,
    change_amounts,
    count_leaf,
    explain_failure,
    find_eligible,
    fit_pods,
    multiply_pods,
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
from jobgen.model.named_tuple import NamedTuple

AssumedUsage = dict[Values, Amounts]
"""What pods will use of leaves that are placed, but not admitted."""

Places = tuple[Placement, Placement | None]
"""Where the pods of a pod set and of its leader are."""


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

    @property
    def usage(self) -> Mapping[Values, Mapping[str, int]]:
        """What workloads use of each leaf."""
        return self._capacity.used

    def add_usage(self, values: Values, requests: Mapping[str, int], count: int) -> None:
        """Add pods to a leaf, or remove a negative number. A leaf that has no node any more is passed over."""
        self._capacity.add(values, multiply_pods(requests, count))

    def fits(self, placement: Placement, requests: Mapping[str, int]) -> bool:
        """Return True if pods still fit where they were placed."""
        pod, free, leaves = tuple(sorted(requests.items())), self._capacity.list_free(), self.tree.leaves
        return all(
            values in leaves and fit_pods(free[leaves[values].index], pod)[0] >= count
            for values, count in placement.domains
        )

    def is_stale(self, placement: Placement) -> str:
        """Return the first value of a domain of a placement that the topology does not have; empty if it has all."""
        return next((values[0] for values, _ in placement.domains if values not in self.tree.leaves), "")

    def place(
        self,
        request: PodSetRequest,
        leader: PodSetRequest | None = None,
        *,
        assumed: Mapping[Values, Mapping[str, int]] | None = None,
        ignore_usage: bool = False,
        inside: str = "",
    ) -> Places | Failure:
        """Find places for the pods of a pod set, and for a leader with them.

        `assumed` is usage in addition to that of admitted workloads; `ignore_usage` assumes that no workload is
        admitted; `inside` is the path of a domain that the pods must not leave.
        """
        plan = make_plan(self.tree.levels, request, leaders=int(leader is not None), gates=self.gates)
        if isinstance(plan, Failure):
            return plan
        eligible = self._find_eligible(request.spec)
        pods = (take_one_pod(request.requests), take_one_pod(leader.requests) if leader else None)
        self._count(plan, eligible, pods, assumed or {}, inside, ignore_usage=ignore_usage)
        found = self._find(plan, eligible, inside)
        if isinstance(found, str):
            return Failure(found)
        workers = self._build((domain, domain.pods) for domain in found)
        return workers, None if leader is None else self._build((domain, domain.leaders) for domain in found)

    def _find(self, plan: Plan, eligible: Eligible, inside: str) -> list[Domain] | str:
        if self.gates.balanced_placement and not plan.is_required and not plan.is_unconstrained:
            balanced = find_balanced(self.tree, plan)
            if balanced is not None:
                return distribute(self.tree, *balanced, plan, is_balanced=True)

        def explain(depth: int, fitting: int) -> str:
            exclusions = Counter(eligible.exclusions)
            for leaf in eligible.leaves:
                if inside and not is_inside(leaf, inside):
                    exclusions["topologyDomain"] += 1
                elif leaf.lacking:
                    exclusions[f'resource "{leaf.lacking}"'] += 1
            return explain_failure(self.name, self.tree, depth, fitting, plan, exclusions)

        found = find_domains(self.tree, plan.level, plan, explain)
        if isinstance(found, str):
            return found
        self.tree.touched = [leaf.index for domain in found[1] for leaf in list_leaves(domain)]
        return distribute(self.tree, *found, plan)

    def _count(
        self,
        plan: Plan,
        eligible: Eligible,
        pods: tuple[PodAmounts, PodAmounts | None],
        assumed: Mapping[Values, Mapping[str, int]],
        inside: str,
        *,
        ignore_usage: bool,
    ) -> None:
        """Count what fits in each domain.

        A search replaces only counts below the domains that it found. If the next one counts the same pods, as
        preemption and workloads of the same shape do, only those domains and the ones with changed usage are counted.
        """
        slices = (plan.leaders, plan.slice_level, plan.slice_size, plan.inner)
        counted, asked = self.tree.counted, (self, slices, eligible.key, pods, ignore_usage, inside)
        counts = self._capacity.count(*pods, ignore_usage=ignore_usage)
        if counted is not None and counted[1:] == asked and not assumed:
            changed = {*self._capacity.list_changed(counted[0]), *self.tree.touched}
            leaves = [eligible.by_index[index] for index in changed if index in eligible.by_index]
            _set_counts(leaves, counts, inside)
            sum_counts(self.tree, plan, leaves)
        else:
            for leaf in self.tree.leaves.values():
                leaf.reset()
            for leaf, score in zip(eligible.leaves, eligible.scores, strict=False):
                leaf.score = score
            _set_counts(eligible.leaves, counts, inside)
            free = self._capacity.list_free(ignore_usage=ignore_usage)
            for values, amounts in assumed.items():
                where = self.tree.leaves.get(values)
                if where is not None and where.index in eligible.by_index:
                    left = dict(free[where.index])
                    change_amounts(left, amounts, -1)
                    _set_counts([where], {where.index: count_leaf(left, *pods)}, inside)
            sum_counts(self.tree, plan)
        self.tree.counted = None if assumed else (self._capacity.version, *asked)
        self.tree.touched = []

    def _find_eligible(self, spec: Mapping[str, Any]) -> Eligible:
        key = repr([spec.get(name) for name in ("tolerations", "nodeSelector", "affinity")])
        found = self._eligible.get(key)
        if found is None:
            # Few different pod specs occur, but nothing limits their number.
            if len(self._eligible) >= 64:
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


class FailedNode(NamedTuple):
    """A node that failed under an admitted workload."""

    name: str
    placements: Mapping[str, Placement]
    """Where the pods of each pod set are."""
    is_single_pod: bool = False
    """True if the workload belongs to one plain pod, which cannot move."""


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
    """Return True if what other flavors use of hosts counts for this one."""
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
    search = _Search(snapshot, {} if assumed is None else assumed, ignore_usage=ignore_usage)
    groups: dict[str, list[PodSetRequest]] = {}
    for index, request in enumerate(requests):
        groups.setdefault(request.group or str(index), []).append(request)
    results: Results = {}
    for group in groups.values():
        found = search.place_group(group) if failed is None else search.replace_node(group, failed)
        results |= found
        if any(isinstance(each, Failure) for each in found.values()):
            break
    return results


class _Search:
    """Finds places in one flavor, and adds what pods will use there to `assumed`."""

    def __init__(self, snapshot: TopologySnapshot, assumed: AssumedUsage, *, ignore_usage: bool) -> None:
        self._snapshot = snapshot
        self._assumed = assumed
        self._ignore_usage = ignore_usage

    def _assume(self, request: PodSetRequest | None, placement: Placement | None) -> None:
        """Add what the pods of a request, if there are any, will use where they are placed."""
        if request is not None and placement is not None:
            for values, count in placement.domains:
                change_amounts(self._assumed.setdefault(values, {}), multiply_pods(request.requests, count))

    def place_group(self, group: Sequence[PodSetRequest]) -> Results:
        """Place pod sets that are placed together: workers, and perhaps a leader."""
        workers, leader = group[0], None
        if len(group) > 1:
            # The leader is the pod set with fewer pods; the second if both have the same number.
            workers, leader = (group[1], group[0]) if group[1].count > group[0].count else (group[0], group[1])
        placed: Places | None = None
        if self._snapshot.gates.elastic:
            resized = self._place_resized(workers, leader)
            if isinstance(resized, Failure):
                return {workers.name: resized}
            placed = resized
        if placed is None:
            found = self._snapshot.place(workers, leader, assumed=self._assumed, ignore_usage=self._ignore_usage)
            if isinstance(found, Failure):
                return {request.name: found for request in group}
            placed = found
            self._assume(workers, placed[0])
            self._assume(leader, placed[1])
        results: Results = {workers.name: placed[0]}
        if leader is not None and placed[1] is not None:
            results[leader.name] = placed[1]
        return results

    def _place_resized(self, workers: PodSetRequest, leader: PodSetRequest | None) -> Places | Failure | None:
        """Place the pods that an elastic job adds; None if it has no place yet, or lost a node of it."""
        previous, lead = workers.previous, leader.previous if leader else None
        if previous is None or any(self._snapshot.is_stale(each) for each in (previous, lead) if each is not None):
            return None
        more, kept = workers.count - previous.count, previous
        if more <= 0:
            # Only the first pods stay.
            first, left = list[tuple[Values, int]](), workers.count
            for values, count in previous.domains:
                if left > 0:
                    first.append((values, min(count, left)))
                left -= count
            kept = replace(previous, domains=tuple(first))
        self._assume(workers, kept)
        self._assume(leader, lead)
        if more <= 0:
            return kept, lead
        new_leader = None if lead is not None else leader
        added = replace(workers, count=more, previous=None)
        found = self._snapshot.place(added, new_leader, assumed=self._assumed, ignore_usage=self._ignore_usage)
        if isinstance(found, Failure):
            return found
        self._assume(new_leader, found[1])
        self._assume(workers, found[0])
        return self._snapshot.merge(found[0], previous), found[1] or lead

    def replace_node(self, group: Sequence[PodSetRequest], failed: FailedNode) -> Results:
        """Find new places for the pods of pod sets on a failed node. A pod set that has no place gets none."""
        results: Results = {}
        for request in group:
            current = failed.placements.get(request.name)
            if current is not None:
                is_kept = self._snapshot.gates.keep_single_pods and failed.is_single_pod
                found = current if is_kept else self._move_pods(request, current, failed.name)
                results[request.name] = found
                if isinstance(found, Failure):
                    break
        return results

    def _move_pods(self, request: PodSetRequest, current: Placement, host: str) -> Placement | Failure:
        kept = tuple(part for part in current.domains if part[0][-1:] != (host,))
        count = next((count for values, count in reversed(current.domains) if values[-1:] == (host,)), 0)
        left = Placement(current.levels, kept)
        stale = self._snapshot.is_stale(left)
        if stale:
            return Failure(
                "Cannot replace the node, because the existing topologyAssignment is invalid, "
                f"as it contains the stale domain {stale}"
            )
        lost = replace(request, count=count)
        topology = request.topology or TopologyRequest()
        if topology.slices and topology.slices[0][1] <= 0:
            return Failure("slice topology requested, but slice size not provided")
        inside = self._find_domain(lost, left)
        if inside and topology.slices and count % topology.slices[0][1]:
            # The innermost slices of which the lost pods are a multiple stay whole.
            whole = [layer for layer in topology.slices if layer[1] > 0 and count % layer[1] == 0]
            lost = replace(lost, topology=topology._replace(slices=tuple(whole[-1:])))
        found = self._snapshot.place(lost, assumed=self._assumed, inside=inside)
        if isinstance(found, Failure):
            return found
        if not found[0].domains:
            return Failure(f"cannot find replacement assignment for unhealthy node: {host}")
        self._assume(request, found[0])
        return self._snapshot.merge(found[0], left)

    def _find_domain(self, lost: PodSetRequest, left: Placement) -> str:
        """Return the path of the domain that new pods must not leave; empty if any will do."""
        levels = self._snapshot.tree.levels
        named = find_level(levels, lost)
        if named is None or named not in levels or not left.domains:
            return ""
        topology = lost.topology or TopologyRequest()
        if topology.slices and lost.count % topology.slices[0][1]:
            # The lost pods complete the slices of a domain.
            broken = [layer for layer in topology.slices if layer[1] > 0 and lost.count % layer[1]]
            level, size = broken[-1]
            pods: dict[str, int] = {}
            for values, count in left.domains if level in levels else ():
                path = self._find_path(values, level)
                pods[path] = pods.get(path, 0) + count
            return next((path for path, count in pods.items() if (count + lost.count) % size == 0), "")
        return self._find_path(left.domains[0][0], named) if topology.required else ""

    def _find_path(self, values: Values, level: str) -> str:
        """Return the path of the domain of a level that has a leaf."""
        domain, depth = self._snapshot.tree.leaves[values], self._snapshot.tree.levels.index(level)
        while domain.parent is not None and len(domain.values) > depth + 1:
            domain = domain.parent
        return ",".join(domain.key)
