"""Workers that run the command of the launcher."""

from collections.abc import Iterator, Sequence

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.command_line import find_mpi_launches, parse_command
from jobgen.k8s.nodes import as_list, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, untraced


@rule("job", WARNING, kinds=("MPIJob",))
def launcher_command_on_workers(manifest: Manifest) -> Iterator[Violation]:
    """An MPIJob whose workers have the command of the launcher, or call `mpirun` themselves.

    A worker has to wait for the launcher: without a command, the operator makes it run `sshd` (MPIJob v1: `sleep`). A
    worker that calls `mpirun` does not listen, so the launcher cannot start processes there, which is an error. Any
    other program is a warning, because it can listen.

    Set `command` and `args` for the role `launcher` only.
    """
    launcher, worker = manifest.find_role("launcher"), manifest.find_role("worker")
    main = worker.pod.main_container if worker else None
    command = as_list(main.data.get("command")) if main else []
    if not main or not launcher or not worker or not command:
        return
    first = launcher.pod.main_container
    shared = first is not None and untraced(first.command_line) == untraced(main.command_line)
    launches = any(find_mpi_launches(parse_command(main.command_line)))
    if launches or (shared and not _waits(main.command_line)):
        name = as_text(command[0]).partition(" ")[0]
        message = f"the workers run `{name}` instead of waiting for the launcher; set `command` for the launcher only"
        # A worker that starts `mpirun` fails for certain; another program may listen for the launcher.
        yield Violation(command, message, severity=ERROR if launches else WARNING)


def _waits(words: Sequence[Node]) -> bool:
    """Return True if a command line waits for the launcher."""
    text = " ".join(map(as_text, words))
    return any(word in text for word in ("sshd", "sleep", "tail -f"))
