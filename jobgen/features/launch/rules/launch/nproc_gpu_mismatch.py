"""Processes of a launcher and GPUs of a pod."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.features.launch.report import list_violations
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING)
def nproc_gpu_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """A number of processes, by an option or by a field, other than the number of GPUs of the pod.

    The launcher starts that many processes in every pod, and each uses the GPU of its local rank. With more processes
    than GPUs, a program that uses CUDA fails (`invalid device ordinal`), and one that trains on the CPU does not. It is
    an error if the command names NCCL, such as `--backend=nccl`: NCCL refuses two processes on one GPU. With fewer
    processes, some GPUs are never used.

    Use the number of GPUs, or `gpu`.
    """
    return list_violations(manifest, "nproc-gpu-mismatch")
