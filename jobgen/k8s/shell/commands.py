"""The commands of containers: the scripts of `sh -c` in them, and the commands and words of scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from jobgen.k8s.objects import Container
from jobgen.k8s.shell import SHELLS
from jobgen.model.data import Plain
from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At

LAUNCHERS = ("accelerate", "deepspeed", "horovodrun", "mpiexec", "mpirun", "torchrun")
PROGRAMS = frozenset((*LAUNCHERS, "bash", "env", "nohup", "python", "python3", "ray", "sh", "sleep", "tini", "vllm"))
"""Programs that are common."""
STARTED = frozenset((name,) for name in LAUNCHERS)
"""What stands behind a program that is meant to start a launcher."""
BEGINNINGS = frozenset("py pt to ot tr ac ca de ed dp mp pm ba ab bs ho nv ju pa sr sb do".split())
"""How the names of common programs begin, also with the first two letters in the wrong order."""
# Programs that start the command after them.
INIT_PROGRAMS = frozenset(("tini", "tini-static", "dumb-init", "catatonit", "env", "--", "-g", "-s", "nohup"))
_OPTION = lazy_pattern(r"[-+][A-Za-z]+\Z|--[a-z]+\Z")
_OPTIONS_WITH_FILE = frozenset(("--rcfile", "--init-file"))
_ASSIGNMENT = lazy_pattern(r"\s*\w+\+?=")
_SOURCES = lazy_pattern(r"(?:^|[;&|({\n]|\b(?:then|do|else))\s*(?:source|\.)\s")
# What a shell reads as more than words.
_SIGNS = lazy_pattern(r"[\n\\'\"`$#;&|()<>{}!\[]")


NAMES_SHELL = lazy_pattern(r"(?:^|[/\s])(?:ba|z|da|k|a|c)?sh\b|\beval\b|\.sh\b")
"""A word that starts a shell, or a script of one."""
MAX_SHOWN = 60
"""The length up to which messages quote a command."""


class Script(NamedTuple):
    """A script in a command line: the shell that runs it, the shell's options, its text, and the words after it."""

    shell: str
    options: tuple[str, ...]
    text: str
    rest: Sequence[str]
    at: int
    """The number of its item in the command line."""
    place: At
    """The place of its item."""

    @property
    def reads_files(self) -> bool:
        """Return True if it runs other files in the same shell, with its options and parameters."""
        return _SOURCES.search(self.text) is not None


class Argument(NamedTuple):
    """An argument of a command line, and the number of the item that contains it."""

    text: str
    at: int


def find_script(container: Container) -> Script | None:
    """Return the script of the command, if that is `sh -c` or starts with it; None if KubeRay writes a new script."""
    words = container.words
    own = [at for at, word in enumerate(words) if word not in INIT_PROGRAMS]
    shell = words[own[0]].rpartition("/")[2] if own else ""
    if shell not in SHELLS or container.pod.manifest.group == "ray.io":
        return None
    at, options, has_script = own[0] + 1, list[str](), False
    while at < len(words) and _OPTION.match(option := words[at]):
        options.append(option)
        is_short = not option.startswith("--")
        has_script = has_script or (is_short and option[0] == "-" and "c" in option)
        at += 1
        if (is_short and "o" in option.lower()) or option in _OPTIONS_WITH_FILE:
            options += words[at : at + 1]
            at += 1
    if at < len(words) and words[at] == "--":
        at += 1
    if not has_script or at >= len(words):
        return None
    return Script(shell, tuple(options), words[at], words[at + 1 :], at, container.word_place(at))


def shorten(text: str) -> str:
    """Return a command for a message: on one line, without what is too long to quote."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}…"


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a single command; () if the text is none, or sets variables, or is refused by a shell."""
    if not _SIGNS.search(text) and not _ASSIGNMENT.match(text):
        return tuple(text.split())
    # Imported late, as below: few commands are more than words.
    from jobgen.k8s.shell.steps import read_single

    return read_single(text)


def parse_command(command_line: Iterable[Plain]) -> list[Argument]:
    """Return the arguments of a command line; those in scripts are words of a shell, with `;` between commands."""
    arguments: list[Argument] = []
    for at, text in enumerate(command_line):
        if isinstance(text, str):
            parts = _split_item(text) if has_any(text, " \n\t") else (text,)
            arguments += [Argument(part, at) for part in parts]
    return arguments


@lru_cache(maxsize=4096)
def _split_item(text: str) -> tuple[str, ...]:
    if not _SIGNS.search(text):
        return tuple(text.split())
    from jobgen.k8s.shell.steps import read_words

    words: list[str] = []
    for found in read_words(text):
        words += (";", *found) if words else found
    return tuple(words)


def find_option_values(arguments: Sequence[Argument], option: str) -> Iterator[Argument]:
    """Yield the values of a long option; `-` and `_` in its name are the same."""
    for index, argument in enumerate(arguments):
        name, equals, value = argument.text.partition("=")
        if not name.startswith("--") or name[2:].replace("_", "-") != option:
            continue
        if equals:
            yield Argument(value, argument.at)
        elif index + 1 < len(arguments):
            yield arguments[index + 1]
