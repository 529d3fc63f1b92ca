"""Replacement of a failed node: only the pods that ran there get a new place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jobgen.features.kueue.topology.request import Failure, Placement, PodSetRequest, find_level
from jobgen.features.kueue.topology.snapshot import AssumedUsage, TopologySnapshot, add_assumed
from jobgen.features.kueue.topology.tree import Domain
from jobgen.features.kueue.workload.workloads import TopologyRequest
from jobgen.model.named_tuple import NamedTuple


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
