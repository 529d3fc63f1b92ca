"""Tables: Whole scheduling cycles."""

from __future__ import annotations

from typing import Any, Final

from jobgen.kueue.tables import Table
from jobgen.kueue.tables.cycle_answer import read_case, run_cycles, write_answer, write_skipped
from jobgen.kueue.tables.given import Given


def _answer_cycles(given: Given) -> dict[str, Any]:
    case = read_case(given)
    run_cycles(case, int(given.get("cycles", 1)))
    return write_answer(case)


def _answer_schedule(given: Given) -> dict[str, Any]:
    case = read_case(given)
    run_cycles(case, 1)
    return {**write_answer(case), **write_skipped(case)}


TABLES: Final[dict[str, Table]] = {
    "generated_cycles": _answer_cycles,
    "generated_quiet": _answer_cycles,
    "schedule": _answer_schedule,
    "schedule_fair_sharing": _answer_schedule,
    "schedule_recompute_targets": _answer_cycles,
    "schedule_concurrent_admission": _answer_cycles,
}
