"""The changes of queues in a diff: the sections of its JSON, Markdown and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.diff.queue_changes import QueueChanges, QuotaChange, WorkloadChange
from jobgen.features.kueue.queues.change_rows import (
    AMOUNTS,
    QuotaRow,
    format_counts,
    format_errors,
    format_note,
    format_objects,
    list_quota_rows,
    list_workload_rows,
)
from jobgen.features.kueue.queues.equal_rows import EqualRows
from jobgen.model.data import Plain
from jobgen.report.escape import markdown_text

_MAX_WORKLOADS = 50
_MAX_QUOTA = 50
_RESERVED = 1_000
"""Characters for headings and notes."""


def describe_queues(changes: QueueChanges) -> dict[str, Plain]:
    """Describe what changes in the queues of an environment."""
    return {
        "env": changes.environment,
        "errors": list(changes.errors),
        "settles": changes.settles,
        "complete": changes.complete,
        "summary": {change.value: count for change, count in changes.count_changes().items()},
        "workloads": [_describe_workload(one) for one in changes.workloads],
        "quota": [_describe_quota(one) for one in changes.quota],
        "objects": [dict(one._asdict()) for one in changes.objects],
    }


def _describe_workload(one: WorkloadChange) -> dict[str, Plain]:
    return {
        "change": one.change.value,
        "workload": one.workload,
        "kind": one.kind,
        "clusterQueue": one.cluster_queue,
        "before": one.before or None,
        "after": one.after,
        "why": one.reason,
        "behind": list(one.behind),
        "requeued": one.requeued or None,
        "preemptedBy": {"workload": one.preempted_by, "rule": one.rule} if one.rule else None,
    }


def _describe_quota(one: QuotaChange) -> dict[str, Plain]:
    return {
        "kind": one.kind,
        "name": one.name,
        "flavor": one.flavor,
        "resource": one.resource,
        "before": None if one.before is None else dict(one.before._asdict()),
        "after": None if one.after is None else dict(one.after._asdict()),
    }


def render_markdown(several: Sequence[QueueChanges], space: int) -> Iterator[str]:
    """Yield the tables of each environment, with as many rows as fit."""
    share = space // len(several)
    for number, changes in enumerate(several):
        if share < 2 * _RESERVED and number * 2 * _RESERVED > space:
            yield f"Queues of {len(several) - number} more environments change.\n\n"
            return
        yield from _render_markdown_environment(changes, max(share, 2 * _RESERVED) - _RESERVED)


def _render_markdown_environment(changes: QueueChanges, space: int) -> Iterator[str]:
    where = f" in {markdown_text(changes.environment)}" if changes.environment else ""
    summary = format_errors(changes)[: 2 * _RESERVED] or format_counts(changes) or "no job waits longer"
    yield f"**Queues{where}**: {markdown_text(summary)}\n\n"
    workloads = [(one.names, *one.row) for one in list_workload_rows(changes)]
    yield from _render_markdown_table("| job | | | |\n|---|---|---|---|\n", workloads, space * 2 // 3)
    header = f"| | flavor | resource | {' | '.join(AMOUNTS)} |\n|---|---|---{'|---:' * len(AMOUNTS)}|\n"
    quota = [(row.name, row.flavor, row.resource, *row.amounts) for row in list_quota_rows(changes)]
    yield from _render_markdown_table(header, quota, space // 3)
    notes = (format_objects(changes)[:_RESERVED], format_note(changes))
    yield f"{'; '.join(map(markdown_text, filter(None, notes)))}\n\n"


def _render_markdown_table(header: str, rows: Sequence[tuple[str, ...]], space: int) -> Iterator[str]:
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


def render_text(several: Sequence[QueueChanges]) -> Iterator[str]:
    """Yield the lines about each environment: its jobs, then its quota."""
    for changes in several:
        where = f" in {changes.environment}" if changes.environment else ""
        summary = format_errors(changes) or format_counts(changes) or "no job waits longer"
        yield f"queues{where}: {summary}"
        rows = list_workload_rows(changes)
        for one in rows[:_MAX_WORKLOADS]:
            yield from _render_text_workload(one)
        if len(rows) > _MAX_WORKLOADS:
            left = sum(len(one.workloads) for one in rows[_MAX_WORKLOADS:])
            yield f"    … and {left} more; `--format json` shows all of them"
        if format_note(changes):
            yield f"    {format_note(changes)}"
        if changes.objects:
            yield f"    {format_objects(changes)}"
        yield ""
        yield from _render_text_quota(list(list_quota_rows(changes)))


def _render_text_workload(one: EqualRows) -> Iterator[str]:
    queue, transition, reason = one.row
    yield f"    {one.names}: {transition}"
    yield f"        {queue}; {reason}"


def _render_text_quota(quota: list[QuotaRow]) -> Iterator[str]:
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
