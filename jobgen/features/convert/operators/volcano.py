"""The pods of a Job of Volcano, with its plugins env, svc, ssh, pytorch, tensorflow, mpi, ray and hcclrank.

Source: volcano-sh/volcano 1.14, pkg/controllers/job (job_controller_util.go, plugins) and
pkg/webhooks/admission/jobs/mutate/mutate_job.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.operators.created import (
    MAX_PODS,
    RANDOM,
    Created,
    CreatedObject,
    CreatedPod,
    Fields,
    Restarts,
    append,
    as_count,
    as_fields,
    as_items,
    as_string,
    edit_containers,
    get_fields,
    get_name,
    list_containers,
    list_indexes,
    read_texts,
    variable,
)
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.overlay import Cluster

_SSH_FOLDER = "/root/.ssh"


class Task(NamedTuple):
    """A task of a job."""

    name: str
    pods: int
    template: Fields
    spec: Fields
    """The pod spec of the template, with the defaults of the webhook."""
    item: Fields
    """The task in the object."""


class VolcanoJob(NamedTuple):
    """A job with the defaults of the webhook."""

    name: str
    namespace: str
    spec: Fields
    tasks: tuple[Task, ...]
    plugins: Mapping[str, Sequence[str]]
    """The arguments of each plugin."""

    @property
    def queue(self) -> str:
        """The queue of the job."""
        return as_string(self.spec.get("queue"), "default")

    def name_pod(self, task: Task, index: int) -> str:
        """Return the name of a pod."""
        return f"{self.name}-{task.name}-{index}"

    def find_task(self, name: str) -> Task | None:
        """Return the task with a name."""
        return next((task for task in self.tasks if task.name == name), None)


def read_option(job: VolcanoJob, plugin: str, option: str, default: str) -> str:
    """Return the value of an option of a plugin: `--port=1`, `-port=1`, or `--port` and `1`."""
    arguments = job.plugins.get(plugin, ())
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in (f"--{option}", f"-{option}"):
            return value if equals else arguments[place + 1] if place + 1 < len(arguments) else default
    return default


def _read_port(job: VolcanoJob, plugin: str, default: int, option: str = "port") -> int:
    text = read_option(job, plugin, option, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else default


def list_hosts(job: VolcanoJob, task: Task) -> list[str]:
    """Return the addresses of the pods of a task; one if its template has a host name."""
    subdomain = as_string(task.spec.get("subdomain"), job.name)
    own = as_string(task.spec.get("hostname"))
    names = [own] if own else [job.name_pod(task, index) for index in range(min(task.pods, MAX_PODS))]
    return [f"{name}.{subdomain}" for name in names]


def write_ssh_config(job: VolcanoJob) -> str:
    """Return the configuration of SSH, with all hosts."""
    hosts = [host for task in job.tasks for host in list_hosts(job, task)]
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    return "".join(f"{line}\n" for line in lines) + "".join(
        f"Host {host.partition('.')[0]}\n  HostName {host}\n" for host in hosts
    )


def _edit_all(spec: Fields, edit: Callable[[Fields], Fields]) -> Fields:
    for field in ("containers", "initContainers"):
        spec = edit_containers(spec, edit, field=field)
    return spec


def _apply_env(_job: VolcanoJob, _task: Task, index: int, spec: Fields) -> Fields:
    entries = [variable("VK_TASK_INDEX", index), variable("VC_TASK_INDEX", index)]
    return _edit_all(spec, lambda each: append(each, "env", entries))


def _apply_svc(job: VolcanoJob, task: Task, index: int, spec: Fields) -> Fields:
    """Set the host name, and mount the ConfigMap with the hosts of all tasks."""
    config = f"{job.name}-svc"
    names = [f"VC_{each.name.replace('-', '_').upper()}_{suffix}" for each in job.tasks for suffix in ("HOSTS", "NUM")]
    entries = [{"name": name, "valueFrom": {"configMapKeyRef": {"name": config, "key": name}}} for name in names]
    mount = {"name": config, "mountPath": "/etc/volcano"}
    spec = {
        **spec,
        "hostname": as_string(spec.get("hostname"), job.name_pod(task, index)),
        "subdomain": as_string(spec.get("subdomain"), job.name),
    }
    spec = _edit_all(spec, lambda each: append(append(each, "env", entries), "volumeMounts", [mount]))
    return append(spec, "volumes", [{"name": config, "configMap": {"name": config}}])


def _apply_ssh(job: VolcanoJob, _task: Task, _index: int, spec: Fields) -> Fields:
    secret, folder = f"{job.name}-ssh", read_option(job, "ssh", "ssh-key-file-path", _SSH_FOLDER)
    items = [{"key": key, "path": f".ssh/{key}"} for key in ("id_rsa", "id_rsa.pub", "authorized_keys", "config")]
    mode = 0o600 if folder == _SSH_FOLDER else 0o644
    volume = {"name": secret, "secret": {"secretName": secret, "items": items, "defaultMode": mode}}
    mount = {"name": secret, "mountPath": folder, "subPath": ".ssh"}
    return append(_edit_all(spec, lambda each: append(each, "volumeMounts", [mount])), "volumes", [volume])


def _apply_pytorch(job: VolcanoJob, task: Task, index: int, spec: Fields) -> Fields:
    master, worker = (read_option(job, "pytorch", role, role) for role in ("master", "worker"))
    leader = job.find_task(master)
    if leader is None:
        return spec
    port, address = (
        _read_port(job, "pytorch", 23456),
        (list_hosts(job, leader) or [f"{job.name}-{master}-0.{job.name}"])[0],
    )
    total = sum(each.pods for each in job.tasks if each.name in (master, worker))
    entries = [variable("MASTER_ADDR", address), variable("MASTER_PORT", port), variable("WORLD_SIZE", total)]
    if task.name in (master, worker):
        entries.append(variable("RANK", index + 1 if task.name == worker else 0))
    if task.name == worker:
        spec = _wait_for_master(job, spec, address, port)
    spec = edit_containers(spec, lambda each: _open_port(each, "pytorchjob-port", port))
    return edit_containers(spec, lambda each: append(each, "env", entries))


def _wait_for_master(job: VolcanoJob, spec: Fields, address: str, port: int) -> Fields:
    """Add the container that waits for the port of the master, if the option is on."""
    enabled = any(
        each.lstrip("-") in ("wait-master-enabled", "wait-master-enabled=true") for each in job.plugins["pytorch"]
    )
    if not enabled:
        return spec
    image = read_option(job, "pytorch", "wait-master-image", "busybox:1.36.1")
    script = f"until nc -z {address} {port}; do sleep 2; done"
    waiting = {"name": "wait-for-master", "image": image, "command": ["sh", "-c", script]}
    return append(spec, "initContainers", [waiting])


def _open_port(container: Fields, name: str, port: int) -> Fields:
    if any(as_fields(each).get("containerPort") == port for each in as_items(container.get("ports"))):
        return container
    return append(container, "ports", [{"name": name, "containerPort": port}])


def _apply_tensorflow(job: VolcanoJob, task: Task, index: int, spec: Fields) -> Fields:
    if len(job.tasks) == 1 and task.pods == 1:
        return spec
    port = _read_port(job, "tensorflow", 2222)
    names = {read_option(job, "tensorflow", role, role): role for role in ("ps", "worker", "chief", "evaluator")}
    cluster: dict[str, Any] = {}
    for name, role in names.items():
        found = job.find_task(name)
        if found is not None and found.pods:
            cluster[role] = [f"{host}:{port}" for host in list_hosts(job, found)]
    config = {"cluster": cluster, "task": {"type": names.get(task.name, task.name), "index": index}}
    entry = variable("TF_CONFIG", json.dumps(config, separators=(",", ":")))
    return edit_containers(spec, lambda each: append(each, "env", [entry]))


def _apply_mpi(job: VolcanoJob, task: Task, _index: int, spec: Fields) -> Fields:
    port = _read_port(job, "mpi", 22)
    worker = job.find_task(read_option(job, "mpi", "worker", "worker"))
    entries: list[Fields] = []
    if task.name == read_option(job, "mpi", "master", "master"):
        if worker is None:
            return spec
        entries = [variable("MPI_HOST", ",".join(list_hosts(job, worker)))]
    return _edit_all(spec, lambda each: append(_open_port(each, "mpijob-port", port), "env", entries))


def find_head_ports(job: VolcanoJob) -> dict[str, int]:
    """Return the ports of the head of Ray."""
    return {
        "gcs": _read_port(job, "ray", 6379),
        "dashboard": _read_port(job, "ray", 8265, "dashboardPort"),
        "client-server": _read_port(job, "ray", 10001, "clientPort"),
    }


def _apply_ray(job: VolcanoJob, task: Task, _index: int, spec: Fields) -> Fields:
    """Start Ray in the containers of the head and of the workers."""
    ports = find_head_ports(job)
    head = job.find_task(read_option(job, "ray", "head", "head"))
    if head is None:
        return spec
    if task is head:
        gcs, dashboard, client = ports.values()
        flags = f"--port={gcs} --dashboard-port={dashboard} --ray-client-server-port={client}"
        command = f"ray start --head --block --dashboard-host=0.0.0.0 {flags}"
        container = read_option(job, "ray", "headContainer", "head")
        for name, port in ports.items():
            spec = edit_containers(spec, lambda each, n=name, p=port: _open_port(each, n, p), name=container)  # type: ignore[misc]
    elif task.name == read_option(job, "ray", "worker", "worker"):
        address = (list_hosts(job, head) or [f"{job.name}-{head.name}-0.{job.name}"])[0]
        command = f"ray start --block --address={address}:{ports['gcs']}"
        container = read_option(job, "ray", "workerContainer", "worker")
    else:
        return spec
    return edit_containers(spec, lambda each: {**each, "command": ["sh", "-c", command]}, name=container)


PLUGINS: Mapping[str, Callable[[VolcanoJob, Task, int, Fields], Fields]] = {
    "env": _apply_env,
    "svc": _apply_svc,
    "ssh": _apply_ssh,
    "pytorch": _apply_pytorch,
    "tensorflow": _apply_tensorflow,
    "mpi": _apply_mpi,
    "ray": _apply_ray,
}
"""What each plugin changes in the spec of a pod."""


_MAX_RETRY = 3
_LABEL = "volcano.sh/"
_FAILURES = frozenset(("PodFailed", "TaskFailed", "*"))


def create_volcano_job(obj: Fields, _objects: Sequence[Fields], _cluster: Cluster) -> Created:
    """Compute the pods of a Job of Volcano, and the objects of its plugins."""
    spec = as_fields(obj.get("spec"))
    items = [item for item in as_items(spec.get("tasks")) if isinstance(item, dict)]
    tasks = tuple(_read_task(item, place) for place, item in enumerate(items))
    plugins = {str(name): [as_string(each) for each in as_items(args)] for name, args in _list_plugins(spec)}
    namespace = as_string(get_fields(obj, "metadata").get("namespace"), "default")
    job = VolcanoJob(get_name(obj), namespace, spec, tasks, plugins)
    pods = tuple(_list_pods(job, as_fields(obj.get("metadata"))))
    return Created(pods, tuple(_list_objects(job)))


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
            own = as_fields(task.template.get("metadata"))
            labels = {**read_texts(own.get("labels")), **_label_pod(job, task, index)}
            annotations = {**read_texts(own.get("annotations")), **_annotate_pod(job, task, index)}
            for key in ("preemptable", "cooldown-time", "revocable-zone"):
                value = get_fields(metadata, "annotations").get(f"{_LABEL}{key}")
                if isinstance(value, str):
                    annotations[f"{_LABEL}{key}"] = value
            spec = _add_volumes(job, _set_scheduling(job, task.spec))
            for plugin in (PLUGINS[each] for each in PLUGINS if each in job.plugins):
                spec = plugin(job, task, index, spec)
            if "hcclrank" in job.plugins:
                annotations.update(_find_hccl_rank(job, task, index, spec))
            name = job.name_pod(task, index)
            yield CreatedPod(
                task.name,
                index,
                name,
                spec,
                task.template,
                labels,
                annotations,
                rank=None if rank is None else rank + index,
                hostname=as_string(spec.get("hostname"), name),
                address=list_hosts(job, task)[index] if "svc" in job.plugins and not task.spec.get("hostname") else "",
                main=next((as_string(each.get("name")) for each in list_containers(task.spec)), ""),
                restarts=restarts,
                count=count,
            )


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
    # The job fails when it was restarted as often as this: the first failure counts.
    restarts = restarts and limit > 1
    policy = as_string(task.spec.get("restartPolicy"), "Always")
    return Restarts(policy, "always" if restarts or policy != "Never" else "never", limit - 1 if restarts else None)


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
