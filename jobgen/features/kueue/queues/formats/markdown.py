"""The Markdown format, for comments on pull requests: a summary, jobs, totals, within GitHub's limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.kueue.answers import Answer
from jobgen.features.kueue.queues.change_sections import fill_table, merge_equal, show_names
from jobgen.features.kueue.queues.report import EnvironmentReport, explain, list_pod_sets, list_rows
from jobgen.rendering.left_out import LeftOutFile
from jobgen.reports.escape import markdown_text

MAX_LENGTH = 65_000
"""GitHub accepts 65,536 characters in a comment; GitLab accepts more."""
_MAX_LEFT_OUT = 20
_RESERVED = 400
"""Characters for the lines that count what does not fit."""


def render(reports: Sequence[EnvironmentReport], left_out: Sequence[LeftOutFile] = ()) -> str:
    """Write the reports; rows that do not fit are counted."""
    errors = "".join(_render_left_out(left_out))
    space = (MAX_LENGTH - len(errors)) // max(1, len(reports))
    return "".join((*(_render_report(report, space) for report in reports), errors))


def _render_left_out(left_out: Sequence[LeftOutFile]) -> Iterator[str]:
    if not left_out:
        return
    yield "**Left out**, because of errors:\n\n"
    yield from (f"- {markdown_text(each.explain())}\n" for each in left_out[:_MAX_LEFT_OUT])
    if len(left_out) > _MAX_LEFT_OUT:
        yield f"- … and {len(left_out) - _MAX_LEFT_OUT} more\n"


def _render_report(report: EnvironmentReport, space: int) -> str:
    where = f" in {markdown_text(report.environment)}" if report.environment else ""
    top = f"### jobgen queue{where}: {markdown_text(report.summarize())}\n\n"
    notes = "".join(f"- {markdown_text(note)}\n" for note in report.list_notes())
    space -= len(top) + len(notes) + 2 * _RESERVED
    header = "| | job | queue | pods | |\n|---|---|---|---|---|\n"
    # Workloads that differ only in the name are one row.
    merged = merge_equal((answer.key, _list_cells(answer)) for answer in report.decision.answers)
    rows = [
        (f"**{decision}**", *map(markdown_text, (f"{kind} {show_names(names)}", *cells)))
        for names, (decision, kind, *cells) in merged
    ]
    jobs = "".join(fill_table(header, rows, space * 2 // 3 - len(header)))
    header = (
        "| | flavor | resource | nominal | used | borrowed | lent | waiting |\n|---|---|---|---:|---:|---:|---:|---:|\n"
    )
    cells = [tuple(map(markdown_text, each)) for each in list_rows(report.decision)]
    totals = "".join(fill_table(header, cells, space // 3 - len(header)))
    return f"{top}{jobs}{totals}{notes}\n"


def _list_cells(answer: Answer) -> tuple[str, ...]:
    pods = "; ".join(
        f"{row.name} {row.pods} × {row.requests}{f' → {row.flavors}' if row.flavors else ''}"
        for row in list_pod_sets(answer)
    )
    clusters = "".join(f"; {each.name}: {each.decision}, {each.reason}" for each in answer.clusters)
    return answer.decision, answer.job.kind, answer.cluster_queue or answer.job.queue, pods, explain(answer) + clusters
