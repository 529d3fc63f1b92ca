"""Tables: Placement in a topology."""

from __future__ import annotations

from typing import Any, Final

from jobgen.features.kueue.assignment import PlacedPods, Topologies
from jobgen.features.kueue.objects import as_list, as_mapping, parse_flavor, parse_topologies
from jobgen.features.kueue.requests import read_amounts
from jobgen.features.kueue.topology.snapshot import FailedNode, TopologySnapshot, build_snapshots, find_assignments
from jobgen.features.kueue.topology.tree import (
    Failure,
    Placement,
    PodSetRequest,
    TopologyTree,
    parse_nodes,
    read_gates,
    select_nodes,
    sum_other_pods,
)
from jobgen.features.kueue.workloads import parse_domains, parse_topology
from kueue_tables import Table
from kueue_tables.given import Given, to_quantity


def _answer_find(given: Given) -> dict[str, Any]:
    snapshot = _read_snapshot(given)
    requests = [_read_request(each) for each in given["podSets"]]
    results = find_assignments(snapshot, requests, failed=_read_failed_node(given))
    return {"podSets": {name: _write_result(each) for name, each in results.items()}}


def _read_snapshot(given: Given) -> TopologySnapshot:
    levels, gates = tuple(given["levels"]), read_gates(as_mapping(given.get("featureGates")))
    nodes = select_nodes(parse_nodes(given["nodes"]), as_mapping(given.get("flavorNodeLabels")), levels)
    snapshot = TopologySnapshot(
        str(given.get("topologyName", "default")),
        TopologyTree(levels, nodes),
        other_pods=sum_other_pods(as_list(given.get("pods"))),
        gates=gates,
    )
    used = [*as_list(given.get("usageOfThisFlavor"))]
    if gates.handle_overlapping_flavors and snapshot.tree.has_hostnames:
        used += as_list(given.get("usageOfOtherFlavors"))
    for each in used:
        snapshot.add_usage(tuple(each["values"]), read_amounts(each["singlePodRequests"]), each["count"])
    return snapshot


def _read_request(raw: Given) -> PodSetRequest:
    spec = {name: raw[name] for name in ("tolerations", "nodeSelector") if name in raw}
    topology = raw.get("topologyRequest")
    previous = raw.get("previousAssignment")
    return PodSetRequest(
        raw["name"],
        raw["count"],
        read_amounts(as_mapping(raw.get("singlePodRequests"))),
        parse_topology(topology) if topology is not None else None,
        {**spec, "affinity": {"nodeAffinity": raw.get("nodeAffinity")}},
        is_implied=topology is None,
        group=str(raw.get("podSetGroupName") or ""),
        previous=_read_placement(previous) if previous else None,
    )


def _read_placement(raw: Given) -> Placement:
    return Placement(tuple(raw["levels"]), parse_domains(raw))


def _read_failed_node(given: Given) -> FailedNode | None:
    """Read the node that failed under an admitted workload."""
    workload = as_mapping(given.get("workload"))
    status, metadata = as_mapping(workload.get("status")), as_mapping(workload.get("metadata"))
    failed = as_list(status.get("unhealthyNodes"))
    if not failed:
        return None
    assignments = as_list(as_mapping(status.get("admission")).get("podSetAssignments"))
    placements = {
        each["name"]: _read_placement(each["topologyAssignment"])
        for each in assignments
        if each.get("topologyAssignment")
    }
    owners = as_list(metadata.get("ownerReferences"))
    is_group = as_mapping(metadata.get("annotations")).get("kueue.x-k8s.io/is-group-workload") == "true"
    is_pod = [(each.get("apiVersion"), each.get("kind")) for each in owners] == [("v1", "Pod")]
    return FailedNode(failed[0]["name"], placements, is_single_pod=is_pod and not is_group)


def _write_result(result: Placement | Failure) -> dict[str, Any]:
    if isinstance(result, Failure):
        return {"reason": result.message}
    domains = [{"count": count, "values": list(values)} for values, count in result.domains]
    return {"assignment": {"domains": domains, "levels": list(result.levels)}}


def _answer_has_level(given: Given) -> dict[str, Any]:
    raw = given.get("topologyRequest")
    return {"hasLevel": raw is not None and parse_topology(raw).has_levels(given["levels"])}


def _answer_usage(given: Given) -> dict[str, Any]:
    snapshots = build_snapshots(
        map(parse_flavor, as_list(given.get("resourceFlavors"))),
        parse_topologies(as_list(given.get("topologies"))),
        parse_nodes(as_list(given.get("nodes"))),
        other_pods=sum_other_pods(as_list(given.get("pods"))),
        gates=read_gates(as_mapping(given.get("featureGates"))),
    )
    topologies = Topologies(snapshots)
    for flavor, parts in as_mapping(given.get("tasFlavorUsage")).items():
        usage = {flavor: tuple(map(_read_placed, as_list(parts)))}
        topologies.add(usage)
        topologies.share(usage)
    return {"tasUsage": {flavor: _write_usage(each) for flavor, each in snapshots.items()}}


def _read_placed(part: Given) -> PlacedPods:
    placement = Placement((), ((tuple(part["values"]), part["count"]),))
    return PlacedPods(placement, read_amounts(part["singlePodRequests"]))


def _write_usage(snapshot: TopologySnapshot) -> dict[str, Any]:
    return {
        ",".join(values): {name: to_quantity(name, amount) for name, amount in amounts.items()}
        for values, amounts in snapshot.usage.items()
    }


TABLES: Final[dict[str, Table]] = {
    "snapshot_tas_usage": _answer_usage,
    "tas_find_assignments": _answer_find,
    "tas_multilayer_replacement": _answer_find,
    "tas_topology_has_level": _answer_has_level,
}
