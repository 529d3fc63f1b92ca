"""The text format, for terminals: each job as a workload with the decision, then the totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.kueue.answers import Answer, Total
from jobgen.features.kueue.queues.change_sections import merge_equal, show_names
from jobgen.features.kueue.queues.report import EnvironmentReport, explain, list_pod_sets
from jobgen.features.kueue.quota import show_amount
from jobgen.reports.escape import visible

_HEADER = ("", "flavor", "resource", "nominal", "used", "borrowed", "lent", "waiting")
_NUMBERS = 5
"""The columns at the end of a row that are numbers."""


def render(reports: Sequence[EnvironmentReport]) -> str:
    """Write the reports, one after the other."""
    lines = [line for report in reports for line in _render_report(report)]
    return "".join(f"{visible(line)}\n" for line in lines)


def _render_report(report: EnvironmentReport) -> Iterator[str]:
    if report.environment:
        yield f"environment {report.environment}"
        yield ""
    for merged in merge_equal((answer.key, tuple(_render_answer(answer))) for answer in report.decision.answers):
        decision, *lines = merged.row
        yield f"{merged.names}: {decision}"
        yield from lines
        yield ""
    yield from _render_totals(report.decision.totals)
    yield report.summarize()
    yield from (f"  {note}" for note in report.list_notes())


def _render_answer(answer: Answer) -> Iterator[str]:
    """Yield the decision, and the lines about it."""
    queue = f" in queue {answer.job.queue}" if answer.job.queue else ""
    cluster = f" (ClusterQueue {answer.cluster_queue})" if answer.cluster_queue else ""
    yield answer.decision
    yield f"    {answer.job.kind}{queue}{cluster}"
    rows = list(list_pod_sets(answer))
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        flavors = f" → {row.flavors}" if row.flavors else ""
        yield f"    {row.name.ljust(width)}  {row.pods} × {row.requests}{flavors}"
    yield f"    {explain(answer)}"
    if answer.blockers and answer.shortages:
        yield f"    in use by {show_names(answer.blockers)}"


def _render_totals(totals: Sequence[Total]) -> Iterator[str]:
    if not totals:
        return
    rows = [_HEADER, *map(_render_total, totals)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        words = [cell.ljust(width) for cell, width in zip(row[:-_NUMBERS], widths[:-_NUMBERS], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(row[-_NUMBERS:], widths[-_NUMBERS:], strict=True)]
        yield "  ".join((*words, *numbers)).rstrip()
    yield ""


def _render_total(total: Total) -> tuple[str, ...]:
    amounts = (total.nominal, total.used, total.borrowed, total.lent, total.waiting)
    shown = (show_amount(total.resource, amount) for amount in amounts)
    return (f"{total.kind} {total.name}", total.flavor, total.resource, *shown)
