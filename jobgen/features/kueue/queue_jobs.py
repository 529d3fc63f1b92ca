"""The jobs of a cluster as Kueue sees them: which ones it manages, and the workloads that it makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import Job
from jobgen.features.kueue.cluster_objects import ClusterObjects, get_group, group_objects
from jobgen.features.kueue.configuration import parse_configuration
from jobgen.features.kueue.job_workloads import (
    INTEGRATIONS,
    build_workloads,
    explain_unmanaged,
    find_namespace,
    find_queue,
    find_unreadable,
    get_job_name,
    read_context,
)
from jobgen.features.kueue.obstacles import Obstacle
from jobgen.features.kueue.pod_sets import count_workloads, get_group_name
from jobgen.features.kueue.requests import find_invalid_requests
from jobgen.features.kueue.workloads import Workload
from jobgen.model.features import find_part
from jobgen.spec.overlay import Cluster

_KINDS = frozenset(kind for _, kind in INTEGRATIONS)

Object = Mapping[str, Any]


class QueuedJobs(NamedTuple):
    """The jobs of a cluster, and the queues that they are admitted by."""

    context: AdmissionContext
    jobs: tuple[Job, ...]


def collect_jobs(objects: Sequence[Object], exported: Sequence[Object], cluster: Cluster) -> QueuedJobs:
    """Collect jobs and queues from plain objects. Jobs are only taken from `objects`, the rest from both."""
    configuration = parse_configuration(cluster.kueue, cluster.find_version("kueue"), cluster.feature_gates)
    known = group_objects((*objects, *exported), configuration)
    reader = JobReader(known, cluster)
    jobs = name_apart([job for obj, members in _group_pods(objects) for job in reader.read(obj, members)])
    if reader.remarks:
        known = known._replace(unread=(*dict.fromkeys(reader.remarks), *known.unread))
    context = AdmissionContext(known, sorted({job.namespace for job in jobs}))
    return QueuedJobs(context, tuple(map(remove_placements, jobs)) if context.ignores_topology else jobs)


def _group_pods(objects: Sequence[Object]) -> Iterator[tuple[Object, Sequence[Object]]]:
    """Yield objects, each with the pods of its group. The pods of a group are one object with the name of the group."""
    groups: dict[tuple[str, str], list[Object]] = {}
    for obj in objects:
        if key := _find_group(obj):
            groups.setdefault(key, []).append(obj)
    for obj in objects:
        key = _find_group(obj)
        if key is None:
            yield obj, ()
        elif members := groups.pop(key, None):
            yield {**obj, "metadata": {**obj["metadata"], "name": key[1]}}, members


def _find_group(obj: Object) -> tuple[str, str] | None:
    """Return the namespace and the name of the group of a pod; None if it is alone, or no pod."""
    name = get_group_name(obj) if obj.get("kind") == "Pod" else ""
    return (find_namespace(obj), name) if name else None


def name_apart(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return jobs whose workloads have different keys, also if jobs of several kinds have the same name."""
    shared = {
        key for key, several in Counter(each.key for job in jobs for each in job.workloads).items() if several > 1
    }
    numbers = Counter[str]()

    def rename(workload: Workload, kind: str) -> Workload:
        if workload.key not in shared:
            return workload
        key = f"{workload.key} ({kind})"
        numbers[key] += 1
        return workload._replace(key=f"{key} {numbers[key]}" if numbers[key] > 1 else key)

    return tuple(
        job._replace(workloads=tuple(rename(each, job.kind) for each in job.workloads)) if shared else job
        for job in jobs
    )


def remove_placements(job: Job) -> Job:
    """Return a job that asks for no placement."""
    workloads = (
        each._replace(pod_sets=tuple(replace(pod_set, topology=None) for pod_set in each.pod_sets))
        for each in job.workloads
    )
    return job._replace(workloads=tuple(workloads))


