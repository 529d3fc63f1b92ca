"""Build the TrainingRuntime with which Trainer creates the pods that training-operator created from a PyTorchJob."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.comments import KeyPath
from jobgen.features.convert.importing.invert import to_spec_name
from jobgen.features.convert.importing.pod_fields import Fields
from jobgen.features.convert.migrate.draft import BuiltRuntime, MigrationNote
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_digits
from jobgen.spec.kinds import Kind, TemplateShape, VersionRange
from jobgen.spec.replicas import get_at

CONTAINER = "pytorch"
PORT = {"name": "pytorchjob-port", "containerPort": 23456}
_LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate", "deepspeed")
_PROCESSES = ("--nproc_per_node", "--nproc-per-node")
_POLICY = "OnFailure"
_ONE_SIDE = VersionRange(until="2.1.0")


class TorchReplica(NamedTuple):
    """The replicas of one role."""

    number: int
    policy: str
    template: Fields

    @property
    def main(self) -> Fields:
        """The main container."""
        containers = self.containers
        return next((each for each in containers if each.get("name") == CONTAINER), containers[0] if containers else {})

    @property
    def containers(self) -> list[Fields]:
        """All containers that are maps."""
        found = get_at(self.template, ("spec", "containers"))
        return [each for each in (found if isinstance(found, list) else ()) if isinstance(each, dict)]

    @property
    def port(self) -> int:
        """The port at which the operator lets the replicas meet."""
        return next(
            (each["containerPort"] for each in list_ports(self.main) if each.get("name") == PORT["name"]), 23456
        )


class TorchJob(NamedTuple):
    """A PyTorchJob with the defaults of its operator."""

    master: TorchReplica | None
    worker: TorchReplica | None
    elastic: Fields | None
    processes: str
    run_policy: Fields
    split: bool = False
    """True if master and workers are jobs of their own in the runtime."""
    torch: bool = True
    """True if Trainer's policy `torch` can be used: it gives the nodes the same variables."""
    version: str = ""
    """The version of Trainer."""

    @property
    def main(self) -> TorchReplica:
        """The replica that has rank 0."""
        found = self.master or self.worker
        assert found is not None, "checked by read_torch_job"
        return found

    @property
    def nodes(self) -> int:
        """The number of all replicas."""
        return sum(each.number for each in (self.master, self.worker) if each)

    @property
    def roles_differ(self) -> bool:
        """Return True if master and workers have different pods."""
        one, other = self.master, self.worker
        return one is not None and other is not None and one[1:] != other[1:]

    @property
    def world_size(self) -> int:
        """The number of processes, as far as the operator knows it."""
        return self.nodes * (1 if (found := parse_digits(self.processes)) is None else found)

    @property
    def node_range(self) -> str:
        """The number of nodes that torchrun waits for."""
        if self.elastic is None:
            return str(self.nodes)
        least, most = (self.elastic.get(name) for name in ("minReplicas", "maxReplicas"))
        workers = self.worker.number if self.worker else 0
        return f"{least or most or workers}:{most or least or workers}"


def read_torch_job(job: Mapping[str, Any]) -> TorchJob | str:
    """Read a PyTorchJob; a text says why that is impossible."""
    replicas = get_at(job, ("spec", "pytorchReplicaSpecs"))
    found = {name: _read_replica(value) for name, value in (replicas if isinstance(replicas, dict) else {}).items()}
    roles = {name.lower(): each for name, each in found.items()}
    if not roles or set(roles) - {"master", "worker"} or None in roles.values():
        return "it has no replicas `Master` or `Worker` with a number and a pod template of named containers"
    elastic = get_at(job, ("spec", "elasticPolicy"))
    if isinstance(elastic, dict) and not all(isinstance(each, dict) for each in _as_list(elastic.get("rdzvConf"))):
        return "its `elasticPolicy.rdzvConf` is not a list of maps"
    own = get_at(job, ("spec", "nprocPerNode"))
    old = elastic.get("nProcPerNode") if isinstance(elastic, dict) else None
    policy = get_at(job, ("spec", "runPolicy"))
    return TorchJob(
        roles.get("master"),
        roles.get("worker"),
        elastic if isinstance(elastic, dict) else None,
        str(old if old is not None else own if own is not None else "auto"),
        policy if isinstance(policy, dict) else {},
    )


