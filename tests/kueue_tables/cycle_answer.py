"""Scheduling cycles of a case: from its objects to a scheduler, and from the scheduler to what the case expects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from jobgen.features.kueue.assignment import PENDING
from jobgen.features.kueue.cluster_objects import Gates, parse_gates
from jobgen.features.kueue.cycle import Scheduler
from jobgen.features.kueue.nominate import ADMITTED, EVICTED, MIGRATION, Eviction, Outcome
from jobgen.features.kueue.objects import as_list, as_mapping, name_of, parse_topologies
from jobgen.features.kueue.preemption import FAIR_SHARING, IN_QUEUE, RECLAIM, WHILE_BORROWING
from jobgen.features.kueue.quota import CPU
from jobgen.features.kueue.readiness import QueueContext, Readiness, check_readiness, parse_admission_check
from jobgen.features.kueue.requests import (
    NO_SETTINGS,
    ResourceSettings,
    find_invalid_requests,
    parse_settings,
    summarize,
)
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import PodSetAdmission, Workload, find_queue_time, parse_workload
from kueue_tables.given import Given, is_enabled, read_controllers, read_rules, read_snapshot, read_topologies
from kueue_tables.local_queue_usage import LocalQueueUsage, parse_sharing_config, parse_weight
from kueue_tables.priority_boost import add_boost

Answer = dict[str, Any]


class Case(NamedTuple):
    """A case that can be run."""

    scheduler: Scheduler
    objects: Mapping[str, Mapping[str, Any]]
    """The Workload objects by key, as given."""
    workloads: Mapping[str, Workload]


def read_case(given: Given, **settings: Any) -> Case:
    """Read a case; `settings` are further arguments of the scheduler."""
    snapshot = read_snapshot(given)
    snapshot.topologies = read_topologies(given, snapshot)
    gates = parse_gates(as_mapping(given.get("featureGates")))
    readiness = _check_queues(given, snapshot)
    scheduler = Scheduler(
        snapshot,
        read_rules(given),
        parse_topologies(as_list(given.get("topologies"))),
        {
            name_of(each): as_mapping(as_mapping(each.get("metadata")).get("labels"))
            for each in as_list(given.get("namespaces"))
        },
        local_queues=dict(map(_read_local_queue, as_list(given.get("localQueues")))),
        inactive=frozenset(name for name, each in readiness.items() if not each.is_active),
        suspended=frozenset(name for name, each in readiness.items() if each.is_active and not each.is_scheduled),
        gates=gates,
        now=str(given.get("now") or ""),
        local_usage=read_local_usage(given),
        check=_build_check(given),
        controllers=read_controllers(given),
        **settings,
    )
    objects: dict[str, Mapping[str, Any]] = {}
    workloads: dict[str, Workload] = {}
    requests = parse_settings({"transformations": given.get("resourceTransformations")})
    for obj in as_list(given.get("workloads")):
        workload = read_workload(obj, str(given.get("podsReadyRequeuingTimestamp") or "Eviction"), gates, requests)
        objects[workload.key] = obj
        workloads[workload.key] = workload
        scheduler.add(workload)
    return Case(scheduler, objects, workloads)


def read_workload(
    obj: Mapping[str, Any], strategy: str, gates: Gates, settings: ResourceSettings = NO_SETTINGS
) -> Workload:
    """Read a workload, whose place in the queue depends on a strategy and a gate."""
    workload = parse_workload(obj, settings)
    if gates.boosts_priority:
        workload = add_boost(workload)
    queued = find_queue_time(read_conditions(obj), strategy, sorts_by_priority=gates.sorts_by_priority)
    return workload._replace(queued=queued)


def read_local_usage(given: Given) -> LocalQueueUsage | None:
    """Read what LocalQueues have used, if admission fair sharing is configured."""
    config = given.get("admissionFairSharing")
    if not isinstance(config, dict) or not is_enabled(given, "AdmissionFairSharing", default=True):
        return None
    weights = {
        _read_local_queue(each)[0]: parse_weight(as_mapping(each.get("spec")))
        for each in as_list(given.get("localQueues"))
    }
    # A key is `<namespace>/<name>`, or only the name.
    keys = {text: key for key in weights for text in ("/".join(key), key[1])}
    usage = as_mapping(given.get("localQueueUsage"))
    consumed = {keys[text]: as_mapping(quantities) for text, quantities in usage.items() if text in keys}
    return LocalQueueUsage(parse_sharing_config(config), consumed, weights)


def _build_check(given: Given) -> Callable[[Workload], str]:
    """Return a function that checks the requests of a workload against its limits, and those of its namespace."""
    ranges: dict[str, list[Mapping[str, Any]]] = {}
    for each in as_list(given.get("limitRanges")):
        ranges.setdefault(str(as_mapping(each.get("metadata")).get("namespace", "")), []).append(each)
    summaries = {namespace: summarize(several) for namespace, several in ranges.items()}

    def check(workload: Workload) -> str:
        pod_sets = [{"template": {"spec": each.spec}} for each in workload.pod_sets]
        return find_invalid_requests(pod_sets, summaries.get(workload.namespace, {}))

    return check


def read_conditions(obj: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Read the conditions of an object by type."""
    status = as_mapping(obj.get("status"))
    return {str(each.get("type")): each for each in map(as_mapping, as_list(status.get("conditions")))}


