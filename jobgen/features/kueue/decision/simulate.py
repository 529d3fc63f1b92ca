"""Run scheduling cycles until nothing changes: what becomes of all workloads if they arrive together.

Time does not pass: no workload finishes, and an evicted workload leaves its quota before the next cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from jobgen.features.kueue.decision.admission_context import AdmissionContext
from jobgen.features.kueue.objects import Preemption
from jobgen.features.kueue.scheduling.cycle import Scheduler
from jobgen.features.kueue.workload.workloads import Workload
from jobgen.model.named_tuple import NamedTuple

_MOST_REPEATS = 3
"""A workload that is evicted more often by the same one is evicted without end."""

_MOST_STEPS, _MOST_STEPS_PER_WORKLOAD = 1_000_000, 100
"""The simulation stops after this much work: about ten seconds, and one more for each thousand workloads."""


class Eviction(NamedTuple):
    """A workload that was evicted for another."""

    workload: str
    preemptor: str
    reason: str
    """The rule that allowed it, as in the condition of the workload."""


class Run(NamedTuple):
    """The end of a simulation."""

    scheduler: Scheduler
    evictions: tuple[Eviction, ...]
    assumed: frozenset[str]
    """The workloads that run from the start."""
    held: Mapping[str, str]
    """Workloads that are evicted without end, and by which. They were kept back, so that the others could go on."""
    is_complete: bool = True
    """False if the simulation stopped before everything was tried, because it took too long."""


def order_arrivals(workloads: Sequence[Workload], later: frozenset[str] = frozenset()) -> list[Workload]:
    """Return workloads in the order of arrival: those in `later` last, then by priority, by queue and by name."""
    ordered = sorted(
        workloads, key=lambda each: (each.key in later, -each.priority, each.namespace, each.queue, each.key)
    )
    return [each._replace(created=f"{place:08}", uid=f"{place:08}") for place, each in enumerate(ordered)]


def run_cycles(
    context: AdmissionContext,
    workloads: Sequence[Workload],
    running: frozenset[str],
    later: frozenset[str] = frozenset(),
) -> Run:
    """Let the workloads in `running` run as far as there is quota, then let the others arrive.

    A workload in `running` that has an admission keeps it, even above the quota.
    """
    scheduler = context.build_scheduler()
    arrivals = order_arrivals(workloads, later)
    _admit_running(scheduler, [each for each in arrivals if each.key in running], context)
    assumed = frozenset(key for several in scheduler.snapshot.workloads.values() for key in several)
    for each in arrivals:
        if each.key not in running:
            scheduler.add(each)
    recorder = _Recorder()
    is_complete = _run_until_settled(scheduler, recorder, _MOST_STEPS + _MOST_STEPS_PER_WORKLOAD * len(arrivals))
    return Run(scheduler, tuple(recorder.evictions), assumed, recorder.held, is_complete)


def _admit_running(scheduler: Scheduler, workloads: Sequence[Workload], context: AdmissionContext) -> None:
    """Admit workloads that are said to run, also in queues that are held now. None of them evicts another."""
    queues, inactive, local_queues = scheduler.snapshot.queues, scheduler.inactive, scheduler.local_queues
    scheduler.inactive = inactive - context.held_queues
    scheduler.local_queues = {**local_queues, **context.held_local_queues}
    scheduler.snapshot.queues = {name: each._replace(preemption=Preemption()) for name, each in queues.items()}
    for each in workloads:
        scheduler.add(each)
    _run_until_settled(scheduler, _Recorder(), _MOST_STEPS + _MOST_STEPS_PER_WORKLOAD * len(workloads))
    scheduler.snapshot.queues = queues
    scheduler.inactive, scheduler.local_queues = inactive, local_queues
    for several in scheduler.parked.values() if context.held_local_queues else ():
        several[:] = [each for each in several if (each.namespace, each.queue) in local_queues]
    admitted = {key for several in scheduler.snapshot.workloads.values() for key in several}
    for each in workloads:
        if each.key not in admitted:
            # It was tried in another state: without preemption, and with queues that are held.
            scheduler.outcomes.pop(each.key, None)
    scheduler.retry_parked(scheduler.snapshot.queues)


class _Recorder:
    """Records evictions, and which workloads are evicted without end."""

    def __init__(self) -> None:
        self.evictions: list[Eviction] = []
        self.held: dict[str, str] = {}
        self._repeats: Counter[tuple[str, str]] = Counter()

    def record(self, evictions: Iterable[Eviction]) -> None:
        """Record the evictions of a cycle."""
        for each in evictions:
            pair = each.workload, each.preemptor
            self.evictions.append(each)
            self._repeats[pair] += 1
            if self._repeats[pair] > _MOST_REPEATS:
                self.held[each.workload] = each.preemptor


def _run_until_settled(scheduler: Scheduler, recorder: _Recorder, most_steps: int) -> bool:
    """Run cycles until several in a row change nothing; return False if that takes too many steps."""
    # A workload that stopped before the last flavor goes on there in its next cycle.
    groups = [group for each in scheduler.snapshot.queues.values() for group in each.groups]
    flavors = max((len(group.flavors) for group in groups), default=0)
    idle = 0
    before = _measure(scheduler)
    most_steps += scheduler.snapshot.steps
    while idle <= flavors and scheduler.run_cycle():
        if scheduler.evicted:
            recorder.record(_list_evictions(scheduler))
            scheduler.release_evicted(recorder.held.keys())
        now = _measure(scheduler)
        idle = idle + 1 if now == before else 0
        before = now
        if scheduler.snapshot.steps > most_steps:
            return False
    return True


def _measure(scheduler: Scheduler) -> tuple[int, ...]:
    """Numbers that change if a cycle changes anything."""
    admitted = sum(map(len, scheduler.snapshot.workloads.values()))
    return admitted, sum(map(len, scheduler.parked.values()))


def _list_evictions(scheduler: Scheduler) -> list[Eviction]:
    return [Eviction(key, each.preemptor.key, each.target.reason) for key, each in scheduler.evictions.items()]
