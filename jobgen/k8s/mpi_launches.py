"""Calls of mpirun and similar launchers in command lines."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.k8s.shell.commands import parse_command
from jobgen.model.data import Plain, Tree, untraced

# How many values the options of mpirun and similar launchers take.
_VALUE_COUNTS = {
    **dict.fromkeys(("mca", "gmca", "omca", "prtemca", "pmixmca", "env", "genv"), 2),
    **dict.fromkeys(("x", "bind-to", "map-by", "rank-by", "prefix", "wdir", "wd", "timeout", "iface", "output"), 1),
    **dict.fromkeys(("N", "npernode", "npersocket", "ppn", "perhost", "genvlist", "envlist", "tune", "path"), 1),
    **dict.fromkeys(("rf", "rankfile", "display", "hca-idx", "launcher", "rmk", "ssh-port", "p"), 1),
    **dict.fromkeys(("np", "n", "c", "num-proc", "hostfile", "machinefile", "default-hostfile"), 1),
    **dict.fromkeys(("H", "host", "hosts", "f", "app", "min-np", "max-np", "host-discovery-script"), 1),
}
_LAUNCHERS = frozenset(("mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.hydra", "horovodrun", "orterun", "prterun"))


def split_mpi_launch(words: Sequence[Tree]) -> tuple[list[Tree], list[Tree]] | None:
    """Return the options of mpirun and the program that it starts; None if the command is not a call of mpirun."""
    texts = [str(untraced(word)) for word in words]
    if not texts or texts[0].rpartition("/")[2] not in _LAUNCHERS:
        return None
    index = 1
    while index < len(texts) and texts[index].startswith("-"):
        name, equals, _ = texts[index].lstrip("-").partition("=")
        index += 1 if equals else 1 + _VALUE_COUNTS.get(name, 0)
    return list(words[1:index]), list(words[index:])


def calls_mpirun(command_line: Sequence[Plain]) -> bool:
    """Return True if a command line calls mpirun, itself or in a script."""
    return any(argument.text.rpartition("/")[2] in _LAUNCHERS for argument in parse_command(command_line))