def _read_replica(value: Any) -> TorchReplica | None:
    count = value.get("replicas") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(1 if count is None else count, int):
        return None
    template = value.get("template")
    containers = get_at(template, ("spec", "containers"))
    if not isinstance(containers, list) or not all(map(_is_readable, containers)):
        return None
    replica = TorchReplica(1 if count is None else count, value.get("restartPolicy") or _POLICY, template or {})
    return replica if isinstance(template, dict) and replica.containers else None


def _is_readable(container: Any) -> bool:
    """Return True if a container has a name, and its variables, ports and words are lists of what they must be."""
    if not isinstance(container, dict) or not isinstance(container.get("name"), str):
        return False
    items = [each for key in ("env", "ports") for each in _as_list(container.get(key))]
    return all(isinstance(each, dict) for each in items) and all(
        isinstance(word, str) for key in ("command", "args") for word in _as_list(container.get(key))
    )


def _as_list(value: Any) -> list[Any]:
    """A list; a value that is none is an item that no list has."""
    return value if isinstance(value, list) else [] if value is None else [None]


def list_ports(container: Fields) -> list[Fields]:
    """The ports of a container that have a number."""
    ports = container.get("ports")
    found = [each for each in (ports if isinstance(ports, list) else ()) if isinstance(each, dict)]
    return [each for each in found if isinstance(each.get("containerPort"), int)]


def starts_processes(container: Fields) -> bool:
    """Return True if a container may start torchrun without saying how many processes; unknown commands may."""
    words = [str(word) for key in ("command", "args") for word in container.get(key) or ()]
    if any(word.startswith(_PROCESSES) for word in words):
        return False
    first = words[0].rpartition("/")[2] if container.get("command") and words else ""
    is_script = first.startswith("python") and not any(name in word for word in words for name in _LAUNCHERS)
    return not is_script


def is_torchrun(container: Fields) -> bool:
    """Return True if a container runs torchrun itself, which sets the variables of its processes, whatever it got."""
    words = [str(word) for key in ("command", "args") for word in container.get(key) or ()]
    first = words[0].rpartition("/")[2] if container.get("command") and words else ""
    starts = first == "torchrun" or (first.startswith("python") and words[1:3] == ["-m", "torch.distributed.run"])
    return starts and not any("WORLD_SIZE" in word for word in words)


def states_all_resources(container: Fields, version: str) -> bool:
    """Return True if Trainer takes the number of processes of a job; 2.0 takes 1 if it has limits or requests alone."""
    resources = container.get("resources")
    sides = [
        key for key in ("limits", "requests") if isinstance(resources, dict) and isinstance(resources.get(key), dict)
    ]
    return not version or not _ONE_SIDE.contains(version) or len(sides) != 1


def requests_gpus(container: Fields, version: str) -> bool:
    """Return True if Trainer finds GPUs in the resources of a container; 2.0 counts CPUs if one side has none."""
    resources = container.get("resources")
    sides = [resources.get(side) for side in ("limits", "requests")] if isinstance(resources, dict) else []
    found = [any("gpu" in str(name).lower() for name in side) for side in sides if isinstance(side, dict)]
    return (len(found) == len(sides) and all(found)) if _ONE_SIDE.contains(version) and version else any(found)


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
    """Return True if the policy `torch` of Trainer gives the nodes what the old operator gave them."""
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


