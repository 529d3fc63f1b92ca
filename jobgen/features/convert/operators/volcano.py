"""The pods of a Job of Volcano, with its plugins env, svc, ssh, pytorch, tensorflow, mpi, ray and hcclrank.

Source: volcano-sh/volcano 1.14, pkg/controllers/job (job_controller_util.go, plugins) and
pkg/webhooks/admission/jobs/mutate/mutate_job.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.features.convert.operators.created import (
    RANDOM,
    Created,
    CreatedObject,
    CreatedPod,
    Fields,
    Restarts,
    list_indexes,
)
from jobgen.features.convert.operators.fields import (
    as_count,
    as_fields,
    as_items,
    as_string,
    get_fields,
    get_name,
    read_texts,
)
from jobgen.features.convert.operators.pod_edits import append, edit_containers, list_containers
from jobgen.features.convert.operators.volcano_plugins import (
    PLUGINS,
    Task,
    VolcanoJob,
    find_head_ports,
    list_hosts,
    read_option,
    write_ssh_config,
)
from jobgen.spec.overlay import Cluster

_MAX_RETRY = 3
_LABEL = "volcano.sh/"
_FAILURES = frozenset(("PodFailed", "TaskFailed", "*"))


def create_volcano_job(obj: Fields, _objects: Sequence[Fields], _cluster: Cluster) -> Created:
    """Compute the pods of a Job of Volcano, and the objects of its plugins."""
    job = _read_job(obj)
    pods = tuple(_list_pods(job, as_fields(obj.get("metadata"))))
    return Created(pods, tuple(_list_objects(job)))


def _read_job(obj: Fields) -> VolcanoJob:
    spec = as_fields(obj.get("spec"))
    items = [item for item in as_items(spec.get("tasks")) if isinstance(item, dict)]
    tasks = tuple(_read_task(item, place) for place, item in enumerate(items))
    plugins = {str(name): [as_string(each) for each in as_items(args)] for name, args in _list_plugins(spec)}
    namespace = as_string(get_fields(obj, "metadata").get("namespace"), "default")
    return VolcanoJob(get_name(obj), namespace, spec, tasks, plugins)


def _list_plugins(spec: Fields) -> Iterator[tuple[str, object]]:
    """Yield the plugins with their arguments; some need others, which the webhook adds."""
    own = as_fields(spec.get("plugins"))
    yield from own.items()
    if "svc" not in own and own.keys() & {"tensorflow", "mpi", "pytorch", "ray"}:
        yield "svc", []
    if "ssh" not in own and "mpi" in own:
        yield "ssh", []


def _read_task(item: Fields, place: int) -> Task:
    template = as_fields(item.get("template"))
    spec = dict(as_fields(template.get("spec")))
    if spec.get("hostNetwork") is True and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    name = as_string(item.get("name"), f"default{place}")
    return Task(name, as_count(item.get("replicas"), 0), template, spec, item)


def _list_pods(job: VolcanoJob, metadata: Fields) -> Iterator[CreatedPod]:
    ranks = _rank_tasks(job)
    for task in job.tasks:
        restarts = _read_restarts(job, task)
        for index, count in list_indexes(task.pods):
            rank = ranks.get(task.name)
            pod = _make_pod(job, task, index, metadata)
            yield CreatedPod(
                *pod,
                rank=None if rank is None else rank + index,
                hostname=as_string(pod[3].get("hostname"), job.name_pod(task, index)),
                address=list_hosts(job, task)[index] if "svc" in job.plugins and not task.spec.get("hostname") else "",
                main=next((as_string(each.get("name")) for each in list_containers(task.spec)), ""),
                restarts=restarts,
                count=count,
            )


def _make_pod(
    job: VolcanoJob, task: Task, index: int, metadata: Fields
) -> tuple[str, int, str, Fields, Fields, Fields, Fields]:
    own = as_fields(task.template.get("metadata"))
    labels = {**read_texts(own.get("labels")), **_label_pod(job, task, index)}
    annotations = {**read_texts(own.get("annotations")), **_annotate_pod(job, task, index)}
    for key in ("preemptable", "cooldown-time", "revocable-zone"):
        value = get_fields(metadata, "annotations").get(f"{_LABEL}{key}")
        if isinstance(value, str):
            annotations[f"{_LABEL}{key}"] = value
    spec = _add_volumes(job, _set_scheduling(job, task.spec))
    for name, plugin in PLUGINS.items():
        if name in job.plugins:
            spec = plugin(job, task, index, spec)
    if "hcclrank" in job.plugins:
        annotations.update(_find_hccl_rank(job, task, index, spec))
    return task.name, index, job.name_pod(task, index), spec, task.template, labels, annotations


def _set_scheduling(job: VolcanoJob, spec: Fields) -> Fields:
    """Set the scheduler and the priority of the job in pods without their own."""
    scheduler = as_string(job.spec.get("schedulerName"), "volcano")
    found = {**spec, "schedulerName": as_string(spec.get("schedulerName"), scheduler)}
    priority = as_string(job.spec.get("priorityClassName"))
    return found if spec.get("priorityClassName") or not priority else {**found, "priorityClassName": priority}


def _add_volumes(job: VolcanoJob, spec: Fields) -> Fields:
    """Mount the volumes of the job in all containers."""
    for volume in (item for item in as_items(job.spec.get("volumes")) if isinstance(item, dict)):
        name = f"{job.name}-{RANDOM}"
        claim = as_string(volume.get("volumeClaimName"), f"{job.name}-pvc-{RANDOM}")
        mount = {"name": name, "mountPath": volume.get("mountPath")}
        spec = append(spec, "volumes", [{"name": name, "persistentVolumeClaim": {"claimName": claim}}])
        spec = edit_containers(spec, lambda each, add=mount: append(each, "volumeMounts", [add]))  # type: ignore[misc]
    return spec


def _label_pod(job: VolcanoJob, task: Task, index: int) -> dict[str, str]:
    labels = {
        f"{_LABEL}task-index": str(index),
        f"{_LABEL}job-name": job.name,
        f"{_LABEL}task-spec": task.name,
        f"{_LABEL}job-namespace": job.namespace,
        f"{_LABEL}queue-name": job.queue,
    }
    policy = task.item.get("partitionPolicy")
    if isinstance(policy, dict):
        labels[f"{_LABEL}partition-id"] = str(index // max(as_count(policy.get("partitionSize"), 0) or index + 1, 1))
    return labels


def _annotate_pod(job: VolcanoJob, task: Task, index: int) -> dict[str, str]:
    return {
        f"{_LABEL}task-index": str(index),
        f"{_LABEL}task-spec": task.name,
        "scheduling.k8s.io/group-name": f"{job.name}-{RANDOM}",
        f"{_LABEL}job-name": job.name,
        f"{_LABEL}queue-name": job.queue,
        f"{_LABEL}job-version": "0",
        f"{_LABEL}template-uid": f"{job.name}-{task.name}",
        f"{_LABEL}job-retry-count": "0",
    }


def _rank_tasks(job: VolcanoJob) -> dict[str, int]:
    """Return the first rank of each task with nodes: the plugins decide, else the order of the tasks."""
    tasks = list(job.tasks)
    for plugin in ("pytorch", "mpi"):
        if plugin in job.plugins:
            master, worker = (read_option(job, plugin, role, role) for role in ("master", "worker"))
            names = (master, worker) if plugin == "pytorch" else (worker,)
            tasks = [task for name in names for task in job.tasks if task.name == name]
            break
    ranks: dict[str, int] = {}
    for task in tasks:
        ranks[task.name] = sum(each.pods for each in tasks if each.name in ranks)
    return ranks


def _find_hccl_rank(job: VolcanoJob, task: Task, index: int, spec: Fields) -> Mapping[str, str]:
    """Return the annotation of the plugin hcclrank: the variable RANK, or the rank among masters and workers."""
    entries = [as_fields(entry) for each in list_containers(spec) for entry in as_items(each.get("env"))]
    known = next((as_string(entry.get("value")) for entry in entries if entry.get("name") == "RANK"), "")
    master, worker = (read_option(job, "hcclrank", role, role) for role in ("master", "worker"))
    if known or task.name == master:
        return {"hccl/rankIndex": known or str(index)}
    masters = sum(each.pods for each in job.tasks if each.name == master)
    return {"hccl/rankIndex": str(masters + index)} if task.name == worker else {}


def _read_restarts(job: VolcanoJob, task: Task) -> Restarts:
    """Return what happens if a pod fails: the kubelet restarts it, or a policy of the job says what to restart."""
    policies = [as_fields(each) for each in (*as_items(task.item.get("policies")), *as_items(job.spec.get("policies")))]
    restarts = any(
        as_string(policy.get("action")).startswith("Restart")
        and _FAILURES & {as_string(event) for event in (policy.get("event"), *as_items(policy.get("events")))}
        for policy in policies
    )
    limit = as_count(job.spec.get("maxRetry"), 0) or _MAX_RETRY
    policy = as_string(task.spec.get("restartPolicy"), "Always")
    return Restarts(policy, "always" if restarts or policy != "Never" else "never", limit if restarts else None)


def _list_objects(job: VolcanoJob) -> Iterator[CreatedObject]:
    yield CreatedObject("PodGroup", f"{job.name}-{RANDOM}")
    if "svc" in job.plugins:
        data = {key: value for task in job.tasks for key, value in _describe_hosts(job, task)}
        yield CreatedObject("ConfigMap", f"{job.name}-svc", data=data)
        yield CreatedObject("Service", job.name)
        if not any("disable-network-policy" in each and "=false" not in each for each in job.plugins["svc"]):
            yield CreatedObject("NetworkPolicy", job.name)
    if "ssh" in job.plugins:
        yield CreatedObject("Secret", f"{job.name}-ssh", data={"config": write_ssh_config(job)})
    if "ray" in job.plugins:
        yield CreatedObject("Service", f"{job.name}-head-svc", find_head_ports(job))


def _describe_hosts(job: VolcanoJob, task: Task) -> Iterator[tuple[str, str]]:
    name, hosts = task.name.replace("-", "_"), list_hosts(job, task)
    yield f"{name}.host", "\n".join(hosts)
    yield f"VC_{name.upper()}_HOSTS", ",".join(hosts)
    yield f"VC_{name.upper()}_NUM", str(len(hosts))
