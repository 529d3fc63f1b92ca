"""The timelines of `jobgen queue --timeline` as text, Markdown and JSON, and what changes do to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate

from jobgen.features.kueue.queues.change_sections import align_rows, merge_equal, show_names
from jobgen.features.kueue.queues.timeline_changes import ShownTimeline, TimelineChanges
from jobgen.features.kueue.queues.timeline_report import Timeline, TimelineRow
from jobgen.features.kueue.quota import show_amount
from jobgen.features.kueue.timeline import Span
from jobgen.model.data import Plain
from jobgen.model.finding import pluralize
from jobgen.model.times import show_length, show_moment
from jobgen.rendering.left_out import LeftOutFile
from jobgen.reports.escape import dump_json, markdown_text, visible

_MAX_DAYS_SHOWN = 14
_MAX_LENGTH = 60_000
"""The characters of a comment on a pull request."""


def describe_length(row: TimelineRow) -> str:
    """Return how long a workload runs, such as `4h-8h`; empty if that is unknown."""
    expected = row.times.expected
    length = "" if expected is None else show_length(expected.least)
    if expected is not None and expected.most > expected.least:
        length += f"-{show_length(expected.most)}"
    return length


def list_cells(row: TimelineRow) -> tuple[str, ...]:
    """Return the state of a workload, its queue, its times and what it waits for."""
    times = (window.show() if window else "" for window in (row.starts, row.ends))
    queue = row.answer.cluster_queue or row.answer.job.queue
    where = f"{queue} in {row.cluster}" if row.cluster else queue
    return (row.state, where, describe_length(row), *times, row.describe())


HEADER = ("", "state", "queue", "runs for", "starts", "ends", "")
CHANGE_HEADER = ("", "state", "starts", "ends", "")


def list_use_rows(timeline: Timeline) -> list[tuple[str, ...]]:
    """Return the table of what is used: one row for each flavor and resource, one column for each day."""
    days = timeline.list_days()
    more = len(days) > _MAX_DAYS_SHOWN
    kept = days[:_MAX_DAYS_SHOWN]
    header = ("flavor", "resource", "quota", *(day[5:] for day in kept), *(("…",) if more else ()))
    rows = [
        (
            use.flavor,
            use.pair.resource,
            show_amount(use.pair.resource, use.nominal),
            *(f"{percent}%" for percent in use.days[: len(kept)]),
            *(("",) if more else ()),
        )
        for use in timeline.uses
    ]
    return [header, *rows] if rows else []


def render_text(timelines: Sequence[ShownTimeline], left_out: Sequence[LeftOutFile] = ()) -> str:
    """Write the jobs, the use of each flavor, and the deadlines that are missed."""
    lines: list[str] = []
    for each, changes in timelines:
        where = f"environment {each.environment}, " if each.environment else ""
        lines += [f"{where}from {show_moment(each.begin)} to {show_moment(each.until)}", ""]
        lines += _render_changes(changes) if changes else _render_rows(each)
        lines.append("")
        lines += each.list_warnings()
        lines += [each.summarize(), *(f"  {note}" for note in each.notes)]
    lines += (f"left out, because of errors: {each.describe()}" for each in left_out)
    return "".join(f"{visible(line)}\n" for line in lines)


def _render_rows(timeline: Timeline) -> Iterator[str]:
    rows = merge_equal((row.answer.key, list_cells(row)) for row in timeline.rows)
    yield from align_rows([HEADER, *((show_names(names), *cells) for names, cells in rows)])
    uses = list_use_rows(timeline)
    yield from ("", *align_rows(uses, numbers=len(uses[0]) - 2)) if uses else ()


def _render_changes(changes: TimelineChanges) -> Iterator[str]:
    yield from ("what if:", *(f"    {name}: {text}" for name, text in changes.list_applied()), "")
    yield f"before → after: {changes.summarize()}"
    rows = merge_equal((row.workload, row.list_cells()) for row in changes.rows)
    if rows:
        yield from ("", *align_rows([CHANGE_HEADER, *((show_names(names), *cells) for names, cells in rows)]))
    yield from ("", *align_rows([("", "before", "after"), *changes.list_balance()], numbers=2))


def render_markdown(timelines: Sequence[ShownTimeline], left_out: Sequence[LeftOutFile] = ()) -> str:
    """Write the text as a block, for comments on pull requests; what does not fit is left out."""
    shown = "; ".join(f"{each.environment}: {each.summarize()}" for each, _ in timelines)
    lines = render_text(timelines, left_out).replace("```", "…").splitlines(keepends=True)
    kept = [line for line, length in zip(lines, accumulate(map(len, lines)), strict=True) if length < _MAX_LENGTH]
    more = f"… and {pluralize(len(lines) - len(kept), 'more line')}\n" if len(kept) < len(lines) else ""
    return f"### jobgen queue --timeline: {markdown_text(shown)}\n\n```text\n{''.join(kept)}{more}```\n"


def render_json(timelines: Sequence[ShownTimeline], left_out: Sequence[LeftOutFile] = ()) -> str:
    """Write everything; docs/timeline_v1.json is the schema."""
    document: dict[str, Plain] = {"version": 1, "environments": [_describe(*each) for each in timelines]}
    if left_out:
        document["leftOut"] = [each.to_plain() for each in left_out]
    return dump_json(document) + "\n"


def _describe(timeline: Timeline, changes: TimelineChanges | None) -> dict[str, Plain]:
    days = timeline.list_days()
    return {
        "environment": timeline.environment,
        "kueue": timeline.version,
        "from": show_moment(timeline.begin),
        "until": show_moment(timeline.until),
        "ranges": timeline.has_ranges,
        "notes": list(timeline.notes),
        "workloads": [_describe_row(row) for row in timeline.rows],
        "utilization": [
            {
                **({"cluster": use.cluster} if use.cluster else {}),
                "flavor": use.pair.flavor,
                "resource": use.pair.resource,
                "nominal": show_amount(use.pair.resource, use.nominal),
                "percent": use.total,
                "days": [{"day": day, "percent": percent} for day, percent in zip(days, use.days, strict=True)],
            }
            for use in timeline.uses
        ],
        **({"comparison": changes.describe()} if changes else {}),
    }


def _describe_row(row: TimelineRow) -> dict[str, Plain]:
    def spans(several: Sequence[Span]) -> list[Plain]:
        return [
            {
                "start": show_moment(each.start),
                "end": None if each.end is None else show_moment(each.end),
                "flavors": sorted({pair.flavor for pair in each.workload.usage}),
                "after": list(each.after),
                "evictedBy": each.evicted_by,
                **({"cluster": each.cluster} if each.cluster else {}),
            }
            for each in several
        ]

    times, job = row.times, row.answer.job
    return {
        "workload": row.answer.key,
        "kind": job.kind,
        "namespace": job.namespace,
        "name": job.name,
        "queue": job.queue,
        "clusterQueue": row.answer.cluster_queue,
        "state": row.state,
        "reason": row.describe(),
        "expected": None
        if times.expected is None
        else {"least": times.expected.least, "most": times.expected.most, "source": times.source},
        "starts": row.starts.describe() if row.starts else None,
        "ends": row.ends.describe() if row.ends else None,
        "waitsFor": list(row.after),
        "runs": [spans(several) for several in row.spans],
        "deadline": None if times.deadline is None else show_moment(times.deadline),
        "missed": None if row.miss is None else {"severity": row.miss.severity.value, "message": row.miss.message},
        **({"unknown": row.doubt} if row.doubt else {}),
    }


RENDERERS: Mapping[str, Callable[[Sequence[ShownTimeline], Sequence[LeftOutFile]], str]] = {
    "text": render_text,
    "markdown": render_markdown,
    "json": render_json,
}
