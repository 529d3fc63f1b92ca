"""The changes of queues in the text format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.diff.queue_rows import (
    AMOUNTS,
    QuotaRow,
    format_counts,
    format_errors,
    format_note,
    format_objects,
    list_quota_rows,
    list_workload_rows,
)
from jobgen.queues.changes import QueueChanges
from jobgen.queues.equal_rows import EqualRows

_MAX_WORKLOADS = 50
_MAX_QUOTA = 50


def render_queues(several: Sequence[QueueChanges]) -> Iterator[str]:
    """Yield the lines about each environment: its jobs, then its quota."""
    for changes in several:
        where = f" in {changes.environment}" if changes.environment else ""
        summary = format_errors(changes) or format_counts(changes) or "no job waits longer"
        yield f"queues{where}: {summary}"
        rows = list_workload_rows(changes)
        for one in rows[:_MAX_WORKLOADS]:
            yield from _render_workload(one)
        if len(rows) > _MAX_WORKLOADS:
            left = sum(len(one.workloads) for one in rows[_MAX_WORKLOADS:])
            yield f"    … and {left} more; `--format json` shows all of them"
        if format_note(changes):
            yield f"    {format_note(changes)}"
        if changes.objects:
            yield f"    {format_objects(changes)}"
        yield ""
        yield from _render_quota(list(list_quota_rows(changes)))


def _render_workload(one: EqualRows) -> Iterator[str]:
    queue, transition, reason = one.row
    yield f"    {one.names}: {transition}"
    yield f"        {queue}; {reason}"


def _render_quota(quota: list[QuotaRow]) -> Iterator[str]:
    if not quota:
        return
    header = ("", "flavor", "resource", *AMOUNTS)
    rows = [header, *((row.name, row.flavor, row.resource, *row.amounts) for row in quota[:_MAX_QUOTA])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if len(quota) > _MAX_QUOTA:
        yield f"… and {len(quota) - _MAX_QUOTA} more"
    yield ""
