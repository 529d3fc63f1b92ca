"""What a merge does to the queues of an environment: who waits, who is preempted, and the quota before and after.

The jobs of the old state have arrived in an empty cluster. Those that were admitted run. They keep their admission,
even if the new quota is too small for it, unless the merge restarts them or their queue is drained. Those that waited
go on waiting. New and restarted jobs arrive after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.compare.changes import (
    PREEMPTED,
    UNKNOWN,
    Balance,
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
    RUNS,
    UNMANAGED,
    WAITS,
    Answer,
    Decision,
    Eviction,
    Job,
    Total,
    decide,
)
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.objects import ClusterQueue, as_mapping, name_of
from jobgen.features.kueue.queues.report import collect_environment, explain, find_workers, list_left_out
from jobgen.features.kueue.quota import show_amount
from jobgen.features.kueue.workloads import Workload
from jobgen.model.data import Plain
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import may_mention
from jobgen.pipeline.object_summary import ObjectSummary
from jobgen.rendering.environment import Rendered
from jobgen.repo import layout
from jobgen.spec.overlay import Cluster


def get_name(job: Job) -> JobName:
    """Return what identifies a job on both sides."""
    return (job.kind, job.namespace, job.name)


def _list_keys(job: Job) -> list[str]:
    return [each.key for each in job.workloads] or [f"{job.namespace}/{job.name}"]


def _describe_shape(workload: Workload) -> Any:
    """Return what a workload asks of its queue."""
    pods = [(each.name, each.count, each.min_count, each.requests, each.topology) for each in workload.pod_sets]
    return (workload.queue, pods)


def release(workload: Workload) -> Workload:
    """Return a workload without quota."""
    return workload._replace(cluster_queue="", admission=(), reserved="", cluster="")


class _Merge:
    """What a merge does to workloads; the decisions about the old state, and its jobs, are known."""

    def __init__(
        self,
        context: AdmissionContext,
        before: Decision | None,
        old: Sequence[Job],
        updates: Mapping[JobName, Update],
        replaced: Mapping[JobName, JobName],
    ) -> None:
        self._context = context
        self._before = {(each.job.kind, each.key): each for each in before.answers} if before else {}
        self._outside = {get_name(job) for job in context.outside}
        """The old decisions, by kind and key."""
        self._old = {get_name(job): job for job in old}
        self._updates = updates
        self._replaced = replaced
        self.later: set[str] = set()
        """The workloads that arrive with the merge."""
        self.kept: dict[str, Workload] = {}
        """The workloads that the merge itself does not stop."""

    def start(self, jobs: Sequence[Job]) -> tuple[list[Job], frozenset[str]]:
        """Return the jobs when the merge arrives, and which workloads run; those that keep running have admissions."""
        # The workloads of a job also have other names if a job of another kind gets its name.
        for job in jobs:
            former = self._old.get(self._replaced.get(get_name(job), get_name(job)))
            for key, other in zip(_list_keys(job), _list_keys(former) if former else (), strict=False):
                if former and (former.kind, other) in self._before:
                    self._before[job.kind, key] = self._before[former.kind, other]
        jobs = list(map(self._restore, jobs))
        running: set[str] = set()
        for job in jobs:
            update = self._updates.get(get_name(job), Update.UNCHANGED)
            for workload in job.workloads:
                prior = self._before.get((job.kind, workload.key))
                if update is Update.RESTARTED or (get_name(job) not in self._old and not workload.reserved):
                    self.later.add(workload.key)
                elif prior and prior.decision in RUNS and prior.workload and not self._context.is_drained(workload):
                    if update is Update.IN_PLACE and _describe_shape(workload) != _describe_shape(prior.workload):
                        running.add(workload.key)
                    else:
                        self.kept[workload.key] = prior.workload._replace(key=workload.key)
        # The kept admissions, in their order, come before all others.
        admitted = [each for each in self.kept.values() if each.cluster_queue in self._context.queues]
        admitted.sort(key=lambda each: (each.reserved, each.created))
        carried = {each.key: each._replace(reserved=f"{place:08}") for place, each in enumerate(admitted)}

        def carry(workload: Workload) -> Workload:
            is_stopped = workload.key in self.later or self._context.is_drained(workload)
            found = carried.get(workload.key, release(workload) if is_stopped else workload)
            names = ("cluster_queue", "admission", "reserved", "cluster")
            return workload._replace(**{name: getattr(found, name) for name in names})

        started = [job._replace(workloads=tuple(map(carry, job.workloads))) for job in jobs]
        return started, frozenset(running) | carried.keys()

    def _restore(self, job: Job) -> Job:
        """Return a job with the workloads that run, although Kueue would not create them any more."""
        former = self._old.get(get_name(job))
        is_stopped = self._updates.get(get_name(job)) is Update.RESTARTED
        if is_stopped or job.obstacle is None or former is None or not former.workloads:
            return job
        prior = [self._before.get((job.kind, key)) for key in _list_keys(former)]
        is_running = all(each is not None and each.decision in RUNS for each in prior)
        return job._replace(workloads=former.workloads, obstacle=None) if is_running else job

    def compare(self, after: Decision, again: Decision) -> Iterator[WorkloadChange]:
        """Yield the workloads that fare differently; `again` are the decisions if everything is started again."""
        restarted = {(each.job.kind, each.key): each for each in again.answers}
        evictions = {each.workload: each for each in reversed(after.evictions)}
        arrivals: dict[str, list[Answer]] = {}
        for each in after.answers:
            if each.decision == WAITS and each.key in self.later:
                arrivals.setdefault(each.cluster_queue, []).append(each)
        for answer in after.answers:
            name = (answer.job.kind, answer.key)
            prior = self._before.get(name)
            if get_name(answer.job) in self._outside:
                found = _compare_answers(prior or answer._replace(decision=RUNNING), answer, evictions)
            elif answer.key in self.kept and prior is not None:
                found = _compare_kept(answer, prior, evictions.get(answer.key), restarted.get(name, answer))
            elif prior is None and get_name(answer.job) not in self._old and get_name(answer.job) not in self._replaced:
                found = None if _is_unqueued(answer) else _describe(Change.NEW, answer, "")
            else:
                found = self._compare_waiting(answer, prior, arrivals.get(answer.cluster_queue, ()))
            if found is not None:
                yield found

    def _compare_waiting(
        self, answer: Answer, prior: Answer | None, arrivals: Sequence[Answer]
    ) -> WorkloadChange | None:
        """Compare a workload that does not keep running; `arrivals` are the new workloads that wait in its queue."""
        before = UNKNOWN if prior is None else prior.decision
        difference = _rank(answer) - (0 if prior is None else _rank(prior))
        if difference:
            is_known = prior is not None or difference > 1
            return _describe(Change.WORSE if difference > 0 else Change.BETTER, answer, before) if is_known else None
        if prior is None or answer.decision != WAITS:
            return _compare_places(prior, answer) if prior else None
        # New workloads that use what it lacks, or are before it in its queue.
        using = [each for each in answer.blockers if each in self.later and each not in prior.blockers]
        ahead = [each.key for each in arrivals if _priority(each) > _priority(answer) and each.key != answer.key]
        behind = tuple(dict.fromkeys((*using, *ahead)))[:20]
        return _describe(Change.LONGER, answer, before)._replace(behind=behind) if behind else None


def _is_unqueued(answer: Answer) -> bool:
    """Return True if a job names no queue, so that Kueue has nothing to decide."""
    return answer.decision == UNMANAGED and not answer.job.queue


def _rank(answer: Answer) -> int:
    return 0 if _is_unqueued(answer) else _RANKS[answer.decision]


def _priority(answer: Answer) -> int:
    return answer.workload.priority if answer.workload else 0


def _compare_kept(answer: Answer, prior: Answer, eviction: Eviction | None, again: Answer) -> WorkloadChange | None:
    """Compare a workload that the merge itself does not stop."""
    if eviction is not None:
        found = _describe(Change.PREEMPTED, answer, prior.decision)
        return found._replace(
            after=PREEMPTED,
            reason=answer.reason,
            requeued=answer.decision,
            preempted_by=eviction.preemptor,
            rule=eviction.reason,
        )
    if _rank(again) < _RANKS[WAITS]:
        return None
    found = _describe(Change.RESTART, again, prior.decision)
    return found._replace(after=RUNNING, requeued=again.decision, cluster_queue=prior.cluster_queue)


_WITHIN_COHORTS = frozenset(("ClusterQueue", "Cohort", "LocalQueue"))
"""Kinds whose objects belong to one cohort."""
_IN_WORKLOADS = frozenset(
    """ClusterTrainingRuntime DeviceClass LimitRange Pod PriorityClass ResourceClaimTemplate RuntimeClass
    TrainingRuntime WorkloadPriorityClass""".split()
)
"""Kinds that count only by what they change in the workloads of jobs."""


def select_affected(
    old: QueuedJobs, new: QueuedJobs, updates: Mapping[JobName, Update]
) -> tuple[QueuedJobs, QueuedJobs]:
    """Return both sides with the jobs that have to be decided about."""
    if _affects_all(old.context, new.context):
        return old, new
    groups = _Groups((old.context, new.context))
    changed = {groups.find(name) for name in _list_changed_queues(old.context, new.context)}
    before, after = ({get_name(job): job for job in side.jobs} for side in (old, new))
    for name in {**before, **after}:
        if name in updates or before.get(name) != after.get(name):
            sides = ((before.get(name), old), (after.get(name), new))
            changed |= {groups.find(_find_queue(job, side.context)) for job, side in sides if job}

    # A job that loses its queue counts on both sides.
    names = {
        get_name(job)
        for side in (old, new)
        for job in side.jobs
        if groups.find(_find_queue(job, side.context)) in changed
    }
    before_merge, after_merge = (
        side._replace(jobs=tuple(job for job in side.jobs if get_name(job) in names)) for side in (old, new)
    )
    return before_merge, after_merge


def _affects_all(old: AdmissionContext, new: AdmissionContext) -> bool:
    """Return True if every job may be affected: by nodes, flavors, namespaces, or the configuration of Kueue."""
    before, after = old.cluster, new.cluster
    if before.configuration != after.configuration or not old.queues or not new.queues:
        return True
    if old.dispatcher or new.dispatcher or old.outside != new.outside:
        # Jobs of all queues can meet in a worker cluster.
        return True
    if any(flavor.topology for context in (old, new) for flavor in context.flavors.values()):
        return True
    kinds = {*before.by_kind, *after.by_kind} - _WITHIN_COHORTS - _IN_WORKLOADS
    return any(before.list_objects(kind) != after.list_objects(kind) for kind in kinds)


def _index_objects(context: AdmissionContext, kind: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the objects of a kind by namespace and name."""
    return {
        (str(as_mapping(each.get("metadata")).get("namespace") or ""), name_of(each)): each
        for each in context.cluster.list_objects(kind)
    }


