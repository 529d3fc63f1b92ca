"""Tables: Scheduling cycles with topologies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jobgen.features.kueue.nominate import ADMITTED, EVICTED, Outcome
from jobgen.features.kueue.workloads import Workload
from kueue_tables import Table
from kueue_tables.cycle_answer import (
    Answer,
    Case,
    read_case,
    run_cycles,
    write_admission,
    write_queues,
    write_workload,
)
from kueue_tables.given import Given

_LONGEST, _CUT = 1024, " ..."


def _answer_with_events(given: Given) -> Answer:
    """Answer a case in which workloads with reserved quota may need a place."""
    case = _run(given)
    return {
        "events": [
            event
            for key, outcome in case.scheduler.outcomes.items()
            if not any(each.find_tried(case.workloads[key]) for each in case.scheduler.pending.values())
            for event in _list_events(case, key, outcome)
        ],
        "newAssignments": _write_new(case, {key for key, each in case.workloads.items() if _is_settled(each)}),
        **write_queues(case),
    }


def _answer_with_workloads(given: Given) -> Answer:
    case = _run(given)
    return {
        "newAssignments": _write_new(case, {key for key, each in case.workloads.items() if each.is_admitted}),
        "workloads": {key: write_workload(case, key) for key in case.objects},
        **write_queues(case),
    }


def _run(given: Given) -> Case:
    case = read_case(given)
    run_cycles(case, int(given.get("cycles", 1)))
    return case


def _is_settled(workload: Workload) -> bool:
    return workload.is_admitted and not workload.unhealthy_nodes


def _write_new(case: Case, settled: set[str]) -> Answer:
    """Write the admissions of workloads, without those that were settled before."""
    return {
        key: write_admission(case, workload)
        for queue, several in case.scheduler.snapshot.workloads.items()
        if queue not in case.scheduler.inactive | case.scheduler.suspended
        for key, workload in several.items()
        if key not in settled
    }


def _list_events(case: Case, key: str, outcome: Outcome) -> Iterator[Answer]:
    """Yield the events of a workload in one cycle."""
    before = case.workloads[key]
    if outcome.state == EVICTED:
        yield _make_event(key, f"EvictedDueTo{outcome.reason}")
    elif outcome.state == ADMITTED:
        if not before.reserved:
            yield _make_event(key, "QuotaReserved")
        is_admitted = write_workload(case, key).get("admitted", {}).get("status") == "True"
        if is_admitted and not before.unhealthy_nodes:
            yield _make_event(key, "Admitted")
    else:
        for target in (each for each in outcome.targets if not each.workload.is_evicted):
            yield _make_event(target.workload.key, "EvictedDueToPreempted")
            yield _make_event(target.workload.key, "Preempted")
            yield _make_event(key, "PreemptedWorkload")
        reason = "SecondPassFailed" if before.reserved else outcome.reason
        yield {**_make_event(key, reason, "Warning"), "message": _truncate(outcome.message)}


def _truncate(message: str) -> str:
    """Shorten a message to what an event holds."""
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - len(_CUT)]}{_CUT}"


def _make_event(key: str, reason: str, kind: str = "Normal") -> dict[str, Any]:
    return {"object": key, "reason": reason, "type": kind}


TABLES: Final[dict[str, Table]] = {
    "schedule_tas": _answer_with_events,
    "schedule_tas_preemption": _answer_with_workloads,
    "schedule_tas_cohorts": _answer_with_workloads,
}