class JobReader:
    """Reads job objects, with the objects that their workloads depend on."""

    def __init__(self, known: ClusterObjects, cluster: Cluster) -> None:
        self._known = known
        self._cluster = cluster
        context = read_context(known)
        self._context = context._replace(known_kinds=context.known_kinds | {*cluster.complete})
        self._labels = known.list_namespaces()
        self.remarks: list[str] = []
        """What is not simulated."""
        self._configuration = known.configuration
        if not cluster.find_version("kueue") and self._configuration.frameworks is None:
            # Which integrations are on is not known.
            frameworks = frozenset(each.framework for each in INTEGRATIONS.values())
            self._configuration = self._configuration._replace(frameworks=frameworks)

    def read(self, obj: Object, members: Sequence[Object] = ()) -> Iterator[Job]:
        """Yield the job of an object; none if it is of a kind that Kueue does not know.

        `members` are the pods of the group of a pod.
        """
        built = build_workloads(obj, self._context, job_set=self._expand(obj), members=members)
        if not built:
            yield from self._read_unmanaged(obj)
            return
        first = built[0].workload
        job = Job(str(obj.get("kind", "")), first.namespace, get_job_name(obj), first.queue)
        unmanaged = explain_unmanaged(obj, first.queue, self._configuration, self._labels.get(first.namespace))
        if unmanaged is not None:
            yield job._replace(obstacle=Obstacle("unmanaged", unmanaged.reason, unmanaged.change))
            return
        if not first.queue:
            message = "it names no queue, and Kueue keeps such jobs suspended"
            yield job._replace(obstacle=Obstacle("queue", message, "add the label `kueue.x-k8s.io/queue-name`"))
            return
        error = built[0].error or self._find_invalid(obj, first)
        missing = built[0].priority.missing
        if error and missing:
            yield job._replace(obstacle=Obstacle("priority", error, "create the class, or name one that exists"))
            return
        if error:
            yield job._replace(obstacle=Obstacle("invalid", error, "correct the job, or what it refers to"))
            return
        remark = f"{missing} is not among the files; its value is assumed to be 0"
        if missing and remark not in self.remarks:
            self.remarks.append(remark)
        total = count_workloads(obj)
        if total > len(built):
            where = f"{job.kind} `{job.namespace}/{job.name}`"
            self.remarks.append(f"{where} has {total} workloads, of which only the first {len(built)} are simulated")
        yield job._replace(workloads=tuple(each.workload for each in built))

    def _read_unmanaged(self, obj: Object) -> Iterator[Job]:
        """Yield a job that has a queue, but is of a version or a form that Kueue does not know."""
        kind, queue, namespace = str(obj.get("kind", "")), find_queue(obj, self._context), find_namespace(obj)
        if not queue or kind not in _KINDS:
            return
        unmanaged = explain_unmanaged(obj, queue, self._configuration, self._labels.get(namespace))
        if unmanaged is not None:
            obstacle = Obstacle("unmanaged", unmanaged.reason, unmanaged.change)
            yield Job(kind, namespace, get_job_name(obj), queue, obstacle=obstacle)

    def _find_invalid(self, obj: Object, workload: Workload) -> str:
        unreadable = find_unreadable(obj, workload.pod_sets)
        if unreadable:
            return unreadable
        pod_sets = [{"template": {"spec": each.spec}} for each in workload.pod_sets]
        return find_invalid_requests(pod_sets, self._context.ranges.get(workload.namespace, {}))

    def _expand(self, obj: Object) -> Object | None:
        if (get_group(obj), obj.get("kind")) != ("trainer.kubeflow.org", "TrainJob"):
            return None
        expand_train_job = find_part("operators.train_job")
        if expand_train_job is None:
            return None
        runtimes = [
            each for kind in ("ClusterTrainingRuntime", "TrainingRuntime") for each in self._known.list_objects(kind)
        ]
        job_set: Object = expand_train_job(obj, runtimes, self._cluster)
        return job_set or None
