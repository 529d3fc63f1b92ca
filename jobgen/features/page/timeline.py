"""When jobs start and end, as tables of a page: its own one, or a tab of the capacity of a fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.queues.comparison import Suggestion
from jobgen.features.kueue.queues.report import EnvironmentReport
from jobgen.features.kueue.queues.suggest import suggest_quota
from jobgen.features.kueue.queues.timeline_changes import ShownTimeline
from jobgen.features.kueue.queues.timeline_formats import describe_length
from jobgen.features.kueue.queues.timeline_report import Timeline, TimelineRow, build_timeline, find_begin
from jobgen.features.kueue.quota import show_amount
from jobgen.features.kueue.timeline import Span
from jobgen.features.page.page import NONE, Table, assemble_page, describe_repository, encode, make_title
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.times import DAY, parse_moment, show_moment
from jobgen.rendering.left_out import LeftOutFile

MAX_WORKLOADS = 1_000
"""How many workloads an environment of a fleet has at most if its timeline is simulated."""
_SUGGESTION_WORK = 1_500
"""How many workloads are decided about for a suggestion of a fleet: some tenths of a second."""
_SHORTEST, _LONGEST, _BEFORE = 0, 1, 2
_DEADLINE, _UNKNOWN, _NOTE, _LEFT_OUT = "deadline", "unknown", "note", "left out"
_ASKED, _SUGGESTED, _IMPOSSIBLE, _UNTRIED = "asked", "suggested", "impossible", "untried"
_ENVIRONMENT = "environment:environments"

Row = tuple[str | int, ...]
CellNumbers = Mapping[tuple[str, str, str, str], int]
"""The number of a cell by its environment, kind, namespace and name."""


class Forecast(NamedTuple):
    """What is shown of the time to come in an environment, beside its queues."""

    environment: str
    timeline: Timeline | None
    """None if no job says how long it runs, or if there are too many."""
    reason: str
    """Why there is no timeline."""
    suggestion: Suggestion | None
    """None if every job is admitted."""


def forecast(report: EnvironmentReport, queued: QueuedJobs, day: str) -> Forecast:
    """Simulate the jobs of an environment, and find the smallest changes of quota that admit those that wait."""
    env = report.environment
    suggestion = suggest_quota(queued, report.decision, frozenset(), lambda _: True, _SUGGESTION_WORK)
    found = suggestion if suggestion != Suggestion((), ()) else None
    begin = find_begin([queued], parse_moment(day))
    if begin is None:
        return Forecast(env, None, "there is no commit to take the date from", found)
    if len(report.decision.answers) > MAX_WORKLOADS:
        more = f"this environment has more than {MAX_WORKLOADS:,} workloads; use `jobgen queue --timeline`"
        return Forecast(env, None, more, found)
    timeline = build_timeline(env, queued, begin, (), lambda _: False)
    if all(row.times.expected is None and not row.times.finished for row in timeline.rows):
        return Forecast(env, None, "durations are unknown; set `run.expected`", found)
    return Forecast(env, timeline, "", found)


def list_forecast_tables(
    forecasts: Sequence[Forecast], environments: Mapping[str, int], cells: CellNumbers
) -> Iterator[Table]:
    """List the tables of the tabs beside the queues of a fleet."""
    shown = [ShownTimeline(each.timeline) for each in forecasts if each.timeline]
    reasons = [(environments[each.environment], each.reason) for each in forecasts if each.reason]
    yield from list_timeline_tables(shown, environments, cells)
    yield Table("noTimelines", (_ENVIRONMENT, "reason:text"), reasons)
    rows = [row for each in forecasts for row in _list_suggested(each, environments[each.environment])]
    yield Table("whatIfChanges", (_ENVIRONMENT, "kind:text", "name:text", "text:text"), rows)


def _list_suggested(found: Forecast, env: int) -> Iterator[Row]:
    if found.suggestion is None:
        return
    for each in found.suggestion.quotas:
        before, after = (show_amount(each.resource, amount) for amount in (each.before, each.after))
        what = f"{each.field} of {each.resource} in {each.flavor} of {each.kind} `{each.queue}`"
        yield env, _SUGGESTED, each.change, f"{what}: {before} → {after}; needed by `{each.needed_by}`"
    yield from ((env, _IMPOSSIBLE, key, reason) for key, reason in found.suggestion.impossible)
    if found.suggestion.untried:
        text = f"not tried for {found.suggestion.untried} workloads; use `jobgen queue --suggest`"
        yield env, _UNTRIED, "", text


def list_timeline_tables(
    timelines: Sequence[ShownTimeline], environments: Mapping[str, int], cells: CellNumbers
) -> Iterator[Table]:
    """List the tables of timelines; the runs of each workload are in `spans`."""
    heads: list[Row] = []
    times: list[Row] = []
    spans: list[Row] = []
    uses: list[Row] = []
    days: list[Row] = []
    notes: list[Row] = []
    for timeline, changes in timelines:
        env = environments[timeline.environment]
        until = max(timeline.until, changes.before.until) if changes else timeline.until
        heads.append((env, timeline.begin, until, int(timeline.has_ranges), timeline.summarize()))
        before = {row.answer.key: row for row in changes.before.rows} if changes else {}
        for row in timeline.rows:
            spans += _list_spans(row, len(times), before.get(row.answer.key))
            times.append((env, _find_cell(row, timeline.environment, cells), *_describe_row(row)))
        for use in timeline.uses:
            first = timeline.begin // DAY
            days += ((len(uses), show_moment((first + at) * DAY)[:10], percent) for at, percent in enumerate(use.days))
            uses.append((env, use.flavor, use.pair.resource, use.nominal, use.total))
        notes += ((env, _DEADLINE, f"`{row.answer.key}`: {row.miss.message}") for row in timeline.misses if row.miss)
        notes += ((env, _UNKNOWN, f"`{row.answer.key}`: {row.doubt}") for row in timeline.rows if row.doubt)
        notes += ((env, _NOTE, note) for note in timeline.notes)
    yield Table("timelines", (_ENVIRONMENT, "begin", "until", "hasRanges", "summary:text"), heads)
    columns = ("name:text", "queue:text", "state:text", "length:text", "starts:text", "ends:text", "reason:text")
    yield Table("times", (_ENVIRONMENT, "cell:cells", *columns, "miss:text"), times)
    yield Table("spans", ("time:times", "sort", "start", "end", "isOpen", "evictedBy:text"), spans)
    yield Table("uses", (_ENVIRONMENT, "flavor:text", "resource:text", "nominal", "total"), uses)
    yield Table("useDays", ("use:uses", "day:text", "percent"), days)
    yield Table("timelineNotes", (_ENVIRONMENT, "kind:text", "text:text"), notes)


def _find_cell(row: TimelineRow, env: str, cells: CellNumbers) -> int:
    job = row.answer.job
    return cells.get((env, job.kind, job.namespace, job.name), NONE)


def _describe_row(row: TimelineRow) -> Iterator[str]:
    queue = row.answer.cluster_queue or row.answer.job.queue
    yield row.answer.key
    yield f"{queue} in {row.cluster}" if row.cluster else queue
    yield row.state
    yield describe_length(row)
    yield from (window.show() if window else "" for window in (row.starts, row.ends))
    yield row.describe()
    yield row.miss.message if row.miss else ""


def _list_spans(row: TimelineRow, number: int, former: TimelineRow | None) -> Iterator[Row]:
    """Yield the runs of a workload in both simulations, and before the changes if there are any."""
    if not row.spans and row.starts:
        end = row.ends.latest if row.ends else None
        yield number, _SHORTEST, row.starts.earliest, end or 0, int(end is None), ""
    # What has quota and waits for an admission check does not run. A single simulation is the shortest one.
    for sort, spans in enumerate(row.spans if row.starts else ()):
        yield from (_to_row(number, sort, span) for span in spans)
    for span in former.spans[-1] if former and former.spans else ():
        yield _to_row(number, _BEFORE, span)


def _to_row(number: int, sort: int, span: Span) -> Row:
    return number, sort, span.start, span.end or 0, int(span.end is None), span.evicted_by


def render_page(timelines: Sequence[ShownTimeline], left_out: Sequence[LeftOutFile], root: Path) -> str:
    """Write the page of `jobgen queue --timeline --format html`."""
    repository, changed = describe_repository(root, None)
    environments = {each.timeline.environment: number for number, each in enumerate(timelines)}
    tables = [
        Table("environments", ("name:text",), [(env,) for env in environments]),
        *list_timeline_tables(timelines, environments, {}),
        *_list_changes(timelines, environments),
        Table("leftOut", ("text:text",), [(each.describe(),) for each in left_out]),
        changed,
    ]
    title = f"Timeline, {make_title(repository, changed)}"
    return assemble_page(title, encode("queue", dict(repository), tables))


def _list_changes(timelines: Sequence[ShownTimeline], environments: Mapping[str, int]) -> Iterator[Table]:
    """List what `--what-if` does to times, if it is given."""
    found = [(environments[timeline.environment], changes) for timeline, changes in timelines if changes]
    applied = [(env, _ASKED, name, text) for env, each in found for name, text in each.list_applied()]
    yield Table("whatIfChanges", (_ENVIRONMENT, "kind:text", "name:text", "text:text"), applied)
    yield Table("whatIfs", (_ENVIRONMENT, "summary:text"), [(env, each.summarize()) for env, each in found])
    balance: list[Row] = [(env, *row) for env, each in found for row in each.list_balance()]
    yield Table("whatIfBalance", (_ENVIRONMENT, "name:text", "before:text", "after:text"), balance)
    rows: list[Row] = [(env, row.workload, row.change, *row.list_cells()) for env, each in found for row in each.rows]
    columns = ("name:text", "change:text", "state:text", "starts:text", "ends:text", "remark:text")
    yield Table("whatIfRows", (_ENVIRONMENT, *columns), rows)
