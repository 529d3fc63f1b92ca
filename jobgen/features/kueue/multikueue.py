"""MultiKueue: which worker cluster runs a job for which the manager cluster has quota.

The manager sends a copy of each such workload to worker clusters. The first of them that admits its copy runs the job,
and the others lose theirs. Which one is first is a race if several have room; the first in order is assumed then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import NEVER, WAITS, Answer, ClusterAnswer, Decision, Job, Outside, Total, decide
from jobgen.features.kueue.assignment import Mode
from jobgen.features.kueue.captured import read_running
from jobgen.features.kueue.cluster_objects import Version, get_group, group_objects, is_past, parse_configuration
from jobgen.features.kueue.cycle import Scheduler
from jobgen.features.kueue.job_workloads import JobContext, charge_devices, read_context, remove_placements
from jobgen.features.kueue.objects import STRICT_FIFO, as_list, as_mapping, find_namespace, name_of
from jobgen.features.kueue.obstacles import Obstacle
from jobgen.features.kueue.queue_order import find_shape
from jobgen.features.kueue.quota import FlavorResource
from jobgen.features.kueue.readiness import is_connected
from jobgen.features.kueue.requests import charge_pod
from jobgen.features.kueue.workloads import PodSetAdmission, Workload
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import list_alternatives
from jobgen.spec.overlay import Cluster

ADMITTED, POSSIBLE, PREEMPTS, UNKNOWN, LATER, LOST = "admitted", "possible", "preempts", "unknown", "later", "lost"
MAX_CLUSTERS: Final = 20
"""The most clusters that a MultiKueueConfig can have."""
OWN_SETTINGS: Final = frozenset(("admissionChecks", "multiKueue", "nodes"))
"""Parts of `cluster.kueue` that are about one cluster; its worker clusters share the others."""
_AT_ONCE, _INCREMENTAL = (
    (short, f"kueue.x-k8s.io/multikueue-dispatcher-{name}")
    for short, name in (("AllAtOnce", "all-at-once"), ("Incremental", "incremental"))
)
"""How overlays and the Configuration of Kueue name its dispatchers."""
STEP: Final = 3
"""How many clusters the incremental dispatcher adds in a round, unless the configuration says otherwise."""
_INCREMENTAL_SINCE, _ORDER_SINCE, _EVICTION_SINCE = "0.13", "0.19", "0.16"
_ORIGIN = "kueue.x-k8s.io/multikueue-origin"
_OBSTACLE = Obstacle("cluster", "no worker cluster ever admits it", "change the job, or the queues of a worker cluster")
_MAX_REASONS = 5
_MOST_PASSES = 4
"""Workloads that evict each other more often do so without end."""


def nominate_next(clusters: Sequence[str], nominated: Sequence[str], step: int, *, keeps_order: bool) -> list[str]:
    """Return the clusters that the incremental dispatcher adds in its next round; none if all are nominated."""
    left = [name for name in clusters if name not in nominated]
    return (left if keeps_order else sorted(left))[: max(step, 1)]


class Worker(NamedTuple):
    """A worker cluster: its queues, what its amounts depend on, and what already runs there."""

    context: AdmissionContext
    jobs: JobContext
    running: tuple[Workload, ...] = ()
    sent: frozenset[str] = frozenset()
    """The keys of what a manager has sent there and has quota."""

    def copy(self, workload: Workload) -> tuple[Workload, str]:
        """Return the copy of a workload in this cluster, charged as its Kueue does, and why it cannot be."""
        settings = self.jobs.settings
        # A capture without pod sets has only what they were charged.
        pod_sets = (
            each if each.exact is None else replace(each, requests=charge_pod(each.exact, settings))
            for each in workload.pod_sets
        )
        made = workload._replace(
            pod_sets=tuple(pod_sets), cluster_queue="", admission=(), reserved="", is_admitted=False, checks=()
        )
        copied, error = charge_devices(made, self.jobs)
        if self.context.ignores_topology:
            (copied,) = remove_placements(Job("", "", "", "", (copied,))).workloads
        return copied, error


class Dispatcher(NamedTuple):
    """How a manager cluster sends workloads to its worker clusters."""

    workers: Mapping[str, Worker]
    """The declared ones, by the name of the MultiKueueCluster."""
    is_incremental: bool = False
    step: int = STEP
    lost: frozenset[str] = frozenset()
    external: str = ""
    """The name of a dispatcher that is not one of Kueue; which clusters it nominates is not known."""

    def dispatch(self, context: AdmissionContext, decision: Decision) -> Decision:
        """Add to a decision of the manager what its worker clusters decide."""
        keys = {each.key for each in decision.answers}
        # What is no job of the repository uses quota of a worker cluster, too.
        others = (
            Answer(job, each.key, ADMITTED, "", each.cluster_queue, each)
            for job in context.outside
            for each in job.workloads
            if each.key not in keys
        )
        every = (*decision.answers, *others)
        remote = [each for each in every if context.find_remote_check(each.cluster_queue) is not None]
        sent = [each for each in remote if each.decision not in (NEVER, WAITS)]
        run, before = self.place(context, sent)
        run.ask_waiting()
        answered = {each.key: _answer_remote(each, run, before.get(each.key, "")) for each in sent}
        answered |= {each.key: _refuse(each, run.ask_ever(each)) for each in remote if each.decision == WAITS}
        answers = tuple(answered.get(each.key, each) for each in decision.answers)
        totals = tuple((name, each) for name, several in run.totals.items() for each in several)
        notes = (*decision.assumptions, *self._list_notes(run))
        return decision._replace(answers=answers, cluster_totals=totals, assumptions=notes)

    def place(self, context: AdmissionContext, sent: Sequence[Answer]) -> tuple[RemoteQueues, Mapping[str, str]]:
        """Place workloads, and return also where they would run if no cluster was lost."""
        order = sorted(sent, key=_find_turn)
        before = {each.key: each.workload.cluster for each in order if each.workload and each.workload.cluster}
        if self.lost:
            every = RemoteQueues(self._replace(lost=frozenset()), context, before)
            every.place_all(order)
            before = every.placed
        # What runs in another cluster goes on there, and comes before what has to move.
        kept = {key: name for key, name in before.items() if name not in self.lost}
        run = RemoteQueues(self, context, kept)
        run.place_all(sorted(order, key=lambda each: each.key not in kept))
        return run, before

    def open(self, context: AdmissionContext) -> RemoteQueues:
        """Return the worker clusters as they are before any workload arrives."""
        return RemoteQueues(self, context, {})

    def follow(self, context: AdmissionContext, jobs: Iterable[Job]) -> RemoteRuns:
        """Follow the workloads of jobs in the worker clusters while time passes."""
        return RemoteRuns(self, context, {each.key: job for job in jobs for each in job.workloads})

    def locate(self, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a Workload that says which worker cluster runs it: if it does not, the one that has its copy does."""
        key, status = f"{find_namespace(obj)}/{name_of(obj)}", as_mapping(obj.get("status"))
        place = status.get("clusterName") or next((name for name, each in self.workers.items() if key in each.sent), "")
        return {**obj, "status": {**status, "clusterName": place}} if place else obj

    def list_workers(self) -> list[tuple[str, Worker]]:
        """Return the declared worker clusters that are not lost, by name."""
        return [each for each in self.workers.items() if each[0] not in self.lost]

    def _list_notes(self, run: RemoteQueues) -> Iterator[str]:
        if self.lost:
            names = ", ".join(f"`{name}`" for name in sorted(self.lost))
            yield f"lost worker clusters: {names}; Kueue sends their jobs elsewhere after `workerLostTimeout`"
        if any(len(several) > 1 for several in run.rivals.values()):
            yield (
                "where several worker clusters have room for a job, the first in order is assumed to be the fastest; "
                "if another one is, later jobs can run elsewhere as well"
            )
        doubled: dict[tuple[str, ...], list[str]] = {}
        for key in sorted({key for each in self.workers.values() for key in each.sent}):
            doubled.setdefault(tuple(name for name, each in self.workers.items() if key in each.sent), []).append(key)
        for several, keys in doubled.items():
            if len(several) > 1:
                where = " and ".join(f"`{name}`" for name in several)
                shown = ", ".join(f"`{key}`" for key in keys[:_MAX_REASONS]) + ", …" * (len(keys) > _MAX_REASONS)
                yield (
                    f"the captures of worker clusters {where} have the same Workloads with quota: {shown}; only one of "
                    f"them runs each; without `status.clusterName` in the manager's, jobgen assumes `{several[0]}`"
                )
        for name, worker in sorted(self.workers.items()):
            if name in self.lost:
                continue
            used = Counter[FlavorResource]()
            for each in worker.running:
                used.update(each.usage)
            outside = Outside(len(worker.running), tuple(sorted(used.items()))).describe("the manager did not send")
            notes = (*filter(None, [outside]), *worker.context.assumptions)
            yield from (f"worker cluster `{name}`: {note}" for note in notes)


