"""When each job starts and ends: Kueue's decision when jobs arrive, and again whenever one of them ends.

All jobs arrive at the beginning. At each end, scheduling cycles run until nothing changes, as in `answers`; then time
goes on to the next end. An evicted workload starts again from its beginning. One without a duration never ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import Decision, Job, report_settled, settle, settle_checks
from jobgen.features.kueue.workloads import Workload
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.times import DAY

MOST_DAYS = 366
"""The simulation ends after this many days."""
_MOST_STEPS, _MOST_STEPS_PER_WORKLOAD = 1_500_000, 1000
"""The simulation stops after this much work: about half a minute, and ten seconds more for each thousand workloads."""


class Span(NamedTuple):
    """The time between an admission and the end of a run, or its eviction."""

    start: int
    end: int | None
    """None if it does not end."""
    workload: Workload
    """As it was admitted, with its flavors."""
    after: tuple[str, ...] = ()
    """The workloads whose end or eviction let it start; none at the beginning."""
    evicted_by: str = ""
    cluster: str = ""
    """The worker cluster of MultiKueue that runs it."""


class Course(NamedTuple):
    """What happens to the workloads of a cluster."""

    spans: Mapping[str, Sequence[Span]]
    """The runs of each workload that starts, by key; all but the last end with an eviction."""
    until: int
    """When the last workload ends."""
    decision: Decision
    """What Kueue decides at the beginning."""
    quota: Mapping[str, Sequence[Span]]
    """When each workload has quota; a manager cluster of MultiKueue reserves it before a worker runs the workload."""
    is_complete: bool = True
    """False if the simulation took too long, or too many days."""


class Simulation:
    """Workloads that run, and those that wait until others end."""

    def __init__(
        self,
        context: AdmissionContext,
        jobs: Sequence[Job],
        begin: int,
        lengths: Mapping[str, int],
        running: Mapping[str, int] | None = None,
    ) -> None:
        """Let all jobs arrive. By the key of a workload, `lengths` has its seconds, `running` since when it runs."""
        self.now = begin
        self.spans: dict[str, list[Span]] = {}
        self.admitted: dict[str, Workload] = {}
        self._remote = context.dispatcher.follow(context, jobs) if context.dispatcher else None
        self.quota = self.spans if self._remote is None else {}
        self._reserved: dict[str, Workload] = {}
        self._lengths = lengths
        self._since = running or {}
        self._ends: list[tuple[int, str, str]] = []
        self._last = begin + MOST_DAYS * DAY
        settled = settle(context, jobs, frozenset(self._since))
        self.decision = report_settled(context, jobs, settled)
        self.scheduler = settled.scheduler
        self._arrivals = settled.arrivals
        self._held = settled.held
        self._context = context
        self._assumed = settled.assumed
        self._refused = settled.refused
        self.is_complete = settled.is_complete
        self._most_steps = self.scheduler.snapshot.steps + _MOST_STEPS + _MOST_STEPS_PER_WORKLOAD * len(self._arrivals)
        evicted = {each.workload: each.preemptor for each in settled.evictions}
        self._record(evicted, {})
        for key in self._since.keys() & evicted.keys():
            # It ran until now; its flavors are not known any more.
            lost = Span(self._since[key], begin, self._arrivals[key], (), evicted[key])
            self.spans[key] = [lost, *self.spans.get(key, ())]
        self._since = {}

    def step(self) -> bool:
        """Go on to the next end; return False if nothing ends any more."""
        self._drop_evicted()
        if not self._ends or not self.is_complete:
            return False
        if self._ends[0][0] > self._last or self.scheduler.snapshot.steps > self._most_steps:
            self.is_complete = False
            return False
        self.now = self._ends[0][0]
        ended: dict[str, Span] = {}
        while self._ends and self._ends[0][0] == self.now:
            key = heapq.heappop(self._ends)[2]
            ended[key] = self.spans[key][-1]
            del self.admitted[key]
            self.scheduler.remove(key)
            self._drop_evicted()
        # Where a queue would go on among its flavors depends on how often it was tried since: it begins again.
        self.scheduler.progress.clear()
        for key in self._held:
            self.scheduler.add(self._arrivals[key]._replace(cluster_queue="", admission=(), reserved=""))
        for pending in self.scheduler.pending.values():
            pending.preemptor = ""
        self.scheduler.retry_parked(self.scheduler.pending)
        found = settle_checks(self.scheduler, self._context, len(self._arrivals), self._refused, self._assumed)
        evictions, self._held, self.is_complete = found
        self._record({each.workload: each.preemptor for each in evictions}, ended)
        return True

    def _drop_evicted(self) -> None:
        """Forget ends of runs that were evicted."""
        while self._ends and (
            self._ends[0][2] not in self.admitted or self.admitted[self._ends[0][2]].reserved != self._ends[0][1]
        ):
            heapq.heappop(self._ends)

    def _find_causes(self, workload: Workload, cluster: str, ended: Mapping[str, Span]) -> tuple[str, ...]:
        """Return those of the ended workloads whose quota a new one can use."""
        nodes = self.scheduler.snapshot.nodes

        def is_cause(span: Span) -> bool:
            shares = span.workload.usage.keys() & workload.usage.keys()
            if cluster or span.cluster:
                return bool(shares) and span.cluster == cluster
            return bool(shares) and nodes[span.workload.cluster_queue].tree is nodes[workload.cluster_queue].tree

        return tuple(sorted(filter(lambda key: is_cause(ended[key]), ended))) or tuple(sorted(ended))

    def _record(self, evicted: Mapping[str, str], ended: Mapping[str, Span]) -> None:
        """Note which workloads were evicted and admitted now."""
        found = {key: each for several in self.scheduler.snapshot.workloads.values() for key, each in several.items()}
        clusters: Mapping[str, str] = {}
        if self._remote is not None:
            reserved = found
            found, clusters, more = self._remote.advance(found)
            _close(self.quota, self._reserved, reserved, self.now, evicted)
            for key, workload in _list_new(self._reserved, reserved):
                self.quota.setdefault(key, []).append(Span(self.now, None, workload))
            self._reserved, evicted = reserved, {**more, **evicted}
        _close(self.spans, self.admitted, found, self.now, evicted)
        for key, workload in _list_new(self.admitted, found):
            # What ran from the start has done a part of its work, unless it was evicted.
            start = self.now if key in evicted or key in self.spans else self._since.get(key, self.now)
            # One whose admission checks are pending has quota, but does not run.
            length = None if key in self._refused else self._lengths.get(key)
            end = None if length is None else max(start + length, self.now + 1)
            cluster = clusters.get(key, "")
            causes = self._find_causes(workload, cluster, ended)
            self.spans.setdefault(key, []).append(Span(start, end, workload, causes, "", cluster))
            if end is not None:
                heapq.heappush(self._ends, (end, workload.reserved, key))
        self.admitted = found


def _close(
    spans: Mapping[str, list[Span]],
    before: Mapping[str, Workload],
    found: Mapping[str, Workload],
    now: int,
    evicted: Mapping[str, str],
) -> None:
    """End the spans of what has no quota any more."""
    for key, workload in before.items():
        if key not in found or found[key].reserved != workload.reserved:
            spans[key][-1] = spans[key][-1]._replace(end=now, evicted_by=evicted.get(key, ""))


def _list_new(before: Mapping[str, Workload], found: Mapping[str, Workload]) -> Iterator[tuple[str, Workload]]:
    """Yield what was admitted now."""
    for key, workload in found.items():
        if key not in before or before[key].reserved != workload.reserved:
            yield key, workload


def simulate(
    context: AdmissionContext,
    jobs: Sequence[Job],
    begin: int,
    lengths: Mapping[str, int],
    running: Mapping[str, int] | None = None,
) -> Course:
    """Simulate until nothing ends any more."""
    simulation = Simulation(context, jobs, begin, lengths, running)
    while simulation.step():
        pass
    return Course(simulation.spans, simulation.now, simulation.decision, simulation.quota, simulation.is_complete)
