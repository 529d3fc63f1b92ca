"""TrainJobs, their runtimes, and the patches between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.admission.names import is_dns_subdomain
from jobgen.check.operators.checks import is_since
from jobgen.check.operators.trainer import STEP, list_steps
from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.devices import is_device
from jobgen.k8s.images import find_gpu_word
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest
from jobgen.k8s.operators import describe_rejection
from jobgen.model.data import Plain
from jobgen.model.finding import pluralize
from jobgen.model.place import At, find_at
from jobgen.model.quantity import to_milli
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import did_you_mean

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

    When to turn it off: when the runtime in the cluster differs on purpose from the one in the files, delete the
    copy, since every other check would also use the wrong one.
    """
    from jobgen.check.cluster.pod_resources import find_runtime

    runtime = find_runtime(manifest, state)
    if not runtime or manifest.kind is None:
        return
    policy = as_mapping(get_path(runtime, "spec", "mlPolicy"))
    trainer = as_mapping(manifest.spec.get("trainer"))
    used = next((name for name in ("torch", "jax", "xgboost") if name in policy), "")
    if used and manifest.spec.get("trainer") is None and (as_integer(policy.get("numNodes")) or 1) > 1:
        message = Sentence(
            "without `trainer`, Trainer sets no variables of the policy `{}`, so the nodes do not find each", used
        )
        yield Violation(
            At(manifest.object, "spec", is_key=True), Sentence("{} other; write `trainer: {{}}`", message), evidence=()
        )
    lost = [key for key in trainer if key in _OF_TRAINER or (key == "numNodes" and "mpi" not in policy)]
    # `runtime-without-trainer` reports a runtime with such a policy.
    if lost and not used and not any(step == "trainer" for _, step in list_steps(runtime)):
        message = Sentence(
            "no replicated Job of the runtime has the label `{}: trainer`, so `{}` has no effect", STEP, lost[0]
        )
        yield Violation(
            At(trainer, lost[0], is_key=True), Sentence("{}; label the one that trains", message), evidence=()
        )
    yield from _check_variables(manifest, policy, trainer)
    yield from _check_parts(manifest, runtime)
    yield from _check_gpus(manifest, runtime, policy, trainer)
    if "mpi" in policy and not is_since(manifest, "trainer", _KEY_MODE_SINCE):
        yield from _check_key(manifest, runtime)


def _check_variables(
    manifest: Manifest, policy: Mapping[str, Plain], trainer: Mapping[str, Plain]
) -> Iterator[Violation]:
    assert manifest.kind is not None
    required = manifest.kind.requirements
    # `reserved-runtime-env` knows the runtimes that Trainer installs.
    is_shipped = as_text(get_path(manifest.spec, "runtimeRef", "name")) in required.runtimes
    used = next((name for name in _RESERVED_SINCE if name in policy), "")
    command = " ".join(map(as_text, (*as_list(trainer.get("command")), *as_list(trainer.get("args")))))
    joins = get_path(policy, "mpi", "runLauncherAsNode") is True
    for entry in iter_mappings(trainer.get("env")):
        name = as_text(entry.get("name"))
        if used and name in required.reserved.get(used, ()) and not is_shipped:
            is_refused = is_since(manifest, "trainer", _RESERVED_SINCE[used])
            effect = describe_rejection(manifest) if is_refused else "the value here replaces that of Trainer"
            message = Sentence(
                "`{}` is reserved: the policy `{}` of the runtime sets it; {}; remove it", name, used, effect
            )
            yield Violation(At(entry, "name"), message, severity=ERROR if is_refused else None)
        elif used == "mpi" and not joins and name.startswith(_OF_PROCESSES) and f"-x {name}" not in command:
            message = Sentence(
                "`{}` is set only in the launcher, and not for the processes that `mpirun` starts on the nodes", name
            )
            yield Violation(
                At(entry, "name"), Sentence("{}; pass it with `mpirun -x {}`, or set it in the runtime", message, name)
            )


