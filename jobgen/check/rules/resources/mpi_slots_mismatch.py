"""Processes of mpirun and slots of the workers."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.command_line import Argument, find_mpi_launches, parse_command
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.k8s.objects import Container, Manifest, Role
from jobgen.model.data import value_of
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.quantity import parse_digits

# Options that may set the number of processes; a cheap test before the command line is parsed.
_LITERAL = lazy_pattern(r"(?:-n|-np|-c|-num-proc)(?:[ =]+[\"']?[0-9]|\Z)")

# Options and programs that only Open MPI has, and launchers that decide about slots themselves.
_OPEN_MPI_WORDS = frozenset("--allow-run-as-root -allow-run-as-root --mca -mca mpirun.openmpi orterun prterun".split())
_OTHER_LAUNCHERS = frozenset(("horovodrun", "mpiexec.hydra"))


@rule("job", WARNING, kinds=("MPIJob",))
def mpi_slots_mismatch(manifest: Manifest) -> Iterator[Violation]:
    """`mpirun -np` with a number other than the number of slots: workers times `slotsPerWorker`.

    With more processes than slots, Open MPI stops: `There are not enough slots available`. That is an error if the job
    certainly uses Open MPI: an MPIJob of `v2beta1` whose `mpiImplementation` is `OpenMPI`, the default, or a command
    with its options, such as `--allow-run-as-root` and `--mca`. MPICH and Intel MPI put several processes on a slot.
    With fewer processes than slots, some workers hold GPUs that are never used. With `replicas: 0` of the workers, the
    hostfile is empty, and Open MPI starts all processes in the launcher.

    Remove `-np`, which uses all slots, or keep it in line with the replicas.
    """
    launcher, worker = manifest.find_role("launcher"), manifest.find_role("worker")
    main = launcher.pod.main_container if launcher else None
    if not main or not launcher or not worker or worker.count < 0:
        return
    if not any(_LITERAL.search(as_text(word)) for word in main.command_line):
        return
    calls = list(find_mpi_launches(parse_command(main.command_line)))
    counts = [
        call.processes
        for call in calls
        if call.limited_by_hostfile and call.processes and parse_digits(call.processes.text) is not None
    ]
    if not counts or _allows_oversubscription(launcher) or "oversubscribe" in main.search_text:
        return
    written = as_integer(manifest.spec.get("slotsPerWorker"))
    per = 1 if written is None else written
    hosts = worker.count + _is_launcher_worker(manifest, launcher)
    most = max(counts, key=lambda word: int(word.text))
    # Other MPI implementations place the remaining processes on the first hosts again.
    if not hosts:
        # mpi-operator rejects a job without workers; `invalid-replica-count` reports that.
        if int(most.text) > 1 and _is_of_training_operator(manifest):
            effect = "but the job has no workers, so all of them run in the launcher; set `replicas` of the workers"
            yield Violation(most.node, f"`{most.text}` processes, {effect}")
    elif int(most.text) > hosts * per and as_text(manifest.spec.get("mpiImplementation")) in ("", "OpenMPI"):
        severity = ERROR if _uses_open_mpi(manifest, main) else None
        yield Violation(
            most.node, _format_message(most, hosts, per, "so mpirun fails"), worker.compared_count, severity
        )
    elif int(most.text) < hosts * per and worker.pod.gpus and len(counts) == len(calls):
        yield Violation(most.node, _format_message(most, hosts, per, "so some GPUs stay idle"), worker.compared_count)


def _format_message(count: Argument, hosts: int, per: int, effect: str) -> str:
    slots = pluralize(hosts * per, "slot")
    advice = "remove the option, and mpirun starts one process on each slot"
    return f"`{count.text}` processes for {slots} ({pluralize(hosts, 'host')}, {per} per host), {effect}; {advice}"


def _uses_open_mpi(manifest: Manifest, main: Container) -> bool:
    """Return True if the launcher certainly starts the processes with Open MPI."""
    words = {argument.text.rpartition("/")[2] for argument in parse_command(main.command_line)}
    if words & _OTHER_LAUNCHERS or "I_MPI_" in main.search_text:
        return False
    return not _is_of_training_operator(manifest) or bool(words & _OPEN_MPI_WORDS)


def _is_of_training_operator(manifest: Manifest) -> bool:
    return manifest.kind is not None and value_of(manifest.kind.api_version) == "kubeflow.org/v1"


def _is_launcher_worker(manifest: Manifest, launcher: Role) -> bool:
    """Return True if the operator also writes the launcher into the hostfile."""
    if _is_of_training_operator(manifest):
        return any("gpu" in str(name) for container in launcher.pod.containers for name in container.limits)
    return value_of(manifest.spec.get("runLauncherAsWorker")) is True


def _allows_oversubscription(launcher: Role) -> bool:
    names = [name for container in launcher.pod.containers for name, _ in container.env]
    return any("oversubscribe" in name.lower() or name == "PRTE_MCA_rmaps_default_mapping_policy" for name in names)