_GroupMember = tuple[str, Any]
"""`ClusterQueue`, `Cohort` or `job`, and its name."""


def _list_changed_queues(old: AdmissionContext, new: AdmissionContext) -> Iterator[_GroupMember]:
    """Yield the ClusterQueues and cohorts whose objects differ, and those of LocalQueues that differ."""
    for kind in sorted(_WITHIN_COHORTS):
        before, after = (_index_objects(context, kind) for context in (old, new))
        for key in {*before, *after}:
            sides = (before.get(key), after.get(key))
            if sides[0] == sides[1]:
                continue
            if kind == "LocalQueue":
                specs = [as_mapping(each.get("spec")) for each in sides if each]
                yield from (("ClusterQueue", str(spec.get("clusterQueue"))) for spec in specs)
            else:
                yield kind, key[1]


def _find_queue(job: Job, context: AdmissionContext) -> _GroupMember:
    """Return the ClusterQueue of a job; a job that no queue can admit stands alone."""
    queue = context.find_cluster_queue(job.workloads[0]) if job.workloads else ""
    return ("ClusterQueue", queue) if queue else ("job", get_name(job))


class _Groups:
    """Queues and cohorts that are connected on one of the sides."""

    def __init__(self, contexts: Sequence[AdmissionContext]) -> None:
        self._parents: dict[_GroupMember, _GroupMember] = {}
        for context in contexts:
            above = [(("ClusterQueue", each.name), each.cohort) for each in context.queues.values()]
            above += [(("Cohort", each.name), each.parent) for each in context.cluster.list_cohorts()]
            for member, cohort in above:
                if cohort:
                    self._parents[self.find(member)] = self.find(("Cohort", cohort))

    def find(self, member: _GroupMember) -> _GroupMember:
        """Return the member that stands for all that are connected with this one."""
        while (parent := self._parents.get(member, member)) != member:
            member = parent
        return member


