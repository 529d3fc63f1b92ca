"""Tables: Quota, usage and the state of queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil, inf
from typing import Any, Final

from jobgen.features.kueue.objects import ClusterQueue, as_list, as_mapping
from jobgen.features.kueue.quota import (
    UNLIMITED,
    FlavorResource,
    QuotaNode,
    Share,
    Usage,
    compute_share,
    reserve_for_blocked,
    subtract,
)
from jobgen.features.kueue.readiness import (
    AdmissionCheck,
    QueueContext,
    Readiness,
    check_readiness,
    parse_admission_check,
)
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import parse_workload
from kueue_tables import Table
from kueue_tables.given import Given, is_enabled, read_state, read_usage, to_quantity, write_usage


def _answer_available(given: Given) -> dict[str, Any]:
    return _write_available(read_state(given))


def _write_available(snapshot: Snapshot) -> dict[str, Any]:
    nodes = snapshot.nodes
    return {
        "available": _write_by_queue(nodes, lambda node, pair: max(0, node.available(pair))),
        "potentiallyAvailable": _write_by_queue(nodes, lambda node, pair: node.potential(pair)),
    }


def _write_by_queue(nodes: dict[str, QuotaNode], measure: Callable[[QuotaNode, FlavorResource], int]) -> dict[str, Any]:
    return {name: write_usage({pair: measure(node, pair) for pair in node.quotas}) for name, node in nodes.items()}


def _answer_generated(given: Given) -> dict[str, Any]:
    snapshot = read_state(given)
    return {
        **_write_available(snapshot),
        **_write_nodes(snapshot),
        "shares": _write_shares(snapshot, {}),
    }


def _answer_share(given: Given) -> dict[str, Any]:
    return {"shares": _write_shares(read_state(given), read_usage(given.get("additionalRequests")))}


def _write_shares(snapshot: Snapshot, more: Usage) -> list[dict[str, Any]]:
    queues = [("ClusterQueue", node, more) for node in snapshot.nodes.values()]
    cohorts: list[tuple[str, QuotaNode, Usage]] = [("Cohort", node, {}) for node in snapshot.cohorts.values()]
    return [_write_share(*each) for each in (*queues, *cohorts)]


def _weigh(share: Share) -> int:
    """Return the ratio of a share by weight, rounded up."""
    return UNLIMITED if share.precise == inf else ceil(share.precise)


def _write_share(kind: str, node: QuotaNode, more: Usage) -> dict[str, Any]:
    share = compute_share(node, more)
    return {
        "borrowing": bool(share.borrowed),
        "dominantResource": share.resource,
        "kind": kind,
        "name": node.name,
        "weightedShare": _weigh(share),
    }


def _answer_borrowing(given: Given) -> dict[str, Any]:
    share = compute_share(read_state(given).nodes[given["clusterQueue"]])
    requested = read_usage(given.get("requested"))
    return {"borrowing": bool(share.borrowed), "borrowingOnRequested": share.borrows_any(requested)}


def _write_nodes(snapshot: Snapshot, hidden: Iterable[str] = ()) -> dict[str, Any]:
    queues = {name: _write_node(node) for name, node in snapshot.nodes.items() if name not in hidden}
    cohorts = {name: _write_node(node) for name, node in snapshot.cohorts.items() if name not in snapshot.cyclic}
    return {"clusterQueues": queues, **({"cohorts": cohorts} if cohorts else {})}


def _write_node(node: QuotaNode) -> dict[str, Any]:
    usage = {"usage": write_usage(node.usage)} if node.usage else {}
    return {"subtreeQuota": write_usage(node.subtree), **usage}


def _answer_snapshot(given: Given) -> dict[str, Any]:
    """Load workloads, then remove and add some of them."""
    snapshot = read_state(given)
    by_key = {workload.key: workload for workload in map(parse_workload, as_list(given.get("workloads")))}
    for key in as_list(given.get("remove")):
        snapshot.remove_workload(by_key[key])
    for key in as_list(given.get("add")):
        snapshot.add_workload(by_key[key])
    context = _read_context(given, snapshot)
    hidden = [name for name, queue in snapshot.queues.items() if not check_readiness(queue, context).is_scheduled]
    found = _write_nodes(snapshot, hidden)
    for name, queue in found["clusterQueues"].items():
        queue["workloads"] = list(snapshot.workloads[name])
    return {**found, "inactiveClusterQueues": hidden}


def _read_context(given: Given, snapshot: Snapshot) -> QueueContext:
    checks = [parse_admission_check(obj) for obj in as_list(given.get("admissionChecks"))]
    checks += [
        AdmissionCheck(state["name"], state.get("controllerName", ""), state.get("active") is True)
        for state in as_list(given.get("admissionCheckStates"))
    ]
    return QueueContext(
        snapshot.flavors,
        {check.name: check for check in checks},
        frozenset(str(as_mapping(obj.get("metadata")).get("name")) for obj in as_list(given.get("topologies"))),
        frozenset(snapshot.cyclic),
        is_enabled(given, "TopologyAwareScheduling", default=True),
    )


def _find_readiness(given: Given) -> Readiness:
    snapshot = read_state(given)
    queue = snapshot.queues.get(given["clusterQueue"])
    if queue is None:
        return Readiness(False, "NotFound", "ClusterQueue not found")
    return check_readiness(queue, _read_context(given, snapshot))


def _answer_readiness(given: Given) -> dict[str, Any]:
    found = _find_readiness(given)
    status = "True" if found.is_active else "False"
    return {"active": found.is_active, "message": found.message, "reason": found.reason, "status": status}


def _answer_readiness_with_topology(given: Given) -> dict[str, Any]:
    found = _find_readiness(given)
    return {"message": found.message, "reason": found.reason}


def _answer_admission_checks(given: Given) -> dict[str, Any]:
    found = _find_readiness(given)
    status = "active" if found.is_active else "pending"
    return {"message": found.message, "reason": found.reason, "status": status}


def _answer_usage(given: Given) -> dict[str, Any]:
    """The usage in the status of the only queue: by workloads with reserved quota, and by admitted ones."""
    reserving = [obj for obj in as_list(given.get("workloads")) if _has_condition(obj, "QuotaReserved")]
    admitted = [obj for obj in reserving if _has_condition(obj, "Admitted")]
    return {
        "admittedWorkloads": len(admitted),
        "reserved": _write_status({**given, "workloads": reserving}),
        "reservingWorkloads": len(reserving),
        "used": _write_status({**given, "workloads": admitted}),
    }


def _has_condition(obj: Given, name: str) -> bool:
    conditions = map(as_mapping, as_list(as_mapping(obj.get("status")).get("conditions")))
    return any(each.get("type") == name and each.get("status") == "True" for each in conditions)


def _write_status(given: Given) -> list[dict[str, Any]]:
    snapshot = read_state(given)
    return [
        {"name": flavor, "resources": [_write_resource(queue, snapshot, flavor, name) for name in group.resources]}
        for queue in snapshot.queues.values()
        for group in queue.groups
        for flavor in group.flavors
    ]


def _write_resource(queue: ClusterQueue, snapshot: Snapshot, flavor: str, resource: str) -> dict[str, str]:
    node, pair = snapshot.nodes[queue.name], FlavorResource(flavor, resource)
    used = node.usage.get(pair, 0)
    borrowed = max(0, subtract(used, node.find_quota(pair).nominal)) if node.parent is not None else 0
    return {"borrowed": to_quantity(resource, borrowed), "name": resource, "total": to_quantity(resource, used)}


def _answer_reserved(given: Given) -> dict[str, Any]:
    usage = read_usage(given["assignmentUsage"])
    if given["assignmentMode"] == "Preempt":
        node = next(iter(read_state(given).nodes.values()))
        usage = reserve_for_blocked(node, usage, given["borrowingLevel"])
    return {"reserved": write_usage(usage)}


TABLES: Final[dict[str, Table]] = {
    "borrowing_on_requested_flavors": _answer_borrowing,
    "capacity_reserved_for_blocked_preemptor": _answer_reserved,
    "cluster_queue_admission_checks": _answer_admission_checks,
    "cluster_queue_readiness": _answer_readiness,
    "cluster_queue_readiness_tas": _answer_readiness_with_topology,
    "cluster_queue_usage": _answer_usage,
    "dominant_resource_share": _answer_share,
    "generated_quota": _answer_generated,
    "quota_available": _answer_available,
    "snapshot": _answer_snapshot,
    "snapshot_add_remove": _answer_snapshot,
    "snapshot_add_remove_lending": _answer_snapshot,
}