def _find_turn(answer: Answer) -> tuple[str, str]:
    """Return when the manager reserved quota for a workload."""
    return (answer.workload.reserved, answer.workload.created) if answer.workload else ("", "")


def _answer_remote(answer: Answer, run: RemoteQueues, before: str) -> Answer:
    """Return the answer of the manager with what its worker clusters say."""
    clusters = run.tell(answer.key)
    place, rivals = run.placed.get(answer.key, ""), run.rivals.get(answer.key, ())
    is_moved = bool(before) and before != place
    if place:
        moved = f"it moves from worker cluster `{before}` to `{place}`; " if is_moved else ""
        runs = "runs" if answer.workload and answer.workload.cluster == place else "admits"
        where = f"worker cluster `{place}` {runs} it"
        if len(rivals) > 1:
            shown = list_alternatives(f"`{name}`" for name in rivals)
            where = f"worker cluster {shown} admits it, whichever is first; jobgen assumes `{place}`"
        elif any(each.name == place and each.decision == UNKNOWN for each in clusters):
            where = f"worker cluster `{place}`, whose queues are not among the files, is assumed to admit it"
        return answer._replace(reason=f"{moved}{answer.reason}; {where}", clusters=clusters, cluster=place)
    moved = f"it loses worker cluster `{before}`; " if is_moved else ""
    message = f"{moved}it has quota in the manager cluster, and waits until a worker cluster admits it"
    if run.external:
        message = f"it has quota in the manager cluster; the dispatcher `{run.external}` decides which worker cluster"
        message += " gets it, so jobgen does not know if and where it runs"
    if not clusters:
        message = "it has quota in the manager cluster, but there is no worker cluster to run it"
    # A lost cluster that would never admit it does not keep it waiting.
    ever = run.ask_ever(answer) if any(each.decision == LOST for each in clusters) else ()
    return _refuse(answer._replace(decision=WAITS, reason=message, clusters=clusters), ever or clusters)


