"""Tables: Preemption, its candidates and their order."""

from __future__ import annotations

from typing import Any, Final

from jobgen.features.kueue.assignment import Choice, Mode, PodSetAssignment
from jobgen.features.kueue.objects import as_list
from jobgen.features.kueue.preemption import Preemptor, QueueOrder, Target, find_targets, order_candidates, satisfies
from jobgen.features.kueue.quota import FlavorResource
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import Workload, parse_workload
from kueue_tables import Table
from kueue_tables.given import Given, is_enabled, read_rules, read_snapshot, sum_requests
from kueue_tables.priority_boost import add_boost, read_boost


def _read_workload(given: Given, obj: Given) -> Workload:
    workload = parse_workload(obj)
    return add_boost(workload) if is_enabled(given, "PriorityBoost", default=False) else workload


def _read_state(given: Given) -> Snapshot:
    snapshot = read_snapshot(given)
    for obj in as_list(given.get("workloads")):
        snapshot.add_workload(_read_workload(given, obj))
    return snapshot


def _answer_targets(given: Given) -> dict[str, Any]:
    incoming = _read_workload(given, given["incoming"])
    assigned = [_read_assignment(each) for each in given["assignment"]]
    needed = frozenset(
        FlavorResource(choice.flavor, resource)
        for each in assigned
        for resource, choice in each.flavors.items()
        if choice.mode is Mode.PREEMPT
    )
    usage = sum_requests(incoming.pod_sets, assigned)
    preemptor = Preemptor(incoming, given["targetClusterQueue"], usage, needed)
    return {"targets": [_write_target(each) for each in find_targets(preemptor, _read_state(given), read_rules(given))]}


def _read_assignment(raw: Given) -> PodSetAssignment:
    modes = {"Preempt": Mode.PREEMPT, "Fit": Mode.FIT}
    flavors = {name: Choice(each["flavor"], modes[each["mode"]], 0, -1) for name, each in raw["flavors"].items()}
    return PodSetAssignment(raw["name"], raw["count"], {}, flavors)


def _write_target(target: Target) -> dict[str, Any]:
    found: dict[str, Any] = {"reason": target.reason, "workload": target.workload.key}
    return {**found, "alreadyEvicted": True} if target.workload.is_evicted else found


def _answer_candidates_order(given: Given) -> dict[str, Any]:
    candidates: list[Workload] = []
    used: dict[str, float] = {}
    for each in given["candidates"]:
        workload = _read_workload(given, each["workload"])._replace(cluster_queue=each["clusterQueue"])
        candidates.append(workload)
        if "localQueueUsage" in each and given.get("admissionFairSharing"):
            used[workload.key] = each["localQueueUsage"]
    ordered = order_candidates(candidates, given["preemptorClusterQueue"], lambda each: used.get(each.key))
    return {"order": [each.key.rpartition("/")[2] for each in ordered]}


def _answer_policy(given: Given) -> dict[str, Any]:
    preemptor, candidate = (_read_workload(given, given[side]) for side in ("preemptor", "candidate"))
    has_buffer = read_rules(given).has_buffer
    return {"satisfied": satisfies(given["policy"], preemptor, candidate, has_buffer=has_buffer)}


def _answer_queue_order(given: Given) -> dict[str, Any]:
    """Take a candidate of each queue that comes next, or drop the queue, as the actions say."""
    snapshot = _read_state(given)
    names = set(given["candidateClusterQueues"])
    workloads = (_read_workload(given, obj) for obj in as_list(given.get("workloads")))
    candidates = [workload for workload in workloads if workload.cluster_queue in names]
    order = QueueOrder(snapshot.nodes[given["preemptorClusterQueue"]], candidates)
    actions = iter(as_list(given.get("actions")))
    found: list[str] = []
    for queue in order.iterate():
        found.append(queue.name)
        if next(actions, "pop") == "drop":
            order.drop(queue)
        else:
            order.take(queue)
    return {"order": found}


def _answer_priority(given: Given) -> dict[str, Any]:
    workload = parse_workload(given["workload"])
    boost = read_boost(workload.annotations) if is_enabled(given, "PriorityBoost", default=False) else 0
    return {"base": workload.priority, "boost": boost, "effective": workload.priority + boost}


TABLES: Final[dict[str, Table]] = {
    "effective_priority": _answer_priority,
    "fair_sharing_target_ordering": _answer_queue_order,
    "preemption_candidates_ordering": _answer_candidates_order,
    "preemption_classical": _answer_targets,
    "preemption_fair_sharing": _answer_targets,
    "preemption_hierarchical": _answer_targets,
    "preemption_policy": _answer_policy,
}