def _read_local_queue(obj: Mapping[str, Any]) -> tuple[tuple[str, str], str]:
    metadata, spec = as_mapping(obj.get("metadata")), as_mapping(obj.get("spec"))
    is_stopped = (spec.get("stopPolicy") or "None") != "None"
    queue = "" if is_stopped else str(spec.get("clusterQueue", ""))
    return (str(metadata.get("namespace", "")), str(metadata.get("name", ""))), queue


def _check_queues(given: Given, snapshot: Snapshot) -> dict[str, Readiness]:
    context = QueueContext(
        snapshot.flavors,
        {name_of(each): parse_admission_check(each) for each in as_list(given.get("admissionChecks"))},
        frozenset(name_of(each) for each in as_list(given.get("topologies"))),
        frozenset(snapshot.cyclic),
        is_enabled(given, "TopologyAwareScheduling", default=True),
    )
    return {name: check_readiness(queue, context) for name, queue in snapshot.queues.items()}


def run_cycles(case: Case, cycles: int) -> None:
    """Run cycles, fewer if nothing is pending."""
    for _ in range(cycles):
        if not case.scheduler.run_cycle():
            return


def write_answer(case: Case) -> Answer:
    """Write all that a case of whole cycles expects."""
    return {
        "assignments": write_assignments(case),
        **write_queues(case),
        "workloads": {key: write_workload(case, key) for key in case.objects},
    }


def write_skipped(case: Case) -> Answer:
    """Write how many preemptions were skipped, by queue. Nothing is written if none were."""
    scheduler = case.scheduler
    if not any(scheduler.skipped_preemptions.values()):
        return {}
    used = sorted(set(scheduler.local_queues.values()) & scheduler.snapshot.queues.keys())
    return {"skippedPreemptions": {name: scheduler.skipped_preemptions.get(name, 0) for name in used}}


def write_queues(case: Case) -> Answer:
    """Write what is left in the queues, and what is parked."""
    pending, parked = case.scheduler.pending, case.scheduler.parked
    return {"left": _write_keys(pending), "inadmissibleLeft": _write_keys(parked)}


def _write_keys(queues: Mapping[str, Iterable[Workload]]) -> Answer:
    found = {name: sorted(workload.key for workload in several) for name, several in queues.items()}
    return {name: keys for name, keys in found.items() if keys}


def write_assignments(case: Case, *, only_new: bool = False) -> Answer:
    """Write the admissions in active queues: all of them, or those of workloads that had none."""
    return {
        key: write_admission(case, workload)
        for queue, several in case.scheduler.snapshot.workloads.items()
        if queue not in case.scheduler.inactive | case.scheduler.suspended
        for key, workload in several.items()
        if not (only_new and case.workloads[key].reserved)
    }


def write_admission(case: Case, workload: Workload) -> Answer:
    """Write the admission of a workload, as given if it had one."""
    given = as_mapping(case.objects[workload.key].get("status")).get("admission")
    before = case.workloads[workload.key]
    if given and before.reserved and before.admission == workload.admission:
        return dict(given)
    return {
        "clusterQueue": workload.cluster_queue,
        "podSetAssignments": [_write_pod_set(each) for each in workload.admission],
    }


def _write_pod_set(each: PodSetAdmission) -> Answer:
    found: Answer = {"count": each.count, "name": each.name}
    if each.flavors:
        found["flavors"] = dict(each.flavors)
        found["resourceUsage"] = _write_amounts(each.usage)
    if each.levels:
        domains = [{"count": count, "values": list(values)} for values, count in each.domains]
        found["topologyAssignment"] = {"domains": domains, "levels": list(each.levels)}
    return {**found, "delayedTopologyRequest": each.delayed} if each.delayed else found


def _write_amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    """Write requests as quantities: the greatest amount is a number here, too."""
    return {resource: f"{amount}m" if resource == CPU else str(amount) for resource, amount in amounts.items()}


_SHOWN = ("QuotaReserved", "Admitted", "Evicted", "Preempted", "BlockedOnPreemptionGates", "Finished")