RUNTIME_VERSION, KIND = "trainer.kubeflow.org/v1alpha1", "TrainingRuntime"
NODE, WORKER = "node", "worker"
_ANCESTOR = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
_QUEUE = "scheduling.volcano.sh/queue-name"
_UNLIMITED = 2147483647
_RETRIED = 128
_DEADLINE = VersionRange(since="2.2.0")
_VOLCANO = VersionRange(since="2.1.0")
_POD_LABELS = "training.kubeflow.org/"


class RuntimeShape(NamedTuple):
    """What a job decides about the form of its runtime; all environments of a job need the same form."""

    split: bool
    """True if master and workers are jobs of their own."""
    torch: bool
    """True if the policy `torch` of Trainer sets the variables."""


def choose_shape(objects: Sequence[Mapping[str, Any]], version: str) -> RuntimeShape:
    """Choose the form that suits a PyTorchJob in all environments."""
    found = [job for job in map(read_torch_job, objects) if isinstance(job, TorchJob)]
    jobs = [job._replace(version=version) for job in found]
    return RuntimeShape(any(job.roles_differ for job in jobs), all(map(has_torch_policy, jobs)))


def build_runtime(
    obj: Mapping[str, Any], kind: Kind, version: str, form: RuntimeShape | None = None
) -> BuiltRuntime | str:
    """Build the runtime for a PyTorchJob; a text says why that is impossible.

    `kind` and `version` say which fields a TrainJob has itself.
    """
    read = read_torch_job(obj)
    if isinstance(read, str):
        return read
    form = form or choose_shape([obj], version)
    if form.split and not (read.master and read.worker):
        return "it has a master and workers that differ in one environment, but not in another"
    job = read._replace(split=form.split, torch=form.torch, version=version)
    assert kind.template is not None, "a TrainJob has no pod template"
    shape = [each for each in kind.template.shapes if each.versions.contains(version)][-1]
    own = frozenset(kind.template.container)
    notes: list[MigrationNote] = []
    claims = bool(get_at(job.main.main, ("resources", "claims")))
    variables = _choose_variables(job)
    volumes = _list_shared_volumes(job.main) if "volumes" in shape.pod_fields else frozenset[str]()
    held = _Held(own - {"resources"} if claims else own, shape, volumes)
    jobset: Fields = {"replicatedJobs": [_build_job(NODE, job.main, variables, job, held, notes)]}
    if job.split:
        assert job.worker is not None, "checked above"
        worker = _build_job(WORKER, job.worker, variables, job, _Held(frozenset(), None), notes)
        worker["replicas"] = job.worker.number
        worker["template"]["spec"].update(parallelism=1, completions=1)
        jobset["replicatedJobs"].append(worker)
        jobset["successPolicy"] = {"operator": "All", "targetReplicatedJobs": [NODE]}
    template: Fields = {"spec": jobset}
    spec: Fields = {"mlPolicy": {"numNodes": 1, **({"torch": {}} if has_torch_policy(job) else {})}}
    _set_run_policy(job, spec, template, notes, version)
    spec["template"] = template
    notes += _note_differences(job)
    return BuiltRuntime(
        spec, tuple(variables.job), variables.injected, job.split, claims, tuple(dict.fromkeys(notes)), volumes=volumes
    )


def _choose_variables(job: TorchJob) -> TorchVariables:
    """The variables of the nodes; if roles are jobs of their own, the runtime has all of them."""
    if not job.split:
        return list_variables(job)
    found = list_split_variables(job)
    return TorchVariables(found, [], frozenset(each["name"] for each in found))


class _Held(NamedTuple):
    """What a TrainJob holds of a pod template, so that the runtime does not: nothing without a shape."""

    container: frozenset[str]
    shape: TemplateShape | None
    without: frozenset[str] = frozenset()
    """The volumes that the runtime has nevertheless, with their mounts."""

    def keep_for_runtime(self, field: str, value: Any, held: Container[str]) -> Any:
        """Return what the runtime has of a field: all of it, only the volumes that it needs, or None."""
        if field not in held:
            return value
        if field not in VOLUME_FIELDS or not isinstance(value, list):
            return None
        return [each for each in value if isinstance(each, dict) and each.get("name") in self.without] or None


