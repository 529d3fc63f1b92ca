"""Command lines: what was written as a list of words, or as a script for a shell, as the words that programs get."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from jobgen.model.data import Data, value_of


class Argument(NamedTuple):
    """A word of a command line, and the item of `command` or `args` in which it was written."""

    text: str
    node: Data


# Options of mpirun and its like that take values, by how many; those of other programs come after the program's name.
_TAKES = {
    **dict.fromkeys(("mca", "gmca", "omca", "prtemca", "pmixmca", "env", "genv"), 2),
    **dict.fromkeys(("x", "bind-to", "map-by", "rank-by", "prefix", "wdir", "wd", "timeout", "iface", "output"), 1),
    **dict.fromkeys(("N", "npernode", "npersocket", "ppn", "perhost", "genvlist", "envlist", "tune", "path"), 1),
    **dict.fromkeys(("rf", "rankfile", "display", "hca-idx", "launcher", "rmk", "ssh-port", "p"), 1),
}
_COUNTS = frozenset(("np", "n", "c", "num-proc"))
# With these the processes need not fit in the slots that the operator wrote down.
_OTHERWISE = frozenset(("oversubscribe", "H", "host", "hosts", "f", "app", "min-np", "max-np", "host-discovery-script"))
_HOSTFILES = frozenset(("hostfile", "machinefile", "default-hostfile"))
_LAUNCHERS = frozenset(("mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.hydra", "horovodrun", "orterun", "prterun"))


class MpiLaunch(NamedTuple):
    """A call of mpirun: the words that count its processes, and whether the operator's hostfile bounds them."""

    processes: Argument | None
    limited_by_hostfile: bool


def parse_command(words: Iterable[Data]) -> list[Argument]:
    """The words of a command line; scripts among them are taken apart as a shell would."""
    found: list[Argument] = []
    for node in words:
        text = value_of(node)
        if not isinstance(text, str):
            continue
        parts = _parts(text) if any(space in text for space in " \n\t") else (text,)
        found += [Argument(part, node) for part in parts]
    return found


@lru_cache(maxsize=4096)
def _parts(script: str) -> tuple[str, ...]:
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return tuple(lexer)
    except ValueError:  # a quote that is not closed, as in a here-document
        return ()


def find_option_values(words: Sequence[Argument], option: str) -> Iterator[Argument]:
    """The values that a command line gives to a long option, however its dashes are written."""
    for number, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if not name.startswith("--") or name[2:].replace("_", "-") != option:
            continue
        if equals:
            yield Argument(value, word.node)
        elif number + 1 < len(words):
            yield words[number + 1]


def find_mpi_launches(words: Sequence[Argument]) -> Iterator[MpiLaunch]:
    """The calls of mpirun in a command line."""
    for number, word in enumerate(words):
        if word.text.rpartition("/")[2] in _LAUNCHERS:
            yield _launch(words[number + 1 :])


def _launch(words: Sequence[Argument]) -> MpiLaunch:
    count, bound, number = None, True, 0
    while number < len(words) and words[number].text.startswith("-"):
        name, equals, value = words[number].text.lstrip("-").partition("=")
        after = words[number + 1] if number + 1 < len(words) else None
        number += 1
        if name in _COUNTS:
            count = Argument(value, words[number - 1].node) if equals else after
        if name in _OTHERWISE or (name == "map-by" and after and "oversubscribe" in after.text.lower()):
            bound = False
        if name in _HOSTFILES:
            file = value if equals else after.text if after else ""
            bound = bound and file == "/etc/mpi/hostfile"
        if name in ("mca", "omca") and after and "oversubscribe" in after.text:
            bound = False
        if not equals:
            number += 1 if name in _COUNTS or name in _OTHERWISE - {"oversubscribe"} else _TAKES.get(name, 0)
            number += name in _HOSTFILES
    several = any(word.text == ":" for word in words[number:])
    return MpiLaunch(None if several else count, bound)
