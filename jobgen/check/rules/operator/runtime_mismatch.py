"""TrainJobs that do not fit their runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.operators.checks import is_since
from jobgen.check.operators.trainer import STEP, list_steps
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.devices import is_device
from jobgen.k8s.images import find_gpu_word
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.k8s.operators import describe_rejection
from jobgen.model.data import Node, value_of
from jobgen.model.finding import pluralize
from jobgen.model.quantity import to_milli
from jobgen.model.suggest import did_you_mean, find_key

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState

# The first version whose webhook rejects the variables that a policy sets.
_RESERVED_SINCE = {"torch": "2.0", "xgboost": "2.2", "mpi": "2.3"}
# Variables that the processes on the nodes read.
_OF_PROCESSES = ("CUDA_", "HF_", "NCCL_", "OMP_", "PYTORCH_", "TORCH_", "TRANSFORMERS_", "UCX_", "WANDB_")
_KEY_MODE_SINCE = "2.3"
# Fields that Trainer applies to the replicated Job of the trainer.
_OF_TRAINER = ("args", "command", "env", "image", "resourcesPerNode")


@rule("cluster", WARNING, kinds=("TrainJob",))
def runtime_mismatch(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A TrainJob that does not fit its runtime, which is among the files.

    - The webhook rejects variables that the policy of the runtime sets: an error. Trainer before 2.3 accepts those of
      `mpi`, and the job then runs without the hosts of Trainer.
    - No replicated Job of the runtime is labeled as the trainer, so what the job sets is applied to nothing.
    - Without `trainer`, Trainer sets none of the variables by which the nodes find each other.
    - The webhook rejects an initializer, or a patch for a replicated Job, that the runtime does not have: an error.
    - Variables of `trainer` reach only the launcher if the policy `mpi` does not set `runLauncherAsNode`.
    - `numProcPerNode` differs from the GPUs of a node, or neither the job nor the runtime requests GPUs for an image of
      the job that is built for them.
    - Trainer before 2.3 mounts the SSH key of the policy `mpi` with the mode 0644. Programs that run as root refuse it.

    Change the job, or use another runtime.
    """
    from jobgen.check.cluster.pod_resources import find_runtime

    runtime = find_runtime(manifest, state)
    if not runtime or manifest.kind is None:
        return
    policy = as_mapping(get_path(runtime, "spec", "mlPolicy"))
    trainer = as_mapping(manifest.spec.get("trainer"))
    used = next((name for name in ("torch", "jax", "xgboost") if name in policy), "")
    if used and manifest.spec.get("trainer") is None and (as_integer(policy.get("numNodes")) or 1) > 1:
        message = f"without `trainer`, Trainer sets no variables of the policy `{used}`, so the nodes do not find each"
        yield Violation(find_key(manifest.object, "spec"), f"{message} other; write `trainer: {{}}`", evidence=())
    lost = [key for key in trainer if key in _OF_TRAINER or (key == "numNodes" and "mpi" not in policy)]
    # `runtime-without-trainer` reports a runtime with such a policy.
    if lost and not used and not any(step == "trainer" for _, step in list_steps(runtime)):
        message = f"no replicated Job of the runtime has the label `{STEP}: trainer`, so `{lost[0]}` has no effect"
        yield Violation(lost[0], f"{message}; label the one that trains", evidence=())
    yield from _check_variables(manifest, policy, trainer)
    yield from _check_parts(manifest, runtime)
    yield from _check_gpus(manifest, runtime, policy, trainer)
    if "mpi" in policy and not is_since(manifest, "trainer", _KEY_MODE_SINCE):
        yield from _check_key(manifest, runtime)


def _check_variables(
    manifest: Manifest, policy: Mapping[str, Node], trainer: Mapping[str, Node]
) -> Iterator[Violation]:
    assert manifest.kind is not None
    required = manifest.kind.requirements
    # `reserved-runtime-env` knows the runtimes that Trainer installs.
    is_shipped = as_text(get_path(manifest.spec, "runtimeRef", "name")) in required.runtimes
    used = next((name for name in _RESERVED_SINCE if name in policy), "")
    command = " ".join(map(as_text, (*as_list(trainer.get("command")), *as_list(trainer.get("args")))))
    joins = value_of(get_path(policy, "mpi", "runLauncherAsNode")) is True
    for entry in iter_mappings(trainer.get("env")):
        name = as_text(entry.get("name"))
        if used and name in required.reserved.get(used, ()) and not is_shipped:
            is_refused = is_since(manifest, "trainer", _RESERVED_SINCE[used])
            effect = describe_rejection(manifest) if is_refused else "the value here replaces that of Trainer"
            message = f"`{name}` is reserved: the policy `{used}` of the runtime sets it; {effect}; remove it"
            yield Violation(entry["name"], message, severity=ERROR if is_refused else None)
        elif used == "mpi" and not joins and name.startswith(_OF_PROCESSES) and f"-x {name}" not in command:
            message = (
                f"`{name}` is set only in the launcher, and not for the processes that `mpirun` starts on the nodes"
            )
            yield Violation(entry["name"], f"{message}; pass it with `mpirun -x {name}`, or set it in the runtime")