def _refuse(answer: Answer, clusters: tuple[ClusterAnswer, ...]) -> Answer:
    """Return the answer about a waiting workload; it is never admitted if no worker cluster ever admits it."""
    if not clusters or any(each.decision != NEVER for each in clusters):
        return answer
    message = _OBSTACLE.message
    if answer.clusters:
        message = f"it has quota in the manager cluster, and keeps it, but {message}"
    obstacle = _OBSTACLE._replace(message=message)
    return answer._replace(decision=NEVER, reason=message, obstacle=obstacle, clusters=clusters, shortages=())


class RemoteQueues:
    """The queues of worker clusters, to which workloads are sent one after the other."""

    def __init__(self, dispatcher: Dispatcher, context: AdmissionContext, kept: dict[str, str]) -> None:
        """`kept` are the clusters of workloads that run already."""
        self._dispatcher = dispatcher
        self._context = context
        self._version: Version = context.cluster.configuration.version
        self._workers = {name: each for name, each in dispatcher.workers.items() if name not in dispatcher.lost}
        self.external = dispatcher.external if is_past(self._version, _INCREMENTAL_SINCE) else ""
        self._schedulers: dict[str, Scheduler] = {}
        for name, worker in self._workers.items():
            self._schedulers[name] = worker.context.build_scheduler()
            for each in worker.running:
                self._schedulers[name].add(each)
        self.placed: dict[str, str] = {}
        """The cluster that runs each workload, by its key."""
        self.rivals: dict[str, tuple[str, ...]] = {}
        """The clusters that had room for a workload, the one that runs it first."""
        self._asked: dict[str, dict[str, ClusterAnswer]] = {}
        self._waiting: dict[str, dict[str, Workload]] = {name: {} for name in self._workers}
        self._heads: dict[tuple[str, str], str] = {}
        """What waits first in queues with strict order, by cluster and ClusterQueue."""
        self._sent: set[str] = set()
        self._homes: dict[tuple[str, ...], str] = {}
        """The cluster of jobs whose workloads stay together."""
        self._last = self._kept = kept
        """The cluster in which a workload stays: where it runs, or where it was evicted and waits."""
        self._hopeless: set[tuple[Any, ...]] = set()
        """The shapes of workloads that a cluster has no room for."""
        self._copies: dict[tuple[str, str], tuple[Workload | str, str, tuple[Any, ...]]] = {}
        self._names: dict[str, list[str]] = {}
        """The worker clusters of each ClusterQueue."""
        self.totals: dict[str, tuple[Total, ...]] = {}

    def place_all(self, order: Sequence[Answer]) -> dict[str, str]:
        """Place workloads in this order; those that are evicted in a worker cluster are sent again afterwards.

        Return which of them were evicted, and for which other ones.
        """
        self._sent.update(each.key for each in order)
        evictions: dict[str, str] = {}
        for _ in range(_MOST_PASSES):
            evicted: dict[str, str] = {}
            for answer in (each for each in order if each.key not in self.placed):
                gone = self._place(answer)
                evicted |= {key: self.placed.pop(key, "") for key in gone}
                evictions |= dict.fromkeys(gone, answer.key)
            if not evicted:
                break
            self._last = {} if is_past(self._version, _EVICTION_SINCE) else evicted
            self._hopeless.clear()
        return evictions

    def remove(self, keys: Iterable[str]) -> None:
        """Remove workloads that have ended, or that the manager has evicted; others can be tried again."""
        for key in keys:
            place = self.placed.pop(key, "")
            self._last.pop(key, None)
            if place in self._schedulers:
                self._schedulers[place].remove(key)
            for several in self._waiting.values():
                several.pop(key, None)
        self._hopeless.clear()
        self._heads.clear()

    def find_copy(self, key: str) -> Workload | None:
        """Return the copy of a workload as it runs; None if its cluster is not declared."""
        scheduler = self._schedulers.get(self.placed[key])
        return scheduler.find_admitted(key) if scheduler else None

    def _list_clusters(self, answer: Answer) -> list[str]:
        """Return the clusters of the MultiKueueConfig of a workload that exist and are connected."""
        if answer.cluster_queue in self._names:
            return self._names[answer.cluster_queue]
        cluster = self._context.cluster
        configs = {name_of(each): each for each in cluster.list_objects("MultiKueueConfig")}
        check = self._context.find_remote_check(answer.cluster_queue)
        config = configs.get(self._context.remote_checks.get(check or "", ""))
        names = list(map(str, as_list(as_mapping((config or {}).get("spec")).get("clusters"))))
        names = names[:MAX_CLUSTERS] if configs else list(self._dispatcher.workers)
        objects = {name_of(each): each for each in cluster.list_objects("MultiKueueCluster")}
        self._names[answer.cluster_queue] = found = [
            name for name in dict.fromkeys(names) if not objects or (name in objects and is_connected(objects[name]))
        ]
        return found

    def _list_rounds(self, names: Sequence[str]) -> Iterator[list[str]]:
        """Yield the clusters that have a copy in each round, in the order in which they are asked."""
        dispatcher, asked = self._dispatcher, list[str]()
        if not dispatcher.is_incremental or not is_past(self._version, _INCREMENTAL_SINCE):
            yield list(names)
            return
        keeps_order = is_past(self._version, _ORDER_SINCE)
        step = dispatcher.step if keeps_order else STEP
        while more := nominate_next(names, asked, step, keeps_order=keeps_order):
            asked += more
            yield list(asked)

    def _place(self, answer: Answer) -> list[str]:
        """Place a workload, and return what is evicted for it."""
        workload, key = answer.workload, answer.key
        assert workload is not None
        every, lost = self._list_clusters(answer), self._dispatcher.lost
        self._asked[key] = {name: ClusterAnswer(name, LOST, "it gets no jobs") for name in every if name in lost}
        home = self._homes.get(answer.job[:3]) or self._last.get(key)
        names = [name for name in every if name not in lost and (name == home or home not in every)]
        if self.external:
            self._asked[key] |= {name: self._ask_external(name, workload) for name in names}
            return []
        for several in self._list_rounds(names):
            found = {name: self._ask(name, workload) for name in several}
            for mode in (ADMITTED, PREEMPTS, UNKNOWN):
                able = [name for name in several if found[name] == mode]
                for place in able:
                    evicted = self._admit(place, key)
                    if evicted is not None:
                        self._settle(answer, place, able, names)
                        return evicted
        if names == [workload.cluster] and self._last is self._kept and self._keep(workload):
            self._settle(answer, workload.cluster, (), names)
        return []

    def _keep(self, workload: Workload) -> bool:
        """Let a workload go on where it runs, also above the quota; return False if its queue there is not known."""
        name, worker = workload.cluster, self._workers[workload.cluster]
        copy, _ = worker.copy(workload)
        queue = worker.context.queues.get(worker.context.find_cluster_queue(copy))
        if queue is None:
            return False
        groups = {resource: group for group in queue.groups if group.flavors for resource in group.resources}
        admission = (
            PodSetAdmission(
                each.name,
                each.count,
                {key: groups[key].flavors[0] for key in each.requests if key in groups},
                each.total(),
            )
            for each in copy.pod_sets
        )
        kept = copy._replace(cluster_queue=queue.name, admission=tuple(admission), reserved=workload.reserved)
        self._schedulers[name].add(kept)
        self._asked[workload.key][name] = ClusterAnswer(name, ADMITTED, "it runs there already")
        return True

    def _settle(self, answer: Answer, place: str, able: Sequence[str], names: Sequence[str]) -> None:
        """Record where a workload runs."""
        key, asked = answer.key, self._asked[answer.key]
        self.placed[key] = place
        self.rivals[key] = (place, *(name for name in able if name != place and asked[name].decision != UNKNOWN))
        if answer.job.kind == "LeaderWorkerSet":
            self._homes[answer.job[:3]] = place
        for name in names:
            self._waiting.get(name, {}).pop(key, None)
            if name not in asked:
                asked[name] = ClusterAnswer(name, LATER, "it is asked only if none before it admits the job")
            elif name in able and name != place:
                asked[name] = asked[name]._replace(decision=POSSIBLE)

    def ask_ever(self, answer: Answer) -> tuple[ClusterAnswer, ...]:
        """Return what each cluster can ever do with a workload that the manager has no quota for now."""
        names, workload = self._list_clusters(answer), answer.workload
        known = self._dispatcher.workers
        refusals = ((name, self._refuse_copy(name, workload)) for name in names if workload and name in known)
        found = {name: ClusterAnswer(name, NEVER, reason) for name, reason in refusals if isinstance(reason, str)}
        return tuple(found.values()) if len(found) == len(names) else ()

    def find_obstacle(self, job: Job) -> Obstacle | None:
        """Return why no worker cluster ever admits the first workload of a job; None if one may."""
        (workload, *_), queue = job.workloads, self._context.find_cluster_queue(job.workloads[0])
        if self._context.find_remote_check(queue) is None:
            return None
        refusals = self.ask_ever(Answer(job, workload.key, WAITS, "", queue, workload))
        reasons = "; ".join(f"{each.name}: {each.reason}" for each in refusals[:_MAX_REASONS])
        if not refusals:
            return None
        workers = (self._dispatcher.workers[each.name] for each in refusals)
        obstacles = (each.context.find_obstacle(each.copy(workload)[0]) for each in workers)
        # What to change in the job; the quota and flavors are not those of this cluster.
        about = next((each for each in obstacles if each and each.pod_set), _OBSTACLE)
        code = "quota" if about.code == "resource" else about.code
        message = f"{_OBSTACLE.message} ({reasons})"
        return _OBSTACLE._replace(code=code, message=message, pod_set=about.pod_set, resource=about.resource)

    def _ask(self, name: str, workload: Workload) -> str:
        """Return what a cluster can do with a workload now, and note why."""
        mode, reason = self._explain(name, workload)
        self._asked[workload.key][name] = ClusterAnswer(name, mode, reason)
        return mode

    def _ask_external(self, name: str, workload: Workload) -> ClusterAnswer:
        """Return if a cluster never admits a workload; otherwise it is not known if it is asked."""
        copy = self._refuse_copy(name, workload) if name in self._workers else workload
        if isinstance(copy, str):
            return ClusterAnswer(name, NEVER, copy)
        return ClusterAnswer(name, UNKNOWN, f"the dispatcher `{self.external}` decides if it gets the job")

    def _explain(self, name: str, workload: Workload) -> tuple[str, str]:
        worker = self._workers.get(name)
        if worker is None:
            return UNKNOWN, "its queues are not among the files; declare it in `cluster.kueue.multiKueue.clusters`"
        copy, queue, shape = self._copy(name, workload)
        if isinstance(copy, str):
            return NEVER, copy
        self._waiting[name][copy.key] = copy
        head = self._heads.get((name, queue), copy.key)
        if head != copy.key and head in self._waiting[name]:
            return WAITS, f"`{head}` waits before it in strict order"
        if shape in self._hopeless:
            return WAITS, ""
        assignment, targets = self._schedulers[name].assign(copy, queue, is_resumed=False)
        if assignment.mode is Mode.FIT:
            return ADMITTED, f"ClusterQueue `{queue}` has quota for it"
        if targets:
            evicted = ", ".join(f"`{each.workload.key}`" for each in targets)
            return PREEMPTS, f"it evicts {evicted}"
        if worker.context.queues[queue].strategy == STRICT_FIFO:
            self._heads.setdefault((name, queue), copy.key)
        self._hopeless.add(shape)
        return WAITS, ""

    def _copy(self, name: str, workload: Workload) -> tuple[Workload | str, str, tuple[Any, ...]]:
        """Return the copy of a workload or why there is none, its ClusterQueue, and what equal ones have in common."""
        found = self._copies.get((name, workload.key))
        if found is None:
            copy = self._refuse_copy(name, workload)
            found = copy, "", ()
            if not isinstance(copy, str):
                queue = self._workers[name].context.find_cluster_queue(copy)
                found = copy, queue, (name, queue, copy.namespace, copy.priority, find_shape(copy))
            self._copies[name, workload.key] = found
        return found

    def _refuse_copy(self, name: str, workload: Workload) -> Workload | str:
        """Return the copy of a workload in a cluster, or why the cluster never admits it."""
        worker = self._dispatcher.workers[name]
        context = worker.context
        copy, error = worker.copy(workload)
        namespaces = context.cluster.list_namespaces()
        if namespaces and copy.namespace not in namespaces:
            return f"it has no namespace `{copy.namespace}`"
        obstacle = None if error else context.find_obstacle(copy)
        if error or obstacle:
            return error or (obstacle.message if obstacle else "")
        queue = context.find_cluster_queue(copy)
        is_manager = context.find_remote_check(queue) is not None
        return f"its ClusterQueue `{queue}` is one of MultiKueue, which sends no job further" if is_manager else copy

    def _admit(self, name: str, key: str) -> list[str] | None:
        """Admit the copy of a workload, and return what is evicted for it; None if that is not possible."""
        if name not in self._workers:
            return []
        scheduler, copy, evicted = self._schedulers[name], self._waiting[name][key], list[str]()
        scheduler.add(copy)
        for _ in range(len(scheduler.snapshot.flavors) + 2):
            if scheduler.find_admitted(key) or not scheduler.run_cycle():
                break
            gone = list(scheduler.evicted)
            scheduler.release_evicted(gone)
            evicted += gone
        admitted = scheduler.find_admitted(key)
        refusal = self._workers[name].context.find_refusal(admitted) if admitted else None
        if admitted is None or refusal is None:
            return None if admitted is None else evicted
        scheduler.remove(key)
        self._asked[key][name] = ClusterAnswer(
            name, NEVER if refusal.answer == "Rejected" else WAITS, refusal.explain()
        )
        return None

    def ask_waiting(self) -> None:
        """Let each cluster decide about all that it has, for the reasons of what waits there, and its totals."""
        for name, worker in self._workers.items():
            admitted = [
                each for several in self._schedulers[name].snapshot.workloads.values() for each in several.values()
            ]
            running = [each for each in admitted if self.placed.get(each.key) == name or each.key not in self._sent]
            waiting = [each for key, each in self._waiting[name].items() if key not in self.placed]
            jobs = [Job("", each.namespace, each.key, each.queue, (each,)) for each in (*running, *waiting)]
            decision = decide(worker.context, jobs, frozenset(each.key for each in running))
            self.totals[name] = decision.totals
            for answer in decision.answers:
                asked = self._asked.get(answer.key, {})
                if name in asked and asked[name] == (name, WAITS, ""):
                    asked[name] = ClusterAnswer(name, WAITS, answer.reason)

    def tell(self, key: str) -> tuple[ClusterAnswer, ...]:
        """Return what the clusters say about a workload; a copy that another cluster runs does not wait."""
        asked, place = self._asked[key], self.placed.get(key, "")
        found = (each if each.reason else each._replace(reason="it lacks quota for it now") for each in asked.values())
        return tuple(
            each._replace(reason=f"{each.reason}, unless `{place}` admits the job first")
            if each.decision == PREEMPTS and place and each.name != place
            else each
            for each in found
        )


