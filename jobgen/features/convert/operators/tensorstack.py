"""The pods of TensorStack's kinds, as far as their documentation describes them; no source is public.

Names, restarts, commands and substituted variables are documented. Where a value is not, a placeholder stands for it.
Source: t9k/ucman, src/api/t9k-job and src/reference/api-reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.operators.created import (
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
    find_container,
    get_fields,
    get_name,
    list_containers,
    list_indexes,
    read_texts,
    variable,
)
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.overlay import Cluster

UNDOCUMENTED = "<undocumented>"
"""Stands for a value that the operator sets and that is not documented."""

_BACKOFF_LIMIT = 3
_GENERIC = re.compile(r"\$\((type|rank|replicas\[[^\]]*\]|service\.[^\[\]]*\[[^\]]*\](?:\.host)?)\)")


class Replica(NamedTuple):
    """A role of a job."""

    type: str
    pods: int
    template: Fields
    spec: Fields
    item: Fields


class TensorStackJob(NamedTuple):
    """A job of TensorStack."""

    name: str
    spec: Fields
    replicas: tuple[Replica, ...]

    def name_pod(self, replica: Replica, index: int) -> str:
        """Return the name of a pod: a launcher has no index."""
        return f"{self.name}-launcher" if replica.type == "launcher" else f"{self.name}-{replica.type}-{index}"


class _Shape(NamedTuple):
    """What differs from kind to kind."""

    container: str
    edit: Callable[[TensorStackJob, Replica, int, Fields], Fields]
    processes: Callable[[Fields], str] = lambda _: ""
    launches: bool = False
    limit: int | None = None


def _read_replica(item: Fields) -> Replica:
    kind, template = as_string(item.get("type")), as_fields(item.get("template"))
    pods = 1 if kind == "launcher" else as_count(item.get("replicas"), 1)
    return Replica(kind, pods, template, as_fields(template.get("spec")), item)


def _create(obj: Fields, shape: _Shape) -> Created:
    spec = as_fields(obj.get("spec"))
    items = [item for item in as_items(spec.get("replicaSpecs")) if isinstance(item, dict)]
    worker = spec.get("worker")
    if isinstance(worker, dict):
        elastic = as_fields(spec.get("elastic"))
        count = elastic.get("expectedReplicas") if elastic.get("enabled") is True else worker.get("replicas")
        items = [{**worker, "type": "worker", "replicas": count}]
        if "config" not in spec:  # the older shape of an MPIJob or a ColossalAIJob, whose launcher is not written
            items.insert(0, {"type": "launcher"})
    job = TensorStackJob(get_name(obj), spec, tuple(_read_replica(item) for item in items))
    pods = tuple(_list_pods(job, shape))
    ports = {
        as_string(port.get("name")): port["port"]
        for port in map(as_fields, as_items(get_fields(job.spec, "service").get("ports")))
        if type(port.get("port")) is int
    }
    return Created(pods, tuple(CreatedObject("Service", pod.name, ports) for pod in pods) if ports else ())


def _list_pods(job: TensorStackJob, shape: _Shape) -> Iterator[CreatedPod]:
    rank, has_service = 0, bool(get_fields(job.spec, "service"))
    for replica in job.replicas:
        launches = shape.launches and replica.type == "launcher"
        metadata = as_fields(replica.template.get("metadata"))
        names = [as_string(each.get("name")) for each in list_containers(replica.spec)]
        for index, count in list_indexes(replica.pods):
            name = job.name_pod(replica, index)
            yield CreatedPod(
                replica.type,
                index,
                name,
                {**shape.edit(job, replica, index, replica.spec), "restartPolicy": "Never"},
                replica.template,
                read_texts(metadata.get("labels")),
                read_texts(metadata.get("annotations")),
                None if launches else rank + index,
                hostname=as_string(replica.spec.get("hostname"), name),
                address=name if has_service else "",
                main=shape.container if shape.container in names else next(iter(names), ""),
                processes="" if launches else shape.processes(job.spec),
                restarts=_read_restarts(job, replica, shape),
                count=count,
            )
        rank += 0 if launches else replica.pods


def _read_restarts(job: TensorStackJob, replica: Replica, shape: _Shape) -> Restarts:
    """Return what happens if a pod fails: pods are never restarted in place, but new ones may replace them."""
    written = replica.item.get("restartPolicy")
    if isinstance(written, dict) or (written is None and shape.limit is None):
        limit = as_count(as_fields(written).get("limit"), 0)
        policy = as_string(as_fields(written).get("policy"), "OnFailure")
        retries = limit > 0 and policy != "Never"
        return Restarts("Never", "always" if retries else "never", limit if retries else None)
    limit = as_count(get_fields(job.spec, "runPolicy").get("backoffLimit"), shape.limit or _BACKOFF_LIMIT)
    retried = {"Never": "never", "ExitCode": "retryable"}.get(as_string(written, "OnFailure"), "always")
    return Restarts("Never", retried if limit else "never", limit if limit and retried != "never" else None)


def _keep(_job: TensorStackJob, _replica: Replica, _index: int, spec: Fields) -> Fields:
    return spec


def _edit_pytorch(job: TensorStackJob, _replica: Replica, _index: int, spec: Fields) -> Fields:
    """Start torchrun, or set the address of the master."""
    config = get_fields(job.spec, "torchrunConfig")
    if config.get("enabled") is not True:
        entries = [variable("MASTER_ADDR", UNDOCUMENTED), variable("MASTER_PORT", UNDOCUMENTED)]
        return edit_containers(spec, lambda each: append(each, "env", entries))
    names = [as_string(each.get("name")) for each in list_containers(spec)]
    main = "python" if "python" in names else next(iter(names), "")
    command = ["torchrun", UNDOCUMENTED, *as_items(config.get("extraOptions"))]
    return edit_containers(spec, lambda each: {**each, "command": command}, name=main) if main else dict(spec)


def _edit_tensorflow(job: TensorStackJob, _replica: Replica, _index: int, spec: Fields) -> Fields:
    if sum(replica.pods for replica in job.replicas) < 2:
        return spec
    entry = variable("TF_CONFIG", UNDOCUMENTED)
    return edit_containers(spec, lambda each: append(each, "env", [entry]), name="tensorflow")


def _edit_launched(field: str, command: str) -> Callable[[TensorStackJob, Replica, int, Fields], Fields]:
    """Return the edit of a kind whose launcher starts the script on the workers."""

    def edit(job: TensorStackJob, replica: Replica, _index: int, spec: Fields) -> Fields:
        config = get_fields(job.spec, field)
        script = [*as_items(config.get("extraArgs")), *as_items(config.get("script"))]
        if replica.type != "launcher":
            sshd = as_string(get_fields(job.spec, "ssh").get("sshdPath"), "/usr/sbin/sshd")
            waiting = {"command": [sshd, "-D"], "args": []}
            name = "worker" if find_container(spec, "worker") else "mpi-worker"
            return edit_containers(spec, lambda each: {**each, **waiting}, name=name)
        line = {"command": [*command.split(), UNDOCUMENTED, *script]}
        if find_container(spec, "launcher"):
            return edit_containers(spec, lambda each: {**each, **line}, name="launcher")
        return append(spec, "containers", [{"name": "launcher", **line}])

    return edit


def _edit_deepspeed(job: TensorStackJob, _replica: Replica, index: int, spec: Fields) -> Fields:
    """Start `deepspeed` in the first worker, and wait for SSH connections in the others."""
    config = get_fields(job.spec, "config")
    names = [as_string(each.get("name")) for each in list_containers(spec)]
    main = "worker" if "worker" in names else next(iter(names), "")
    run = get_fields(config, "run")
    script = next((as_items(run.get(field)) for field in ("python", "module", "exec") if run.get(field)), [])
    command = ["/usr/sbin/sshd", "-D"]
    if index == 0:
        custom = as_string(config.get("customCommand"))
        started = ["deepspeed", UNDOCUMENTED, *as_items(config.get("otherArgs")), *script]
        command = ["sh", "-c", custom] if custom else started
    if not main:
        return spec
    return edit_containers(spec, lambda each: {**each, "command": command, "args": []}, name=main)


def _edit_generic(job: TensorStackJob, replica: Replica, index: int, spec: Fields) -> Fields:
    """Substitute the variables of a GenericJob in commands, arguments and variables."""
    values = _list_values(job, replica, index)

    def substitute(text: Any) -> Any:
        return _GENERIC.sub(lambda match: values.get(match[1], match[0]), text) if isinstance(text, str) else text

    def edit(container: Fields) -> Fields:
        lines = {field: as_items(container.get(field)) for field in ("command", "args")}
        edited = {field: [substitute(each) for each in line] for field, line in lines.items() if line}
        entries = [
            {**entry, "value": substitute(entry["value"])} if isinstance(entry, dict) and "value" in entry else entry
            for entry in as_items(container.get("env"))
        ]
        return {**container, **edited, **({"env": entries} if entries else {})}

    return edit_containers(spec, edit)


def _list_values(job: TensorStackJob, replica: Replica, index: int) -> Mapping[str, str]:
    values = {"type": replica.type, "rank": str(index)}
    for other in job.replicas:
        values[f"replicas[{other.type}]"] = str(other.pods)
        for place, _ in list_indexes(other.pods):
            values[f"service.{other.type}[{place}].host"] = job.name_pod(other, place)
    for port in map(as_fields, as_items(get_fields(job.spec, "service").get("ports"))):
        values[f"service.port[{as_string(port.get('name'))}]"] = str(port.get("port"))
    return values


def _read_slots(*path: str) -> Callable[[Fields], str]:
    """Return a function that reads the number of processes at a path of the spec."""

    def read(spec: Fields) -> str:
        found = get_fields(spec, *path[:-1]).get(path[-1])
        return str(found) if type(found) in (int, str) else ""

    return read


_SHAPES: Mapping[str, _Shape] = {
    "PyTorchTrainingJob": _Shape("python", _edit_pytorch, _read_slots("torchrunConfig", "procPerNode"), limit=3),
    "TensorFlowTrainingJob": _Shape("tensorflow", _edit_tensorflow, limit=3),
    "XGBoostTrainingJob": _Shape("xgboost", _keep, limit=3),
    "MPIJob": _Shape("worker", _edit_launched("mpiConfig", "mpirun"), launches=True),
    "ColossalAIJob": _Shape(
        "worker",
        _edit_launched("torchConfig", "colossalai run"),
        _read_slots("torchConfig", "procPerWorker"),
        launches=True,
    ),
    "DeepSpeedJob": _Shape("worker", _edit_deepspeed, _read_slots("config", "slotsPerWorker"), limit=3),
    "GenericJob": _Shape("", _edit_generic),
}
TENSORSTACK_KINDS = tuple(_SHAPES)
"""The kinds whose pods are computed."""


def create_tensorstack_job(obj: Fields, _objects: Sequence[Fields], _cluster: Cluster) -> Created:
    """Compute the pods of a job of TensorStack."""
    shape = _SHAPES.get(as_string(obj.get("kind")))
    return _create(obj, shape) if shape else Created()
