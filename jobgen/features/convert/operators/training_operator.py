"""The pods of the kinds of training-operator: PyTorchJob, TFJob, XGBoostJob, PaddleJob and JAXJob.

A pod is named after the job, its role and its index, and a headless Service with the same name makes it reachable.
Source: kubeflow/training-operator 1.7 to 1.9, pkg/controller.v1 (pytorch, tensorflow, xgboost, paddlepaddle, jax) and
pkg/apis/kubeflow.org/v1/pytorch_defaults.go. Settings of the operator have their defaults.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobgen.features.convert.operators.created import (
    MAX_PODS,
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
    field_variable,
    find_container,
    get_fields,
    get_name,
    list_indexes,
    read_texts,
    variable,
)
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

LABEL = "training.kubeflow.org/"
"""The prefix of the labels of pods."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of training-operator."""

    replicas: str
    """The field of `spec` with the replicas of each role."""
    roles: tuple[str, ...]
    """The roles in the order of their ranks."""
    container: str
    port_name: str
    port: int
    restart_policy: str
    controller: str
    masters: tuple[str, ...] = ()
    """The roles with the label of the master."""
    first_worker: bool = True
    """True if the first worker has the label of the master where no other pod has it."""
    other_roles: bool = False
    """True if the operator creates pods of roles that it does not know."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """A role of a job, with the defaults of the operator."""

    role: str
    count: int
    template: Fields
    spec: Fields
    """The pod spec of the template, with the port of the kind."""
    restart_policy: str

    def find_port(self, kind: JobKind) -> int:
        """Return the port by which other pods reach the training container."""
        return next(
            (port for name, port in list_ports(find_container(self.spec, kind.container)) if name == kind.port_name),
            kind.port,
        )


class TrainingJob(NamedTuple):
    """A job with the defaults of the operator."""

    name: str
    namespace: str
    spec: Fields
    roles: Mapping[str, Replicas]
    version: tuple[int, ...]

    def name_pod(self, role: str, index: int) -> str:
        """Return the name of a pod, which is also that of its Service."""
        return f"{self.name}-{role.lower()}-{index}".replace("/", "-")

    @property
    def total(self) -> int:
        """The number of pods."""
        return sum(replicas.count for replicas in self.roles.values())


Inject = Callable[[TrainingJob, Replicas, int], Fields]
"""Returns the pod spec of a pod with all that the operator adds to it."""

ListVariables = Callable[[TrainingJob, Replicas, int], Iterable[Fields]]
"""Returns the variables that the operator sets in the containers of a pod."""


def read_job(obj: Fields, kind: JobKind, cluster: Cluster) -> TrainingJob:
    """Read a job and set the defaults of the operator."""
    version = str(cluster.operators.get("training-operator", ""))
    spec = as_fields(obj.get("spec"))
    found = {str(name).lower(): value for name, value in as_fields(spec.get(kind.replicas)).items()}
    known = [role.lower() for role in kind.roles]
    others = [role for role in found if role not in known] if kind.other_roles else []
    roles = {
        role: _read_replicas(role, found[role.lower()], kind)
        for role in (*kind.roles, *others)
        if isinstance(found.get(role.lower()), dict)
    }
    namespace = as_string(get_fields(obj, "metadata").get("namespace"), "default")
    return TrainingJob(get_name(obj), namespace, spec, roles, parse_version(version))


def _read_replicas(role: str, replicas: Fields, kind: JobKind) -> Replicas:
    template = as_fields(replicas.get("template"))
    return Replicas(
        role,
        as_count(replicas.get("replicas"), 1),
        template,
        _add_port(as_fields(template.get("spec")), kind),
        as_string(replicas.get("restartPolicy"), kind.restart_policy),
    )


def _add_port(spec: Fields, kind: JobKind) -> Fields:
    """Add the port of the kind to its container, or to the first one, unless there is a port with its name."""
    containers = as_items(spec.get("containers"))
    place = next((at for at, each in enumerate(containers) if as_fields(each).get("name") == kind.container), 0)
    if not containers or not isinstance(containers[place], dict) or not kind.port_name:
        return spec
    if any(name == kind.port_name for name, _ in list_ports(containers[place])):
        return spec
    added = append(containers[place], "ports", [{"name": kind.port_name, "containerPort": kind.port}])
    return {**spec, "containers": [*containers[:place], added, *containers[place + 1 :]]}


def list_ports(container: Fields) -> Iterator[tuple[str, int]]:
    """Yield the names and numbers of the ports of a container."""
    for port in as_items(container.get("ports")):
        number = as_fields(port).get("containerPort")
        if type(number) is int:
            yield as_string(port.get("name")), number


def create_replicas(job: TrainingJob, kind: JobKind, inject: Inject, processes: str = "") -> Created:
    """Compute the pods of all roles, and their Services."""
    pods = tuple(_list_pods(job, kind, inject, processes))
    return Created(pods, tuple(_create_service(pod, kind) for pod in pods))


def _list_pods(job: TrainingJob, kind: JobKind, inject: Inject, processes: str) -> Iterator[CreatedPod]:
    rank = 0
    for replicas in job.roles.values():
        metadata = as_fields(replicas.template.get("metadata"))
        restarts = map_restart_policy(replicas.restart_policy, job.spec)
        for index, count in list_indexes(replicas.count):
            name = job.name_pod(replicas.role, index)
            labels = {
                f"{LABEL}operator-name": kind.controller,
                f"{LABEL}job-name": job.name.replace("/", "-"),
                f"{LABEL}replica-type": replicas.role.lower(),
                f"{LABEL}replica-index": str(index),
            }
            alone = kind.first_worker and not any(role in job.roles for role in kind.masters)
            if replicas.role in kind.masters or (alone and replicas.role == "Worker" and index == 0):
                labels[f"{LABEL}job-role"] = "master"
            yield CreatedPod(
                replicas.role,
                index,
                name,
                {**inject(job, replicas, index), "restartPolicy": restarts.policy},
                replicas.template,
                {**read_texts(metadata.get("labels")), **labels},
                read_texts(metadata.get("annotations")),
                rank + index,
                hostname=as_string(replicas.spec.get("hostname"), name),
                address=name,
                main=kind.container,
                processes=processes,
                restarts=restarts,
                count=count,
            )
        rank += replicas.count


def map_restart_policy(policy: str, spec: Fields) -> Restarts:
    """Return what the operator does if a pod fails; pods do not know the policy ExitCode."""
    limit = get_fields(spec, "runPolicy").get("backoffLimit")
    retried = {"ExitCode": "retryable", "Never": "never"}.get(policy, "always")
    return Restarts(
        "Never" if policy == "ExitCode" else policy,
        retried,
        limit if type(limit) is int and retried != "never" else None,
    )


def _create_service(pod: CreatedPod, kind: JobKind) -> CreatedObject:
    return CreatedObject("Service", pod.name, dict(list_ports(find_container(pod.spec, kind.container))))


def append_variables(list_variables: ListVariables) -> Inject:
    """Return the edit that appends variables to all containers, even where a container has one with the same name."""

    def inject(job: TrainingJob, replicas: Replicas, index: int) -> Fields:
        entries = list(list_variables(job, replicas, index))
        return edit_containers(replicas.spec, lambda container: append(container, "env", entries))

    return inject


_PYTORCH_JOB = JobKind(
    "pytorchReplicaSpecs",
    ("Master", "Worker"),
    "pytorch",
    "pytorchjob-port",
    23456,
    "OnFailure",
    "pytorchjob-controller",
    ("Master",),
)
_INIT_IMAGE = "alpine:3.10"
_MAX_TRIES = 100
_PROCESSES_AFTER_RANK = (1, 8)
"""The first version that sets the number of processes after the rank, and without a master, too."""


def _inject(job: TrainingJob, replicas: Replicas, index: int) -> Fields:
    spec = append_variables(_list_variables)(job, replicas, index)
    if "Master" in job.roles and replicas.role == "Worker":
        spec = append(spec, "initContainers", [_create_waiting_container(job.name_pod("Master", 0))])
    return spec


def _list_variables(job: TrainingJob, replicas: Replicas, index: int) -> Iterator[Fields]:
    processes = _read_processes(job.spec)
    yield variable("PYTHONUNBUFFERED", 1)
    after = not job.version or job.version >= _PROCESSES_AFTER_RANK
    if "Master" in job.roles:
        port, address = job.roles["Master"].find_port(_PYTORCH_JOB), job.name_pod("Master", 0)
        for prefix in ("", "PET_"):
            yield variable(f"{prefix}MASTER_PORT", port)
        for prefix in ("", "PET_"):
            yield variable(f"{prefix}MASTER_ADDR", address)
        rank = index + 1 if replicas.role == "Worker" else index
        yield variable("WORLD_SIZE", job.total * (int(processes) if processes.isdecimal() else 1))
        yield variable("RANK", rank)
        if processes and not after:
            yield variable("PET_NPROC_PER_NODE", processes)
        yield variable("PET_NODE_RANK", rank)
    if processes and after:
        yield variable("PET_NPROC_PER_NODE", processes)
    if isinstance(job.spec.get("elasticPolicy"), dict):
        yield from _list_elastic_variables(job, job.spec["elasticPolicy"])
    else:
        yield variable("PET_NNODES", job.total)


def _list_elastic_variables(job: TrainingJob, elastic: Fields) -> Iterator[Fields]:
    worker = job.roles.get("Worker")
    host = as_string(elastic.get("rdzvHost"), f"{job.name}-worker-0")
    port = _number(elastic.get("rdzvPort")) or (worker.find_port(_PYTORCH_JOB) if worker else _PYTORCH_JOB.port)
    yield variable("PET_RDZV_ENDPOINT", f"{host}:{port}")
    yield variable("PET_RDZV_BACKEND", as_string(elastic.get("rdzvBackend"), "c10d"))
    workers = str(worker.count if worker else 0)
    least, most = (_number(elastic.get(field)) for field in ("minReplicas", "maxReplicas"))
    yield variable("PET_NNODES", f"{least or most or workers}:{most or least or workers}")
    for field, name in (("maxRestarts", "PET_MAX_RESTARTS"), ("nProcPerNode", "PET_NPROC_PER_NODE")):
        if number := _number(elastic.get(field)):
            yield variable(name, number)
    if isinstance(elastic.get("rdzvId"), str):
        yield variable("PET_RDZV_ID", elastic["rdzvId"])
    if settings := [as_fields(item) for item in as_items(elastic.get("rdzvConf"))]:
        yield variable("PET_RDZV_CONF", ",".join(f"{each.get('key', '')}={each.get('value', '')}" for each in settings))
    if elastic.get("standalone") is True:
        yield variable("PET_STANDALONE", "")


def _read_processes(spec: Fields) -> str:
    """Return the processes of each node; empty if only the elastic policy has their number."""
    elastic = as_fields(spec.get("elasticPolicy"))
    default = "" if _number(elastic.get("nProcPerNode")) else "auto"
    return as_string(spec.get("nprocPerNode"), default)


def _number(node: Any) -> str:
    return str(node) if type(node) is int else ""


def _create_waiting_container(master: str) -> Fields:
    """Return the container that waits until the name of the master is known."""
    script = (
        f"err=1;for i in $(seq {_MAX_TRIES}); do if nslookup {master}; then err=0 && break; fi;"
        "echo waiting for master; sleep 2; done; exit $err"
    )
    return {
        "name": "init-pytorch",
        "image": _INIT_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": {"cpu": "100m", "memory": "20Mi"}, "requests": {"cpu": "50m", "memory": "10Mi"}},
        "command": ["sh", "-c", script],
    }


_TF_JOB = JobKind(
    "tfReplicaSpecs",
    ("Chief", "Master", "Worker", "PS", "Evaluator"),
    "tensorflow",
    "tfjob-port",
    2222,
    "Never",
    "tfjob-controller",
    ("Chief", "Master"),
    other_roles=True,
)


def _inject_tf_config(job: TrainingJob, replicas: Replicas, index: int) -> Fields:
    """Set TF_CONFIG in the training container, unless there is one pod only."""
    if job.total < 2:
        return replicas.spec
    config = variable("TF_CONFIG", json.dumps(_make_config(job, replicas, index), separators=(",", ":")))
    return edit_containers(replicas.spec, lambda each: append(each, "env", [config]), name=_TF_JOB.container)


def _make_config(job: TrainingJob, replicas: Replicas, index: int) -> dict[str, Any]:
    """Return the value of TF_CONFIG. With dynamic workers, a pod knows only itself and the parameter servers."""
    hosts = {role.lower(): _list_hosts(job, each) for role, each in sorted(job.roles.items())}
    role = replicas.role.lower()
    task = {"type": role, "index": index}
    if job.spec.get("enableDynamicWorker") is not True:
        return {"cluster": dict(sorted(hosts.items())), "task": task, "environment": "cloud"}
    worker = {str(index): hosts[role][index]} if role == "worker" else {}
    servers = hosts.get("ps", []) if role == "worker" else hosts[role][index : index + 1] if role == "ps" else []
    return {"cluster": {"worker": worker, "ps": servers}, "task": task}


def _list_hosts(job: TrainingJob, replicas: Replicas) -> list[str]:
    port = replicas.find_port(_TF_JOB)
    indexes = range(min(replicas.count, MAX_PODS))
    return [f"{job.name_pod(replicas.role, index)}.{job.namespace}.svc:{port}" for index in indexes]


_XGBOOST_JOB = JobKind(
    "xgbReplicaSpecs",
    ("Master", "Worker"),
    "xgboost",
    "xgboostjob-port",
    9999,
    "Never",
    "xgboostjob-controller",
    ("Master",),
    first_worker=False,
)


def _list_xgboost_variables(job: TrainingJob, replicas: Replicas, index: int) -> Iterator[Fields]:
    master, worker = job.roles.get("Master"), job.roles.get("Worker")
    yield variable("MASTER_PORT", master.find_port(_XGBOOST_JOB) if master else _XGBOOST_JOB.port)
    yield variable("MASTER_ADDR", job.name_pod("Master", 0))
    yield variable("WORLD_SIZE", job.total)
    yield variable("RANK", index + (master.count if master and replicas.role == "Worker" else 0))
    yield variable("PYTHONUNBUFFERED", 1)
    if job.total > 1:
        yield variable("WORKER_PORT", worker.find_port(_XGBOOST_JOB) if worker else _XGBOOST_JOB.port)
        workers = range(min(job.total - 1, MAX_PODS))
        yield variable("WORKER_ADDRS", ",".join(job.name_pod("Worker", each) for each in workers))


_PADDLE_JOB = JobKind(
    "paddleReplicaSpecs",
    ("Master", "Worker"),
    "paddle",
    "master",
    36543,
    "OnFailure",
    "paddlejob-controller",
    ("Master",),
    first_worker=False,
)


def _list_paddle_variables(job: TrainingJob, replicas: Replicas, index: int) -> Iterator[Fields]:
    yield variable("PYTHONUNBUFFERED", 1)
    yield variable("PADDLE_JOB_ID", job.name)
    yield variable("PADDLE_NNODES", job.total)
    leader = "Master" if "Master" in job.roles else "Worker"
    port = job.roles[leader].find_port(_PADDLE_JOB)
    if index == 0 and replicas.role == leader:
        yield field_variable("POD_IP_DUMMY", "status.podIP")
        yield variable("PADDLE_MASTER", f"$(POD_IP_DUMMY):{port}")
    else:
        yield variable("PADDLE_MASTER", f"{job.name_pod(leader, 0)}:{port}")
    if leader == "Master":
        yield variable("PADDLE_SERVER_NUM" if replicas.role == "Master" else "PADDLE_TRAINER_NUM", 1)


_JAX_JOB = JobKind("jaxReplicaSpecs", ("Worker",), "jax", "jaxjob-port", 6666, "Never", "jaxjob-controller")


def _list_jax_variables(job: TrainingJob, replicas: Replicas, index: int) -> Iterator[Fields]:
    yield variable("PYTHONUNBUFFERED", 1)
    yield variable("COORDINATOR_PORT", replicas.find_port(_JAX_JOB))
    yield variable("COORDINATOR_ADDRESS", job.name_pod("Worker", 0))
    yield variable("NUM_PROCESSES", job.total)
    yield variable("PROCESS_ID", index)


_KINDS: Mapping[str, tuple[JobKind, Inject]] = {
    "PyTorchJob": (_PYTORCH_JOB, _inject),
    "TFJob": (_TF_JOB, _inject_tf_config),
    "XGBoostJob": (_XGBOOST_JOB, append_variables(_list_xgboost_variables)),
    "PaddleJob": (_PADDLE_JOB, append_variables(_list_paddle_variables)),
    "JAXJob": (_JAX_JOB, append_variables(_list_jax_variables)),
}
TRAINING_KINDS = tuple(_KINDS)
"""The kinds whose pods are computed; MPIJobs have a module of their own."""


def create_training_job(obj: Fields, _objects: Sequence[Fields], cluster: Cluster) -> Created:
    """Compute the pods of a job of training-operator and their Services."""
    kind, inject = _KINDS[as_string(obj.get("kind"))]
    job = read_job(obj, kind, cluster)
    if kind is not _PYTORCH_JOB:
        return create_replicas(job, kind, inject)
    elastic = as_fields(job.spec.get("elasticPolicy"))
    created = create_replicas(job, kind, inject, _read_processes(job.spec) or _number(elastic.get("nProcPerNode")))
    scaler = (CreatedObject("HorizontalPodAutoscaler", job.name),) if elastic.get("metrics") else ()
    return created._replace(objects=(*created.objects, *scaler))
