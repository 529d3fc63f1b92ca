"""The pods of a TrainJob: those of the JobSet that Trainer builds from the job and its runtime.

Source: kubeflow/trainer 2.0 to 2.3, pkg/runtime/core/trainingruntime.go, pkg/runtime/framework/plugins (jobset, torch,
mpi, jax, xgboost, plainml, coscheduling, volcano) and pkg/apply/apply.go. The commands of torchtune, the Flux policy
and the feature gate TrainJobStatus are not covered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobgen.features.convert.operators.created import Created, CreatedObject, CreatedPod, Fields
from jobgen.features.convert.operators.fields import (
    as_count,
    as_fields,
    as_items,
    as_string,
    get_fields,
    get_name,
    read_texts,
)
from jobgen.features.convert.operators.jobset import create_job_set
from jobgen.features.convert.operators.pod_edits import append, edit_containers, upsert_env, variable
from jobgen.features.convert.operators.strategic_merge import merge_strategically
from jobgen.features.convert.operators.trainer_plugins import (
    CONTAINER,
    PodSet,
    TrainerRun,
    add_mpi_volumes,
    count_nodes,
    count_processes,
    inject_variables,
    write_hostfile,
)
from jobgen.features.convert.operators.trainer_runtimes import STEP_LABEL, find_shipped_runtime
from jobgen.model.named_tuple import NamedTuple
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

_RUNTIME_KINDS = ("ClusterTrainingRuntime", "TrainingRuntime")
_INITIALIZERS = {"dataset-initializer": "dataset", "model-initializer": "model"}


class _Merged(NamedTuple):
    """The JobSet of a TrainJob: as users wrote it, and as Trainer builds it."""

    spec: Fields
    written: Mapping[str, Fields]
    """The pod template of each replicated Job without what Trainer adds."""


def create_train_job(obj: Fields, objects: Sequence[Fields], cluster: Cluster) -> Created:
    """Compute the pods of a TrainJob; none if its runtime is unknown."""
    version = parse_version(str(cluster.operators.get("trainer", "")))
    runtime = find_runtime(obj, objects, version)
    if not runtime:
        return Created()
    run = _read_run(obj, runtime, version)
    merged = _merge(run, as_fields(obj.get("spec")))
    created = create_job_set(_build_job_set(obj, runtime, merged), (), cluster)
    pods = tuple(_complete_pods(run, merged, created.pods))
    return Created(pods, (*created.objects, *_list_objects(run, merged.spec)))


def expand_train_job(obj: Fields, objects: Sequence[Fields], cluster: Cluster) -> Fields:
    """Return the JobSet of a TrainJob; empty if its runtime is unknown."""
    version = parse_version(str(cluster.operators.get("trainer", "")))
    runtime = find_runtime(obj, objects, version)
    if not runtime:
        return {}
    merged = _merge(_read_run(obj, runtime, version), as_fields(obj.get("spec")))
    return _build_job_set(obj, runtime, merged)


def _build_job_set(obj: Fields, runtime: Fields, merged: _Merged) -> Fields:
    return {"metadata": _build_metadata(obj, runtime), "spec": merged.spec}


def find_runtime(obj: Fields, objects: Sequence[Fields], version: tuple[int, ...]) -> Fields:
    """Return the runtime of a TrainJob: one of the objects, else one that Trainer installs; empty if there is none."""
    reference = get_fields(obj, "spec", "runtimeRef")
    name, kind = as_string(reference.get("name")), as_string(reference.get("kind"), _RUNTIME_KINDS[0])
    namespace = as_string(get_fields(obj, "metadata").get("namespace"))
    for other in objects:
        metadata = get_fields(other, "metadata")
        near = kind == _RUNTIME_KINDS[0] or as_string(metadata.get("namespace"), namespace) == namespace
        if other.get("kind") == kind and metadata.get("name") == name and near:
            return other
    return find_shipped_runtime(name, version) if kind == _RUNTIME_KINDS[0] else {}


def _read_run(obj: Fields, runtime: Fields, version: tuple[int, ...]) -> TrainerRun:
    spec = as_fields(obj.get("spec"))
    template = merge_patches(get_fields(runtime, "spec", "template", "spec"), spec, version)
    policy = get_fields(runtime, "spec", "mlPolicy")
    jobs = [job for job in as_items(template.get("replicatedJobs")) if isinstance(job, dict)]
    trainer = spec.get("trainer") if isinstance(spec.get("trainer"), dict) else None
    run = TrainerRun(
        get_name(obj),
        trainer,
        policy,
        get_fields(runtime, "spec", "podGroupPolicy"),
        {**template, "replicatedJobs": jobs},
        tuple(_read_pod_set(job, policy) for job in jobs),
        version,
    )
    return run._replace(pod_sets=count_nodes(run))


def _read_pod_set(job: Fields, policy: Fields) -> PodSet:
    step = as_string(get_fields(job, "template", "metadata", "labels").get(STEP_LABEL))
    spec = get_fields(job, "template", "spec")
    count = as_count(spec.get("parallelism"), 1)
    if step == "trainer" and policy:
        count = as_count(policy.get("numNodes"), 1)
    return PodSet(as_string(job.get("name")), step, max(count, 1), get_fields(spec, "template", "spec"))


def merge_patches(template: Fields, spec: Fields, version: tuple[int, ...]) -> Fields:
    """Merge the patches of a TrainJob into the JobSet of its runtime."""
    jobs = [job for job in as_items(template.get("replicatedJobs")) if isinstance(job, dict)]
    for name, patch in _list_patches(spec, jobs, version):
        jobs = [merge_strategically(job, patch) if job.get("name") == name else job for job in jobs]
    return {**template, "replicatedJobs": jobs}


def _list_patches(spec: Fields, jobs: Sequence[Fields], version: tuple[int, ...]) -> Iterator[tuple[str, Fields]]:
    """Yield the patches of replicated Jobs: `runtimePatches` since 2.2, `podTemplateOverrides` in 2.1, and before."""
    for patch in as_items(spec.get("runtimePatches")) if not version or version >= (2, 2) else ():
        for job in as_items(get_fields(patch, "trainingRuntimeSpec", "template", "spec").get("replicatedJobs")):
            fields = as_fields(job)
            allowed = fields if not version or version >= (2, 3) else {"template": fields.get("template")}
            yield as_string(fields.get("name")), allowed
    for patch in as_items(spec.get("podTemplateOverrides")) if version[:2] == (2, 1) else ():
        fields = {key: as_fields(patch).get(key) for key in ("metadata", "spec")}
        yield from _target(patch, fields, jobs)
    for patch in as_items(spec.get("podSpecOverrides")) if version[:2] == (2,) else ():
        fields = {key: value for key, value in as_fields(patch).items() if key != "targetJobs"}
        yield from _target(patch, {"spec": fields}, jobs)


def _target(patch: Any, fields: Fields, jobs: Sequence[Fields]) -> Iterator[tuple[str, Fields]]:
    targets = {as_string(as_fields(target).get("name")) for target in as_items(as_fields(patch).get("targetJobs"))}
    for name in (as_string(job.get("name")) for job in jobs):
        if name in targets:
            yield name, {"template": {"spec": {"template": fields}}}


def _build_metadata(obj: Fields, runtime: Fields) -> Fields:
    """Return the metadata of the JobSet."""
    metadata = get_fields(runtime, "spec", "template", "metadata")
    own = as_fields(obj.get("spec"))
    written = as_items(own.get("runtimePatches"))
    patches = [get_fields(patch, "trainingRuntimeSpec", "template", "metadata") for patch in written]
    merged: dict[str, Any] = {"name": get_name(obj), "namespace": get_fields(obj, "metadata").get("namespace")}
    for field in ("labels", "annotations"):
        merged[field] = {}
        for layer in (metadata, own, *patches):
            merged[field].update(read_texts(layer.get(field)))
    return merged


def _merge(run: TrainerRun, spec: Fields) -> _Merged:
    """Merge the runtime, the fields of the TrainJob and what Trainer adds."""
    jobs, written = [], {}
    for job, pod_set in zip(run.template["replicatedJobs"], run.pod_sets, strict=True):
        template = get_fields(job, "template", "spec", "template")
        user = _apply_job(run, pod_set, pod_set.spec, spec)
        built = _apply_job(run, pod_set, add_mpi_volumes(run, pod_set, inject_variables(run, pod_set)), spec)
        written[pod_set.name] = {**template, "spec": user}
        jobs.append(_build_job(job, run, pod_set, {**template, "spec": built}))
    return _Merged({**run.template, "replicatedJobs": jobs}, written)


def _build_job(job: Fields, run: TrainerRun, pod_set: PodSet, template: Fields) -> Fields:
    counts = {"parallelism": pod_set.count, "completions": pod_set.count}
    replicas = {"replicas": 1} if pod_set.step in ("trainer", *_INITIALIZERS) else {}
    outer = as_fields(job.get("template"))
    spec = {**as_fields(outer.get("spec")), **counts, "template": _mark_group(run, template)}
    return {**job, **replicas, "template": {**outer, "spec": spec}}


def _mark_group(run: TrainerRun, template: Fields) -> Fields:
    """Set the label or annotation by which a gang scheduler finds the pods."""
    metadata = as_fields(template.get("metadata"))
    if isinstance(run.group_policy.get("coscheduling"), dict):
        labels = {**read_texts(metadata.get("labels")), "scheduling.x-k8s.io/pod-group": run.name}
        return {**template, "metadata": {**metadata, "labels": labels}}
    if isinstance(run.group_policy.get("volcano"), dict):
        annotations = {**read_texts(metadata.get("annotations")), "scheduling.k8s.io/group-name": run.name}
        return {**template, "metadata": {**metadata, "annotations": annotations}}
    return template


def _apply_job(run: TrainerRun, pod_set: PodSet, pod: Fields, spec: Fields) -> Fields:
    """Apply `spec.trainer` and `spec.initializer` to the pods of a replicated Job."""
    if pod_set.step in _INITIALIZERS:
        source = get_fields(spec, "initializer", _INITIALIZERS[pod_set.step])
        return edit_containers(pod, lambda container: _apply_source(container, source), name=pod_set.step)
    trainer = run.trainer or {}
    if pod_set.step == "trainer":
        fields = {key: trainer[key] for key in ("image", "command", "args") if trainer.get(key) is not None}
        pod = edit_containers(pod, lambda container: {**container, **fields}, name=CONTAINER)
    as_node = run.launcher_is_node and pod_set.name == CONTAINER and run.is_since(2, 1)
    if pod_set.step == "trainer" or as_node:
        pod = edit_containers(pod, lambda container: _apply_resources(run, container), name=CONTAINER)
        env = as_items(trainer.get("env"))
        pod = edit_containers(pod, lambda container: upsert_env(container, env), name=CONTAINER)
    return pod


def _apply_source(container: Fields, source: Fields) -> Fields:
    """Set the variables of an initializer."""
    uri = [variable("STORAGE_URI", source["storageUri"])] if as_string(source.get("storageUri")) else []
    container = upsert_env(container, [*uri, *as_items(source.get("env"))])
    secret = as_string(get_fields(source, "secretRef").get("name"))
    return append(container, "envFrom", [{"secretRef": {"name": secret}}]) if secret else container


def _apply_resources(run: TrainerRun, container: Fields) -> Fields:
    """Set the resources: before 2.3 they replace those of the runtime; since then, its policy lets them be merged."""
    own = as_fields((run.trainer or {}).get("resourcesPerNode"))
    ignored = run.is_since(2, 3) and not run.policy
    if ignored or not (own.get("limits") or own.get("requests")):
        return container
    amounts = {key: as_fields(own[key]) for key in ("limits", "requests") if isinstance(own.get(key), dict)}
    if run.is_since(2, 3):
        return {**container, "resources": merge_strategically(as_fields(container.get("resources")), amounts)}
    return {**container, "resources": amounts}


def _complete_pods(run: TrainerRun, merged: _Merged, pods: Sequence[CreatedPod]) -> Iterator[CreatedPod]:
    """Set what pods of a JobSet do not have: ranks, processes and what users wrote."""
    processes, ranks = count_processes(run), _rank_roles(run)
    for pod in pods:
        first = ranks.get(pod.role)
        yield replace(
            pod,
            template=merged.written.get(pod.role, pod.template),
            rank=None if first is None else first + pod.index,
            main=CONTAINER,
            processes="" if first is None else processes,
        )


def _rank_roles(run: TrainerRun) -> dict[str, int]:
    """Return the first rank of each replicated Job with nodes; with MPI, in the order of the hostfile."""
    ranks, rank = {}, 0
    for pod_set in run.pod_sets:
        if run.is_node(pod_set):
            ranks[pod_set.name] = rank
            rank += pod_set.count
    return ranks


def _list_objects(run: TrainerRun, spec: Fields) -> Iterator[CreatedObject]:
    if run.has_policy("mpi"):
        yield CreatedObject("Secret", f"{run.name}-mpi-ssh-auth")
        yield CreatedObject("ConfigMap", f"{run.name}-mpi-hostfile", data={"hostfile": write_hostfile(run, spec)})
    if run.group_policy.get("coscheduling") or run.group_policy.get("volcano"):
        yield CreatedObject("PodGroup", run.name)
