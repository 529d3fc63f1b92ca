"""Which jobs a merge can affect: those in the cohorts whose queues or jobs change.

Cohorts do not share quota, so a decision in one does not depend on the jobs of another. A merge mostly changes one of
them, and only its jobs have to be decided about again. Nodes are shared, so with topologies every job counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.diff.queue_changes import JobName, Update
from jobgen.features.kueue.cluster_objects import Object
from jobgen.features.kueue.decision.admission_context import AdmissionContext
from jobgen.features.kueue.decision.answers import Job
from jobgen.features.kueue.objects import as_mapping, name_of
from jobgen.features.kueue.queue_jobs import QueuedJobs
from jobgen.features.kueue.queues.start_state import get_name

_WITHIN_COHORTS = frozenset(("ClusterQueue", "Cohort", "LocalQueue"))
"""Kinds whose objects belong to one cohort."""
_IN_WORKLOADS = frozenset(
    (
        "ClusterTrainingRuntime",
        "DeviceClass",
        "LimitRange",
        "Pod",
        "PriorityClass",
        "ResourceClaimTemplate",
        "RuntimeClass",
        "TrainingRuntime",
        "WorkloadPriorityClass",
    )
)
"""Kinds that count only by what they change in the workloads of jobs."""


def select_affected(
    old: QueuedJobs, new: QueuedJobs, updates: Mapping[JobName, Update]
) -> tuple[QueuedJobs, QueuedJobs]:
    """Return both sides with the jobs that have to be decided about."""
    contexts = (old.context, new.context)
    if _affects_all(*contexts):
        return old, new
    groups = _Groups(contexts)
    changed = {
        *(groups.find(name) for name in _list_changed_queues(*contexts)),
        *(groups.find(name) for name in _list_queues_of_changed_jobs(old, new, updates)),
    }

    # A job that loses its queue counts on both sides.
    names = {
        get_name(job)
        for side in (old, new)
        for job in side.jobs
        if any(groups.find(name) in changed for name in _list_queues(job, side.context))
    }
    before, after = (
        side._replace(jobs=tuple(job for job in side.jobs if get_name(job) in names)) for side in (old, new)
    )
    return before, after


def _affects_all(old: AdmissionContext, new: AdmissionContext) -> bool:
    """Whether every job may be affected: by nodes, flavors, namespaces, or the configuration of Kueue."""
    before, after = old.cluster, new.cluster
    if before.configuration != after.configuration or not old.queues or not new.queues:
        return True
    if any(flavor.topology for context in (old, new) for flavor in context.flavors.values()):
        return True
    kinds = {*before.by_kind, *after.by_kind} - _WITHIN_COHORTS - _IN_WORKLOADS
    return any(before.list_objects(kind) != after.list_objects(kind) for kind in kinds)


def _list_changed_queues(old: AdmissionContext, new: AdmissionContext) -> Iterator[str]:
    """Yield the ClusterQueues and cohorts whose objects differ, and those of LocalQueues that differ."""
    for kind in sorted(_WITHIN_COHORTS):
        before, after = (_index(context.cluster.list_objects(kind)) for context in (old, new))
        for key in {*before, *after}:
            sides = (before.get(key), after.get(key))
            if sides[0] == sides[1]:
                continue
            if kind == "LocalQueue":
                yield from (_queue(as_mapping(each.get("spec")).get("clusterQueue")) for each in sides if each)
            else:
                yield _queue(key[1]) if kind == "ClusterQueue" else _cohort(key[1])


def _index(objects: Sequence[Object]) -> dict[tuple[str, str], Object]:
    return {(str(as_mapping(each.get("metadata")).get("namespace") or ""), name_of(each)): each for each in objects}


def _list_queues_of_changed_jobs(old: QueuedJobs, new: QueuedJobs, updates: Mapping[JobName, Update]) -> Iterator[str]:
    before, after = ({get_name(job): job for job in side.jobs} for side in (old, new))
    for name in {**before, **after}:
        if name in updates or before.get(name) != after.get(name):
            for job, side in ((before.get(name), old), (after.get(name), new)):
                if job is not None:
                    yield from _list_queues(job, side.context)


def _list_queues(job: Job, context: AdmissionContext) -> Iterator[str]:
    """Yield the ClusterQueues of a job; a job that no queue can admit stands alone."""
    if not job.workloads:
        yield f"job {get_name(job)}"
    for each in job.workloads[:1]:
        yield _queue(context.find_cluster_queue(each)) if context.find_cluster_queue(each) else f"job {get_name(job)}"


def _queue(name: Any) -> str:
    return f"ClusterQueue {name}"


def _cohort(name: Any) -> str:
    return f"Cohort {name}"


class _Groups:
    """Queues and cohorts that are connected on one of the sides."""

    def __init__(self, contexts: Sequence[AdmissionContext]) -> None:
        self._parents: dict[str, str] = {}
        for context in contexts:
            for queue in context.queues.values():
                if queue.cohort:
                    self._join(_queue(queue.name), _cohort(queue.cohort))
            for cohort in context.cluster.list_cohorts():
                if cohort.parent:
                    self._join(_cohort(cohort.name), _cohort(cohort.parent))

    def _join(self, one: str, other: str) -> None:
        self._parents[self.find(one)] = self.find(other)

    def find(self, name: str) -> str:
        """Return the name that stands for all that are connected with this one."""
        while (parent := self._parents.get(name, name)) != name:
            name = parent
        return name
