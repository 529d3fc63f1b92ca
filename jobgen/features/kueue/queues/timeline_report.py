"""What `jobgen queue --timeline` finds: when jobs start and end, deadlines, and how much of the quota is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import IN_SUMS, NEVER, UNMANAGED, Answer, Decision, Job
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.queues.change_sections import show_names
from jobgen.features.kueue.queues.report import explain
from jobgen.features.kueue.quota import FlavorResource
from jobgen.features.kueue.run_times import JobTimes, PastRun, add_captured, find_times, index_runs, read_captured
from jobgen.features.kueue.timeline import MOST_DAYS, Course, Span, simulate
from jobgen.model.data import Plain
from jobgen.model.finding import Severity, pluralize
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.times import DAY, show_moment

RUNNING, STARTS, WAITS, FINISHED = "running", "starts", "waits", "finished"
_IN_SUMS = {**IN_SUMS, STARTS: "starting"}
_MAX_EVICTIONS, _MAX_FAULTS = 3, 5
ASSUMPTION = "an evicted job starts again from its beginning; with fewer pods, a job takes as long as with all"
NOT_SIMULATED = "not simulated: jobs that arrive later, failures and retries, autoscaling, the time that checks take"


class Window(NamedTuple):
    """The earlier and the later time of two simulations; None if one of them has no such time."""

    earliest: int
    latest: int | None

    def describe(self) -> dict[str, Plain]:
        """Return the window as plain data."""
        latest = None if self.latest is None else show_moment(self.latest)
        return {"earliest": show_moment(self.earliest), "latest": latest}

    def show(self) -> str:
        """Return the window as text; of one day, the day is shown once."""
        first = show_moment(self.earliest)
        if self.latest is None:
            return f"{first} or later"
        last = show_moment(self.latest)
        return first if first == last else f"{first} – {last[11:] if first[:10] == last[:10] else last}"


class Miss(NamedTuple):
    """A deadline that is not met."""

    severity: Severity
    """An error if the job would miss it even if it started at once."""
    message: str


class TimelineRow(NamedTuple):
    """What becomes of one workload."""

    answer: Answer
    state: str
    times: JobTimes
    spans: tuple[Sequence[Span], ...] = ()
    """Its runs, in the simulation with the shortest durations and in that with the longest ones."""
    starts: Window | None = None
    ends: Window | None = None
    miss: Miss | None = None

    @property
    def is_failure(self) -> bool:
        """Return True if Kueue never starts it in its queue, or if it cannot meet its deadline."""
        return self.answer.is_failure or (self.miss is not None and self.miss.severity is Severity.ERROR)

    @property
    def after(self) -> tuple[str, ...]:
        """The workloads whose end lets it start."""
        return next((each.after for several in self.spans for each in several[:1]), ())

    @property
    def cluster(self) -> str:
        """The worker cluster in which it ends; both, if the simulations differ."""
        return " or ".join(dict.fromkeys(each[-1].cluster for each in self.spans if each and each[-1].cluster))

    @property
    def doubt(self) -> str:
        """Why it is not known whether it meets its deadline; empty if it is known."""
        if self.times.deadline is None or self.times.expected or self.miss or self.state == FINISHED:
            return ""
        shown = f"its deadline is `{show_moment(self.times.deadline)}`, but no duration is known"
        return f"{shown}; write `run.expected`, or use `--history`"

    def describe(self) -> str:
        """Say what it waits for."""
        if self.state in (NEVER, UNMANAGED):
            return explain(self.answer)
        parts = [f"waits for the end of {show_names(self.after)}"] if self.after else []
        if self.state == WAITS:
            parts.append(f"still waiting; initially, {explain(self.answer)}")
        evictions = [_show_eviction(several) for several in zip_longest(*map(_list_evictions, self.spans))]
        parts += evictions[:_MAX_EVICTIONS]
        if len(evictions) > _MAX_EVICTIONS:
            parts.append(pluralize(len(evictions) - _MAX_EVICTIONS, "more eviction"))
        if self.times.expected is None and self.state in (STARTS, RUNNING, UNMANAGED):
            parts.append("duration unknown; set `run.expected`")
        return "; ".join(parts)


_Eviction = tuple[str, int, int | None]
"""Which workload evicts, when, and when the evicted one starts again."""


def _list_evictions(spans: Sequence[Span]) -> Iterator[_Eviction]:
    for each, following in zip_longest(spans, spans[1:]):
        if each.evicted_by:
            yield each.evicted_by, each.end or 0, following.start if following else None


def _show_eviction(several: Sequence[_Eviction | None]) -> str:
    """Say when a workload is evicted and starts again, in one or in both of the simulations."""
    known = [each for each in several if each is not None]
    by = " or ".join(dict.fromkeys(each[0] for each in known))
    when, again = _span([each[1] for each in known]), _span([each[2] for each in known])
    verb = "evicts" if len(known) == len(several) else "can evict"
    return f"{by} {verb} it at {when.show() if when else ''}" + (
        f", and it starts again at {again.show()}" if again else ""
    )


class Use(NamedTuple):
    """How much of the quota of a resource in a flavor is used, in percent."""

    pair: FlavorResource
    nominal: int
    days: tuple[int, ...]
    """On the part of each day that belongs to the timeline."""
    total: int
    """From the beginning to the end of the timeline."""
    cluster: str = ""
    """The worker cluster whose quota it is."""

    @property
    def flavor(self) -> str:
        """The flavor, and the worker cluster that has it."""
        return f"{self.pair.flavor} in {self.cluster}" if self.cluster else self.pair.flavor


class Timeline(NamedTuple):
    """The timeline of one environment."""

    environment: str
    version: str
    begin: int
    until: int
    rows: tuple[TimelineRow, ...]
    uses: tuple[Use, ...]
    has_ranges: bool
    notes: tuple[str, ...]
    is_captured: bool = False
    """True if Workload objects show which jobs run."""

    @property
    def misses(self) -> list[TimelineRow]:
        """The jobs that miss their deadlines."""
        return [row for row in self.rows if row.miss]

    @property
    def last_end(self) -> int | None:
        """When the last job ends; None if none does."""
        return max((row.ends.latest or row.ends.earliest for row in self.rows if row.ends), default=None)

    def list_warnings(self) -> Iterator[str]:
        """Yield the deadlines that are missed, then those that cannot be checked."""
        yield from (
            f"{row.miss.severity.value}: {row.answer.key}: {row.miss.message}" for row in self.misses if row.miss
        )
        yield from (f"unknown: {row.answer.key}: {row.doubt}" for row in self.rows if row.doubt)

    def list_days(self) -> list[str]:
        """Return the days of the timeline."""
        first, last = self.begin // DAY, max(self.until - 1, self.begin) // DAY
        return [show_moment(day * DAY)[:10] for day in range(first, last + 1)]

    def summarize(self) -> str:
        """Return the counts in one line."""
        counts: dict[str, int] = {}
        for row in self.rows:
            counts[row.state] = counts.get(row.state, 0) + 1
        shown = ", ".join(f"{count} {_IN_SUMS.get(state, state)}" for state, count in counts.items())
        missed = f"; {pluralize(len(self.misses), 'deadline')} missed" if self.misses else ""
        unknown = sum(bool(row.doubt) for row in self.rows)
        missed += f"; {pluralize(unknown, 'deadline')} not checked" if unknown else ""
        return f"{pluralize(len(self.rows), 'workload')}: {shown}{missed}" if counts else "no workloads"


def find_begin(queued: Sequence[QueuedJobs], day: int | None) -> int | None:
    """Return when timelines begin: with the day of the commit, or later, with the last event of a capture."""
    runs = [run for each in queued for run in read_captured(each.exported)]
    times = [time for run in runs for time in (run.start, run.end) if time is not None]
    return max((*times, *(() if day is None else (day,))), default=None)


def build_timeline(
    env: str, queued: QueuedJobs, begin: int, history: Sequence[PastRun], is_running: Callable[[Job], bool]
) -> Timeline:
    """Simulate the jobs of an environment with the shortest and with the longest durations."""
    captured = read_captured(queued.exported)
    by_name, recorded = index_runs(captured), index_runs(history)
    jobs = add_captured(queued, captured)
    times = {job[:3]: find_times(job, by_name, recorded, begin) for job in jobs}
    active: list[Job] = []
    running: dict[str, int] = {}
    for job in jobs:
        known = times[job[:3]]
        if known.finished is not None:
            continue
        workloads = job.workloads
        admitted = known.workload
        if admitted is not None and len(workloads) == 1 and admitted.cluster_queue in queued.context.queues:
            names = ("cluster_queue", "admission", "reserved", "cluster")
            workloads = (workloads[0]._replace(**{name: getattr(admitted, name) for name in names}),)
        if known.since is not None or is_running(job):
            running |= {each.key: begin if known.since is None else min(known.since, begin) for each in workloads}
        active.append(job._replace(workloads=workloads))
    expected = {each.key: length for job in active if (length := times[job[:3]].expected) for each in job.workloads}
    has_ranges = any(each.least < each.most for each in expected.values())
    courses = [
        simulate(queued.context, active, begin, {key: each[place] for key, each in expected.items()}, running)
        for place in ((0, 1) if has_ranges else (1,))
    ]
    answers = {(*answer.job[:3], answer.key): answer for answer in courses[0].decision.answers}
    rows: list[TimelineRow] = []
    for job in jobs:
        known = times[job[:3]]
        if known.finished is not None:
            ended = Answer(job, f"{job.namespace}/{job.name}", FINISHED, "it has ended")
            start, end = (Window(each, each) for each in known.finished)
            rows.append(TimelineRow(ended, FINISHED, known, (), start, end))
            continue
        keys = [each.key for each in job.workloads] or [f"{job.namespace}/{job.name}"]
        found = [(answers[*job[:3], key], key in running) for key in keys]
        rows += (_build_row(each, known, courses, begin, is_started=is_started) for each, is_started in found)
    ends = (row.ends.latest or 0 for row in rows if row.ends and row.state == UNMANAGED)
    until = max(begin, *(course.until for course in courses), *ends)
    if until == begin:
        # Nothing ends: what the jobs use is that of a day.
        until += DAY
    configuration = queued.context.cluster.configuration
    notes = tuple(_list_notes(queued.context, courses, rows, begin, has_ranges=has_ranges))
    uses = tuple(_measure_uses(queued.context, courses[-1], begin, until))
    version = ".".join(map(str, configuration.version))
    return Timeline(env, version, begin, until, tuple(rows), uses, has_ranges, notes, bool(queued.exported))


def _build_row(
    answer: Answer, times: JobTimes, courses: Sequence[Course], begin: int, *, is_started: bool
) -> TimelineRow:
    spans = tuple(course.spans.get(answer.key, ()) for course in courses)
    if answer.decision == UNMANAGED:
        ends = Window(begin + times.expected.least, begin + times.expected.most) if times.expected else None
        row = TimelineRow(answer, UNMANAGED, times, (), Window(begin, begin), ends)
    elif answer.decision == NEVER or not any(spans) or _is_held(answer, times, spans):
        row = TimelineRow(answer, NEVER if answer.decision == NEVER else WAITS, times, spans)
    else:
        starts = [several[0].start if several else None for several in spans]
        ends_of = [several[-1].end if several and not several[-1].evicted_by else None for several in spans]
        state = RUNNING if is_started else STARTS if all(spans) else WAITS
        row = TimelineRow(answer, state, times, spans, _span(starts), _span(ends_of))
    return row._replace(miss=judge_deadline(row, begin))


def _is_held(answer: Answer, times: JobTimes, spans: tuple[Sequence[Span], ...]) -> bool:
    """Return True if a workload has quota and never runs, because its admission checks are pending."""
    last = spans[-1][-1] if spans[-1] else None
    return answer.decision == WAITS and times.expected is not None and last is not None and last.end is None


def _span(times: Sequence[int | None]) -> Window | None:
    known = [each for each in times if each is not None]
    return Window(min(known), max(known) if len(known) == len(times) else None) if known else None


def judge_deadline(row: TimelineRow, begin: int) -> Miss | None:
    """Return how a job misses its deadline; None if it meets it, or if that is not known."""
    deadline, expected = row.times.deadline, row.times.expected
    if deadline is None:
        return None
    shown = f"its deadline is `{show_moment(deadline)}`"
    if expected is None:
        if row.state == NEVER:
            return Miss(Severity.WARNING, f"{shown}, but Kueue never admits it")
        has_passed = deadline <= begin
        return Miss(Severity.ERROR, f"{shown}, before the timeline begins") if has_passed else None
    at_once = (begin if row.times.since is None else min(row.times.since, begin)) + expected.least
    if at_once > deadline:
        message = f"{shown}, but even if it starts at once it ends at `{show_moment(at_once)}`"
        return Miss(Severity.ERROR, message)
    if row.ends is None:
        reason = "Kueue never admits it" if row.state == NEVER else "it does not end in the simulation"
        return Miss(Severity.WARNING, f"{shown}, but {reason}")
    if row.ends.latest is None or row.ends.latest > deadline:
        is_certain = row.ends.earliest > deadline
        last = "not end" if row.ends.latest is None else f"end at `{show_moment(row.ends.latest)}`"
        when = f"ends at `{show_moment(row.ends.earliest)}`" if is_certain else f"can {last}"
        return Miss(Severity.WARNING, f"{shown}, but in the simulation it {when}")
    return None


def _list_notes(
    context: AdmissionContext, courses: Sequence[Course], rows: Sequence[TimelineRow], begin: int, *, has_ranges: bool
) -> Iterator[str]:
    decision: Decision = courses[0].decision
    if has_ranges:
        yield "jobgen simulates twice, with the shortest and with the longest durations; other times are possible"
    unknown = [row.answer.key for row in rows if row.times.expected is None and row.state not in (NEVER, FINISHED)]
    if unknown:
        yield f"without a duration, so they never end: {show_names(unknown)}; write `run.expected`, or use `--history`"
    faults = [f"{row.answer.key}: {fault}" for row in rows for fault in row.times.faults]
    yield from faults[:_MAX_FAULTS]
    if len(faults) > _MAX_FAULTS:
        yield f"{pluralize(len(faults) - _MAX_FAULTS, 'more time')} that cannot be read"
    if not all(course.is_complete for course in courses):
        ends = (span.end or 0 for course in courses for several in course.spans.values() for span in several)
        is_long = max(ends, default=0) > begin + MOST_DAYS * DAY
        yield (
            f"the simulation ends after {MOST_DAYS} days; what starts later is shown as waiting"
            if is_long
            else "the simulation was stopped because it takes too long; later times are not known"
        )
    yield from decision.assumptions
    if context.dispatcher and any(each.running for _, each in context.dispatcher.list_workers()):
        yield "jobs that run in worker clusters and that the manager did not send never end"
    yield ASSUMPTION
    yield NOT_SIMULATED if context.dispatcher is not None else f"{NOT_SIMULATED}, MultiKueue"


_Quotas = dict[tuple[str, FlavorResource], int]
"""Amounts by worker cluster and flavor; the cluster is empty for the cluster of the timeline."""


def _sum_quota(context: AdmissionContext) -> _Quotas:
    """Return the nominal quota of all queues and cohorts."""
    found: _Quotas = {}
    workers = context.dispatcher.list_workers() if context.dispatcher else ()
    for name, each in (("", context), *((name, worker.context) for name, worker in workers)):
        cohorts = each.cluster.list_cohorts()
        for quotas in (*(one.quotas for one in each.queues.values()), *(one.quotas for one in cohorts)):
            for pair, quota in quotas.items():
                found[name, pair] = found.get((name, pair), 0) + quota.nominal
    return found


def _measure_uses(context: AdmissionContext, course: Course, begin: int, until: int) -> Iterator[Use]:
    """Measure what is used of each flavor on each day, within the timeline."""
    nominal = _sum_quota(context)
    days = range(begin // DAY, max(until - 1, begin) // DAY + 1)
    lengths = [min(until, (day + 1) * DAY) - max(begin, day * DAY) for day in days]
    used = {key: [0] * len(days) for key in nominal}
    runs = [("", span) for several in course.quota.values() for span in several]
    runs += ((span.cluster, span) for several in course.spans.values() for span in several if span.cluster)
    for name, worker in context.dispatcher.list_workers() if context.dispatcher else ():
        runs += ((name, Span(begin, None, each)) for each in worker.running)
    for cluster, span in runs:
        start, end = max(span.start, begin), min(until if span.end is None else span.end, until)
        for day in range(start // DAY, (end - 1) // DAY + 1) if end > start else ():
            seconds = min(end, (day + 1) * DAY) - max(start, day * DAY)
            for pair, amount in span.workload.usage.items():
                if (cluster, pair) in used:
                    used[cluster, pair][day - days[0]] += amount * seconds
    for (cluster, pair), amounts in sorted(used.items()):
        quota = nominal[cluster, pair]
        percents = (
            round(100 * amount / (quota * length)) if quota else 0
            for amount, length in zip((*amounts, sum(amounts)), (*lengths, sum(lengths)), strict=True)
        )
        *by_day, total = percents
        yield Use(pair, quota, tuple(by_day), total, cluster)


def select_rows(timeline: Timeline, matches: Callable[[Job], bool]) -> Timeline:
    """Return the timeline with the rows of some jobs only."""
    return timeline._replace(rows=tuple(row for row in timeline.rows if matches(row.answer.job)))
