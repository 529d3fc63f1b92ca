"""The state of the queues when a merge arrives: which jobs run, and which arrive with it.

The jobs of the old state have arrived in an empty cluster. Those that were admitted run. They keep their admission,
even if the new quota is too small for it, unless the merge restarts them or their queue is drained. Those that waited
go on waiting. New and restarted jobs arrive after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobgen.diff.queue_changes import JobName, Update
from jobgen.features.kueue.decision.admission_context import AdmissionContext
from jobgen.features.kueue.decision.answers import ADMITTED, BORROWS, PREEMPTS, RUNNING, Answer, Decision, Job
from jobgen.features.kueue.workload.workloads import Workload
from jobgen.model.named_tuple import NamedTuple

_RUNS = frozenset((RUNNING, ADMITTED, BORROWS, PREEMPTS))
_DRAINS = "HoldAndDrain"


def get_name(job: Job) -> JobName:
    """Return what identifies a job on both sides."""
    return (job.kind, job.namespace, job.name)


class StartState(NamedTuple):
    """The state of the cluster when the merge arrives."""

    jobs: tuple[Job, ...]
    """The jobs; those that keep running have their admission."""
    running: frozenset[str]
    later: frozenset[str]
    """The workloads that arrive with the merge."""
    kept: frozenset[str]
    """The workloads that the merge itself does not stop."""
    before: Mapping[tuple[str, str], Answer]
    """The old decisions, by kind and key."""
    known: frozenset[JobName]
    """The jobs of the old state."""


def find_start_state(
    context: AdmissionContext,
    jobs: Sequence[Job],
    before: Decision | None,
    old: Sequence[Job],
    updates: Mapping[JobName, Update],
    replaced: Mapping[JobName, JobName],
) -> StartState:
    """Find the start: `jobs` are those after the merge, `old` those before it, with the decision about them."""
    answers = {(each.job.kind, each.key): each for each in before.answers} if before else {}
    known = {get_name(job): job for job in old}
    _add_replacements(answers, jobs, known, replaced)
    stopped = {name for name, update in updates.items() if update is Update.RESTARTED}
    jobs = [job if get_name(job) in stopped else _restore(job, known.get(get_name(job)), answers) for job in jobs]
    running, later, kept = set[str](), set[str](), dict[str, Workload]()
    for job in jobs:
        update = updates.get(get_name(job), Update.UNCHANGED)
        for workload in job.workloads:
            if update is Update.RESTARTED or get_name(job) not in known:
                later.add(workload.key)
                continue
            prior = answers.get((job.kind, workload.key))
            if prior is None or prior.decision not in _RUNS or prior.workload is None or _is_drained(workload, context):
                continue
            if update is Update.IN_PLACE and _describe_shape(workload) != _describe_shape(prior.workload):
                running.add(workload.key)
            else:
                kept[workload.key] = prior.workload._replace(key=workload.key)
    carried = _order_admissions(each for each in kept.values() if each.cluster_queue in context.queues)
    return StartState(
        tuple(_carry(job, carried) for job in jobs),
        frozenset(running) | carried.keys(),
        frozenset(later),
        frozenset(kept),
        answers,
        frozenset((*known, *replaced)),
    )


def _add_replacements(
    answers: dict[tuple[str, str], Answer],
    jobs: Sequence[Job],
    old: Mapping[JobName, Job],
    replaced: Mapping[JobName, JobName],
) -> None:
    """Give the workloads of a job with another name the decisions about the job that it replaces.

    The workloads of a job have other names, too, if a job of another kind gets its name.
    """
    for job in jobs:
        former = old.get(replaced.get(get_name(job), get_name(job)))
        for key, other in zip(_list_keys(job), _list_keys(former) if former else (), strict=False):
            prior = answers.get((former.kind, other)) if former else None
            if prior is not None:
                answers[job.kind, key] = prior


def _list_keys(job: Job) -> list[str]:
    return [each.key for each in job.workloads] or [f"{job.namespace}/{job.name}"]


def _restore(job: Job, former: Job | None, answers: Mapping[tuple[str, str], Answer]) -> Job:
    """Return a job with the workloads that run, although Kueue would not create them any more."""
    if job.obstacle is None or former is None or not former.workloads:
        return job
    prior = [answers.get((job.kind, key)) for key in _list_keys(former)]
    if any(each is None or each.decision not in _RUNS for each in prior):
        return job
    return job._replace(workloads=former.workloads, obstacle=None)


def _is_drained(workload: Workload, context: AdmissionContext) -> bool:
    """Whether the queue of a workload evicts what runs. A queue that only holds does not."""
    local = context.local_queues.get((workload.namespace, workload.queue), {})
    queue = context.queues.get(context.find_cluster_queue(workload))
    return local.get("stopPolicy") == _DRAINS or (queue is not None and queue.stop_policy == _DRAINS)


def _describe_shape(workload: Workload) -> Any:
    """Return what a workload asks of its queue."""
    pods = [(each.name, each.count, each.min_count, each.requests, each.topology) for each in workload.pod_sets]
    return (workload.queue, pods)


def _order_admissions(workloads: Iterable[Workload]) -> dict[str, Workload]:
    """Return workloads by key, in the order of their admission, which is before that of all others."""
    ordered = sorted(workloads, key=lambda each: (each.reserved, each.created))
    return {each.key: each._replace(reserved=f"{place:08}") for place, each in enumerate(ordered)}


def _carry(job: Job, carried: Mapping[str, Workload]) -> Job:
    """Return a job whose workloads have the admission that they got before the merge."""
    if not any(each.key in carried for each in job.workloads):
        return job
    return job._replace(
        workloads=tuple(
            each._replace(cluster_queue=found.cluster_queue, admission=found.admission, reserved=found.reserved)
            if (found := carried.get(each.key))
            else each
            for each in job.workloads
        )
    )
