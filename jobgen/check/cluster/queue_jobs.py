"""The jobs of a cluster as Kueue sees them: which ones it manages, and the workloads that it makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.kueue.adjust import adjust_pod_sets, read_overhead
from jobgen.kueue.admission_context import AdmissionContext
from jobgen.kueue.answers import Job
from jobgen.kueue.cluster_objects import ClusterObjects, get_group, group_objects
from jobgen.kueue.configuration import parse_configuration
from jobgen.kueue.limit_ranges import summarize
from jobgen.kueue.objects import as_mapping, name_of
from jobgen.kueue.obstacles import Obstacle
from jobgen.kueue.pod_sets import count_workloads, list_pod_sets
from jobgen.kueue.workloads import Workload, parse_workload
from jobgen.spec.overlay import Cluster

_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

Object = Mapping[str, Any]


class QueuedJobs(NamedTuple):
    """The jobs of a cluster, and the queues that they are admitted by."""

    context: AdmissionContext
    jobs: tuple[Job, ...]


def collect_jobs(objects: Sequence[Object], exported: Sequence[Object], cluster: Cluster) -> QueuedJobs:
    """Collect jobs and queues from plain objects. Jobs are only taken from `objects`, the rest from both."""
    configuration = parse_configuration(cluster.kueue, cluster.find_version("kueue"))
    known = group_objects((*objects, *exported), configuration)
    reader = _JobReader(known, cluster)
    jobs = tuple(job for obj in objects for job in reader.read(obj))
    context = AdmissionContext(known, sorted({job.namespace for job in jobs}))
    return QueuedJobs(context, jobs)


class _JobReader:
    """Reads job objects, with the objects that their workloads depend on."""

    def __init__(self, known: ClusterObjects, cluster: Cluster) -> None:
        self._known = known
        self._cluster = cluster
        self._overheads = dict(map(read_overhead, known.list_objects("RuntimeClass")))
        self._limit_ranges: dict[str, list[Object]] = {}
        for each in known.list_objects("LimitRange"):
            namespace = str(as_mapping(each.get("metadata")).get("namespace") or "")
            self._limit_ranges.setdefault(namespace, []).append(each)

    def read(self, obj: Object) -> Iterator[Job]:
        """Yield the job of an object; none if it is of a kind that Kueue does not know."""
        metadata = as_mapping(obj.get("metadata"))
        queue = str(as_mapping(metadata.get("labels")).get(_QUEUE_LABEL) or "")
        job_set = self._expand(obj)
        raw = list_pod_sets(obj, job_set=job_set)
        if raw is None:
            return
        namespace = str(metadata.get("namespace") or "default")
        job = Job(str(obj.get("kind", "")), namespace, name_of(obj), queue)
        if not queue:
            yield job._replace(obstacle=Obstacle("unmanaged", "it names no queue, so it starts at once", ""))
            return
        summary = summarize(self._limit_ranges.get(namespace, ()))
        pod_sets = adjust_pod_sets(raw, self._overheads, summary)
        number = count_workloads(obj)
        names = [job.name] if number == 1 else [f"{job.name}-{index}" for index in range(number)]
        yield job._replace(workloads=tuple(self._build(name, namespace, queue, pod_sets) for name in names))

    def _build(self, name: str, namespace: str, queue: str, pod_sets: Sequence[Any]) -> Workload:
        obj = {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"queueName": queue, "podSets": pod_sets},
        }
        return parse_workload(obj, self._known.configuration.resources)

    def _expand(self, obj: Object) -> Object | None:
        if (get_group(obj), obj.get("kind")) != ("trainer.kubeflow.org", "TrainJob"):
            return None
        from jobgen.operators.trainer import expand_train_job

        runtimes = [
            each for kind in ("ClusterTrainingRuntime", "TrainingRuntime") for each in self._known.list_objects(kind)
        ]
        return expand_train_job(obj, runtimes, self._cluster) or None
