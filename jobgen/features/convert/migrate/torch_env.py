"""The variables that training-operator sets in the containers of a PyTorchJob, as a runtime of Trainer sets them."""

from __future__ import annotations

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.migrate.torch_job import (
    TorchJob,
    is_torchrun,
    list_ports,
    requests_gpus,
    starts_processes,
    states_all_resources,
)
from jobgen.model.named_tuple import NamedTuple

JOB_NAME = "TRAINJOB_NAME"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_NAME = "metadata.labels['jobset.sigs.k8s.io/jobset-name']"
_GLOBAL_INDEX = "metadata.labels['jobset.sigs.k8s.io/job-global-index']"


class TorchVariables(NamedTuple):
    """The variables of a job: those of the runtime, and those that hold a number of nodes and belong in the job."""

    runtime: list[Fields]
    job: list[Fields]
    injected: frozenset[str]
    """The names of all variables that the old operator sets; a value of the user never had an effect."""


def has_torch_policy(job: TorchJob) -> bool:
    """Whether the policy `torch` of Trainer gives the nodes what the old operator gave them."""
    main = job.main.main
    if not job.torch or job.split or job.roles_differ:
        return False
    if job.master is None or job.elastic is not None or len(job.main.containers) > 1:
        return False
    # Trainer replaces a port without a name by its own.
    if any("name" not in port for port in list_ports(main)):
        return False
    if job.processes == "auto":
        return requests_gpus(main, job.version) or not starts_processes(main)
    return job.processes.isdigit() and (states_all_resources(main, job.version) or not starts_processes(main))


def list_variables(job: TorchJob) -> TorchVariables:
    """The variables for the nodes of a job whose roles are equal."""
    counts = _list_counts(job)
    if not has_torch_policy(job):
        runtime = [*_list_fixed(job, INDEX), *_list_elastic(job, nodes="node")]
        if job.elastic and ("minReplicas" in job.elastic or "maxReplicas" in job.elastic):
            runtime.append(counts.pop())
        named = {each["name"] for each in (*runtime, *counts)}
        return TorchVariables(runtime, counts, frozenset(named - {JOB_NAME}))
    several = job.processes.isdigit() and job.processes != "1"
    # Trainer replaces the values of PET_*; they are here because variables can refer only to those before them.
    runtime = [
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        {"name": "PET_NNODES", "value": "1"},
        {"name": "PET_MASTER_ADDR", "value": "localhost"},
        {"name": "MASTER_PORT", "value": str(job.main.port)},
        {"name": "MASTER_ADDR", "value": "$(PET_MASTER_ADDR)"},
        *([] if several else [{"name": "WORLD_SIZE", "value": "$(PET_NNODES)"}]),
        _field("RANK", INDEX),
    ]
    is_needed = several and not is_torchrun(job.main.main)
    own = [{"name": "WORLD_SIZE", "value": str(job.world_size)}] if is_needed else []
    added = ("PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_MASTER_PORT", "WORLD_SIZE")
    return TorchVariables(runtime, own, frozenset((*(each["name"] for each in runtime), *added)))


def list_split_variables(job: TorchJob) -> list[Fields]:
    """The variables of all pods if master and workers are jobs of their own: each job has one pod."""
    return [*_list_fixed(job, _GLOBAL_INDEX), *_list_elastic(job, nodes="worker"), *_list_counts(job)]


def _list_fixed(job: TorchJob, index: str) -> list[Fields]:
    """The variables without a number of nodes."""
    host = _name_host("node", 0)
    port = str(job.main.port)
    found = [{"name": "PYTHONUNBUFFERED", "value": "1"}, _field(JOB_NAME, _NAME)]
    if job.master:
        found += [
            {"name": "MASTER_PORT", "value": port},
            {"name": "PET_MASTER_PORT", "value": port},
            {"name": "MASTER_ADDR", "value": host},
            {"name": "PET_MASTER_ADDR", "value": host},
            _field("RANK", index),
            _field("PET_NODE_RANK", index),
        ]
    return [*found, {"name": "PET_NPROC_PER_NODE", "value": job.processes}]


def _list_counts(job: TorchJob) -> list[Fields]:
    """The variables that hold the number of nodes."""
    world = [{"name": "WORLD_SIZE", "value": str(job.world_size)}] if job.master else []
    return [*world, {"name": "PET_NNODES", "value": job.node_range}]


def _list_elastic(job: TorchJob, nodes: str) -> list[Fields]:
    policy = job.elastic
    if policy is None:
        return []
    worker = job.worker or job.main
    # The first worker follows the master, if all pods are nodes of one job.
    first = _name_host(nodes, 1 if job.master and nodes == "node" else 0)
    endpoint = f"{policy.get('rdzvHost') or first}:{policy.get('rdzvPort') or worker.port}"
    found = {"PET_RDZV_ENDPOINT": endpoint, "PET_RDZV_BACKEND": policy.get("rdzvBackend") or "c10d"}
    for name, field in (("PET_MAX_RESTARTS", "maxRestarts"), ("PET_RDZV_ID", "rdzvId")):
        if policy.get(field) is not None:
            found[name] = policy[field]
    conf = [each for each in policy.get("rdzvConf") or () if isinstance(each, dict)]
    if conf:
        found["PET_RDZV_CONF"] = ",".join(f"{each.get('key')}={each.get('value')}" for each in conf)
    if policy.get("standalone"):
        found["PET_STANDALONE"] = ""
    return [{"name": name, "value": str(value)} for name, value in found.items()]


def _name_host(job: str, index: int) -> str:
    """The host name of a node; workers of a job of their own are one job each."""
    numbers = f"0-{index}" if job == "node" else f"{index}-0"
    return f"$({JOB_NAME})-{job}-{numbers}.$({JOB_NAME})"


def _field(name: str, path: str) -> Fields:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
