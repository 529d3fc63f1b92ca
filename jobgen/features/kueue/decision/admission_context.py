"""What is known of a cluster when jobs are admitted: its queues, whether they are ready, and what they can ever admit.

Files rarely show all of a cluster. Where an object is missing that an export easily leaves out, the context assumes the
best, and says so in `assumptions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from jobgen.features.kueue.assign.assignment import Mode
from jobgen.features.kueue.assign.placed_usage import Topologies
from jobgen.features.kueue.cluster_objects import MAX_DEPTH, ClusterObjects, Key
from jobgen.features.kueue.decision.obstacles import Obstacle, explain_no_fit
from jobgen.features.kueue.decision.remarks import MAX_REMARKS, list_invalid
from jobgen.features.kueue.match import matches_selector
from jobgen.features.kueue.objects import ClusterQueue, Flavor, as_mapping, name_of
from jobgen.features.kueue.quota import find_cycles
from jobgen.features.kueue.readiness import (
    STOPPED,
    AdmissionCheck,
    QueueContext,
    Readiness,
    check_readiness,
    parse_admission_check,
)
from jobgen.features.kueue.scheduling.cycle import Scheduler
from jobgen.features.kueue.scheduling.snapshot import Snapshot
from jobgen.features.kueue.topology import Node, build_snapshots, parse_nodes, read_gates, sum_other_pods
from jobgen.features.kueue.version.gates import parse_gates
from jobgen.features.kueue.version.version_notes import list_version_notes
from jobgen.features.kueue.workload.workloads import Workload

_HOLD = "Hold"


class AdmissionContext:
    """The queues of a cluster, before any workload; `namespaces` are those of the jobs."""

    def __init__(self, cluster: ClusterObjects, namespaces: Sequence[str] = ()) -> None:
        self.cluster = cluster
        self.local_queues = _index(cluster.list_objects("LocalQueue"))
        self.flavors = {each.name: each for each in self._list_flavors()}
        known = cluster.list_namespaces()
        self.labels: dict[str, Mapping[str, str] | None] = {**dict.fromkeys(namespaces), **known}
        """The labels of namespaces; None if they are not known."""

    @cached_property
    def queues(self) -> dict[str, ClusterQueue]:
        """The ClusterQueues by name."""
        return {each.name: each for each in self.cluster.list_queues()}

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed because the files do not show it."""
        return tuple(self._list_assumptions())

    def _list_remarks(self) -> Iterator[str]:
        """Yield what is not simulated as it is written."""
        found = [*self.cluster.unread, *self.cluster.configuration.remarks, *list_invalid(self.cluster.by_kind)]
        found += (
            f"Cohort `{name}` is below {MAX_DEPTH - 1} others; its parents are not simulated"
            for name in self.cluster.list_deep_cohorts()
        )
        yield from found[:MAX_REMARKS]
        if len(found) > MAX_REMARKS:
            yield f"{len(found) - MAX_REMARKS} more objects are not read, or not valid"

    def _list_assumptions(self) -> Iterator[str]:
        yield from self._list_remarks()
        if not self.cluster.list_objects("ResourceFlavor") and self.queues:
            yield "no ResourceFlavor is among the files; every flavor is assumed to exist, without labels and taints"
        unknown = sorted(name for name, labels in self.labels.items() if labels is None)
        if unknown and any(each.namespace_selector != {} for each in self.queues.values()):
            shown = ", ".join(f"`{name}`" for name in unknown)
            yield f"the labels of {shown} are not among the files; every queue is assumed to select these namespaces"
        checks = sorted({name for each in self.queues.values() for name, _ in each.checks})
        if checks:
            shown = ", ".join(f"`{name}`" for name in checks)
            yield f"admission checks are not simulated; {shown} are assumed to pass"
        if self.ignores_topology:
            yield "no nodes are among the files; every placement in a topology is assumed to be possible"
        yield from list_version_notes(self.cluster)

    @cached_property
    def ignores_topology(self) -> bool:
        """Whether placements are not simulated, because no node is known."""
        flavors = self.cluster.list_flavors() if self._uses_topologies else ()
        return any(each.topology for each in flavors) and not self.cluster.list_nodes()

    @property
    def _uses_topologies(self) -> bool:
        return self.cluster.configuration.gates["TopologyAwareScheduling"]

    def _list_flavors(self) -> Iterator[Flavor]:
        flavors = self.cluster.list_flavors()
        if flavors:
            is_plain = self.ignores_topology or not self._uses_topologies
            yield from (each._replace(topology="") if is_plain else each for each in flavors)
            return
        names = {name for each in self.queues.values() for group in each.groups for name in group.flavors}
        yield from (Flavor(name, {}, (), (), "") for name in sorted(names))

    @cached_property
    def readiness(self) -> dict[str, Readiness]:
        """Whether each ClusterQueue admits workloads."""
        parents = {each.name: each.parent for each in self.cluster.list_cohorts()}
        context = QueueContext(
            self.flavors,
            {each.name: each for each in self._list_checks()},
            frozenset(map(name_of, self.cluster.list_objects("Topology"))),
            frozenset(find_cycles(parents)),
        )
        return {name: check_readiness(queue, context) for name, queue in self.queues.items()}

    def _list_checks(self) -> Iterator[AdmissionCheck]:
        """The admission checks. One without a status, or without an object, is assumed to be active."""
        objects = {name_of(each): each for each in self.cluster.list_objects("AdmissionCheck")}
        for name in {name for each in self.queues.values() for name, _ in each.checks}:
            found = objects.get(name, {})
            check = parse_admission_check(found)._replace(name=name)
            yield check if as_mapping(found.get("status")).get("conditions") else check._replace(is_active=True)

    def build_scheduler(self) -> Scheduler:
        """Return a scheduler in which no workload is admitted."""
        configuration = self.cluster.configuration
        snapshot = Snapshot(self.queues.values(), self.cluster.list_cohorts(), self.flavors.values())
        levels = {} if self.ignores_topology else self.cluster.list_levels()
        if any(each.topology for each in self.flavors.values()):
            snapshot.topologies = self._build_topologies(levels)
        return Scheduler(
            snapshot,
            configuration.rules,
            levels,
            self.labels,
            local_queues={key: queue for key in self.local_queues if (queue := self._find_active_queue(key))},
            inactive=frozenset(
                name for name, each in self.readiness.items() if not each.is_scheduled or not each.is_active
            ),
            controllers={each.name: each.controller for each in self._list_checks()},
            gates=parse_gates(configuration.gates),
        )

    def _build_topologies(self, levels: Mapping[str, Sequence[str]]) -> Topologies:
        pods = sum_other_pods(self.cluster.list_objects("Pod"))
        gates = read_gates(self.cluster.configuration.gates)
        return Topologies(build_snapshots(self.flavors.values(), levels, self._nodes, other_pods=pods, gates=gates))

    @cached_property
    def _nodes(self) -> list[Node]:
        return parse_nodes(self.cluster.list_nodes())

    @cached_property
    def held_local_queues(self) -> dict[Key, str]:
        """The LocalQueues that admit nothing, but do not stop what runs, and the ClusterQueue of each."""
        held = ((key, spec) for key, spec in self.local_queues.items() if spec.get("stopPolicy") == _HOLD)
        return {key: str(spec.get("clusterQueue") or "") for key, spec in held}

    @cached_property
    def held_queues(self) -> frozenset[str]:
        """The ClusterQueues that admit nothing only because they are held; what runs in them goes on."""
        return frozenset(
            name
            for name, each in self.readiness.items()
            if self.queues[name].stop_policy == _HOLD and {cause.reason for cause in each.causes} == {STOPPED}
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

    def find_obstacle(self, workload: Workload) -> Obstacle | None:
        """Return why a workload is never admitted, however empty the cluster is; None if it can be."""
        found = self._find_queue_obstacle(workload)
        if found is not None:
            return found
        queue = self.queues[self.find_cluster_queue(workload)]
        labels = self.labels.get(workload.namespace)
        if not matches_selector(queue.namespace_selector, labels):
            message = f"ClusterQueue `{queue.name}` does not select namespace `{workload.namespace}`"
            change = "label the namespace as `namespaceSelector` of the queue demands, or use another queue"
            if queue.namespace_selector is None:
                change = "set `namespaceSelector: {}` in the queue to select every namespace"
            return Obstacle("namespace", message, change)
        assignment, _ = self._empty.assign(workload, queue.name)
        if assignment.mode is not Mode.NO_FIT:
            return None
        ignores = self.cluster.configuration.rules.ignores_undeclared
        return explain_no_fit(workload, queue, assignment, self._empty.snapshot, ignores_undeclared=ignores)

    def _find_queue_obstacle(self, workload: Workload) -> Obstacle | None:
        key = (workload.namespace, workload.queue)
        if key not in self.local_queues:
            message = f"there is no LocalQueue `{workload.queue}` in namespace `{workload.namespace}`"
            return Obstacle("queue", message, _suggest_queue(workload, list(self.local_queues)))
        name = self.find_cluster_queue(workload)
        if not self._find_active_queue(key):
            message = f"LocalQueue `{workload.queue}` is stopped"
            return Obstacle("queue", message, "set its `stopPolicy` to `None`, or use another queue")
        if name not in self.queues:
            message = f"LocalQueue `{workload.queue}` refers to ClusterQueue `{name}`, which does not exist"
            return Obstacle("queue", message, "create the ClusterQueue, or use another queue")
        readiness = self.readiness[name]
        if readiness.is_active and readiness.is_scheduled:
            return None
        if any(cause.reason == STOPPED for cause in readiness.causes):
            message = f"ClusterQueue `{name}` is stopped (`stopPolicy: {self.queues[name].stop_policy}`)"
            return Obstacle("queue", message, "set its `stopPolicy` to `None`, or use another queue")
        causes = "; ".join(cause.message for cause in readiness.causes)
        return Obstacle(
            "queue", f"ClusterQueue `{name}` admits nothing: {causes}", "correct the queue, or use another one"
        )


def _index(objects: Sequence[Mapping[str, Any]]) -> dict[Key, Mapping[str, Any]]:
    return {
        (str(as_mapping(each.get("metadata")).get("namespace") or "default"), name_of(each)): as_mapping(
            each.get("spec")
        )
        for each in objects
    }


def _suggest_queue(workload: Workload, known: Sequence[Key]) -> str:
    names = sorted(name for namespace, name in known if namespace == workload.namespace)
    if names:
        return f"use one of {', '.join(f'`{name}`' for name in names[:5])}"
    return "create the LocalQueue, or use a namespace that has one"