VOLUME_FIELDS = ("volumes", "volumeMounts", "volumeDevices")


def _list_shared_volumes(replica: TorchReplica) -> frozenset[str]:
    """The volumes that a container other than the main one mounts; that container is in the runtime."""
    pod = replica.template["spec"]
    others = [*_as_list(pod.get("initContainers")), *(each for each in replica.containers if each != replica.main)]
    mounts = [
        mount
        for container in others
        for field in VOLUME_FIELDS[1:]
        for mount in (_as_list(container.get(field)) if isinstance(container, dict) else ())
    ]
    return frozenset(str(each.get("name")) for each in mounts if isinstance(each, dict))


def _build_job(
    name: str, replica: TorchReplica, variables: TorchVariables, job: TorchJob, held: _Held, notes: list[MigrationNote]
) -> Fields:
    """Build a replicated job with the pods of one role."""
    template = _build_template(replica, variables, job, held)
    spec: Fields = dict(_list_failure_fields(replica, job, notes))
    spec["template"] = template
    metadata = copy.deepcopy(_ANCESTOR) if name == NODE else None
    return {"name": name, "template": {**({"metadata": metadata} if metadata else {}), "spec": spec}}


def _build_template(replica: TorchReplica, variables: TorchVariables, job: TorchJob, held: _Held) -> Fields:
    old: Fields = copy.deepcopy(replica.template)
    main = replica.main
    shape = held.shape
    containers = []
    for container in old["spec"]["containers"]:
        is_main = isinstance(container, dict) and container == main
        kept = held if is_main else _Held(frozenset(), None)
        containers.append(_build_container(container, variables, job, kept, is_main=is_main))
    spec = {
        field: kept
        for field, value in old["spec"].items()
        if field not in ("containers", "restartPolicy")
        and (kept := held.keep_for_runtime(field, value, shape.pod_fields if shape else ())) is not None
    }
    policy = "OnFailure" if replica.policy in ("OnFailure", "Always") else "Never"
    built: Fields = {"spec": {**spec, "restartPolicy": policy, "containers": containers}}
    metadata = {key: value for key, value in (old.get("metadata") or {}).items() if key in ("labels", "annotations")}
    return {"metadata": metadata, **built} if metadata and not (shape and shape.metadata is not None) else built


def _build_container(
    container: Fields, variables: TorchVariables, job: TorchJob, held: _Held, *, is_main: bool
) -> Fields:
    shape_fields = held.shape.container_fields if held.shape else ()
    left = {
        field: kept
        for field, value in container.items()
        if (kept := held.keep_for_runtime(field, value, {*held.container, *shape_fields})) is not None
    }
    env = [each for each in left.pop("env", None) or () if str(each.get("name")) not in variables.injected]
    added = variables.runtime if is_main or job.split else [*variables.runtime, *variables.job]
    ports = list(left.pop("ports", None) or ())
    if is_main and not any(each.get("name") == PORT["name"] for each in list_ports({"ports": ports})):
        ports.append(dict(PORT))
    name = NODE if is_main else left["name"]
    left = _rename_references({key: value for key, value in left.items() if key != "name"})
    return {"name": name, **left, "env": [*env, *copy.deepcopy(added)], **({"ports": ports} if ports else {})}


def _rename_references(tree: Any) -> Any:
    """Use the new name of the main container where a field refers to it."""
    if isinstance(tree, dict):
        return {
            key: NODE if key == "containerName" and value == CONTAINER else _rename_references(value)
            for key, value in tree.items()
        }
    return [_rename_references(each) for each in tree] if isinstance(tree, list) else tree


