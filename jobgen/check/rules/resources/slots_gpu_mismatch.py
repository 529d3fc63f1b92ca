"""Slots of an MPI worker, and the GPUs it has."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.accelerators import find_device_node
from jobgen.k8s.objects import Manifest, as_integer, as_text

# Programs that start the processes of a node themselves, one call of them a worker.
_STARTS_ITSELF = (
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
    """`slotsPerWorker` unlike the number of GPUs that a worker holds.

    mpirun starts as many processes on a worker as it has slots: with more than GPUs some share one or fail, with fewer
    some GPUs are held and never used. Write the number of GPUs; left out it means 1.
    """
    worker, launcher = manifest.find_role("worker"), manifest.find_role("launcher")
    gpus = worker.pod.gpus if worker else 0
    written = as_integer(manifest.spec.get("slotsPerWorker"))
    slots = 1 if written is None else written
    if not worker or not gpus or gpus == slots:
        return
    words = (
        [as_text(word) for container in launcher.pod.containers for word in container.command_line] if launcher else []
    )
    if slots < gpus and any(sign in word for word in words for sign in _STARTS_ITSELF):
        return
    shown = f"`slotsPerWorker` is {slots}" + ("" if written is not None else ", as it is left out")
    asked = (find_device_node(container.limits, container.requests) for container in worker.pod.containers)
    held = next((node for node in asked if node is not None), worker.key)
    related = () if written is None else ((held, "what a worker holds"),)
    yield Violation(manifest.spec.get("slotsPerWorker", held), f"{shown}, and a worker holds {gpus} GPUs", related)
