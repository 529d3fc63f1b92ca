"""The pods of a TrainJob: those of the JobSet that Trainer builds from the job and its runtime.

Source: kubeflow/trainer 2.0 to 2.3, pkg/runtime/core/trainingruntime.go, pkg/runtime/framework/plugins (jobset, torch,
mpi, jax, xgboost, plainml, coscheduling, volcano) and pkg/apply/apply.go. The commands of torchtune, the Flux policy
and the feature gate TrainJobStatus are not covered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobgen.features.convert.operators.created import (
    MAX_PODS,
    Created,
    CreatedObject,
    CreatedPod,
    Fields,
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
    read_texts,
    upsert,
    upsert_env,
    variable,
)
from jobgen.features.convert.operators.jobset import INDEX_KEY, create_job_set
from jobgen.features.convert.operators.trainer_runtimes import STEP_LABEL, find_shipped_runtime, merge_strategically
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import to_milli
from jobgen.spec.kinds import parse_version
from jobgen.spec.overlay import Cluster

CONTAINER = "node"
"""The name of the container that trains, and of the replicated Job with the nodes."""
_LAUNCHER = "launcher"
_PORT = 29500
_SINCE = {"jax": (2, 2), "xgboost": (2, 2)}
_INDEX_PATH = f"metadata.annotations['{INDEX_KEY}']"


@dataclass(frozen=True, slots=True)
class PodSet:
    """The pods of a replicated Job."""

    name: str
    step: str
    """The value of the label that connects the replicated Job with a part of the TrainJob; empty if it has none."""
    count: int
    spec: Fields
    """The pod spec of the runtime, with the patches of the TrainJob."""


class TrainerRun(NamedTuple):
    """A TrainJob with its runtime."""

    name: str
    trainer: Fields | None
    """`spec.trainer`; without it, no variables are set."""
    policy: Fields
    """`spec.mlPolicy` of the runtime."""
    group_policy: Fields
    template: Fields
    """The spec of the JobSet in the runtime, with the patches of the TrainJob."""
    pod_sets: tuple[PodSet, ...]
    version: tuple[int, ...]

    def is_since(self, *version: int) -> bool:
        """Return True if the version of Trainer is this one or later."""
        return not self.version or self.version >= version

    def has_policy(self, name: str) -> bool:
        """Return True if the runtime has a policy of a framework, and Trainer knows it."""
        return isinstance(self.policy.get(name), dict) and self.is_since(*_SINCE.get(name, ()))

    @property
    def launcher_is_node(self) -> bool:
        """Return True if the launcher of MPI trains, too."""
        return get_fields(self.policy, "mpi").get("runLauncherAsNode") is True

    @property
    def address(self) -> str:
        """The DNS name of the first node."""
        return f"{self.name}-{CONTAINER}-0-0.{self.name}"

    @property
    def nodes(self) -> int:
        """The number of pods of the replicated Job of the trainer."""
        return next((each.count for each in self.pod_sets if each.step == "trainer"), 1)

    def is_node(self, pod_set: PodSet) -> bool:
        """Return True if the pods of a replicated Job train."""
        if self.has_policy("mpi"):
            return pod_set.name == CONTAINER or (self.launcher_is_node and pod_set.name == _LAUNCHER)
        return pod_set.step == "trainer"


def count_nodes(run: TrainerRun) -> tuple[PodSet, ...]:
    """Return the pod sets with the number of nodes of the TrainJob."""
    nodes = (run.trainer or {}).get("numNodes")
    if type(nodes) is not int:
        return run.pod_sets
    nodes = max(nodes, 0)
    if not run.has_policy("mpi"):
        first = next((each for each in run.pod_sets if each.step == "trainer"), None)
        return tuple(replace(each, count=nodes) if each is first else each for each in run.pod_sets)
    count = max(nodes - 1, 1) if run.launcher_is_node else nodes
    return tuple(replace(each, count=count) if each.name == CONTAINER else each for each in run.pod_sets)


def count_processes(run: TrainerRun) -> str:
    """Return the processes that the launcher starts on each node; empty if Trainer does not set them."""
    if run.has_policy("torch"):
        return _count_torch_processes(run) if run.trainer is not None else ""
    if run.has_policy("mpi"):
        return _count_slots(run)
    return ""


def _count_torch_processes(run: TrainerRun) -> str:
    trainer = run.trainer or {}
    wanted = trainer.get("numProcPerNode")
    if wanted is None and not run.is_since(2, 2):
        wanted = get_fields(run.policy, "torch").get("numProcPerNode")
    text = str(wanted) if type(wanted) is int else as_string(wanted, "auto")
    if not run.is_since(2, 1):
        own = trainer.get("resourcesPerNode")
        return _count_by_limits(text, own) if isinstance(own, dict) else text
    resources = _read_resources(run)
    if (text == "cpu" and not run.is_since(2, 2)) or (text == "auto" and not _count_gpus(resources)):
        requested, limit = (_count_cpus(as_fields(resources.get(key))) for key in ("requests", "limits"))
        return str(max(1, requested or limit))
    return text


def _count_by_limits(text: str, resources: Fields) -> str:
    """Return the processes in 2.0, which looks at the limits, and at the requests unless the limits gave the number."""
    uses_cpu: Callable[[Fields], bool] = lambda _: False  # noqa: E731
    if text == "auto":
        uses_cpu = lambda amounts: not any("gpu" in str(name).lower() for name in amounts)  # noqa: E731
    elif text == "cpu":
        uses_cpu = lambda amounts: "cpu" in amounts  # noqa: E731
    found = "1"
    for key in ("limits", "requests"):
        amounts = resources.get(key)
        if not isinstance(amounts, dict):
            found = "1"
        elif uses_cpu(amounts):
            return str(max(1, _count_cpus(amounts)))
        else:
            found = "1" if text == "cpu" else text
    return found


def _count_slots(run: TrainerRun) -> str:
    wanted = (run.trainer or {}).get("numProcPerNode")
    if type(wanted) is int:
        return str(wanted)
    slots = as_count(get_fields(run.policy, "mpi").get("numProcPerNode"), 1)
    gpus = _count_gpus(_read_resources(run)) if run.is_since(2, 1) else 0
    return str(gpus if slots == 1 and gpus > 1 else slots)


def _read_resources(run: TrainerRun) -> Fields:
    """Return the resources of a node: those of the TrainJob, else those of the runtime."""
    own = (run.trainer or {}).get("resourcesPerNode")
    if isinstance(own, dict):
        return own
    for pod_set in run.pod_sets:
        if pod_set.name == CONTAINER or pod_set.step == "trainer":
            resources = find_container(pod_set.spec, CONTAINER).get("resources")
            if isinstance(resources, dict):
                return resources
    return {}


def _count_gpus(resources: Fields) -> int:
    """Return the number of GPUs: Trainer counts any resource with `gpu` in its name."""
    for key in ("requests", "limits"):
        for name, amount in sorted(as_fields(resources.get(key)).items(), key=str):
            if "gpu" in str(name).lower() and (count := _round_up(amount)):
                return count
    return 0


def _count_cpus(amounts: Fields) -> int:
    return _round_up(amounts.get("cpu"))


def _round_up(amount: Any) -> int:
    return -(-(to_milli(amount) or 0) // 1000)


def inject_variables(run: TrainerRun, pod_set: PodSet) -> Fields:
    """Return the pod spec with the variables and the port of the policy."""
    name = next(filter(run.has_policy, _VARIABLES), "")
    if not name:
        return pod_set.spec
    spec = pod_set.spec
    first = next((each for each in run.pod_sets if each.step == "trainer"), None)
    if pod_set is first and run.trainer is not None:
        env = as_items(run.trainer.get("env")) if name == "torch" else []
        entries = list(_VARIABLES[name](run))
        spec = edit_containers(spec, lambda each: upsert_env(upsert_env(each, env), entries), name=CONTAINER)
        spec = edit_containers(spec, _add_port, name=CONTAINER)
    return _inject_into_targets(run, pod_set, spec) if name == "torch" and run.is_since(2, 3) else spec


def _inject_into_targets(run: TrainerRun, pod_set: PodSet, spec: Fields) -> Fields:
    """Set the variables in other containers that the runtime names in `envInjection`."""
    for target in as_items(get_fields(run.policy, "torch", "envInjection").get("targets")):
        if as_fields(target).get("jobName") == pod_set.name:
            for name in filter(None, map(as_string, as_items(as_fields(target).get("containerNames")))):
                field = "containers" if find_container(spec, name) else "initContainers"
                entries = list(_list_torch_variables(run))
                spec = edit_containers(spec, lambda each, add=entries: upsert_env(each, add), name=name, field=field)  # type: ignore[misc]
    return spec


def _add_port(container: Fields) -> Fields:
    """Add the port of the nodes. Trainer takes ports without a name for the same port, so it replaces the first."""
    return upsert(container, "ports", [{"containerPort": _PORT}], "containerPort", "name")


def _list_torch_variables(run: TrainerRun) -> Iterator[Fields]:
    yield variable("PET_NNODES", run.nodes)
    yield variable("PET_NPROC_PER_NODE", _count_torch_processes(run))
    yield field_variable("PET_NODE_RANK", _INDEX_PATH)
    yield variable("PET_MASTER_ADDR", run.address)
    yield variable("PET_MASTER_PORT", _PORT)


def _list_jax_variables(run: TrainerRun) -> Iterator[Fields]:
    yield variable("JAX_NUM_PROCESSES", run.nodes)
    yield field_variable("JAX_PROCESS_ID", _INDEX_PATH)
    yield variable("JAX_COORDINATOR_ADDRESS", f"{run.address}:{_PORT}")


def _list_xgboost_variables(run: TrainerRun) -> Iterator[Fields]:
    yield variable("DMLC_TRACKER_URI", run.address)
    yield variable("DMLC_TRACKER_PORT", _PORT)
    yield field_variable("DMLC_TASK_ID", _INDEX_PATH)
    yield variable("DMLC_NUM_WORKER", run.nodes * max(_count_gpus(_read_resources(run)), 1))


_VARIABLES: Mapping[str, Callable[[TrainerRun], Iterator[Fields]]] = {
    "torch": _list_torch_variables,
    "jax": _list_jax_variables,
    "xgboost": _list_xgboost_variables,
}
_SSH_VOLUME, _HOSTFILE_VOLUME = "mpi-ssh-auth", "mpi-hostfile"
_HOSTFILE_FOLDER = "/etc/mpi"


def add_mpi_volumes(run: TrainerRun, pod_set: PodSet, spec: Fields) -> Fields:
    """Return the pod spec with the keys for SSH and, in the launcher, the hostfile and the variables of Open MPI."""
    policy = run.policy.get("mpi")
    if not isinstance(policy, dict) or pod_set.name not in (CONTAINER, _LAUNCHER):
        return spec
    keys = {"name": _SSH_VOLUME, "mountPath": as_string(policy.get("sshAuthMountPath"), "/root/.ssh")}
    spec = upsert(spec, "volumes", [_make_ssh_volume(run)], "name")
    spec = edit_containers(spec, lambda each: upsert(each, "volumeMounts", [keys], "mountPath"), name=CONTAINER)
    if pod_set.name != _LAUNCHER:
        return spec
    items = [{"key": "hostfile", "path": "hostfile", "mode": 0o444}]
    source = {"name": f"{run.name}-mpi-hostfile", "items": items}
    spec = upsert(spec, "volumes", [{"name": _HOSTFILE_VOLUME, "configMap": source}], "name")
    mount = {"name": _HOSTFILE_VOLUME, "mountPath": _HOSTFILE_FOLDER}
    spec = edit_containers(spec, lambda each: upsert(each, "volumeMounts", [mount], "mountPath"), name=CONTAINER)
    entries = [
        variable("OMPI_MCA_orte_default_hostfile", f"{_HOSTFILE_FOLDER}/hostfile"),
        variable("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
        variable("OMPI_MCA_orte_set_default_slots", _count_slots(run)),
        variable("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"),
    ]
    return edit_containers(spec, lambda each: upsert_env(each, entries), name=CONTAINER)


def _make_ssh_volume(run: TrainerRun) -> Fields:
    private, public = (0o640, 0o644) if run.is_since(2, 3) else (None, None)
    paths = (("ssh-privatekey", "id_rsa", private), ("ssh-publickey", "id_rsa.pub", public))
    files = (*paths, ("ssh-publickey", "authorized_keys", public))
    items = [{"key": key, "path": path, **({"mode": mode} if mode else {})} for key, path, mode in files]
    mode = {"defaultMode": 0o400} if run.is_since(2, 3) else {}
    return {"name": _SSH_VOLUME, "secret": {"secretName": f"{run.name}-mpi-ssh-auth", **mode, "items": items}}


def write_hostfile(run: TrainerRun, spec: Fields) -> str:
    """Return the hostfile: a line for each node, with its slots."""
    subdomain = as_string(get_fields(spec, "network").get("subdomain"), run.name)
    lines = [
        f"{run.name}-{pod_set.name}-0-{index}.{subdomain} slots={_count_slots(run)}\n"
        for pod_set in run.pod_sets
        if run.is_node(pod_set)
        for index in range(min(pod_set.count, MAX_PODS))
    ]
    return "".join(lines)


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