def split_groups(queued: QueuedJobs) -> Iterator[QueuedJobs]:
    """Yield the jobs and queues that share neither quota nor nodes with others; all at once if there are topologies."""
    context, groups = queued.context, _Groups((queued.context,))
    if context.dispatcher or any(flavor.topology for flavor in context.flavors.values()):
        # Jobs of all queues can meet on a node, or in a worker cluster.
        yield queued
        return
    jobs: dict[_GroupMember, list[Job]] = {}
    queues: dict[_GroupMember, dict[str, ClusterQueue]] = {}
    for name, queue in context.queues.items():
        queues.setdefault(groups.find(("ClusterQueue", name)), {})[name] = queue
    for job in queued.jobs:
        jobs.setdefault(groups.find(_find_queue(job, context)), []).append(job)
    for member in sorted(queues.keys() & jobs.keys()):
        yield QueuedJobs(context.replace_queues(queues[member]), tuple(jobs[member]))


_RANKS = {RUNNING: 0, ADMITTED: 0, PREEMPTS: 0, BORROWS: 1, WAITS: 2, NEVER: 3, UNMANAGED: 4}
"""How bad a decision is. A job that preempts others starts as soon as one that finds free quota."""
_OBJECT_KINDS = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Topology", "WorkloadPriorityClass")


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
    # A Workload of a job that the merge removes or renames is not from outside.
    known = set(map(get_name, old.jobs))
    outside = [job for job in new.context.outside if get_name(job) not in known]
    new = new._replace(context=new.context.replace_outside(outside))
    old, new = select_affected(old, new, updates)
    # A job that the cluster refuses to change stays as it was, also if it is removed from the files.
    refused = {get_name(job): job for job in old.jobs if updates.get(get_name(job)) is Update.NOT_APPLIED}
    jobs = (*(refused.pop(get_name(job), job) for job in new.jobs), *refused.values())
    before = decide(old.context, old.jobs) if old.context.queues else None
    workloads: tuple[WorkloadChange, ...] = ()
    after = None
    if new.context.queues:
        merge = _Merge(new.context, before, old.jobs, updates, replaced)
        started, running = merge.start(jobs)
        after = decide(new.context, started, running, frozenset(merge.later))
        stopped = [job._replace(workloads=tuple(map(release, job.workloads))) for job in jobs]
        again = decide(new.context, stopped, later=frozenset(merge.later)) if merge.kept else after
        changes = merge.compare(after, again)
        order = list(Change)
        workloads = tuple(sorted(changes, key=lambda each: (order.index(each.change), each.workload)))
    found = _join(env, workloads, (old.context, before or _NOTHING), (new.context, after or _NOTHING))
    return found if found.workloads or found.quota or found.objects else None


