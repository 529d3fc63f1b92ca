"""Slots and GPUs of MPI workers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.features.launch.report import list_violations
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING)
def slots_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`slotsPerWorker` with a number other than the number of GPUs of a worker.

    mpirun starts as many processes on a worker as it has slots. With more slots than GPUs, processes share a GPU or
    fail; with fewer, some GPUs are never used. The default is 1.

    Set it to the number of GPUs.
    """
    return list_violations(manifest, "slots-gpu-mismatch")