class RemoteRuns:
    """The workloads that worker clusters run, while time passes in the manager."""

    def __init__(self, dispatcher: Dispatcher, context: AdmissionContext, jobs: Mapping[str, Job]) -> None:
        """`jobs` are those of the workloads, by key."""
        self._dispatcher = dispatcher
        self._context = context
        self._jobs = jobs
        self._run: RemoteQueues | None = None
        self._held: dict[str, str] = {}
        self._places: dict[str, tuple[str, str]] = {}

    def advance(self, held: Mapping[str, Workload]) -> tuple[dict[str, Workload], dict[str, str], dict[str, str]]:
        """Place what the manager has quota for, by key, and does not run yet; what has no quota any more ends.

        Return what runs now, in which cluster, and what was evicted there by which workload.
        """
        local, sent, evictions = dict[str, Workload](), list[Answer](), dict[str, str]()
        for key, each in held.items():
            if self._context.find_remote_check(each.cluster_queue) is None:
                local[key] = each
            else:
                sent.append(Answer(self._jobs[key], key, ADMITTED, "", each.cluster_queue, each))
        if self._run is None:
            self._run, before = self._dispatcher.place(self._context, sent)
            # What loses its cluster starts again from its beginning; no other workload evicts it.
            evictions = {key: "" for key, name in before.items() if self._run.placed.get(key) != name}
        else:
            self._run.remove(
                key for key, reserved in self._held.items() if key not in held or held[key].reserved != reserved
            )
            # A worker cluster tries by priority, then by age.
            sent.sort(key=lambda each: (-held[each.key].priority, _find_turn(each)))
            evictions = self._run.place_all(sent)
        self._held = {each.key: held[each.key].reserved for each in sent}
        clusters = {key: name for key, name in self._run.placed.items() if key in self._held}
        for key, name in clusters.items():
            copy = self._run.find_copy(key) or held[key]
            local[key] = copy._replace(reserved=f"{held[key].reserved} {name} {copy.reserved}")
        return local, clusters, evictions


