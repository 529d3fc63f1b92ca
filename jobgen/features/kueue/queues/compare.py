"""What a merge does to the queues of an environment: who waits, who is preempted, and the quota before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.diff.queue_changes import (
    PREEMPTED,
    UNKNOWN,
    Change,
    JobName,
    QueueChanges,
    QueueObjectChange,
    QuotaAmounts,
    QuotaChange,
    Update,
    WorkloadChange,
)
from jobgen.features.kueue.amounts import show_amount
from jobgen.features.kueue.decision.admission_context import AdmissionContext
from jobgen.features.kueue.decision.answers import (
    ADMITTED,
    BORROWS,
    NEVER,
    PREEMPTS,
    RUNNING,
    UNMANAGED,
    WAITS,
    Answer,
    Decision,
    Job,
    decide,
)
from jobgen.features.kueue.decision.simulate import Eviction
from jobgen.features.kueue.decision.totals import Total
from jobgen.features.kueue.objects import as_mapping, name_of
from jobgen.features.kueue.queue_jobs import QueuedJobs
from jobgen.features.kueue.queues.affected import select_affected
from jobgen.features.kueue.queues.report import explain
from jobgen.features.kueue.queues.start_state import StartState, find_start_state, get_name

_RANKS = {UNKNOWN: 0, UNMANAGED: 0, RUNNING: 0, ADMITTED: 0, PREEMPTS: 0, BORROWS: 1, WAITS: 2, NEVER: 3}
"""How bad a decision is. A job that preempts others starts as soon as one that finds free quota."""
_OBJECT_KINDS = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Topology", "WorkloadPriorityClass")
_MAX_BEHIND = 20
_ORDER = {change: place for place, change in enumerate(Change)}


def compare_queues(
    env: str,
    old: QueuedJobs,
    new: QueuedJobs,
    updates: Mapping[JobName, Update],
    replaced: Mapping[JobName, JobName],
) -> QueueChanges | None:
    """Compare the decisions about an environment; None if nothing about its queues changes.

    `updates` says what the merge does to jobs; those that it does not name are unchanged, or only on one side.
    `replaced` has new jobs, and the old ones with other names that they replace.
    """
    old, new = select_affected(old, new, updates)
    jobs = tuple(_list_jobs(old.jobs, new.jobs, updates))
    before = decide(old.context, old.jobs) if old.context.queues else None
    workloads: tuple[WorkloadChange, ...] = ()
    after = None
    if new.context.queues:
        start = find_start_state(new.context, jobs, before, old.jobs, updates, replaced)
        after = decide(new.context, start.jobs, start.running, start.later)
        again = decide(new.context, jobs, later=start.later) if start.kept else after
        comparison = _Comparison(start, after, again)
        workloads = tuple(sorted(comparison.list_changes(), key=lambda each: (_ORDER[each.change], each.workload)))
    found = QueueChanges(
        env,
        workloads,
        tuple(_compare_totals(before.totals if before else (), after.totals if after else ())),
        tuple(_compare_objects(old.context, new.context)),
        settles=all(each.settles for each in (before, after) if each is not None),
        complete=all(each.is_complete for each in (before, after) if each is not None),
    )
    return found if found.workloads or found.quota or found.objects else None


def _list_jobs(old: Sequence[Job], new: Sequence[Job], updates: Mapping[JobName, Update]) -> Iterator[Job]:
    """Yield the jobs that are in the cluster after the merge."""
    kept = {get_name(job): job for job in old if updates.get(get_name(job)) is Update.NOT_APPLIED}
    for job in new:
        yield kept.pop(get_name(job), job)
    yield from kept.values()


class _Comparison:
    """Compares the decisions about workloads."""

    def __init__(self, start: StartState, after: Decision, again: Decision) -> None:
        self._start = start
        self._after = after
        self._again = {(each.job.kind, each.key): each for each in again.answers}
        self._evictions: dict[str, Eviction] = {}
        for eviction in after.evictions:
            self._evictions.setdefault(eviction.workload, eviction)
        self._arrivals: dict[str, list[tuple[int, str]]] = {}
        for each in after.answers:
            if each.decision == WAITS and each.key in start.later:
                self._arrivals.setdefault(each.cluster_queue, []).append((_priority(each), each.key))

    def list_changes(self) -> Iterator[WorkloadChange]:
        """Yield the workloads that fare differently."""
        for answer in self._after.answers:
            found = self._compare(answer)
            if found is not None:
                yield found

    def _compare(self, answer: Answer) -> WorkloadChange | None:
        prior = self._start.before.get((answer.job.kind, answer.key))
        if answer.key in self._start.kept and prior is not None:
            return self._compare_kept(answer, prior)
        if prior is None and get_name(answer.job) not in self._start.known:
            return None if answer.decision == UNMANAGED else _describe(Change.NEW, answer, "")
        before = UNKNOWN if prior is None else prior.decision
        difference = _RANKS[answer.decision] - _RANKS[before]
        if difference:
            is_known = prior is not None or difference > 1
            return _describe(Change.WORSE if difference > 0 else Change.BETTER, answer, before) if is_known else None
        behind = self._list_ahead(answer, prior) if prior is not None and answer.decision == WAITS else ()
        return _describe(Change.LONGER, answer, before)._replace(behind=behind) if behind else None

    def _compare_kept(self, answer: Answer, prior: Answer) -> WorkloadChange | None:
        """Compare a workload that the merge itself does not stop."""
        eviction = self._evictions.get(answer.key)
        if eviction is not None:
            found = _describe(Change.PREEMPTED, answer, prior.decision)
            return found._replace(
                after=PREEMPTED,
                reason=answer.reason,
                requeued=answer.decision,
                preempted_by=eviction.preemptor,
                rule=eviction.reason,
            )
        again = self._again.get((answer.job.kind, answer.key), answer)
        if _RANKS[again.decision] < _RANKS[WAITS]:
            return None
        found = _describe(Change.RESTART, again, prior.decision)
        return found._replace(after=RUNNING, requeued=again.decision, cluster_queue=prior.cluster_queue)

    def _list_ahead(self, answer: Answer, prior: Answer) -> tuple[str, ...]:
        """List the new workloads that use what a waiting one lacks, or are before it in its queue."""
        using = [each for each in answer.blockers if each in self._start.later and each not in prior.blockers]
        arrivals = self._arrivals.get(answer.cluster_queue, ())
        ahead = [key for priority, key in arrivals if priority > _priority(answer) and key != answer.key]
        return tuple(dict.fromkeys((*using, *ahead)))[:_MAX_BEHIND]


def _priority(answer: Answer) -> int:
    return answer.workload.priority if answer.workload else 0


def _describe(change: Change, answer: Answer, before: str) -> WorkloadChange:
    behind = answer.blockers if answer.decision == WAITS else ()
    return WorkloadChange(
        change, answer.key, answer.job.kind, answer.cluster_queue, before, answer.decision, explain(answer), behind
    )


def _compare_totals(before: Sequence[Total], after: Sequence[Total]) -> Iterator[QuotaChange]:
    """Yield the totals that differ: those of queues, then those of cohorts."""
    old, new = ({each[:4]: each for each in totals} for totals in (before, after))
    for key in sorted({**old, **new}):
        amounts = _show_amounts(old.get(key)), _show_amounts(new.get(key))
        if amounts[0] != amounts[1]:
            yield QuotaChange(*key, *amounts)


def _show_amounts(total: Total | None) -> QuotaAmounts | None:
    if total is None:
        return None
    return QuotaAmounts(*(show_amount(total.resource, getattr(total, name)) for name in QuotaAmounts._fields))


def _compare_objects(old: AdmissionContext, new: AdmissionContext) -> Iterator[QueueObjectChange]:
    for kind in _OBJECT_KINDS:
        before, after = (
            {
                (str(as_mapping(each.get("metadata")).get("namespace") or ""), name_of(each)): each
                for each in context.cluster.list_objects(kind)
            }
            for context in (old, new)
        )
        for key in sorted({*before, *after}):
            if key not in before or key not in after:
                yield QueueObjectChange("added" if key in after else "removed", kind, *key)
            elif _without_status(before[key]) != _without_status(after[key]):
                yield QueueObjectChange("changed", kind, *key)


def _without_status(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is written about an object, without what the cluster adds."""
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}