_NOTHING = Decision((), (), settles=True, assumptions=())


def _join(
    env: str,
    workloads: tuple[WorkloadChange, ...],
    old: tuple[AdmissionContext, Decision],
    new: tuple[AdmissionContext, Decision],
) -> QueueChanges:
    """Return the changes of workloads, with those of quotas and objects."""
    before, after = old[1], new[1]
    objects = tuple(_compare_objects(old[0], new[0]))
    return QueueChanges(
        env,
        workloads,
        tuple(_compare_totals(before, after)),
        objects,
        settles=before.settles and after.settles,
        complete=before.is_complete and after.is_complete,
        balance=tuple(weigh(before, after)) if objects else (),
        left_out=list_left_out(new[0]),
        remarks=(*filter(None, [after.outside.describe()]), *_list_new_remarks(old[0], new[0])),
    )


def _list_new_remarks(old: AdmissionContext, new: AdmissionContext) -> Iterator[str]:
    known = set(old.list_remarks())
    yield from (each for each in new.list_remarks() if each not in known)


_OUTCOMES = (ADMITTED, PREEMPTED, WAITS, NEVER, UNMANAGED)


def weigh(before: Decision, after: Decision) -> Iterator[Balance]:
    """Yield how many workloads are admitted, preempted or wait, and which quota stays unused, on both sides."""
    counts = [Counter(map(_name_outcome, side.answers)) for side in (before, after)]
    for name in _OUTCOMES:
        if any(count[name] for count in counts):
            yield Balance(name, *(str(count[name]) for count in counts))
    unused = [_sum_unused(_list_totals(side)) for side in (before, after)]
    for cluster, flavor, resource in sorted({*unused[0], *unused[1]}):
        was, now = (show_amount(resource, side[cluster, flavor, resource]) for side in unused)
        yield Balance("unused", was, now, resource, flavor, cluster)


