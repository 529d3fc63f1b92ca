"""The changes of queues in the Markdown format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.diff.queue_rows import (
    AMOUNTS,
    format_counts,
    format_errors,
    format_note,
    format_objects,
    list_quota_rows,
    list_workload_rows,
)
from jobgen.queues.changes import QueueChanges
from jobgen.report.escape import markdown_text

_RESERVED = 1_000
"""Characters for headings and notes."""


def render_queues(several: Sequence[QueueChanges], space: int) -> Iterator[str]:
    """Yield the tables of each environment, with as many rows as fit."""
    share = space // len(several)
    for number, changes in enumerate(several):
        if share < 2 * _RESERVED and number * 2 * _RESERVED > space:
            yield f"Queues of {len(several) - number} more environments change.\n\n"
            return
        yield from _render_environment(changes, max(share, 2 * _RESERVED) - _RESERVED)


def _render_environment(changes: QueueChanges, space: int) -> Iterator[str]:
    where = f" in {markdown_text(changes.environment)}" if changes.environment else ""
    summary = format_errors(changes)[: 2 * _RESERVED] or format_counts(changes) or "no job waits longer"
    yield f"**Queues{where}**: {markdown_text(summary)}\n\n"
    workloads = [(one.names, *one.row) for one in list_workload_rows(changes)]
    yield from _render_table("| job | | | |\n|---|---|---|---|\n", workloads, space * 2 // 3)
    header = f"| | flavor | resource | {' | '.join(AMOUNTS)} |\n|---|---|---{'|---:' * len(AMOUNTS)}|\n"
    quota = [(row.name, row.flavor, row.resource, *row.amounts) for row in list_quota_rows(changes)]
    yield from _render_table(header, quota, space // 3)
    notes = (format_objects(changes)[:_RESERVED], format_note(changes))
    yield f"{'; '.join(map(markdown_text, filter(None, notes)))}\n\n"


def _render_table(header: str, rows: Sequence[tuple[str, ...]], space: int) -> Iterator[str]:
    if not rows:
        return
    yield header
    for number, row in enumerate(rows):
        line = f"| {' | '.join(map(markdown_text, row))} |\n"
        space -= len(line)
        if space < 0:
            yield f"| … | {len(rows) - number} more |{' |' * (len(row) - 2)}\n"
            break
        yield line
    yield "\n"
