"""The pods of a PyTorchJob.

Source: kubeflow/training-operator 1.7 to 1.9, pkg/controller.v1/pytorch (envvar.go, master.go, elastic.go,
initcontainer.go) and pkg/apis/kubeflow.org/v1/pytorch_defaults.go. Settings of the operator have their defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jobgen.features.convert.operators.created import Created, CreatedObject, Fields
from jobgen.features.convert.operators.fields import as_fields, as_items, as_string
from jobgen.features.convert.operators.pod_edits import append, variable
from jobgen.features.convert.operators.training_operator import (
    JobKind,
    Replicas,
    TrainingJob,
    append_variables,
    create_replicas,
    read_job,
)
from jobgen.spec.overlay import Cluster

KIND = JobKind(
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


def create_pytorch_job(obj: Fields, _objects: Sequence[Fields], cluster: Cluster) -> Created:
    """Compute the pods of a PyTorchJob and their Services."""
    job = read_job(obj, KIND, cluster)
    elastic = as_fields(job.spec.get("elasticPolicy"))
    processes = _read_processes(job.spec) or _number(elastic.get("nProcPerNode"))
    created = create_replicas(job, KIND, _inject, processes)
    if not elastic.get("metrics"):
        return created
    return created._replace(objects=(*created.objects, CreatedObject("HorizontalPodAutoscaler", job.name)))


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
        yield from _list_master_variables(job)
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


def _list_master_variables(job: TrainingJob) -> Iterator[Fields]:
    port, address = job.roles["Master"].find_port(KIND), job.name_pod("Master", 0)
    for prefix in ("", "PET_"):
        yield variable(f"{prefix}MASTER_PORT", port)
    for prefix in ("", "PET_"):
        yield variable(f"{prefix}MASTER_ADDR", address)


def _list_elastic_variables(job: TrainingJob, elastic: Fields) -> Iterator[Fields]:
    worker = job.roles.get("Worker")
    host = as_string(elastic.get("rdzvHost"), f"{job.name}-worker-0")
    port = _number(elastic.get("rdzvPort")) or (worker.find_port(KIND) if worker else KIND.port)
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