def _name_outcome(answer: Answer) -> str:
    """Return `admitted` for everything that runs, and `preempted` for what waits because it was evicted."""
    if answer.decision in RUNS:
        return ADMITTED
    return PREEMPTED if answer.evicted_by else "" if _is_unqueued(answer) else answer.decision


def _list_totals(decision: Decision) -> Iterator[tuple[str, Total]]:
    """Yield all totals, each with the worker cluster that has it; that of the cluster itself is empty."""
    yield from (("", total) for total in decision.totals)
    yield from decision.cluster_totals


def _sum_unused(totals: Iterable[tuple[str, Total]]) -> Counter[tuple[str, str, str]]:
    """Sum the quota that nothing uses, by worker cluster, flavor and resource."""
    tops: dict[tuple[int, str, str, str], tuple[int, int]] = {}
    for cluster, each in totals:
        # Of a tree, the cohort at the top has the sums of all.
        key = (each.tree, cluster, each.flavor, each.resource)
        tops[key] = max(tops.get(key, (0, 0)), (each.nominal, each.used))
    found = Counter[tuple[str, str, str]]()
    for (_, *names), (nominal, used) in tops.items():
        found[names[0], names[1], names[2]] += max(0, nominal - used)
    return found


def compare_decisions(env: str, old: QueuedJobs, new: QueuedJobs, before: Decision, after: Decision) -> QueueChanges:
    """Compare two decisions about an environment, in each of which all jobs arrive together."""
    known = {(each.job.kind, each.key): each for each in _list_answers(before, old.context)}
    evictions = {each.workload: each for each in after.evictions}
    answers = _list_answers(after, new.context)
    found = (_compare_answers(known.get((each.job.kind, each.key)), each, evictions) for each in answers)
    order = list(Change)
    changes = sorted((each for each in found if each), key=lambda each: (order.index(each.change), each.workload))
    both = (old.context, before), (new.context, after)
    return _join(env, tuple(changes), *both)._replace(balance=tuple(weigh(before, after)))


def _list_answers(decision: Decision, context: AdmissionContext) -> Iterator[Answer]:
    """Yield all answers, also those about workloads from outside that go on running."""
    yield from decision.answers
    keys = {each.key for each in decision.answers}
    for job in context.outside:
        workload = job.workloads[0]
        if workload.key not in keys:
            yield Answer(job, workload.key, RUNNING, "it runs already", workload.cluster_queue, workload)


