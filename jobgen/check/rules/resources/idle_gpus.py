"""GPUs of roles that do not train."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.devices import format_devices
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Manifest, Role
from jobgen.model.data import value_of

_IDLE = {
    "MXJob": ("scheduler", "server"),
    "TFJob": ("ps",),
    "TensorFlowTrainingJob": ("ps",),
    "MPIJob": ("launcher",),
}


_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")


@rule("job", WARNING, kinds=(*_IDLE, *_RUNTIMES))
def idle_gpus(manifest: Manifest) -> Iterator[Violation]:
    """GPUs on a role that does not train: a parameter server, a scheduler or a launcher.

    The role holds them as long as the job runs, and nothing computes on them. mpi-operator hides them from a launcher
    that is not a worker; training-operator turns a launcher that has them into a worker, with slots in the hostfile.
    The launcher of a runtime is in the hostfile only with `runLauncherAsNode`.

    Request GPUs only for the roles that train.
    """
    name = manifest.kind.name if manifest.kind else ""
    if name in _RUNTIMES:
        yield from _check_runtime(manifest)
    for role in manifest.roles if name in _IDLE else ():
        yield from _check_role(role, _IDLE[name])


def _check_role(role: Role, idle: tuple[str, ...]) -> Iterator[Violation]:
    manifest = role.manifest
    if role.name not in idle or not any(container.devices for container in role.pod.containers):
        return
    if role.name == "launcher":
        worker = manifest.find_role("worker")
        # A launcher without workers does the work itself.
        if not worker or not worker.count or value_of(manifest.spec.get("runLauncherAsWorker")) is True:
            return
    for container in role.pod.containers:
        if container.devices:
            yield _report(role, container)


def _check_runtime(manifest: Manifest) -> Iterator[Violation]:
    """Check the launcher of a runtime for MPI that has other nodes, which run the processes."""
    policy = get_path(manifest.spec, "mlPolicy", "mpi")
    if not isinstance(policy, dict) or value_of(policy.get("runLauncherAsNode")) is True:
        return
    jobs = as_list(get_path(manifest.spec, "template", "spec", "replicatedJobs"))
    launcher = next((job for job in jobs if as_text(as_mapping(job).get("name")) == "launcher"), None)
    template = get_path(launcher, "template", "spec", "template")
    pods = [pod for pod in manifest.pods if pod.template is template]
    for container in (each for pod in pods for each in pod.containers if each.devices and len(jobs) > 1):
        gpus = format_devices(container.devices)
        message = f"the launcher requests {gpus}, but only the other nodes are in the hostfile"
        yield Violation(
            container.device_node, f"{message}; request them only for the nodes, or set `runLauncherAsNode: true`"
        )


def _report(role: Role, container: Container) -> Violation:
    node = container.device_node
    gpus = format_devices(container.devices)
    if role.name != "launcher":
        message = f"`{role.replica_type}` does not train but requests {gpus}; request them only for roles that train"
        return Violation(node, message)
    kind = role.manifest.kind
    is_v1 = kind is not None and value_of(kind.api_version) == "kubeflow.org/v1"
    effect = "so the operator adds its slots to the hostfile" if is_v1 else "which the operator hides from it"
    message = f"the launcher requests {gpus}, {effect}; request them only for the workers"
    return Violation(node, message)
