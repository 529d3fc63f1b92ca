"""How many pods an object creates from each of its pod templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Node, value_of

_MAX_REPLICAS = 2**31 - 1

_Counts = Iterator[tuple[Node, int]]
"""Pod templates, each with the number of pods that are created from it at the same time."""


def count_pods(manifest: Manifest) -> Iterator[tuple[Pod, int]]:
    """Yield the pod templates of an object, each with the number of its pods; 0 while the object is suspended.

    A DaemonSet counts as one pod, because its number of nodes is unknown. A template that others complete counts 0.
    """
    group = as_text(manifest.object.get("apiVersion")).rpartition("/")[0]
    list_templates = _KINDS.get((group, manifest.kind_name))
    suspended = is_suspended(manifest)
    if manifest.kind is not None and list_templates is None:
        for role in manifest.roles:
            yield role.pod, 0 if suspended else role.count
        own = {id(role.pod) for role in manifest.roles}
        yield from ((pod, 0) for pod in manifest.pods if id(pod) not in own)
        return
    pods = {id(pod.template): pod for pod in manifest.pods} if manifest.kind else {}
    for template, count in list_templates(manifest.object) if list_templates else ():
        if isinstance(template, dict):
            yield pods.get(id(template)) or Pod(template, manifest), 0 if suspended else count


def _number(node: Node, default: int = 1) -> int:
    found = as_integer(node)
    return default if found is None else max(found, 0)


def _spec(node: Node) -> Mapping[str, Node]:
    return as_mapping(as_mapping(node).get("spec"))


def _list_pod(obj: Mapping[str, Node]) -> _Counts:
    yield obj, 1


def _list_replicas(obj: Mapping[str, Node]) -> _Counts:
    spec = _spec(obj)
    yield spec.get("template"), _number(spec.get("replicas"))


def _list_daemons(obj: Mapping[str, Node]) -> _Counts:
    yield _spec(obj).get("template"), 1


def _list_template(obj: Mapping[str, Node]) -> _Counts:
    yield obj.get("template"), 0


def _list_job(obj: Mapping[str, Node]) -> _Counts:
    spec = _spec(obj)
    yield spec.get("template"), 0 if value_of(spec.get("suspend")) is True else count_job_pods(spec)


def count_job_pods(spec: Mapping[str, Node]) -> int:
    """The pods of a Job that is not suspended, and that run at the same time: never more than it has to complete.

    A JobSet decides itself whether its Jobs are suspended.
    """
    parallelism, completions = _number(spec.get("parallelism")), as_integer(spec.get("completions"))
    return parallelism if completions is None else min(parallelism, max(completions, 0))


def _list_cron_job(obj: Mapping[str, Node]) -> _Counts:
    spec = _spec(obj)
    for template, count in _list_job(as_mapping(spec.get("jobTemplate"))):
        yield template, 0 if value_of(spec.get("suspend")) is True else count


def _list_job_set(obj: Mapping[str, Node]) -> _Counts:
    spec = _spec(obj)
    suspended = value_of(spec.get("suspend")) is True
    for item in map(as_mapping, as_list(spec.get("replicatedJobs"))):
        job = _spec(item.get("template"))
        yield job.get("template"), 0 if suspended else _number(item.get("replicas")) * count_job_pods(job)


def _list_volcano_tasks(obj: Mapping[str, Node]) -> _Counts:
    for task in map(as_mapping, as_list(_spec(obj).get("tasks"))):
        yield task.get("template"), _number(task.get("replicas"), 0)


def _list_volcano_cron_tasks(obj: Mapping[str, Node]) -> _Counts:
    spec = _spec(obj)
    for template, count in _list_volcano_tasks(as_mapping(spec.get("jobTemplate"))):
        yield template, 0 if value_of(spec.get("suspend")) is True else count


def _list_replica_specs(obj: Mapping[str, Node]) -> _Counts:
    for item in map(as_mapping, as_list(_spec(obj).get("replicaSpecs"))):
        yield item.get("template"), _number(item.get("replicas"))


def _list_deepspeed_workers(obj: Mapping[str, Node]) -> _Counts:
    worker = as_mapping(_spec(obj).get("worker"))
    yield worker.get("template"), _number(worker.get("replicas"))


def _list_leaders_and_workers(obj: Mapping[str, Node]) -> _Counts:
    """A group has one leader and `size - 1` workers; without a template of its own, the leader is like a worker."""
    spec = _spec(obj)
    groups, templates = _number(spec.get("replicas")), as_mapping(spec.get("leaderWorkerTemplate"))
    size, leader = _number(templates.get("size")), templates.get("leaderTemplate")
    if isinstance(leader, dict):
        yield leader, groups
    yield templates.get("workerTemplate"), groups * (size - 1 if isinstance(leader, dict) else size)


def _list_ray_cluster(spec: Mapping[str, Node]) -> _Counts:
    suspended = value_of(spec.get("suspend")) is True
    yield as_mapping(spec.get("headGroupSpec")).get("template"), 0 if suspended else 1
    for group in map(as_mapping, as_list(spec.get("workerGroupSpecs"))):
        least = _number(group.get("minReplicas"), 0)
        most = _number(group.get("maxReplicas"), _MAX_REPLICAS)
        count = min(max(_number(group.get("replicas"), least), least), most) * _number(group.get("numOfHosts"))
        yield group.get("template"), 0 if suspended or value_of(group.get("suspend")) is True else count


def _list_ray_job(spec: Mapping[str, Node]) -> _Counts:
    suspended = value_of(spec.get("suspend")) is True
    for template, count in _list_ray_cluster(as_mapping(spec.get("rayClusterSpec"))):
        yield template, 0 if suspended else count
    has_submitter = as_text(spec.get("submissionMode")) in ("", "K8sJobMode")
    yield spec.get("submitterPodTemplate"), 1 if has_submitter and not suspended else 0


def _list_ray_cron_job(obj: Mapping[str, Node]) -> _Counts:
    spec = _spec(obj)
    for template, count in _list_ray_job(as_mapping(spec.get("jobTemplate"))):
        yield template, 0 if value_of(spec.get("suspend")) is True else count


_KINDS: Mapping[tuple[str, str], Callable[[Mapping[str, Node]], _Counts]] = {
    ("", "Pod"): _list_pod,
    ("", "PodTemplate"): _list_template,
    ("", "ReplicationController"): _list_replicas,
    ("apps", "DaemonSet"): _list_daemons,
    ("apps", "Deployment"): _list_replicas,
    ("apps", "ReplicaSet"): _list_replicas,
    ("apps", "StatefulSet"): _list_replicas,
    ("batch", "CronJob"): _list_cron_job,
    ("batch", "Job"): _list_job,
    ("batch.tensorstack.dev", "ColossalAIJob"): _list_replica_specs,
    ("batch.tensorstack.dev", "DeepSpeedJob"): _list_deepspeed_workers,
    ("batch.tensorstack.dev", "GenericJob"): _list_replica_specs,
    ("batch.tensorstack.dev", "MPIJob"): _list_replica_specs,
    ("batch.volcano.sh", "CronJob"): _list_volcano_cron_tasks,
    ("batch.volcano.sh", "Job"): _list_volcano_tasks,
    ("jobset.x-k8s.io", "JobSet"): _list_job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _list_leaders_and_workers,
    ("ray.io", "RayCluster"): lambda obj: _list_ray_cluster(_spec(obj)),
    ("ray.io", "RayCronJob"): _list_ray_cron_job,
    ("ray.io", "RayJob"): lambda obj: _list_ray_job(_spec(obj)),
    ("ray.io", "RayService"): lambda obj: _list_ray_cluster(as_mapping(_spec(obj).get("rayClusterConfig"))),
}
