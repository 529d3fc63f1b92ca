"""Slots and GPUs of MPI workers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import pluralize

# Launchers that are called once per worker and start the processes of the node themselves.
_LAUNCHERS = (
    ".sh",
    "torchrun",
    "torch.distributed",
    "accelerate",
    "deepspeed",
    "nproc",
    "npernode",
    "ppr:",
    "-N",
    "-ppn",
)


@rule("job", WARNING, kinds=("MPIJob",))
def slots_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`slotsPerWorker` with a number other than the number of GPUs of a worker.

    mpirun starts as many processes on a worker as it has slots. With more slots than GPUs, processes share a GPU or
    fail; with fewer, some GPUs are never used. The default is 1.

    Set it to the number of GPUs.
    """
    worker, launcher = manifest.find_role("worker"), manifest.find_role("launcher")
    gpus = worker.pod.gpus if worker else 0
    written = as_integer(manifest.spec.get("slotsPerWorker"))
    slots = 1 if written is None else written
    # The MPIJob of TensorStack has no slots: `mpirun` gets the number of processes as an argument.
    if not worker or not gpus or gpus == slots or manifest.group == "batch.tensorstack.dev":
        return
    words = (
        [as_text(word) for container in launcher.pod.containers for word in container.command_line] if launcher else []
    )
    if slots < gpus and any(sign in word for word in words for sign in _LAUNCHERS):
        return
    subject = f"`slotsPerWorker` is {slots}" if written is not None else "`slotsPerWorker` is not set, so it is 1"
    nodes = (container.device_node for container in worker.pod.containers)
    devices = next((node for node in nodes if node is not None), worker.key)
    related = () if written is None else ((devices, "the GPUs of a worker"), (devices, ""))
    message = f"{subject}, but a worker has {pluralize(gpus, 'GPU')}; set it to {gpus}"
    yield Violation(manifest.spec.get("slotsPerWorker", devices), message, related)