def _check_parts(manifest: Manifest, runtime: Mapping[str, Node]) -> Iterator[Violation]:
    """Check that the runtime has the replicated Jobs that the job names."""
    jobs = [as_text(job.get("name")) for job in iter_mappings(_list_jobs(get_path(runtime, "spec")))]
    name = as_text(get_path(runtime, "metadata", "name"))
    requested = as_mapping(manifest.spec.get("initializer"))
    for key in (key for key in requested if key in ("dataset", "model") and isinstance(requested[key], dict)):
        if jobs and f"{key}-initializer" not in jobs:
            message = f"runtime `{name}` has no replicated Job `{key}-initializer`; {describe_rejection(manifest)}"
            yield Violation(key, f"{message}; add it, or remove `{key}`", severity=ERROR)
    patches = (
        _list_jobs(each.get("trainingRuntimeSpec")) for each in iter_mappings(manifest.spec.get("runtimePatches"))
    )
    overrides = (
        each.get("targetJobs")
        for field in ("podTemplateOverrides", "podSpecOverrides")
        for each in iter_mappings(manifest.spec.get(field))
    )
    for item in (item for several in (*patches, *overrides) for item in iter_mappings(several)):
        wanted = as_text(item.get("name"))
        if jobs and wanted and wanted not in jobs:
            hint = did_you_mean(wanted, jobs) or f"; it has {' and '.join(f'`{each}`' for each in jobs)}"
            message = f"runtime `{name}` has no replicated Job `{wanted}`; {describe_rejection(manifest)}"
            yield Violation(item["name"], f"{message}{hint}", severity=ERROR)


def _list_jobs(spec: Node) -> Node:
    return get_path(as_mapping(spec), "template", "spec", "replicatedJobs")


def _check_gpus(
    manifest: Manifest, runtime: Mapping[str, Node], policy: Mapping[str, Node], trainer: Mapping[str, Node]
) -> Iterator[Violation]:
    nodes = list(_list_containers(runtime))
    resources = as_mapping(trainer.get("resourcesPerNode"))
    own = {**as_mapping(resources.get("requests")), **as_mapping(resources.get("limits"))}
    devices = {name: value for name, value in own.items() if is_device(str(name)) and to_milli(value)}
    if not devices:
        wanted = (get_path(each, "resources") for _, each in nodes)
        others = {
            name for each in wanted for field in ("limits", "requests") for name in as_mapping(get_path(each, field))
        }
        # The image of a runtime is a default, which also runs without GPUs.
        image = trainer.get("image")
        word = find_gpu_word(as_text(image))
        unseen = any("/" in str(name) for name in (*own, *others)) or any(
            get_path(each, "resources", "claims") for _, each in nodes
        )
        if word and nodes and not unseen:
            message = (
                f"the image is built for GPUs (`{word}` in its name), but neither the job nor its runtime requests"
            )
            message += " a GPU, so the nodes train without one; set `nvidia.com/gpu` in `resourcesPerNode`"
            yield Violation(image, message, evidence=(word,))
        return
    node = get_path(policy, "mpi", "numProcPerNode")
    count, gpus = as_integer(node), sum((to_milli(value) or 0) // 1000 for value in devices.values())
    # Since 2.1, Trainer replaces 1 by the number of GPUs.
    replaced = count == 1 and is_since(manifest, "trainer", "2.1")
    if count and count > 0 and count != gpus and not replaced and trainer.get("numProcPerNode") is None:
        processes = f"{count} process{'es' * (count != 1)}"
        message = f"the runtime starts {processes} on each node, but a node has {pluralize(gpus, 'GPU')}"
        effect = "leaves GPUs idle" if count < gpus else "starts processes without a GPU"
        place = next(iter(devices.values()))
        yield Violation(place, f"{message}, which {effect}; set `numProcPerNode: {gpus}`", ((node, "the runtime"),))


def _list_containers(runtime: Mapping[str, Node]) -> Iterator[tuple[Mapping[str, Node], Mapping[str, Node]]]:
    """Yield the containers `node` of a runtime, each with the spec of its pod."""
    for job in iter_mappings(_list_jobs(get_path(runtime, "spec"))):
        pod = as_mapping(get_path(job, "template", "spec", "template", "spec"))
        yield from ((pod, each) for each in iter_mappings(pod.get("containers")) if as_text(each.get("name")) == "node")


def _check_key(manifest: Manifest, runtime: Mapping[str, Node]) -> Iterator[Violation]:
    path = get_path(runtime, "spec", "mlPolicy", "mpi", "sshAuthMountPath")
    for pod, container in _list_containers(runtime):
        users = (get_path(each, "securityContext", "runAsUser") for each in (container, pod))
        user = next((as_integer(each) for each in users if each is not None), None)
        if not user:
            version = str(manifest.cluster.operators.get("trainer", ""))
            message = f"Trainer {version} mounts the SSH key of the policy `mpi` readable for all users (mode 0644)"
            message += ", and `ssh` and `sshd` that run as root refuse such a key; update Trainer to 2.3, or set"
            message += " `runAsUser` of all nodes to another user"
            related = ((path, "where the key is mounted"),) if path is not None else ()
            yield Violation(find_key(manifest.spec, "runtimeRef"), message, related, evidence=())
            return