def _compare_answers(prior: Answer | None, answer: Answer, evictions: Mapping[str, Eviction]) -> WorkloadChange | None:
    if prior is None:
        return None if _is_unqueued(answer) else _describe(Change.NEW, answer, "")
    if prior.decision in RUNS and answer.evicted_by:
        return _compare_kept(answer, prior, evictions[answer.key], answer)
    difference = _rank(answer) - _rank(prior)
    if not difference:
        return _compare_places(prior, answer)
    found = _describe(Change.WORSE if difference > 0 else Change.BETTER, answer, prior.decision)
    return found._replace(moved=_describe_move(prior, answer))


def _compare_places(prior: Answer, answer: Answer) -> WorkloadChange | None:
    """Compare a workload that runs on both sides: if it moves, or evicts others on one side only."""
    moved = _describe_move(prior, answer)
    # A job that runs is admitted again if it is restarted, which a diff says elsewhere.
    both = {ADMITTED if each.decision == RUNNING else each.decision for each in (prior, answer)}
    if not moved and len(both) < 2:
        return None
    return _describe(Change.MOVES, answer, prior.decision)._replace(moved=moved)


def _describe_move(prior: Answer, answer: Answer) -> str:
    """Return from which flavors or worker cluster to which ones a workload moves; empty if it does not."""
    if prior.cluster and answer.cluster and prior.cluster != answer.cluster:
        return f"from worker cluster `{prior.cluster}` to `{answer.cluster}`"
    if not (prior.decision in RUNS and answer.decision in RUNS and prior.workload and answer.workload):
        return ""
    old, new = (
        {(each.name, name): flavor for each in side.admission for name, flavor in each.flavors.items()}
        for side in (prior.workload, answer.workload)
    )
    moved = [key for key in old if key in new and old[key] != new[key]]
    names = (", ".join(dict.fromkeys(f"`{side[key]}`" for key in moved)) for side in (old, new))
    return f"from flavor {next(names)} to {next(names)}" if moved else ""


def keep_running(old: QueuedJobs, new: QueuedJobs, before: Decision) -> QueuedJobs:
    """Return the jobs of a changed cluster, of which those that run keep their admission.

    A job that changes, or that loses a node, is queued again.
    """
    running = tuple(each for each in before.answers if each.decision == RUNNING)
    if not running:
        return new
    known = {get_name(job): job for job in old.jobs}
    updates = {name: Update.RESTARTED for job in new.jobs if known.get(name := get_name(job)) != job}
    labels = [as_mapping(as_mapping(each.get("metadata")).get("labels")) for each in new.context.cluster.list_nodes()]
    places = {(str(key), str(value)) for each in labels for key, value in each.items()}
    for answer in running:
        for pod_set in answer.workload.admission if answer.workload else ():
            domains = (zip(pod_set.levels[-len(values) :], values, strict=False) for values, _ in pod_set.domains)
            if labels and any(each not in places for domain in domains for each in domain):
                updates[get_name(answer.job)] = Update.RESTARTED
    jobs, _ = _Merge(new.context, before._replace(answers=running), old.jobs, updates, {}).start(new.jobs)
    return new._replace(jobs=tuple(jobs))


def _describe(change: Change, answer: Answer, before: str) -> WorkloadChange:
    behind = answer.blockers if answer.decision == WAITS else ()
    return WorkloadChange(
        change, answer.key, answer.job.kind, answer.cluster_queue, before, answer.decision, explain(answer), behind
    )


def _compare_totals(before: Decision, after: Decision) -> Iterator[QuotaChange]:
    """Yield the totals that differ: those of queues, then those of cohorts; then those of worker clusters."""
    old, new = (
        {
            (cluster, *each[:4]): QuotaAmounts(
                *(show_amount(each.resource, getattr(each, name)) for name in QuotaAmounts._fields)
            )
            for cluster, each in _list_totals(side)
        }
        for side in (before, after)
    )
    for key in sorted({**old, **new}):
        if old.get(key) != new.get(key):
            yield QuotaChange(*key[1:], old.get(key), new.get(key), key[0])


