"""The timeline as a page: a chart of the runs of each queue, one of what is used, and all of it as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from jobgen.features.kueue.queues.timeline_changes import ShownTimeline, TimelineChanges
from jobgen.features.kueue.queues.timeline_formats import CHANGE_HEADER, HEADER, list_cells, list_use_rows
from jobgen.features.kueue.queues.timeline_report import Timeline, TimelineRow, Use
from jobgen.features.kueue.quota import show_amount
from jobgen.model.times import DAY, show_moment
from jobgen.rendering.left_out import LeftOutFile
from jobgen.reports.escape import visible
from jobgen.reports.sections import wrap_page

_STYLE = """\
body { --bar: #2563ab; --later: #8fb8e3; --lost: #b3432b; --line: #c9ced6; --today: #f1f3f6; }
@media (prefers-color-scheme: dark) {
  body { --bar: #5b9be0; --later: #2f557f; --lost: #e58a73; --line: #444b56; --today: #23272e; }
}
svg { width: 100%; display: block; font: 12px system-ui, sans-serif; fill: CanvasText; }
svg .bar { fill: var(--bar); } svg .later { fill: var(--later); } svg .lost { fill: var(--lost); }
svg .before { fill: var(--line); }
svg line { stroke: var(--line); } svg .odd { fill: var(--today); } svg .missed { font-weight: bold; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; }
th, td { text-align: left; padding: 2px 12px 2px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td:last-child { white-space: normal; min-width: 16rem; }
.key span { display: inline-block; width: 12px; height: 12px; margin: 0 4px 0 12px; vertical-align: -1px; }
"""
_ROW, _BAR, _HEIGHT = 34, 12, 90
_MAX_BARS = 2000
"""More rows are in the table only."""


def render_page(timelines: Sequence[ShownTimeline], left_out: Sequence[LeftOutFile] = ()) -> str:
    """Write a page that loads nothing and runs nothing."""
    parts = [part for each in timelines for part in _render_timeline(*each)]
    if left_out:
        parts.append(_write_list("Left out, because of errors", [each.describe() for each in left_out]))
    return wrap_page("Timeline", "".join(parts), _STYLE)


def _render_timeline(timeline: Timeline, changes: TimelineChanges | None) -> Iterator[str]:
    where = f"{timeline.environment}: " if timeline.environment else ""
    yield f"<h2>{_text(f'{where}{show_moment(timeline.begin)} to {show_moment(timeline.until)}')}</h2>\n"
    yield f"<p>{_text(timeline.summarize())}</p>\n"
    if changes:
        yield _write_list("What if", [f"{name}: {text}" for name, text in changes.list_applied()])
        yield f"<p>{_text(f'Before and after: {changes.summarize()}')}</p>\n"
        yield _write_table([("", "before", "after"), *changes.list_balance()])
        if changes.rows:
            header = ("job", *CHANGE_HEADER[1:-1], "change")
            yield "<h3>Jobs that change</h3>\n" + _write_table(
                [header, *((row.workload, *row.list_cells()) for row in changes.rows)]
            )
        yield "<p>Everything below is about the time after the changes.</p>\n"
    if warnings := list(timeline.list_warnings()):
        yield _write_list("Deadlines", warnings)
    later = (("later", "can still run"),) if timeline.has_ranges else ()
    keys = (("bar", "runs"), *later, ("lost", "is evicted"), *((("line", "before the changes"),) if changes else ()))
    before = {row.answer.key: row for row in changes.before.rows} if changes else {}
    whole = timeline._replace(until=max(timeline.until, changes.before.until)) if changes else timeline
    shown = "".join(f'<span style="background: var(--{name})"></span>{text}' for name, text in keys)
    yield f'<p class="key">{shown}</p>\n'
    queues: dict[str, list[TimelineRow]] = {}
    for row in timeline.rows:
        if row.starts is not None:
            queues.setdefault(row.answer.cluster_queue or row.answer.job.queue, []).append(row)
    left = _MAX_BARS
    for name, rows in sorted(queues.items()):
        yield f"<h3>{_text(f'Queue {name}' if name else 'Without a queue')}</h3>\n"
        yield "".join(_draw_queue(name, rows[:left], whole, before))
        left = max(0, left - len(rows))
    for use in timeline.uses:
        yield f"<h3>{_text(f'Flavor {use.flavor}: {use.pair.resource}')}</h3>\n"
        yield "".join(_draw_use(use, timeline))
    yield "<h3>Jobs</h3>\n" + _write_table(
        [("job", *HEADER[1:-1], "waits for"), *((row.answer.key, *list_cells(row)) for row in timeline.rows)]
    )
    yield "<h3>Use of the quota</h3>\n" + _write_table(list_use_rows(timeline))
    yield _write_list("Notes", timeline.notes)


def _draw_queue(
    name: str, rows: Sequence[TimelineRow], timeline: Timeline, before: Mapping[str, TimelineRow]
) -> Iterator[str]:
    """Draw the runs of a queue: for each workload its name, and below it a bar for each run; thin ones `before`."""
    height = 20 + _ROW * len(rows)
    yield from _open_chart(f"Runs in queue {name}; the table of jobs has the same", height, timeline)
    for number, row in enumerate(rows):
        top = 20 + _ROW * number
        label = f"{row.answer.key}{' (misses its deadline)' if row.miss else ''}"
        times = " to ".join(window.show() for window in (row.starts, row.ends) if window)
        style = ' class="missed"' if row.miss else ""
        yield f"<g><title>{_text(f'{row.answer.key}: {times}')}</title>"
        yield f'<text x="0" y="{top + 12}"{style}>{_text(label)}</text>'
        # The longer runs are behind the shorter ones.
        for place, spans in reversed(list(enumerate(row.spans))):
            for span in spans:
                kind = "lost" if span.evicted_by else "later" if place else "bar"
                kind = "bar" if kind == "later" and not timeline.has_ranges else kind
                yield _draw_bar(span.start, span.end, top, kind, timeline)
        if not row.spans and row.starts:
            end = row.ends.latest if row.ends else None
            yield _draw_bar(row.starts.earliest, end, top, "bar", timeline)
        former = before.get(row.answer.key)
        for span in former.spans[-1] if former and former.spans else ():
            yield _draw_bar(span.start, span.end, top + _BAR + 1, "before", timeline, 3)
        yield "</g>\n"
    yield "</svg>\n"


def _draw_bar(start: int, end: int | None, top: int, kind: str, timeline: Timeline, height: int = _BAR) -> str:
    left, right = (_place(each, timeline) for each in (start, timeline.until if end is None else end))
    width = max(right - left, 0.3)
    return f'<rect class="{kind}" x="{left:.2f}%" y="{top + 17}" width="{width:.2f}%" height="{height}" rx="2"/>'


def _draw_use(use: Use, timeline: Timeline) -> Iterator[str]:
    """Draw how much of a quota is used on each day."""
    nominal = show_amount(use.pair.resource, use.nominal)
    label = f"Use of {nominal} {use.pair.resource} in flavor {use.flavor} by day; the table below has the same"
    yield from _open_chart(label, 20 + _HEIGHT, timeline)
    first = timeline.begin // DAY
    for number, percent in enumerate(use.days):
        start, end = max((first + number) * DAY, timeline.begin), min((first + number + 1) * DAY, timeline.until)
        left, right = _place(start, timeline), _place(end, timeline)
        height = round(min(percent, 120) * (_HEIGHT - 18) / 100)
        top = 20 + _HEIGHT - height
        yield f"<g><title>{show_moment(start)[:10]}: {percent}%</title>"
        width = max(right - left - 0.3, 0.2)
        yield f'<rect class="bar" x="{left:.2f}%" y="{top}" width="{width:.2f}%" height="{height}"/>'
        shown = f'<text x="{left:.2f}%" y="{top - 3}">{percent}%</text>' if right - left > 9 else ""
        yield f"{shown}</g>\n"
    yield "</svg>\n"


def _open_chart(label: str, height: int, timeline: Timeline) -> Iterator[str]:
    """Begin a chart: days in turn light and dark, with as many dates as fit on a narrow screen."""
    yield f'<svg role="img" aria-label="{_text(label)}" height="{height}">\n'
    days = timeline.list_days()
    step = -(-len(days) // 5)
    for number, day in enumerate(days):
        start = max((timeline.begin // DAY + number) * DAY, timeline.begin)
        left, right = _place(start, timeline), _place((timeline.begin // DAY + number + 1) * DAY, timeline)
        if number % 2:
            yield f'<rect class="odd" x="{left:.2f}%" y="0" width="{right - left:.2f}%" height="{height}"/>'
        if number % step == 0 and left < 90:
            yield f'<text x="{left:.2f}%" y="12">{day[5:]}</text>'
    yield '<line x1="0" x2="100%" y1="16" y2="16"/>\n'


def _place(time: int, timeline: Timeline) -> float:
    """Return where a time is in a chart, in percent."""
    length = max(timeline.until - timeline.begin, 1)
    return 100 * min(max(time - timeline.begin, 0), length) / length


def _write_table(rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    header, *others = rows
    lines = ["<tr>" + "".join(f'<th scope="col">{_text(cell)}</th>' for cell in header) + "</tr>\n"]
    for first, *cells in others:
        lines.append(
            f'<tr><th scope="row">{_text(first)}</th>{"".join(f"<td>{_text(cell)}</td>" for cell in cells)}</tr>\n'
        )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="table"><table>\n{"".join(lines)}</table></div>\n'
    )


def _write_list(heading: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>\n" for line in lines)
    return f"<h3>{_text(heading)}</h3>\n<ul>\n{items}</ul>\n"


def _text(text: str) -> str:
    return escape(visible(text))