def _check_parts(manifest: Manifest, runtime: Mapping[str, Plain]) -> Iterator[Violation]:
    """Check that the runtime has the replicated Jobs that the job names."""
    jobs = [as_text(job.get("name")) for job in iter_mappings(_list_jobs(get_path(runtime, "spec")))]
    name = as_text(get_path(runtime, "metadata", "name"))
    requested = as_mapping(manifest.spec.get("initializer"))
    for key in (key for key in requested if key in ("dataset", "model") and isinstance(requested[key], dict)):
        if jobs and f"{key}-initializer" not in jobs:
            message = Sentence(
                "runtime `{}` has no replicated Job `{}-initializer`; {}", name, key, describe_rejection(manifest)
            )
            yield Violation(
                At(requested, key, is_key=True), Sentence("{}; add it, or remove `{}`", message, key), severity=ERROR
            )
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
            message = Sentence(
                "runtime `{}` has no replicated Job `{}`; {}", name, wanted, describe_rejection(manifest)
            )
            yield Violation(At(item, "name"), Sentence("{}{}", message, hint), severity=ERROR)


def _list_jobs(spec: Plain) -> Plain:
    return get_path(as_mapping(spec), "template", "spec", "replicatedJobs")


def _check_gpus(
    manifest: Manifest, runtime: Mapping[str, Plain], policy: Mapping[str, Plain], trainer: Mapping[str, Plain]
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
            message = Sentence(
                "the image is built for GPUs (`{}` in its name), but neither the job nor its runtime requests", word
            )
            message += " a GPU, so the nodes train without one; set `nvidia.com/gpu` in `resourcesPerNode`"
            yield Violation(At(trainer, "image"), message, evidence=(word,))
        return
    node = get_path(policy, "mpi", "numProcPerNode")
    count, gpus = as_integer(node), sum((to_milli(value) or 0) // 1000 for value in devices.values())
    # Since 2.1, Trainer replaces 1 by the number of GPUs.
    replaced = count == 1 and is_since(manifest, "trainer", "2.1")
    if count and count > 0 and count != gpus and not replaced and trainer.get("numProcPerNode") is None:
        processes = f"{count} process{'es' * (count != 1)}"
        message = Sentence("the runtime starts {} on each node, but a node has {}", processes, pluralize(gpus, "GPU"))
        effect = "leaves GPUs idle" if count < gpus else "starts processes without a GPU"
        name = next(iter(devices))
        holder = next(each for each in (resources.get("limits"), resources.get("requests")) if find_at(each, name))
        related = ((find_at(policy, "mpi", "numProcPerNode"), "the runtime"),)
        yield Violation(
            At(holder, name), Sentence("{}, which {}; set `numProcPerNode: {}`", message, effect, gpus), related
        )


def _list_containers(runtime: Mapping[str, Plain]) -> Iterator[tuple[Mapping[str, Plain], Mapping[str, Plain]]]:
    """Yield the containers `node` of a runtime, each with the spec of its pod."""
    for job in iter_mappings(_list_jobs(get_path(runtime, "spec"))):
        pod = as_mapping(get_path(job, "template", "spec", "template", "spec"))
        yield from ((pod, each) for each in iter_mappings(pod.get("containers")) if as_text(each.get("name")) == "node")


def _check_key(manifest: Manifest, runtime: Mapping[str, Plain]) -> Iterator[Violation]:
    path = find_at(runtime, "spec", "mlPolicy", "mpi", "sshAuthMountPath")
    for pod, container in _list_containers(runtime):
        users = (get_path(each, "securityContext", "runAsUser") for each in (container, pod))
        user = next((as_integer(each) for each in users if each is not None), None)
        if not user:
            version = str(manifest.cluster.operators.get("trainer", ""))
            message = Sentence(
                "Trainer {} mounts the SSH key of the policy `mpi` readable for all users (mode 0644)", version
            )
            message += ", and `ssh` and `sshd` that run as root refuse such a key; update Trainer to 2.3, or set"
            message += " `runAsUser` of all nodes to another user"
            related = ((path, "where the key is mounted"),) if path is not None else ()
            yield Violation(At(manifest.spec, "runtimeRef", is_key=True), message, related, evidence=())
            return


@rule("manifest", WARNING, kinds=("ClusterTrainingRuntime", "TrainingRuntime"))
def runtime_without_trainer(manifest: Manifest) -> Iterator[Violation]:
    """A training runtime whose nodes do not get what a TrainJob sets, or do not find each other.

    Trainer applies `trainer` of a TrainJob, such as its image, command and number of nodes, to the replicated Job with
    the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`. Without one it applies them to nothing, and the
    policies `torch`, `jax` and `xgboost` set no variables; without these policies, it is reported in the TrainJob. The
    policies `torch`, `jax` and `xgboost` give the nodes the address `JOB-node-0-0.JOB`, so the Job must be named `node`
    and have host names. The policy `mpi` needs a replicated Job `launcher`, which gets the list of hosts.

    Label the replicated Job that trains, in `template.metadata.labels`, and name it `node`.

    When to turn it off: for a runtime that only serves as a base of others by kustomize, set the rule to `off` for
    its path; the results are checked when they are built.
    """
    jobset = as_mapping(get_path(manifest.spec, "template", "spec"))
    steps = list(list_steps(manifest.object))
    trained = [job for job, step in steps if step == "trainer"]
    policy = as_mapping(manifest.spec.get("mlPolicy"))
    used = next((name for name in ("torch", "jax", "xgboost") if name in policy), "")
    if not steps:
        return
    if not trained:
        # A runtime without these policies may need nothing of its jobs. Before 2.0, names and not labels decided.
        pods = (get_path(job, "template", "spec", "template", "spec", "containers") for job, _ in steps)
        is_new = any(as_text(each.get("name")) == "node" for several in pods for each in iter_mappings(several))
        if not used or not (is_new or manifest.cluster.operators.get("trainer")):
            return
        message = Sentence(
            "no replicated Job has the label `{}: trainer`, so `trainer` of a TrainJob is applied to nothing", STEP
        )
        yield Violation(
            At(jobset, "replicatedJobs", is_key=True), Sentence("{}; set it in `template.metadata.labels`", message)
        )
        return
    names = {as_text(job.get("name")): job for job, _ in steps}
    if "mpi" in policy and "launcher" not in names:
        message = Sentence("the policy `mpi` needs a replicated Job `launcher`, which gets the list of hosts")
        yield Violation(At(policy, "mpi", is_key=True), Sentence("{}; name the one that starts `mpirun` so", message))
    if not used:
        return
    address = f"the policy `{used}` gives the nodes the address `JOB-node-0-0.JOB`, which does not resolve"
    network = as_mapping(jobset.get("network"))
    if "node" not in names:
        message = Sentence("{}, because the replicated Job is named `{}`", address, as_text(trained[0].get("name")))
        yield Violation(find_at(trained[0], "name"), Sentence("{}; name it `node`", message))
    if as_text(network.get("subdomain")):
        yield Violation(At(network, "subdomain"), Sentence("{} with another `subdomain`; remove it", address))
    elif network.get("enableDNSHostnames") is False:
        yield Violation(At(network, "enableDNSHostnames"), Sentence("{} without host names; remove the field", address))


@rule("job", WARNING, kinds=("TrainJob",))
def missing_initializer(manifest: Manifest) -> Iterator[Violation]:
    """A TrainJob with a dataset or model initializer that its runtime does not have.

    The webhook rejects `initializer.dataset` or `initializer.model` if the runtime has no job `dataset-initializer` or
    `model-initializer`. Of the runtimes shipped with Trainer, only those of torchtune have them.

    Use a runtime with the initializer, or remove it from the job.

    When to turn it off: if the runtime in the cluster has an initializer that the copy in the repository lacks,
    update that copy; jobgen compares with what it can see.
    """
    requested = as_mapping(manifest.spec.get("initializer"))
    name = as_text(get_path(manifest.spec, "runtimeRef", "name"))
    own = as_text(get_path(manifest.spec, "runtimeRef", "kind")) == "TrainingRuntime"
    runtime = manifest.kind.requirements.runtimes.get(name) if requested and manifest.kind and not own else None
    if runtime is None or runtime.initializes:
        return
    for key in requested:
        if key in ("dataset", "model") and isinstance(requested[key], dict):
            yield Violation(
                At(requested, key, is_key=True),
                Sentence(
                    "runtime `{}` has no `{}-initializer` job, unless your cluster adds one; use another runtime",
                    name,
                    key,
                ),
            )


@rule("container", ERROR, fields=("env",), kinds=("TrainJob",))
def reserved_runtime_env(container: Container) -> Iterator[Violation]:
    """A variable of a TrainJob that its runtime sets itself, such as `PET_NNODES`.

    The webhook rejects a job whose `trainer.env` sets a variable that the policy of the runtime sets.

    Use `numNodes` and `numProcPerNode`.

    When to turn it off: if the policy of your own runtime does not set the variable, put the runtime into
    `runtimes/`; jobgen then reads what it really sets.
    """
    manifest = container.pod.manifest
    kind = manifest.kind
    runtime = kind.requirements.runtimes.get(as_text(get_path(manifest.spec, "runtimeRef", "name"))) if kind else None
    if kind is None or runtime is None:
        return
    reserved = kind.requirements.reserved.get(runtime.policy, ())
    for name, entry in container.env:
        if name in reserved:
            yield Violation(
                At(entry, "name"),
                Sentence("the runtime sets `{}` itself; {}; remove it", name, describe_rejection(manifest)),
            )


_OWN = {
    "node": "trainer.env",
    "dataset-initializer": "initializer.dataset.env",
    "model-initializer": "initializer.model.env",
}


@rule("job", ERROR, kinds=("TrainJob",))
def env_in_runtime_patch(manifest: Manifest) -> Iterator[Violation]:
    """A runtime patch of a TrainJob that sets variables of a container with an `env` field of its own.

    The webhook rejects patches of the variables of `node`, `dataset-initializer` and `model-initializer`.

    Set the variables of `node` in `trainer.env`, and those of an initializer in its own `env`.

    When to turn it off: no setting makes the webhook accept it. For another container of the runtime, a patch with
    variables is allowed and not reported.
    """
    for container in _patched_containers(manifest.spec):
        own = _OWN.get(as_text(container.get("name")))
        if own and as_list(container.get("env")):
            message = Sentence("a patch cannot set variables of `{}`", as_text(container["name"]))
            yield Violation(
                At(container, "env", is_key=True),
                Sentence("{}; {}; use `{}`", message, describe_rejection(manifest), own),
            )


def _patched_containers(spec: Mapping[str, Plain]) -> Iterator[Mapping[str, Plain]]:
    """Yield the containers that are patched, in the forms of all versions."""
    for patch in as_list(spec.get("runtimePatches")):
        for job in as_list(get_path(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")):
            yield from map(as_mapping, as_list(get_path(job, "template", "spec", "template", "spec", "containers")))
    for override in as_list(spec.get("podTemplateOverrides")):
        yield from map(as_mapping, as_list(get_path(override, "spec", "containers")))
    for override in as_list(spec.get("podSpecOverrides")):
        yield from map(as_mapping, as_list(get_path(override, "containers")))


@rule("job", ERROR, kinds=("TrainJob",))
def bad_patch_manager(manifest: Manifest) -> Iterator[Violation]:
    """A runtime patch of a TrainJob whose `manager` is not a domain and a path.

    The webhook requires the owner of a patch in the form `example.com/team`, and rejects the job otherwise.

    Write a domain and a path, such as `example.com/team`.

    When to turn it off: the webhook of Trainer has no switch for this check. A Trainer without `runtimePatches`
    drops the whole patch, which `field-newer-than-operator` reports.
    """
    if "runtimePatches" not in manifest.spec:
        return
    for patch in as_list(manifest.spec["runtimePatches"]):
        node = as_mapping(patch).get("manager")
        domain, slash, path = as_text(node).partition("/")
        if as_text(node) and not (slash and path and is_dns_subdomain(domain)):
            message = Sentence("`{}` must be a domain and a path, such as `example.com/team`", as_text(node))
            yield Violation(At(patch, "manager"), Sentence("{}; {}", message, describe_rejection(manifest)))
