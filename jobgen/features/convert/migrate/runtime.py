"""Build the TrainingRuntime with which Trainer creates the pods that training-operator created from a PyTorchJob."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.common_fields import Fields
from jobgen.features.convert.importing.format_yaml import KeyPath
from jobgen.features.convert.migrate.draft import BuiltRuntime, MigrationNote, get_at
from jobgen.features.convert.migrate.torch_env import (
    TorchVariables,
    has_torch_policy,
    list_split_variables,
    list_variables,
)
from jobgen.features.convert.migrate.torch_job import (
    CONTAINER,
    PORT,
    TorchJob,
    TorchReplica,
    list_ports,
    read_torch_job,
)
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import Kind, TemplateShape, VersionRange

API_VERSION, KIND = "trainer.kubeflow.org/v1alpha1", "TrainingRuntime"
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
    """Whether master and workers are jobs of their own."""
    torch: bool
    """Whether the policy `torch` of Trainer sets the variables."""


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
    held = _Held(own - {"resources"} if claims else own, shape)
    jobset: Fields = {"replicatedJobs": _build_jobs(job, variables, held, notes)}
    if job.split:
        jobset["successPolicy"] = {"operator": "All", "targetReplicatedJobs": [NODE]}
    template: Fields = {"spec": jobset}
    spec: Fields = {"mlPolicy": {"numNodes": 1, **({"torch": {}} if has_torch_policy(job) else {})}}
    _set_run_policy(job, spec, template, notes, version)
    spec["template"] = template
    notes += _note_differences(job)
    return BuiltRuntime(spec, tuple(variables.job), variables.injected, job.split, claims, tuple(dict.fromkeys(notes)))


def _choose_variables(job: TorchJob) -> TorchVariables:
    """The variables of the nodes; if roles are jobs of their own, the runtime has all of them."""
    if not job.split:
        return list_variables(job)
    found = list_split_variables(job)
    return TorchVariables(found, [], frozenset(each["name"] for each in found))


def _build_jobs(job: TorchJob, variables: TorchVariables, held: _Held, notes: list[MigrationNote]) -> list[Fields]:
    """The jobs of the runtime: that of the nodes, and that of the workers if these differ from the master."""
    jobs = [_build_job(NODE, job.main, variables, job, held, notes)]
    if job.split:
        assert job.worker is not None, "checked by build_runtime"
        worker = _build_job(WORKER, job.worker, variables, job, _Held(frozenset(), None), notes)
        worker["replicas"] = job.worker.number
        worker["template"]["spec"].update(parallelism=1, completions=1)
        jobs.append(worker)
    return jobs


class _Held(NamedTuple):
    """What a TrainJob holds of a pod template, so that the runtime does not: nothing without a shape."""

    container: frozenset[str]
    shape: TemplateShape | None


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
        field: value
        for field, value in old["spec"].items()
        if field not in ("containers", "restartPolicy") and not (shape and field in shape.pod_fields)
    }
    policy = "OnFailure" if replica.policy in ("OnFailure", "Always") else "Never"
    built: Fields = {"spec": {**spec, "restartPolicy": policy, "containers": containers}}
    metadata = {key: value for key, value in (old.get("metadata") or {}).items() if key in ("labels", "annotations")}
    return {"metadata": metadata, **built} if metadata and not (shape and shape.metadata is not None) else built


def _build_container(
    container: Fields, variables: TorchVariables, job: TorchJob, held: _Held, *, is_main: bool
) -> Fields:
    shape = held.shape
    left = {
        field: value
        for field, value in container.items()
        if field not in held.container and not (shape and field in shape.container_fields)
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
        reason = "with a TTL in the runtime, a TrainJob may run again; delete finished TrainJobs yourself"
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
        reason = "Volcano takes the priority of the pods, so the pods have it now"
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