def _list_failure_fields(replica: TorchReplica, job: TorchJob, notes: list[MigrationNote]) -> Iterator[tuple[str, Any]]:
    """The fields of a Job that say what happens after a failure."""
    policy, limit = replica.policy, job.run_policy.get("backoffLimit")
    if policy == "Never":
        yield "backoffLimit", 0
        return
    yield "backoffLimit", _UNLIMITED if limit is None else limit
    if policy == "Always":
        reason = "a Job restarts no pod that succeeds; it is `OnFailure` in the runtime, and the job can end"
        notes.append(MigrationNote(("restartPolicy",), "changed", reason))
    elif policy == "ExitCode":
        failing = {"containerName": NODE, "operator": "In", "values": list(range(1, _RETRIED))}
        yield "podFailurePolicy", {"rules": [{"action": "FailJob", "onExitCodes": failing}]}


def _set_run_policy(job: TorchJob, spec: Fields, template: Fields, notes: list[MigrationNote], version: str) -> None:
    """Set what the run policy says about the whole job."""
    policy = job.run_policy
    if policy.get("cleanPodPolicy") not in (None, "None", "Running"):
        _note(notes, "cleanPodPolicy", "lost", "pods stay until the TrainJob is deleted")
    elif policy.get("cleanPodPolicy") is not None:
        _note(notes, "cleanPodPolicy", "moved", "a JobSet deletes the pods that still run, and keeps the others")
    if policy.get("ttlSecondsAfterFinished") is not None:
        reason = "with a TTL in the runtime, a TrainJob can run again; delete finished TrainJobs yourself"
        _note(notes, "ttlSecondsAfterFinished", "lost", reason)
    if not _DEADLINE.contains(version) and policy.get("activeDeadlineSeconds") is not None:
        for each in template["spec"]["replicatedJobs"]:
            each["template"]["spec"]["activeDeadlineSeconds"] = policy["activeDeadlineSeconds"]
    if isinstance(policy.get("schedulingPolicy"), dict):
        _set_scheduling(job, policy["schedulingPolicy"], spec, template, notes)


def _set_scheduling(job: TorchJob, policy: Fields, spec: Fields, template: Fields, notes: list[MigrationNote]) -> None:
    """Set the policy for gang scheduling: that of Volcano if it has a queue or a priority, else coscheduling."""
    queue, priority, timeout = (policy.get(name) for name in ("queue", "priorityClass", "scheduleTimeoutSeconds"))
    scheduler = get_at(job.main.template, ("spec", "schedulerName"))
    if queue or priority or scheduler == "volcano":
        if _VOLCANO.contains(job.version):
            _set_volcano(policy, spec, template, notes)
        else:
            reason = f"Trainer {job.version} has no policy for Volcano"
            notes.extend(MigrationNote(("runPolicy", "schedulingPolicy", name), "lost", reason) for name in policy)
            return
    else:
        coscheduling = {} if timeout is None else {"scheduleTimeoutSeconds": timeout}
        spec["podGroupPolicy"] = {"coscheduling": coscheduling}
    if policy.get("minAvailable") not in (None, job.nodes):
        _note(notes, "schedulingPolicy.minAvailable", "lost", f"Trainer always waits for all {job.nodes} nodes")
    if policy.get("minResources") is not None:
        _note(notes, "schedulingPolicy.minResources", "moved", "Trainer adds up the requests of all nodes")


def _set_volcano(policy: Fields, spec: Fields, template: Fields, notes: list[MigrationNote]) -> None:
    spec["podGroupPolicy"] = {"volcano": {}}
    if policy.get("queue"):
        template["metadata"] = {"annotations": {_QUEUE: policy["queue"]}}
    if policy.get("priorityClass"):
        for each in template["spec"]["replicatedJobs"]:
            each["template"]["spec"]["template"]["spec"]["priorityClassName"] = policy["priorityClass"]
        reason = "Volcano reads the priority of the pods, so it is set there now"
        _note(notes, "schedulingPolicy.priorityClass", "changed", reason)
    if policy.get("scheduleTimeoutSeconds") is not None:
        _note(notes, "schedulingPolicy.scheduleTimeoutSeconds", "lost", "the policy for Volcano has no timeout")


