"""GPUs of a role that does not train."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.accelerators import find_device_node
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
    """GPUs of a role that does not train: a parameter server, a scheduler or a launcher.

    They are held as long as the job runs, and nothing computes on them. mpi-operator even hides them from a launcher
    that is no worker; training-operator makes a worker of a launcher that has them, with slots in the hostfile. Leave
    them out there.
    """
    manifest = role.manifest
    idle = _IDLE[manifest.kind.name] if manifest.kind else ()
    if role.name not in idle or not role.pod.gpus:
        return
    if role.name == "launcher":
        worker = manifest.find_role("worker")
        # A launcher alone does the work itself.
        if not worker or not worker.count or value_of(manifest.spec.get("runLauncherAsWorker")) is True:
            return
    for container in role.pod.containers:
        if container.gpus:
            yield Violation(find_device_node(container.limits, container.requests), _told(role, container))


def _told(role: Role, container: Container) -> str:
    held = "a GPU" if container.gpus == 1 else f"{container.gpus} GPUs"
    if role.name != "launcher":
        return f"`{role.replica_type}` does not train, and holds {held}"
    kind = role.manifest.kind
    older = kind is not None and value_of(kind.api_version) == "kubeflow.org/v1"
    so = "so the operator adds its slots to the hostfile" if older else "which the operator hides from it"
    return f"the launcher holds {held}, {so}; leave them to the workers"
