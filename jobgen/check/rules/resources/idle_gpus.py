"""GPUs of roles that do not train."""

from collections.abc import Iterator

from jobgen.check.original_messages import original_message
from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.accelerators import format_devices
from jobgen.k8s.objects import Container, Role
from jobgen.model.data import value_of

_IDLE = {
    "MXJob": ("scheduler", "server"),
    "TFJob": ("ps",),
    "TensorFlowTrainingJob": ("ps",),
    "MPIJob": ("launcher",),
}


@rule("role", WARNING, kinds=tuple(_IDLE))
def idle_gpus(role: Role) -> Iterator[Violation]:
    """GPUs on a role that does not train: a parameter server, a scheduler or a launcher.

    The role holds them as long as the job runs, and nothing computes on them. mpi-operator hides them from a launcher
    that is not a worker; training-operator turns a launcher that has them into a worker, with slots in the hostfile.

    Request GPUs only for the roles that train.
    """
    manifest = role.manifest
    idle = _IDLE[manifest.kind.name] if manifest.kind else ()
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
    evidence = original_message("idle-gpus-v1" if is_v1 else "idle-gpus-v2", "a GPU" if gpus == "1 GPU" else gpus)
    return Violation(node, message, evidence=evidence)
