"""The topology of a flavor at one moment: what is free in each leaf, and the search for places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobgen.features.kueue.topology.balanced import find_balanced
from jobgen.features.kueue.topology.capacity import (
    LeafCapacity,
    LeafCount,
    PodAmounts,
    change_amounts,
    count_leaf,
    fit_pods,
    multiply_pods,
    take_one_pod,
)
from jobgen.features.kueue.topology.counts import sum_above, sum_counts
from jobgen.features.kueue.topology.eligible import Eligible, find_eligible
from jobgen.features.kueue.topology.exclusions import Exclusions, explain_failure, explain_layers
from jobgen.features.kueue.topology.request import (
    DEFAULT_GATES,
    Failure,
    Placement,
    Plan,
    PodSetRequest,
    TopologyGates,
    make_plan,
)
from jobgen.features.kueue.topology.search import distribute, find_domains
from jobgen.features.kueue.topology.tree import Domain, TopologyTree, Values, is_inside, list_leaves
from jobgen.features.kueue.workload.requests import Amounts
from jobgen.model.named_tuple import NamedTuple

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
