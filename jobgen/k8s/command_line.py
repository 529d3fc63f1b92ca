"""Parse command lines, written as lists of arguments or as shell scripts, and find options and calls of mpirun."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from jobgen.model.data import Node, value_of


class Argument(NamedTuple):
    """An argument of a command line, and the item of `command` or `args` that contains it."""

    text: str
    node: Node


# How many values the options of mpirun and similar launchers take.
_VALUE_COUNTS = {
    **dict.fromkeys(("mca", "gmca", "omca", "prtemca", "pmixmca", "env", "genv"), 2),
    **dict.fromkeys(("x", "bind-to", "map-by", "rank-by", "prefix", "wdir", "wd", "timeout", "iface", "output"), 1),
    **dict.fromkeys(("N", "npernode", "npersocket", "ppn", "perhost", "genvlist", "envlist", "tune", "path"), 1),
    **dict.fromkeys(("rf", "rankfile", "display", "hca-idx", "launcher", "rmk", "ssh-port", "p"), 1),
}
_PROCESS_OPTIONS = frozenset(("np", "n", "c", "num-proc"))
# With these options the number of processes is not limited by the slots in the operator's hostfile.
_OVERRIDING_OPTIONS = frozenset(
    ("oversubscribe", "H", "host", "hosts", "f", "app", "min-np", "max-np", "host-discovery-script")
)
_HOSTFILE_OPTIONS = frozenset(("hostfile", "machinefile", "default-hostfile"))
_LAUNCHERS = frozenset(("mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.hydra", "horovodrun", "orterun", "prterun"))


class MpiLaunch(NamedTuple):
    """A call of mpirun: the argument with the number of processes, and whether the hostfile's slots limit it."""

    processes: Argument | None
    limited_by_hostfile: bool


def parse_command(command_line: Iterable[Node]) -> list[Argument]:
    """Return the arguments of a command line; scripts in it are split as a shell splits them."""
    arguments: list[Argument] = []
    for node in command_line:
        text = value_of(node)
        if not isinstance(text, str):
            continue
        parts = _split_script(text) if any(space in text for space in " \n\t") else (text,)
        arguments += [Argument(part, node) for part in parts]
    return arguments


@lru_cache(maxsize=4096)
def _split_script(script: str) -> tuple[str, ...]:
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return tuple(lexer)
    except ValueError:  # an unclosed quote, for example in a here-document
        return ()


def find_option_values(arguments: Sequence[Argument], option: str) -> Iterator[Argument]:
    """Yield the values of a long option; `-` and `_` in its name are the same."""
    for index, argument in enumerate(arguments):
        name, equals, value = argument.text.partition("=")
        if not name.startswith("--") or name[2:].replace("_", "-") != option:
            continue
        if equals:
            yield Argument(value, argument.node)
        elif index + 1 < len(arguments):
            yield arguments[index + 1]


def split_mpi_launch(words: Sequence[Node]) -> tuple[list[Node], list[Node]] | None:
    """Return the options of mpirun and the program that it starts; None if the command is not a call of mpirun."""
    if not words or str(value_of(words[0])).rpartition("/")[2] not in _LAUNCHERS:
        return None
    index = 1
    while index < len(words) and str(value_of(words[index])).startswith("-"):
        name, equals, _ = str(value_of(words[index])).lstrip("-").partition("=")
        index += 1 if equals else 1 + _count_values(name)
    return list(words[1:index]), list(words[index:])


def _count_values(name: str) -> int:
    """How many words after an option of mpirun are its values."""
    if name in _PROCESS_OPTIONS or name in _HOSTFILE_OPTIONS or name in _OVERRIDING_OPTIONS - {"oversubscribe"}:
        return 1
    return _VALUE_COUNTS.get(name, 0)


def find_mpi_launches(arguments: Sequence[Argument]) -> Iterator[MpiLaunch]:
    """Yield the calls of mpirun in a command line."""
    for index, argument in enumerate(arguments):
        if argument.text.rpartition("/")[2] in _LAUNCHERS:
            yield _parse_launch(arguments[index + 1 :])


def _parse_launch(arguments: Sequence[Argument]) -> MpiLaunch:
    processes, limited, index = None, True, 0
    while index < len(arguments) and arguments[index].text.startswith("-"):
        option = arguments[index]
        name, equals, value = option.text.lstrip("-").partition("=")
        after = arguments[index + 1] if index + 1 < len(arguments) else None
        index += 1
        if name in _PROCESS_OPTIONS:
            processes = Argument(value, option.node) if equals else after
        if name in _OVERRIDING_OPTIONS or (name == "map-by" and after and "oversubscribe" in after.text.lower()):
            limited = False
        if name in _HOSTFILE_OPTIONS:
            file = value if equals else after.text if after else ""
            limited = limited and file == "/etc/mpi/hostfile"
        if name in ("mca", "omca") and after and "oversubscribe" in after.text:
            limited = False
        index += 0 if equals else _count_values(name)
    # `:` separates the parts of an MPMD launch, each with processes of its own.
    several = any(argument.text == ":" for argument in arguments[index:])
    return MpiLaunch(None if several else processes, limited)
