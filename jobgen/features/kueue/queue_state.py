"""The queues of a cluster: whether Kueue can ever admit a job, and where its objects stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from jobgen.check.cluster.names import Name, name_object, replace_exported
from jobgen.features.kueue.cluster_objects import DECIDING_KINDS, ClusterObjects, group_objects
from jobgen.features.kueue.cohorts import get_parent
from jobgen.features.kueue.configuration import parse_configuration
from jobgen.features.kueue.decision.admission_context import AdmissionContext
from jobgen.features.kueue.decision.answers import Job
from jobgen.features.kueue.decision.obstacles import Obstacle
from jobgen.features.kueue.queue_jobs import JobReader, remove_placements
from jobgen.features.kueue.quota import list_cycles
from jobgen.features.kueue.scheduling.snapshot import Snapshot
from jobgen.features.kueue.workload.workloads import PodSet, Workload
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, untraced
from jobgen.spec.overlay import Cluster

CHECKED_KINDS = ("ClusterQueue", "Cohort", "ResourceFlavor")
"""Kinds of exported objects that are checked."""

_PLACING_FIELDS = ("affinity", "nodeSelector", "runtimeClassName", "tolerations")


class QueueState:
    """The queues of a cluster, from exported objects and those of the repository, which replace them.

    `objects` are all that decide about admission, with locations as far as they are known.
    """

    def __init__(
        self, cluster: Cluster, exported: Iterable[Mapping[str, Node]], own: Iterable[Mapping[str, Node]]
    ) -> None:
        several = ([obj for obj in each if name_object(obj)[0] in DECIDING_KINDS] for each in (exported, own))
        self.cluster = cluster
        self.objects: dict[Name, Mapping[str, Node]] = {name_object(obj): obj for obj in replace_exported(*several)}
        self._exported = frozenset(map(id, exported))
        self._obstacles: dict[Any, Obstacle | None] = {}

    @cached_property
    def known(self) -> ClusterObjects:
        """The objects without locations, by kind."""
        cluster = self.cluster
        configuration = parse_configuration(cluster.kueue, cluster.find_version("kueue"), cluster.feature_gates)
        return group_objects((untraced(dict(obj)) for obj in self.objects.values()), configuration)

    @cached_property
    def context(self) -> AdmissionContext:
        """The queues before any workload."""
        return AdmissionContext(self.known)

    @cached_property
    def _reader(self) -> JobReader:
        return JobReader(self.known, self.cluster)

    @cached_property
    def cycles(self) -> list[tuple[str, ...]]:
        """The cycles of cohorts."""
        return list_cycles({each.name: each.parent for each in self.known.list_cohorts()})

    @cached_property
    def cohorts(self) -> Counter[str]:
        """How many ClusterQueues and Cohorts name a cohort as the one above them."""
        objects = (obj for kind in ("ClusterQueue", "Cohort") for obj in self.list_objects(kind))
        return Counter(filter(None, (as_text(get_parent(obj)) for obj in objects)))

    @cached_property
    def used_queues(self) -> frozenset[str]:
        """The ClusterQueues that LocalQueues refer to."""
        return frozenset(as_text(spec.get("clusterQueue")) for spec in self.context.local_queues.values())

    @cached_property
    def quotas(self) -> Snapshot:
        """The quota of queues and cohorts."""
        return Snapshot(self.context.queues.values(), self.known.list_cohorts(), self.context.flavors.values())

    @cached_property
    def node_labels(self) -> list[Mapping[str, str]]:
        """The labels of all known nodes, each combination once."""
        found = (as_mapping(as_mapping(node.get("metadata")).get("labels")) for node in self.known.list_nodes())
        several = {tuple(sorted((str(key), str(value)) for key, value in each.items())) for each in found}
        return [dict(each) for each in sorted(several)]

    def list_exported(self) -> list[Mapping[str, Node]]:
        """Return the queues, cohorts and flavors that are not objects of the repository."""
        return [obj for name, obj in self.objects.items() if name[0] in CHECKED_KINDS and self.is_exported(obj)]

    def is_exported(self, obj: Mapping[str, Node]) -> bool:
        """Return whether an object is one of the exported state."""
        return id(obj) in self._exported

    def list_objects(self, kind: str) -> list[Mapping[str, Node]]:
        """Return the objects of a kind."""
        return [obj for name, obj in self.objects.items() if name[0] == kind]

    def find_obstacle(self, obj: Mapping[str, Any]) -> Obstacle | None:
        """Return why Kueue never admits a job; None if it can, or if that is not known. `obj` has no locations."""
        if not self.context.queues:
            return None
        jobs = [job for job in self._reader.read(obj) if job.obstacle or self._knows_queue(job, obj)]
        return next((found for job in jobs if (found := self._find_job_obstacle(job))), None)

    def find_cluster_queue(self, obj: Mapping[str, Any]) -> Mapping[str, Node]:
        """Return the ClusterQueue of a job; empty if it is not known."""
        spec = next(
            (self.context.local_queues.get((job.namespace, job.queue), {}) for job in self._reader.read(obj)), {}
        )
        return self.objects.get(("ClusterQueue", "", as_text(spec.get("clusterQueue"))), {})

    def _find_job_obstacle(self, job: Job) -> Obstacle | None:
        """Find what keeps the workloads of a job from admission; those of a job have the same shape."""
        if job.obstacle is not None:
            # Other rules report requests outside of a LimitRange.
            is_unmanaged = job.obstacle.code == "unmanaged" and job.queue and self.cluster.kueue
            return job.obstacle if is_unmanaged or job.obstacle.code in ("queue", "priority") else None
        kept = remove_placements(job) if self.context.ignores_topology else job
        workload = kept.workloads[0]
        key = _describe_shape(workload)
        if key not in self._obstacles:
            self._obstacles[key] = self.context.find_obstacle(workload)
        return self._obstacles[key]

    def _knows_queue(self, job: Job, obj: Mapping[str, Any]) -> bool:
        """Whether files can tell if the queue of a job exists.

        They cannot without any LocalQueue, nor without the namespace of the job if some namespace has such a queue.
        """
        known = self.context.local_queues
        if (job.namespace, job.queue) in known:
            return True
        has_namespace = bool(as_text(as_mapping(obj.get("metadata")).get("namespace")))
        return bool(known) and (has_namespace or all(name != job.queue for _, name in known))


def _describe_shape(workload: Workload) -> object:
    """Return what decides whether a workload can ever be admitted, as a key."""
    return workload.namespace, workload.queue, tuple(map(_describe_pod_set, workload.pod_sets))


def _describe_pod_set(pod_set: PodSet) -> object:
    placing = [pod_set.spec.get(field) for field in _PLACING_FIELDS]
    requests = tuple(sorted(pod_set.requests.items()))
    return pod_set.name, pod_set.count, pod_set.min_count, requests, pod_set.topology, repr((placing, pod_set.exact))
