"""What is known of a cluster when jobs are admitted: its queues, whether they are ready, and what they can ever admit.

Files rarely show all of a cluster. Where an object is missing that an export easily leaves out, the context assumes the
best, and says so in `assumptions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Final, Protocol

from jobgen.features.kueue.assign_flavors import Planner
from jobgen.features.kueue.assignment import TOPOLOGY_FAILED, Mode, Topologies
from jobgen.features.kueue.cluster_objects import (
    MAX_DEPTH,
    ClusterObjects,
    Key,
    parse_gates,
)
from jobgen.features.kueue.cycle import Scheduler
from jobgen.features.kueue.match import matches_selector
from jobgen.features.kueue.object_problems import DRAINS, list_problems
from jobgen.features.kueue.objects import (
    ClusterQueue,
    Cohort,
    Flavor,
    as_mapping,
    find_namespace,
    name_of,
    parse_topologies,
)
from jobgen.features.kueue.obstacles import Obstacle, explain_no_fit
from jobgen.features.kueue.queue_order import find_shape
from jobgen.features.kueue.quota import find_cycles
from jobgen.features.kueue.readiness import (
    STOPPED,
    AdmissionCheck,
    QueueContext,
    Readiness,
    check_clusters,
    check_readiness,
    parse_admission_check,
)
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.topology.snapshot import build_snapshots
from jobgen.features.kueue.topology.tree import Node, parse_nodes, read_gates, sum_other_pods
from jobgen.features.kueue.version_notes import list_version_notes
from jobgen.features.kueue.workloads import PodSet, Workload
from jobgen.k8s.kueue import DOMAIN
from jobgen.k8s.kueue_integrations import MULTIKUEUE
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import find_closest, list_alternatives

READY, RETRY, REJECTED = "Ready", "Retry", "Rejected"
"""Answers of admission checks; another one is `Pending`."""


class Dispatch(Protocol):
    """Sends workloads to worker clusters."""

    def dispatch(self, context: AdmissionContext, decision: Any) -> Any:
        """Add to a decision of `answers.decide` what worker clusters decide."""

    def follow(self, context: AdmissionContext, jobs: Any) -> Any:
        """Follow the workloads of jobs in worker clusters while time passes."""

    def locate(self, obj: Any) -> Any:
        """Return a Workload of a capture that says which worker cluster runs it, if that is known."""

    def list_workers(self) -> Any:
        """Return the worker clusters that are known, by name."""


class Refusal(NamedTuple):
    """An admission check that is not ready."""

    check: str
    answer: str
    """`Pending`, `Retry` or `Rejected`."""

    @property
    def keeps_quota(self) -> bool:
        """Return True if the workload keeps its quota."""
        return self.answer not in (RETRY, REJECTED)

    def explain(self) -> str:
        """Return what becomes of the workload."""
        if self.answer == REJECTED:
            return f"admission check `{self.check}` rejects it, and Kueue deactivates it"
        if self.answer == RETRY:
            return (
                f"admission check `{self.check}` answers `{RETRY}`, so Kueue takes its quota back and tries again later"
            )
        return f"admission check `{self.check}` is pending; meanwhile it keeps its quota"


MAX_REMARKS: Final = 20
_MOST_NAMES: Final = 5


def _explain_stop(policy: Any) -> str:
    what = "is drained: Kueue stops what runs and admits nothing" if policy == DRAINS else "is stopped"
    return f"{what} (`stopPolicy: {policy}`)" if policy else what


class AdmissionContext:
    """The queues of a cluster, before any workload; `namespaces` are those of the jobs."""

    def __init__(self, cluster: ClusterObjects, namespaces: Sequence[str] = ()) -> None:
        self.cluster = cluster
        self.local_queues = {
            (find_namespace(each), name_of(each)): as_mapping(each.get("spec"))
            for each in cluster.list_objects("LocalQueue")
        }
        flavors = cluster.list_flavors()
        if not flavors:
            names = {name for each in self.queues.values() for group in each.groups for name in group.flavors}
            flavors = [Flavor(name, {}, (), (), "") for name in sorted(names)]
        elif self.ignores_topology or not cluster.configuration.gates["TopologyAwareScheduling"]:
            flavors = [each._replace(topology="") for each in flavors]
        self.flavors = {each.name: each for each in flavors}
        known = cluster.list_namespaces()
        self.labels: dict[str, Mapping[str, str] | None] = {**dict.fromkeys(namespaces), **known}
        """The labels of namespaces; None if they are not known."""
        self._obstacles: dict[tuple[Any, ...], Obstacle | None] = {}
        self._planner = Planner()
        self.dispatcher: Dispatch | None = None
        """Sends what is admitted to worker clusters, if there are any."""
        self.outside: tuple[Any, ...] = ()
        """What runs and is no job of the repository, as jobs of `answers` with one workload each."""
        self.finished: tuple[str, ...] = ()
        """Jobs of the repository whose Workloads have finished, according to the files."""

    def replace_outside(self, jobs: Sequence[Any]) -> AdmissionContext:
        """Return the context with only these jobs from outside of the repository."""
        found = copy(self)
        found.outside = tuple(jobs)
        return found

    def replace_queues(
        self, queues: Mapping[str, ClusterQueue], cohorts: Sequence[Cohort] | None = None
    ) -> AdmissionContext:
        """Return the context with only these queues and cohorts, which can have other quota."""
        found = copy(self)
        found.cohorts = self.cohorts if cohorts is None else list(cohorts)
        for name in ("_empty", "readiness", "held_queues"):
            vars(found).pop(name, None)
        vars(found).update(queues=dict(queues), _obstacles={}, _planner=Planner())
        return found

    @cached_property
    def cohorts(self) -> list[Cohort]:
        """The Cohorts."""
        return self.cluster.list_cohorts()

    @cached_property
    def queues(self) -> dict[str, ClusterQueue]:
        """The ClusterQueues by name."""
        return {each.name: each for each in self.cluster.list_queues()}

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed because the files do not show it."""
        return (*self.list_remarks(), *self._list_missing(), *list_version_notes(self.cluster))

    def list_remarks(self) -> Iterator[str]:
        """Yield what is not simulated as it is written."""
        found = [*self.cluster.unread, *self.cluster.configuration.remarks]
        for kind, objects in self.cluster.by_kind.items():
            first_problems = ((name_of(obj), next(list_problems(kind, obj), "")) for obj in objects)
            found += (f"{kind} `{name}` is not valid: {problem}" for name, problem in first_problems if problem)
        found += (
            f"Cohort `{name}` is below {MAX_DEPTH - 1} others; its parents are not simulated"
            for name in self.cluster.list_deep_cohorts()
        )
        yield from found[:MAX_REMARKS]
        if len(found) > MAX_REMARKS:
            yield f"{len(found) - MAX_REMARKS} more objects are not read, or not valid"

    def _list_missing(self) -> Iterator[str]:
        if self.finished:
            names = ", ".join(f"`{name}`" for name in self.finished[:_MOST_NAMES])
            more = f" and {len(self.finished) - _MOST_NAMES} more" if len(self.finished) > _MOST_NAMES else ""
            yield f"finished in the capture, but decided about as if started again: {names}{more}"
        if not self.cluster.list_objects("ResourceFlavor") and self.queues:
            yield "no ResourceFlavor is among the files; every flavor is assumed to exist, without labels and taints"
        unknown = sorted(name for name, labels in self.labels.items() if labels is None)
        if unknown and any(each.namespace_selector != {} for each in self.queues.values()):
            shown = ", ".join(f"`{name}`" for name in unknown)
            yield f"the labels of {shown} are not among the files; every queue is assumed to select these namespaces"
        declared = {*self.cluster.configuration.checks, *(self.remote_checks if self.dispatcher else ())}
        checks = sorted({name for each in self.queues.values() for name, _ in each.checks} - declared)
        if checks:
            shown = ", ".join(f"`{name}`" for name in checks)
            yield f"admission checks are not simulated; {shown} {'is' if len(checks) == 1 else 'are'} assumed to pass"
        named = {name for each in self.queues.values() for name, _ in each.checks}
        if strange := sorted(self.cluster.configuration.checks.keys() - named if self.queues else ()):
            shown = ", ".join(f"`{name}`" for name in strange)
            yield f"no ClusterQueue has the admission check {shown}, whose answer `admissionChecks` declares"
        measured = any(self.cluster.configuration.resources.devices.sources.values())
        if measured and not self.cluster.list_objects("ResourceSlice"):
            yield "no ResourceSlice is among the files; devices that count by counters or capacity use no quota"
        if self.ignores_topology:
            yield "no nodes are among the files; every placement in a topology is assumed to be possible"

    @cached_property
    def ignores_topology(self) -> bool:
        """Return True if placements are not simulated, because no node is known."""
        is_on = self.cluster.configuration.gates["TopologyAwareScheduling"]
        return is_on and any(each.topology for each in self.cluster.list_flavors()) and not self.cluster.list_nodes()

    @cached_property
    def readiness(self) -> dict[str, Readiness]:
        """The readiness of each ClusterQueue: if it admits workloads."""
        parents = {each.name: each.parent for each in self.cluster.list_cohorts()}
        context = QueueContext(
            self.flavors,
            {each.name: each for each in self.checks},
            frozenset(map(name_of, self.cluster.list_objects("Topology"))),
            frozenset(find_cycles(parents)),
        )
        return {name: check_readiness(queue, context) for name, queue in self.queues.items()}

    @cached_property
    def checks(self) -> tuple[AdmissionCheck, ...]:
        """The admission checks. One without a status, or without an object, is assumed to be active."""
        objects = {name_of(each): each for each in self.cluster.list_objects("AdmissionCheck")}
        configs, clusters = (
            {name_of(each): each for each in self.cluster.list_objects(kind)}
            for kind in ("MultiKueueConfig", "MultiKueueCluster")
        )
        checks: list[AdmissionCheck] = []
        for name in sorted({name for each in self.queues.values() for name, _ in each.checks}):
            found = objects.get(name, {})
            check = parse_admission_check(found)._replace(name=name)
            if not as_mapping(found.get("status")).get("conditions"):
                is_known = check.controller == MULTIKUEUE and configs and clusters
                is_active = check_clusters(configs.get(check.config), clusters)[0] if is_known else True
                check = check._replace(is_active=is_active)
            checks.append(check)
        return tuple(checks)

    @cached_property
    def remote_checks(self) -> Mapping[str, str]:
        """The admission checks of MultiKueue, and the MultiKueueConfig of each."""
        return {each.name: each.config for each in self.checks if each.controller == MULTIKUEUE}

    def find_remote_check(self, queue: str) -> str | None:
        """Return the admission check of MultiKueue of a ClusterQueue; None if its jobs run in this cluster."""
        names = (name for name, _ in self.queues[queue].checks) if queue in self.queues else ()
        return next((name for name in names if name in self.remote_checks), None)

    def find_refusal(self, workload: Workload) -> Refusal | None:
        """Return the declared answer that keeps a workload with quota from its start; None if there is none."""
        answers, queue = self.cluster.configuration.checks, self.queues.get(workload.cluster_queue)
        if not answers or queue is None:
            return None
        flavors = {pair.flavor for pair in workload.pairs}
        found = [
            Refusal(name, answers[name])
            for name, only in queue.checks
            if answers.get(name, READY) != READY and (not only or not flavors.isdisjoint(only))
        ]
        # A rejection is final, and a retry takes the quota back, whatever the others say.
        return min(found, key=lambda each: (each.answer != REJECTED, each.answer != RETRY), default=None)

    def build_scheduler(self) -> Scheduler:
        """Return a scheduler in which no workload is admitted."""
        cluster, gates = self.cluster, self.cluster.configuration.gates
        snapshot = Snapshot(self.queues.values(), self.cohorts, self.flavors.values())
        levels = {} if self.ignores_topology else parse_topologies(cluster.list_objects("Topology"))
        flavors = self.flavors.values()
        if any(each.topology for each in flavors):
            pods = sum_other_pods(cluster.list_objects("Pod"))
            topologies = build_snapshots(flavors, levels, self._nodes, other_pods=pods, gates=read_gates(gates))
            snapshot.topologies = Topologies(topologies)
        return Scheduler(
            snapshot,
            cluster.configuration.rules,
            levels,
            self.labels,
            local_queues={key: queue for key in self.local_queues if (queue := self._find_active_queue(key))},
            inactive=frozenset(
                name for name, each in self.readiness.items() if not each.is_scheduled or not each.is_active
            ),
            controllers={each.name: each.controller for each in self.checks},
            gates=parse_gates(gates),
            planner=self._planner,
        )

    @cached_property
    def _nodes(self) -> list[Node]:
        return parse_nodes(self.cluster.list_nodes())

    @cached_property
    def held_local_queues(self) -> dict[Key, str]:
        """The LocalQueues that admit nothing, but do not stop what runs, and the ClusterQueue of each."""
        held = ((key, spec) for key, spec in self.local_queues.items() if spec.get("stopPolicy") == "Hold")
        return {key: str(spec.get("clusterQueue") or "") for key, spec in held}

    @cached_property
    def held_queues(self) -> frozenset[str]:
        """The ClusterQueues that admit nothing only because they are held; what runs in them goes on."""
        return frozenset(
            name
            for name, each in self.readiness.items()
            if self.queues[name].stop_policy == "Hold" and {cause.reason for cause in each.causes} == {STOPPED}
        )

    def _find_active_queue(self, key: Key) -> str:
        spec = self.local_queues.get(key, {})
        return str(spec.get("clusterQueue") or "") if (spec.get("stopPolicy") or "None") == "None" else ""

    @cached_property
    def _empty(self) -> Scheduler:
        return self.build_scheduler()

    def find_cluster_queue(self, workload: Workload) -> str:
        """Return the ClusterQueue of a workload; empty if its LocalQueue is not known."""
        return str(self.local_queues.get((workload.namespace, workload.queue), {}).get("clusterQueue") or "")

    def is_drained(self, workload: Workload) -> bool:
        """Return True if the queue of a workload evicts what runs. A queue that only holds does not."""
        local = self.local_queues.get((workload.namespace, workload.queue), {})
        queue = self.queues.get(workload.cluster_queue or self.find_cluster_queue(workload))
        return DRAINS in (local.get("stopPolicy"), queue.stop_policy if queue is not None else "")

    def stop(self, workload: Workload) -> Workload:
        """Return a workload without its quota if it has some, and Kueue evicts it at once."""
        if not workload.reserved or (workload.is_active and not self.is_drained(workload)):
            return workload
        return workload._replace(cluster_queue="", admission=(), reserved="", is_admitted=False)

    def find_obstacle(self, workload: Workload) -> Obstacle | None:
        """Return why a workload is never admitted, however empty the cluster is; None if it can be.

        The answer depends on nothing else that is queued, and is found once for all workloads of the same shape.
        """
        queued = workload._replace(priority=0, admission=(), reserved="")
        own = frozenset((name, str(value)) for name, value in queued.annotations.items() if name.startswith(DOMAIN))
        key = (queued.namespace, queued.queue, own, find_shape(queued))
        if key not in self._obstacles:
            self._obstacles[key] = self._explain_obstacle(queued)
        return self._obstacles[key]

    def _explain_obstacle(self, workload: Workload) -> Obstacle | None:
        found = self._find_queue_obstacle(workload)
        if found is not None:
            return found
        queue = self.queues[self.find_cluster_queue(workload)]
        labels = self.labels.get(workload.namespace)
        if not matches_selector(queue.namespace_selector, labels):
            message = f"ClusterQueue `{queue.name}` does not select namespace `{workload.namespace}`"
            change = "label the namespace to match `namespaceSelector` of the queue, or use another queue"
            if queue.namespace_selector is None:
                change = "set `namespaceSelector: {}` in the queue to select every namespace"
            return Obstacle("namespace", message, change)
        if self._empty.nominator.can_ever_fit(workload, queue.name):
            return self._explain_rejection(queue)
        assignment, _ = self._empty.assign(workload, queue.name)
        if assignment.mode is not Mode.NO_FIT:
            return self._explain_rejection(queue)
        if assignment.no_fit == TOPOLOGY_FAILED and self._has_later_places(workload, queue):
            return None
        if self.cluster.configuration.remarks or self.cluster.list_deep_cohorts():
            # Nodes or cohorts are left out of the simulation, so what lacks in it may be there.
            return None
        ignores = self.cluster.configuration.rules.ignores_undeclared
        return explain_no_fit(workload, queue, assignment, self._empty.snapshot, ignores_undeclared=ignores)

    def _explain_rejection(self, queue: ClusterQueue) -> Obstacle | None:
        """Explain that an admission check rejects every workload of a queue."""
        answers, every = self.cluster.configuration.checks, {name for group in queue.groups for name in group.flavors}
        for name, only in queue.checks:
            if answers.get(name) == REJECTED and (not only or every <= set(only)):
                change = f"change what `{name}` rejects, or use a queue without this check"
                return Obstacle("check", Refusal(name, REJECTED).explain(), change)
        return None

    def _has_later_places(self, workload: Workload, queue: ClusterQueue) -> bool:
        """Return True if pods have places in flavors that Kueue tries only while others use the quota of the first.

        If pods cannot be placed in a flavor that has quota, Kueue tries no later one.
        """
        scheduler, queues = self._empty, self._empty.snapshot.queues
        together: dict[str, list[PodSet]] = {}
        for each in workload.pod_sets:
            together.setdefault((each.topology.group if each.topology else "") or each.name, []).append(each)

        def has_place(several: Sequence[PodSet], left: ClusterQueue) -> bool:
            scheduler.snapshot.queues = {**queues, queue.name: left}
            found, _ = scheduler.assign(workload._replace(pod_sets=tuple(several)), queue.name)
            attempts = (attempt for each in found.pod_sets for attempt in each.attempts)
            failed = {each.flavor for each in attempts if each.no_fit == TOPOLOGY_FAILED}
            if found.mode is not Mode.NO_FIT or not failed:
                return found.mode is not Mode.NO_FIT
            others = (tuple(name for name in each.flavors if name not in failed) for each in left.groups)
            groups = tuple(each._replace(flavors=names) for each, names in zip(left.groups, others, strict=True))
            return has_place(several, left._replace(groups=groups))

        try:
            return all(has_place(several, queue) for several in together.values())
        finally:
            scheduler.snapshot.queues = queues

    def _find_queue_obstacle(self, workload: Workload) -> Obstacle | None:
        key = (workload.namespace, workload.queue)
        if key not in self.local_queues:
            message = f"there is no LocalQueue `{workload.queue}` in namespace `{workload.namespace}`"
            names = sorted(name for namespace, name in self.local_queues if namespace == workload.namespace)
            if not names:
                return Obstacle("queue", message, "create the LocalQueue, or use a namespace that has one")
            close = find_closest(workload.queue, names)
            others = list_alternatives(f"`{name}`" for name in names[:5])
            return Obstacle("queue", message, f"did you mean `{close}`?" if close else f"use {others}")
        name = self.find_cluster_queue(workload)
        if not self._find_active_queue(key):
            message = f"LocalQueue `{workload.queue}` {_explain_stop(self.local_queues[key].get('stopPolicy'))}"
            return Obstacle("queue", message, "set its `stopPolicy` to `None`, or use another queue")
        if name not in self.queues:
            message = f"LocalQueue `{workload.queue}` refers to ClusterQueue `{name}`, which does not exist"
            close = find_closest(name, list(self.queues))
            advice = f"did you mean `{close}` there?" if close else "create the ClusterQueue, or use another queue"
            return Obstacle("queue", message, advice)
        readiness = self.readiness[name]
        if readiness.is_active and readiness.is_scheduled:
            return None
        if any(cause.reason == STOPPED for cause in readiness.causes):
            message = f"ClusterQueue `{name}` {_explain_stop(self.queues[name].stop_policy)}"
            return Obstacle("queue", message, "set its `stopPolicy` to `None`, or use another queue")
        causes = "; ".join(cause.message for cause in readiness.causes)
        message = f"ClusterQueue `{name}` admits nothing: {causes}"
        return Obstacle("queue", message, "correct the queue, or use another one")