def build_worker(cluster: Cluster, objects: Sequence[Mapping[str, Any]], namespaces: Sequence[str]) -> Worker:
    """Build a worker cluster from its settings and its exported objects; `namespaces` are those of the jobs."""
    configuration = parse_configuration(cluster.kueue, cluster.find_version("kueue"), cluster.feature_gates)
    known = group_objects(objects, configuration)
    context = AdmissionContext(known, namespaces)
    workloads = [each for each in objects if each.get("kind") == "Workload" and get_group(each) == "kueue.x-k8s.io"]
    every = (each.workloads[0] for each in read_running(workloads))
    found = [each for each in every if each.cluster_queue in context.queues]
    # The manager decides about what it has sent there.
    sent = frozenset(each.key for each in found if _ORIGIN in each.labels)
    return Worker(context, read_context(known), tuple(each for each in found if _ORIGIN not in each.labels), sent)


def build_dispatcher(block: Mapping[str, Any], workers: Mapping[str, Worker]) -> Dispatcher:
    """Build what `cluster.kueue.multiKueue` declares."""
    step, name = block.get("stepSize"), str(block.get("dispatcher") or _AT_ONCE[0])
    external = "" if name in (*_AT_ONCE, *_INCREMENTAL) else name
    lost = frozenset(map(str, as_list(block.get("lost"))))
    return Dispatcher(workers, name in _INCREMENTAL, step if type(step) is int else STEP, lost, external=external)


def lose_clusters(context: AdmissionContext, names: Iterable[str]) -> None:
    """Decide from now on as if these worker clusters were lost."""
    found = context.dispatcher
    if isinstance(found, Dispatcher):
        context.dispatcher = found._replace(lost=found.lost | frozenset(names))


def list_clusters(context: AdmissionContext) -> set[str]:
    """Return the names of all worker clusters: the declared ones, and those of MultiKueueConfigs."""
    if not isinstance(context.dispatcher, Dispatcher):
        return set()
    specs = (as_mapping(each.get("spec")) for each in context.cluster.list_objects("MultiKueueConfig"))
    return {*context.dispatcher.workers, *(str(name) for spec in specs for name in as_list(spec.get("clusters")))}
