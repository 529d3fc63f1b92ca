"""Processes that mpirun is to start, and the slots they have."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fault, rule
from jobgen.k8s.command_line import Word, launches, spoken
from jobgen.k8s.objects import Manifest, Role, text, whole
from jobgen.model.data import bare
from jobgen.model.lazy_re import pattern

# A number of something: scripts are slow to take apart.
_LITERAL = pattern(r"(?:-n|-np|-c|-num-proc)(?:[ =]+[\"']?[0-9]|\Z)")


@rule("job", WARNING, kinds=("MPIJob",))
def mpi_slots_mismatch(manifest: Manifest) -> Iterator[Fault]:
    """`mpirun -np` with another number than there are slots: workers times `slotsPerWorker`.

    With more processes Open MPI stops: `There are not enough slots available`. With fewer, GPUs of some workers are
    held and never used. Leave `-np` out, as all slots are taken then, or let it follow the replicas.
    """
    launcher, worker = manifest.role("launcher"), manifest.role("worker")
    main = launcher.pod.main if launcher else None
    if not main or not launcher or not worker or not worker.count:
        return
    if not any(_LITERAL.search(text(word)) for word in main.words):
        return
    calls = list(launches(spoken(main.words)))
    counts = [call.processes for call in calls if call.bound and call.processes and call.processes.text.isdigit()]
    if not counts or _oversubscribed(launcher):
        return
    written = whole(manifest.spec.get("slotsPerWorker"))
    per = 1 if written is None else written
    hosts = worker.count + _launcher_works(manifest, launcher)
    most = max(counts, key=lambda word: int(word.text))
    # Other MPIs go round the hosts again.
    if int(most.text) > hosts * per and text(manifest.spec.get("mpiImplementation")) in ("", "OpenMPI"):
        yield Fault(most.node, _told(most, hosts, per, "mpirun finds not enough slots"))
    elif int(most.text) < hosts * per and worker.pod.gpus and len(counts) == len(calls):
        yield Fault(most.node, _told(most, hosts, per, "the GPUs of the rest stay idle"))


def _told(count: Word, hosts: int, per: int, so: str) -> str:
    shown = f"{hosts} hosts with {per} each" if hosts > 1 else f"one host with {per}"
    return f"`{count.text}` processes for {hosts * per} slots ({shown}): {so}"


def _launcher_works(manifest: Manifest, launcher: Role) -> bool:
    """Whether the operator writes the launcher into the hostfile, too."""
    if manifest.kind and bare(manifest.kind.api_version) == "kubeflow.org/v1":
        return any("gpu" in str(name) for container in launcher.pod.containers for name in container.limits)
    return bare(manifest.spec.get("runLauncherAsWorker")) is True


def _oversubscribed(launcher: Role) -> bool:
    names = [name for container in launcher.pod.containers for name, _ in container.variables]
    return any("oversubscribe" in name.lower() or name == "PRTE_MCA_rmaps_default_mapping_policy" for name in names)
