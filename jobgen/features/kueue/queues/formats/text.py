"""The text format, for terminals: each job as a workload with the decision, then the totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.kueue.answers import Answer
from jobgen.features.kueue.queues.change_sections import align_rows, merge_equal, show_names
from jobgen.features.kueue.queues.report import EnvironmentReport, explain, list_pod_sets, list_rows
from jobgen.rendering.left_out import LeftOutFile
from jobgen.reports.escape import visible


def render(reports: Sequence[EnvironmentReport], left_out: Sequence[LeftOutFile] = ()) -> str:
    """Write the reports, one after the other."""
    lines = [line for report in reports for line in _render_report(report)]
    lines += (f"left out, because of errors: {each.describe()}" for each in left_out)
    return "".join(f"{visible(line)}\n" for line in lines)


def _render_report(report: EnvironmentReport) -> Iterator[str]:
    if report.environment:
        yield f"environment {report.environment}"
        yield ""
    rows = merge_equal((answer.key, tuple(_render_answer(answer))) for answer in report.decision.answers)
    for names, (decision, *lines) in rows:
        yield f"{show_names(names)}: {decision}"
        yield from lines
        yield ""
    if report.decision.totals:
        header = ("", "flavor", "resource", "nominal", "used", "borrowed", "lent", "waiting")
        yield from align_rows([header, *list_rows(report.decision)], numbers=5)
        yield ""
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
    yield from (f"    worker cluster {each.name}: {each.decision}; {each.reason}" for each in answer.clusters)
    if answer.blockers and answer.shortages:
        yield f"    in use by {show_names(answer.blockers)}"