def _compare_objects(old: AdmissionContext, new: AdmissionContext) -> Iterator[QueueObjectChange]:
    for kind in _OBJECT_KINDS:
        before, after = (_index_objects(context, kind) for context in (old, new))
        for key in sorted({*before, *after}):
            if key not in before or key not in after:
                yield QueueObjectChange("added" if key in after else "removed", kind, *key)
            elif _without_status(before[key]) != _without_status(after[key]):
                yield QueueObjectChange("changed", kind, *key)


def _without_status(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is written about an object, without what the cluster adds."""
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


_UPDATES = {
    Effect.IN_PLACE: Update.IN_PLACE,
    Effect.NO_EFFECT: Update.UNCHANGED,
    Effect.NEW_RUN: Update.RESTARTED,
    Effect.RESTART: Update.RESTARTED,
    Effect.STOPS_RUNNING: Update.RESTARTED,
    Effect.REJECTED: Update.NOT_APPLIED,
}


def find_queue_changes(old: Snapshot, new: Snapshot, impacts: Sequence[Impact]) -> Iterator[QueueChanges]:
    """Yield what changes in each environment that has a ClusterQueue on either side."""
    before, after = (_group_objects(side) for side in (old, new))
    by_env: dict[str, list[Impact]] = {}
    for impact in impacts:
        by_env.setdefault(impact.current.env, []).append(impact)
    for env in sorted({*before, *after}):
        sides = (_Side(old, env, before.get(env)), _Side(new, env, after.get(env)))
        is_same = env not in by_env and sides[0].cluster == sides[1].cluster and sides[0].state == sides[1].state
        if not is_same and any(side.may_have_queues() for side in sides):
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
        clusters = (self.cluster, *find_workers(self.project, self.cluster).values())
        folders = dict.fromkeys(each.state for each in clusters if each.state)
        files = (file for folder in folders for file in layout.read_state(self.project.layers, folder))
        self.state = {file.path: file.content for file in files}

    def may_have_queues(self) -> bool:
        """Return True if there may be a ClusterQueue; files of the exported state are searched, but not parsed."""
        is_rendered = any(one.identity.kind == "ClusterQueue" for one in self.objects)
        return is_rendered or any(may_mention(content, b"ClusterQueue") for content in self.state.values())

    def collect(self, findings: list[Finding]) -> QueuedJobs:
        """Collect the jobs and queues.

        Raises:
            SummaryError: Only the summary of an object is known.

        """
        objects: list[Mapping[str, Plain]] = [one.object for one in self.objects]
        if any(isinstance(each, ObjectSummary) for each in objects):
            raise SummaryError
        return collect_environment(self.env, objects, self.project, self.cluster, findings)


def _get_name(rendered: Rendered) -> JobName:
    identity = rendered.identity
    return (identity.kind, identity.namespace or "default", identity.name)


def _compare(env: str, old: _Side, new: _Side, impacts: Sequence[Impact]) -> QueueChanges | None:
    findings: list[Finding] = []
    before, after = (side.collect(findings) for side in (old, new))
    wrong = [each for each in findings if each.severity is Severity.ERROR]
    if wrong:
        errors = (f"{each.location.file}:{each.location.line}: {each.message}" for each in wrong)
        return QueueChanges(env, errors=tuple(dict.fromkeys(errors)))
    if not before.context.queues and not after.context.queues:
        return None
    known = set(map(get_name, before.jobs))
    updates: dict[JobName, Update] = {}
    for impact in impacts:
        if impact.old is None or impact.is_replaced or _get_name(impact.old) not in known:
            continue
        update = _UPDATES[impact.outcome.effect]
        if impact.action == "removed":
            # An object that is only removed from the files stays in the cluster.
            update = Update.NOT_APPLIED if impact.outcome.effect is Effect.NO_EFFECT else Update.RESTARTED
        updates[_get_name(impact.old)] = update
    # New objects with other names than the old ones that they replace, such as runs with a hash.
    replaced = {
        _get_name(each.new): name
        for each in impacts
        if each.is_replaced and each.old and each.new and (name := _get_name(each.old)) in known
    }
    return compare_queues(env, before, after, updates, replaced)
