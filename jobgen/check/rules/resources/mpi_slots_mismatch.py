"""Processes that mpirun is to start, and the slots they have."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.command_line import Argument, find_mpi_launches, parse_command
from jobgen.k8s.objects import Manifest, Role, as_integer, as_text
from jobgen.model.data import value_of
from jobgen.model.lazy_re import lazy_pattern

# A number of something: scripts are slow to take apart.
_LITERAL = lazy_pattern(r"(?:-n|-np|-c|-num-proc)(?:[ =]+[\"']?[0-9]|\Z)")


@rule("job", WARNING, kinds=("MPIJob",))
def mpi_slots_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`mpirun -np` with another number than there are slots: workers times `slotsPerWorker`.

    With more processes Open MPI stops: `There are not enough slots available`. With fewer, GPUs of some workers are
    held and never used. Leave `-np` out, as all slots are taken then, or let it follow the replicas.
    """
    launcher, worker = manifest.find_role("launcher"), manifest.find_role("worker")
    main = launcher.pod.main_container if launcher else None
    if not main or not launcher or not worker or not worker.count:
        return
    if not any(_LITERAL.search(as_text(word)) for word in main.command_line):
        return
    calls = list(find_mpi_launches(parse_command(main.command_line)))
    counts = [
        call.processes
        for call in calls
        if call.limited_by_hostfile and call.processes and call.processes.text.isdigit()
    ]
    if not counts or _oversubscribed(launcher):
        return
    written = as_integer(manifest.spec.get("slotsPerWorker"))
    per = 1 if written is None else written
    hosts = worker.count + _launcher_works(manifest, launcher)
    most = max(counts, key=lambda word: int(word.text))
    # Other MPIs go round the hosts again.
    if int(most.text) > hosts * per and as_text(manifest.spec.get("mpiImplementation")) in ("", "OpenMPI"):
        yield Violation(most.node, _told(most, hosts, per, "mpirun finds not enough slots"))
    elif int(most.text) < hosts * per and worker.pod.gpus and len(counts) == len(calls):
        yield Violation(most.node, _told(most, hosts, per, "the GPUs of the rest stay idle"))


def _told(count: Argument, hosts: int, per: int, so: str) -> str:
    shown = f"{hosts} hosts with {per} each" if hosts > 1 else f"one host with {per}"
    return f"`{count.text}` processes for {hosts * per} slots ({shown}): {so}"


def _launcher_works(manifest: Manifest, launcher: Role) -> bool:
    """Whether the operator writes the launcher into the hostfile, too."""
    if manifest.kind and value_of(manifest.kind.api_version) == "kubeflow.org/v1":
        return any("gpu" in str(name) for container in launcher.pod.containers for name in container.limits)
    return value_of(manifest.spec.get("runLauncherAsWorker")) is True


def _oversubscribed(launcher: Role) -> bool:
    names = [name for container in launcher.pod.containers for name, _ in container.env]
    return any("oversubscribe" in name.lower() or name == "PRTE_MCA_rmaps_default_mapping_policy" for name in names)