def write_workload(case: Case, key: str) -> Answer:
    """Write the conditions, the admission and the requests that a workload has after the cycles."""
    scheduler, before = case.scheduler, read_conditions(case.objects[key])
    found: Answer = {_decapitalize(name): _write_condition(before[name]) for name in _SHOWN if name in before}
    outcome = scheduler.outcomes.get(key)
    admitted = scheduler.find_admitted(key)
    if admitted is not None:
        found["admission"] = write_admission(case, admitted)
    if outcome is not None and (outcome.state == ADMITTED or key in scheduler.refused):
        found |= _write_outcome(case, case.workloads[key], outcome, before)
    if outcome is not None and outcome.state == EVICTED:
        found["evicted"] = _make_condition(True, outcome.reason, outcome.message)
    elif key in scheduler.evictions:
        found |= _write_eviction(scheduler.snapshot, scheduler.evictions[key])
    if key in scheduler.replaced:
        found["finished"] = _write_replacement(scheduler.replaced[key])
    if key in scheduler.refused:
        found["resourceRequests"] = [
            {"name": each.name, **({"resources": _write_amounts(total)} if (total := each.total()) else {})}
            for each in case.workloads[key].pod_sets
        ]
    return found


def _decapitalize(name: str) -> str:
    return name[0].lower() + name[1:]


def _write_condition(condition: Mapping[str, Any]) -> Answer:
    return {name: str(condition.get(name, "")) for name in ("message", "reason", "status")}


def _make_condition(status: bool, reason: str, message: str) -> Answer:
    return {"message": message, "reason": reason, "status": str(status)}


def _write_outcome(case: Case, workload: Workload, outcome: Outcome, before: Mapping[str, Mapping[str, Any]]) -> Answer:
    if outcome.state != ADMITTED:
        found = {
            "quotaReserved": _make_condition(False, outcome.reason, outcome.message),
            "admitted": _make_condition(False, "NoReservation", "The workload has no reservation"),
        }
        if workload.key in case.scheduler.gated:
            found["blockedOnPreemptionGates"] = _make_condition(True, "PreemptionGated", outcome.message)
        return found
    queue = case.scheduler.local_queues[workload.namespace, workload.queue]
    found = {"quotaReserved": _make_condition(True, "QuotaReserved", f"Quota reserved in ClusterQueue {queue}")}
    for name in ("Evicted", "Preempted", "BlockedOnPreemptionGates"):
        if before.get(name, {}).get("status") == "True":
            message = f"Previously: {before[name].get('message', '')}"
            found[_decapitalize(name)] = _make_condition(False, "QuotaReserved", message)
    if _list_required_checks(case, queue, outcome) <= {name for name, _ in workload.checks}:
        found["admitted"] = _write_admitted(workload, outcome)
    return found


def _write_admitted(workload: Workload, outcome: Outcome) -> Answer:
    if any(state != "Ready" for _, state in workload.checks):
        return _make_condition(False, "UnsatisfiedAdmissionChecks", "The workload has not all checks ready")
    if any(each.delayed == PENDING and not each.levels for each in outcome.admission):
        message = "There are pending delayed topology requests"
        return _make_condition(False, "PendingDelayedTopologyRequests", message)
    return _make_condition(True, "Admitted", "The workload is admitted")


def _list_required_checks(case: Case, queue: str, outcome: Outcome) -> set[str]:
    used = {flavor for each in outcome.admission for flavor in each.flavors.values()}
    checks = case.scheduler.snapshot.queues[queue].checks
    return {name for name, flavors in checks if not flavors or used & set(flavors)}


_REASONS: Mapping[str, str] = {
    IN_QUEUE: "prioritization in the ClusterQueue",
    RECLAIM: "reclamation within the cohort",
    FAIR_SHARING: "Fair Sharing within the cohort",
    WHILE_BORROWING: "reclamation within the cohort while borrowing",
}
_JOB_UID = "kueue.x-k8s.io/job-uid"


def _write_eviction(snapshot: Snapshot, eviction: Eviction) -> Answer:
    target, preemptor = eviction.target, eviction.preemptor
    if target.reason == MIGRATION:
        message = (
            f"Evicted to accommodate a workload (UID: {preemptor.uid}) due to migration to more favorable "
            "resource flavor"
        )
        return {"evicted": _make_condition(True, MIGRATION, message)}
    paths = [_write_path(snapshot, queue) for queue in (eviction.queue, target.workload.cluster_queue)]
    message = (
        f"Preempted to accommodate a workload (UID: {preemptor.uid or 'UNKNOWN'}, "
        f"JobUID: {preemptor.labels.get(_JOB_UID) or 'UNKNOWN'}) due to {_REASONS[target.reason]}; "
        f"preemptor path: {paths[0]}; preemptee path: {paths[1]}"
    )
    return {
        "evicted": _make_condition(True, "Preempted", message),
        "preempted": _make_condition(True, target.reason, message),
    }


def _write_path(snapshot: Snapshot, queue: str) -> str:
    node = snapshot.nodes[queue]
    return "/" + "/".join(reversed([node.name, *(cohort.name for cohort in node.list_ancestors())]))


def _write_replacement(replacing: Workload) -> Answer:
    message = (
        f"Replaced to accommodate a workload (UID: {replacing.uid}, JobUID: {replacing.labels.get(_JOB_UID, '')}) "
        "due to workload slice aggregation"
    )
    return _make_condition(True, "WorkloadSliceReplaced", message)
