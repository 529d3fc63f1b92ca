"""Places for all pod sets of a workload: in one flavor, and in several that may share hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jobgen.features.kueue.objects import Flavor
from jobgen.features.kueue.topology.elastic import place_resized
from jobgen.features.kueue.topology.nodes import Node, select_nodes
from jobgen.features.kueue.topology.replacement import FailedNode, replace_node
from jobgen.features.kueue.topology.request import DEFAULT_GATES, Failure, Placement, PodSetRequest, TopologyGates
from jobgen.features.kueue.topology.snapshot import AssumedUsage, TopologySnapshot, add_assumed
from jobgen.features.kueue.topology.tree import TopologyTree

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
