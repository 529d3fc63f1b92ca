"""Tables: Whole scheduling cycles."""

from __future__ import annotations

from typing import Any, Final

from jobgen.features.kueue.cluster_objects import parse_gates
from jobgen.features.kueue.objects import as_list, as_mapping, name_of, parse_cluster_queue
from jobgen.features.kueue.queue_order import PendingQueue, order_entry
from jobgen.features.kueue.workloads import Workload
from kueue_tables import Table
from kueue_tables.cycle_answer import (
    read_case,
    read_local_usage,
    read_workload,
    run_cycles,
    write_answer,
    write_assignments,
    write_skipped,
    write_workload,
)
from kueue_tables.given import Given


def _answer_cycles(given: Given) -> dict[str, Any]:
    case = read_case(given)
    run_cycles(case, int(given.get("cycles", 1)))
    return write_answer(case)


def _answer_schedule(given: Given) -> dict[str, Any]:
    """Answer as Kueue's tests of the scheduler do, which also compare the preemptions that were skipped."""
    case = read_case(given)
    run_cycles(case, int(given.get("cycles", 1)))
    return {**write_answer(case), **write_skipped(case)}


def _answer_fair_admission(given: Given) -> dict[str, Any]:
    return {"workloads": _answer_cycles(given)["workloads"]}


def _answer_two_cycles(given: Given) -> dict[str, Any]:
    case = read_case(given)
    run_cycles(case, 1)
    first = {key: write_workload(case, key) for key in case.objects}
    for key in as_list(given.get("deleteAfterFirstCycle")):
        case.scheduler.remove(key)
    run_cycles(case, 1)
    return {"assignmentsAfterSecondCycle": write_assignments(case), "workloadsAfterFirstCycle": first}


def _answer_scan_progress(given: Given) -> dict[str, Any]:
    """Answer the flavor of each workload after some cycles."""
    case = read_case(given)
    run_cycles(case, int(given.get("cycles", 1)))
    return {"admittedFlavor": {key: _find_flavor(case.scheduler.find_admitted(key)) for key in case.workloads}}


def _find_flavor(workload: Workload | None) -> str:
    admission = workload.admission if workload else ()
    return next((flavor for each in admission for flavor in each.flavors.values()), "")


def _answer_entry_order(given: Given) -> dict[str, Any]:
    gates = parse_gates(as_mapping(given.get("featureGates")))
    strategy = str(given.get("podsReadyRequeuingTimestamp") or "Eviction")
    entries = [
        (
            order_entry(
                read_workload(each["workload"], strategy, gates),
                int(each.get("borrowingLevel", 0)),
                gates,
                is_preemptor=bool(each.get("isPreemptor")),
            ),
            name_of(each["workload"]),
        )
        for each in given["entries"]
    ]
    return {"order": [name for _, name in sorted(entries, key=lambda pair: pair[0])]}


def _answer_head(given: Given) -> dict[str, Any]:
    """Answer which workload of one queue is tried first."""
    gates = parse_gates(as_mapping(given.get("featureGates")))
    strategy = str(given.get("podsReadyRequeuingTimestamp") or "Eviction")
    queues = [parse_cluster_queue(each) for each in as_list(given.get("clusterQueues"))]
    usage = read_local_usage(given)
    is_usage_based = any(queue.is_usage_based for queue in queues)
    pending = PendingQueue(usage.measure if usage and is_usage_based else None)
    for obj in given["workloads"]:
        pending.push(read_workload(obj, strategy, gates))
    head = pending.peek()
    return {"head": head.key.rpartition("/")[2] if head else ""}


def _answer_timestamp(given: Given) -> dict[str, Any]:
    gates = parse_gates(as_mapping(given.get("featureGates")))
    found = {strategy: read_workload(given["workload"], strategy, gates) for strategy in ("Creation", "Eviction")}
    return {"timestampByRequeuingStrategy": {name: each.queued or each.created for name, each in found.items()}}


TABLES: Final[dict[str, Table]] = {
    "generated_cycles": _answer_cycles,
    "generated_quiet": _answer_cycles,
    "schedule": _answer_schedule,
    "schedule_fair_sharing": _answer_schedule,
    "schedule_recompute_targets": _answer_schedule,
    "schedule_concurrent_admission": _answer_schedule,
    "schedule_admission_fair_sharing": _answer_fair_admission,
    "schedule_two_cycles": _answer_two_cycles,
    "schedule_scan_progress": _answer_scan_progress,
    "entry_ordering_classical": _answer_entry_order,
    "queue_head_fifo": _answer_head,
    "queue_head_admission_fair_sharing": _answer_head,
    "queue_order_timestamp": _answer_timestamp,
}