def _note(notes: list[MigrationNote], field: str, change: Any, reason: str) -> None:
    path: KeyPath = ("runPolicy", *field.split("."))
    notes.append(MigrationNote(path, change, reason))


def _note_differences(job: TorchJob) -> Iterator[MigrationNote]:
    """Note what a runtime cannot express, or expresses in another way."""
    elastic = ("pytorch", "elasticPolicy")
    if job.elastic and job.elastic.get("metrics"):
        reason = "no autoscaler can change the number of nodes of a TrainJob, which stays as it is"
        yield MigrationNote((*elastic, "metrics"), "lost", reason)
    if job.elastic is not None:
        yield MigrationNote(elastic, "moved", "it is in the variables PET_* of the runtime")
    if job.master and job.worker and not job.split:
        reason = "the job is complete when all nodes are, not when the master is"
        yield MigrationNote(("roles",), "check", reason)
    if job.split:
        reason = f"its pods are the job `{WORKER}` of the runtime, with image, command and number"
        yield MigrationNote(("roles", "worker"), "moved", reason)
    for field in ("affinity", "topologySpreadConstraints"):
        if any(_POD_LABELS in str(get_at(each.template, ("spec", field))) for each in (job.master, job.worker) if each):
            reason = f"the pods have no labels `{_POD_LABELS}…`; select them by `jobset.sigs.k8s.io/jobset-name`"
            yield MigrationNote((field,), "check", reason)


def refer_to_runtime(obj: Mapping[str, Any]) -> Fields:
    """A TrainJob that refers to a runtime of its namespace."""
    spec = obj["spec"]
    return {**obj, "spec": {**spec, "runtimeRef": {**spec["runtimeRef"], "kind": KIND}}}


_PREFIX = "torch"
_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_MAX_NAME = 63


class RuntimeUser(NamedTuple):
    """A job that needs a runtime: the runtime's spec by environment, `""` for the job alone."""

    name: str
    path: str
    object: Mapping[str, Any]
    specs: Mapping[str, Plain]


def name_runtimes(users: Sequence[RuntimeUser], existing: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The name of the runtime of each job; jobs with equal runtimes in all environments share one.

    A runtime that the repository has already keeps its name.
    """
    groups: dict[str, list[RuntimeUser]] = {}
    for user in users:
        groups.setdefault(_digest(user.specs), []).append(user)
    names: dict[str, str] = {}
    for digest, group in groups.items():
        taken = {*existing, *names.values()}
        spec = group[0].specs[""]
        known = (name for name, found in existing.items() if found.get("spec") == spec and name not in names.values())
        free = (name for name in _list_candidates(group, digest) if name and name not in taken)
        names[digest] = next(known, None) or next(free)
    return [names[_digest(user.specs)] for user in users]


def _list_candidates(group: Sequence[RuntimeUser], digest: str) -> Iterator[str]:
    if len(group) == 1:
        yield _shorten(group[0].name)
    for shared in _list_shared(group):
        yield _shorten(f"{_PREFIX}-{shared}") if shared else ""
    yield _PREFIX
    yield f"{_PREFIX}-{digest[:8]}"


def _list_shared(group: Sequence[RuntimeUser]) -> Iterator[str]:
    """What all jobs of a group share: their team, their queue, their folder."""
    labels = [(user.object.get("metadata") or {}).get("labels") or {} for user in group]
    for name in ("team", _QUEUE_LABEL):
        values = {str(each.get(name, "")) for each in labels}
        yield values.pop() if len(values) == 1 else ""
    folders = {user.path.rpartition("/")[0].removeprefix("jobs").strip("/") for user in group}
    yield folders.pop().replace("/", "-") if len(folders) == 1 else ""


def _shorten(name: str) -> str:
    return to_spec_name(name)[:_MAX_NAME].rstrip("-.")


def _digest(specs: Mapping[str, Plain]) -> str:
    return hashlib.sha256(json.dumps(specs, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
