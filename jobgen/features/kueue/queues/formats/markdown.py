"""The Markdown format, for comments on pull requests: a summary, jobs, totals, within GitHub's limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jobgen.features.kueue.answers import Answer, Total
from jobgen.features.kueue.queues.change_sections import merge_equal
from jobgen.features.kueue.queues.report import EnvironmentReport, explain, list_pod_sets
from jobgen.features.kueue.quota import show_amount
from jobgen.reports.escape import markdown_text

MAX_LENGTH = 65_000
"""GitHub accepts 65,536 characters in a comment; GitLab accepts more."""
_RESERVED = 400
"""Characters for the lines that count what does not fit."""


def render(reports: Sequence[EnvironmentReport]) -> str:
    """Write the reports; rows that do not fit are counted."""
    space = MAX_LENGTH // max(1, len(reports))
    return "".join(_render_report(report, space) for report in reports)


def _render_report(report: EnvironmentReport, space: int) -> str:
    where = f" in {markdown_text(report.environment)}" if report.environment else ""
    top = f"### jobgen queue{where}: {markdown_text(report.summarize())}\n\n"
    notes = "".join(f"- {markdown_text(note)}\n" for note in report.list_notes())
    space -= len(top) + len(notes) + 2 * _RESERVED
    header = "| | job | queue | pods | |\n|---|---|---|---|---|\n"
    jobs = _fill(header, _render_answers(report.decision.answers), space * 2 // 3, 5)
    header = (
        "| | flavor | resource | nominal | used | borrowed | lent | waiting |\n|---|---|---|---:|---:|---:|---:|---:|\n"
    )
    totals = _fill(header, map(_render_total, report.decision.totals), space // 3, 8)
    return f"{top}{jobs}{totals}{notes}\n"


def _fill(header: str, rows: Iterable[str], space: int, columns: int) -> str:
    """Return a table with the rows that fit."""
    lines = list(rows)
    if not lines:
        return ""
    shown = list(_take(lines, space - len(header)))
    if len(shown) < len(lines):
        shown.append(f"| … | {len(lines) - len(shown)} more |{' |' * (columns - 2)}\n")
    return f"{header}{''.join(shown)}\n"


def _take(lines: Sequence[str], space: int) -> Iterator[str]:
    for line in lines:
        space -= len(line)
        if space < 0:
            return
        yield line


def _render_answers(answers: Iterable[Answer]) -> Iterator[str]:
    """Yield the rows of workloads. Those that differ only in the name are one row."""
    for merged in merge_equal((answer.key, _list_cells(answer)) for answer in answers):
        decision, kind, *cells = merged.row
        yield f"| **{decision}** | {' | '.join(map(markdown_text, (f'{kind} {merged.names}', *cells)))} |\n"


def _list_cells(answer: Answer) -> tuple[str, ...]:
    pods = "; ".join(
        f"{row.name} {row.pods} × {row.requests}{f' → {row.flavors}' if row.flavors else ''}"
        for row in list_pod_sets(answer)
    )
    return answer.decision, answer.job.kind, answer.cluster_queue or answer.job.queue, pods, explain(answer)


def _render_total(total: Total) -> str:
    amounts = (total.nominal, total.used, total.borrowed, total.lent, total.waiting)
    names = (f"{total.kind} {total.name}", total.flavor, total.resource)
    return f"| {' | '.join(map(markdown_text, (*names, *(show_amount(total.resource, each) for each in amounts))))} |\n"
