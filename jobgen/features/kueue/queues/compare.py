"""What a merge does to the queues of an environment: who waits, who is preempted, and the quota before and after.

The jobs of the old state have arrived in an empty cluster. Those that were admitted run. They keep their admission,
even if the new quota is too small for it, unless the merge restarts them or their queue is drained. Those that waited
go on waiting. New and restarted jobs arrive after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jobgen.compare.changes import (
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
from jobgen.compare.impact import Impact
from jobgen.compare.operator_behavior import Effect
from jobgen.compare.snapshot import Snapshot, SummaryError
from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import (
    ADMITTED,
    BORROWS,
    NEVER,
    PREEMPTS,
    RUNNING,
    UNMANAGED,
    WAITS,
    Answer,
    Decision,
    Eviction,
    Job,
    Total,
    decide,
)
from jobgen.features.kueue.objects import as_mapping, name_of
from jobgen.features.kueue.queue_jobs import QueuedJobs
from jobgen.features.kueue.queues.report import explain
from jobgen.features.kueue.quota import show_amount
from jobgen.features.kueue.workloads import Workload
from jobgen.model.data import Plain
from jobgen.model.finding import Finding, Severity
from jobgen.pipeline.object_summary import ObjectSummary
from jobgen.rendering.environment import Rendered
from jobgen.repo import layout
from jobgen.spec.overlay import Cluster

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
    """Return True if the queue of a workload evicts what runs. A queue that only holds does not."""
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
    """Return True if every job may be affected: by nodes, flavors, namespaces, or the configuration of Kueue."""
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
        before, after = (
            {(str(as_mapping(each.get("metadata")).get("namespace") or ""), name_of(each)): each for each in objects}
            for objects in (old.cluster.list_objects(kind), new.cluster.list_objects(kind))
        )
        for key in {*before, *after}:
            sides = (before.get(key), after.get(key))
            if sides[0] == sides[1]:
                continue
            if kind == "LocalQueue":
                yield from (_queue(as_mapping(each.get("spec")).get("clusterQueue")) for each in sides if each)
            else:
                yield _queue(key[1]) if kind == "ClusterQueue" else _cohort(key[1])


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


if TYPE_CHECKING:
    from jobgen.features.kueue.queue_jobs import QueuedJobs

_UPDATES = {
    Effect.IN_PLACE: Update.IN_PLACE,
    Effect.NO_EFFECT: Update.UNCHANGED,
    Effect.NEW_RUN: Update.RESTARTED,
    Effect.RESTART: Update.RESTARTED,
    Effect.STOPS_RUNNING: Update.RESTARTED,
    Effect.REJECTED: Update.NOT_APPLIED,
}
_CLUSTER_QUEUE = "ClusterQueue"
_DEFAULT_NAMESPACE = "default"


def find_queue_changes(old: Snapshot, new: Snapshot, impacts: Sequence[Impact]) -> Iterator[QueueChanges]:
    """Yield what changes in each environment that has a ClusterQueue on either side."""
    before, after = (_group_objects(side) for side in (old, new))
    by_env: dict[str, list[Impact]] = {}
    for impact in impacts:
        by_env.setdefault(impact.current.env, []).append(impact)
    for env in sorted({*before, *after}):
        sides = (_Side(old, env, before.get(env)), _Side(new, env, after.get(env)))
        states = [dict(side.read_state()) for side in sides]
        is_same = env not in by_env and sides[0].cluster == sides[1].cluster and states[0] == states[1]
        if not is_same and any(map(_has_queues, sides, states)):
            found = _compare(env, *sides, by_env.get(env, ()))
            if found is not None:
                yield found


def _group_objects(side: Snapshot) -> dict[str, list[Rendered]]:
    """The objects of each environment; an environment of a jobs repository may have none."""
    found: dict[str, list[Rendered]] = {} if side.is_tree else {env: [] for env in side.environments}
    for one in side.objects:
        found.setdefault(one.env, []).append(one)
    return found


class _Side:
    """An environment of one side; `objects` is None if the side does not have it."""

    def __init__(self, snapshot: Snapshot, env: str, objects: Sequence[Rendered] | None) -> None:
        self.project = snapshot.project
        self.env = env
        self.objects = objects or ()
        is_known = objects is not None and (not env or env in self.project.overlays)
        self.cluster = self.project.environment(env, []).cluster if is_known else Cluster()

    def read_state(self) -> Iterator[tuple[str, bytes]]:
        """Yield the paths and contents of the files of the exported state."""
        if self.cluster.state:
            for file in layout.read_state(self.project.root, self.cluster.state):
                yield file.path, file.content

    def collect(self, findings: list[Finding]) -> QueuedJobs:
        """Collect the jobs and queues.

        Raises:
            SummaryError: Only the summary of an object is known.

        """
        from jobgen.features.kueue.queues.report import collect_environment

        objects: list[Mapping[str, Plain]] = [one.object for one in self.objects]
        if any(isinstance(each, ObjectSummary) for each in objects):
            raise SummaryError
        return collect_environment(self.env, objects, self.project, self.cluster, findings)


def _has_queues(side: _Side, state: Mapping[str, bytes]) -> bool:
    """Return True if a side may have a ClusterQueue; files of the exported state are searched, but not parsed."""
    is_rendered = any(one.identity.kind == _CLUSTER_QUEUE for one in side.objects)
    return is_rendered or any(_CLUSTER_QUEUE.encode() in content for content in state.values())


def _get_name(rendered: Rendered) -> JobName:
    identity = rendered.identity
    return (identity.kind, identity.namespace or _DEFAULT_NAMESPACE, identity.name)


def _list_updates(impacts: Iterable[Impact]) -> Iterator[tuple[JobName, Update]]:
    """Yield what the merge does to objects of the old side."""
    for impact in impacts:
        if impact.old is None or impact.is_replaced:
            continue
        update = _UPDATES[impact.outcome.effect]
        if impact.action == "removed":
            # An object that is only removed from the files stays in the cluster.
            update = Update.NOT_APPLIED if impact.outcome.effect is Effect.NO_EFFECT else Update.RESTARTED
        yield _get_name(impact.old), update


def _compare(env: str, old: _Side, new: _Side, impacts: Sequence[Impact]) -> QueueChanges | None:

    findings: list[Finding] = []
    before, after = (side.collect(findings) for side in (old, new))
    wrong = [each for each in findings if each.severity is Severity.ERROR]
    if wrong:
        errors = (f"{each.location.file}:{each.location.line}: {each.message}" for each in wrong)
        return QueueChanges(env, errors=tuple(dict.fromkeys(errors)))
    if not before.context.queues and not after.context.queues:
        return None
    known = {(job.kind, job.namespace, job.name) for job in before.jobs}
    updates = {name: each for name, each in _list_updates(impacts) if name in known}
    # New objects with other names than the old ones that they replace, such as runs with a hash.
    replaced = {
        _get_name(each.new): name
        for each in impacts
        if each.is_replaced and each.old and each.new and (name := _get_name(each.old)) in known
    }
    return compare_queues(env, before, after, updates, replaced)
