"""Processes of mpirun and slots of the workers."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.features.launch.report import list_violations
from jobgen.k8s.objects import Manifest


@rule("manifest", WARNING)
def mpi_slots_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`mpirun -np` with a number other than the number of slots: workers times `slotsPerWorker`.

    With more processes than slots, Open MPI stops: `There are not enough slots available`. That is an error if the job
    certainly uses Open MPI: an MPIJob of `v2beta1` whose `mpiImplementation` is `OpenMPI`, the default, or a command
    with its options, such as `--allow-run-as-root` and `--mca`. MPICH and Intel MPI put several processes on a slot.
    With fewer processes than slots, some workers hold GPUs that are never used. With `replicas: 0` of the workers, the
    hostfile is empty, and Open MPI starts all processes in the launcher.

    Remove `-np`, which uses all slots, or keep it in line with the replicas.
    """
    return list_violations(manifest, "mpi-slots-mismatch")
