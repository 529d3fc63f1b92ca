"""Scripts of `sh -c`: where a command line has one, and the commands that a shell runs.

This is no parser of a shell's language. What it does not understand, such as here-documents, it does not guess.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import lru_cache

from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_SHELLS = frozenset(("sh", "bash", "ash", "dash", "ksh", "zsh"))
# Programs that start the command after them.
_INIT_PROGRAMS = frozenset(("tini", "tini-static", "dumb-init", "catatonit", "env", "--", "-g", "-s", "nohup"))
_OPTION = lazy_pattern(r"[-+][A-Za-z]+\Z|--[a-z]+\Z")
_OPTIONS_WITH_FILE = frozenset(("--rcfile", "--init-file"))
_ASSIGNMENT = lazy_pattern(r"\w+\+?=")
# Words of a shell before a command, and programs that run the command after them.
_BEFORE_COMMANDS = frozenset("if then else elif do while until ! { time exec nohup env".split())
_SOURCES = lazy_pattern(r"(?:^|[;&|({\n]|\b(?:then|do|else))\s*(?:source|\.)\s")


NAMES_SHELL = lazy_pattern(r"(?:^|[/\s])(?:ba|z|da|k|a|c)?sh\b|\beval\b|\.sh\b")
"""A word that starts a shell, or a script of one."""
MAX_SHOWN = 60
"""The length up to which messages quote a command."""
MAX_TEXT = 50_000
"""The length of scripts that are split."""


class Script(NamedTuple):
    """A script in a command line: the shell that runs it, the shell's options, its text, and the words after it."""

    shell: str
    options: tuple[str, ...]
    node: Node
    rest: Sequence[Node]

    @property
    def text(self) -> str:
        """The text of the script."""
        return as_text(self.node)

    @property
    def reads_files(self) -> bool:
        """Return True if it runs other files in the same shell, with its options and parameters."""
        return _SOURCES.search(self.text) is not None


class Pipeline(NamedTuple):
    """Commands that `|` connects, and the operator behind the last of them."""

    commands: tuple[str, ...]
    end: str


def find_script(container: Container) -> Script | None:
    """Return the script of the command, if that is `sh -c` or starts with it; None if KubeRay writes a new script."""
    words = container.words
    own = [at for at, word in enumerate(words) if word not in _INIT_PROGRAMS]
    shell = words[own[0]].rpartition("/")[2] if own else ""
    if shell not in _SHELLS or container.pod.manifest.group == "ray.io":
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
    return Script(shell, tuple(options), container.command_line[at], container.command_line[at + 1 :])


def shorten(text: str) -> str:
    """Return a command for a message: on one line, without what is too long to quote."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}…"


def split_text(text: str) -> list[str] | None:
    """Return the words of a text as a shell splits them; None if a quote is open, or the text is too long."""
    try:
        # The time grows with the square of a word's length.
        return shlex.split(text) if len(text) <= MAX_TEXT else None
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def split_pipelines(text: str) -> tuple[Pipeline, ...]:
    """Return the pipelines of a script in their order, also those in loops and conditions; () if it is not understood.

    Quoted text and `$(…)` stay parts of their commands.
    """
    if len(text) > MAX_TEXT:
        return ()
    text = text.replace("\\\n", " ")
    found: list[Pipeline] = []
    commands: list[str] = []
    start = at = 0
    comment = len(text)  # where the comment at the end of the command starts
    while at < len(text):
        operator = _read_operator(text, at)
        if operator:
            command = text[start : min(at, comment)].strip()
            is_open = operator == "\n" and not command and commands
            if operator in ("|", "|&"):
                commands.append(command)
            elif not is_open and (command or commands):
                found.append(Pipeline((*commands, command), operator))
                commands = []
            at += len(operator)
            start, comment = at, len(text)
        elif text[at] == "#" and (at == start or text[at - 1].isspace()):
            comment = at
            at = text.find("\n", at)
            at = len(text) if at < 0 else at
        else:
            at = _skip(text, at)
            if at < 0:
                return ()
    if command := text[start:comment].strip():
        commands.append(command)
    return (*found, Pipeline(tuple(commands), "")) if commands else tuple(found)


def split_words(command: str) -> tuple[str, ...]:
    """Return the words of a command without the shell's own words, and without variables that are set before it."""
    words = split_text(command) or ()
    at = 0
    while at < len(words) and (words[at] in _BEFORE_COMMANDS or _ASSIGNMENT.match(words[at])):
        at += 1
    return tuple(words[at:])


def _read_operator(text: str, at: int) -> str:
    """Return the operator at a position; "" if there is none. Parentheses end a command like `;`."""
    sign, pair = text[at], text[at : at + 2]
    before = text[at - 1] if at else ""
    if sign not in ";&|\n()":
        return ""
    if pair in ("&&", "||", "|&", ";;"):
        return pair
    if (sign == "&" and (before in ("<", ">") or pair == "&>")) or (sign == "|" and before == ">"):
        # A redirection: `2>&1`, `&>log`, `>|log`.
        return ""
    return sign


def _skip(text: str, at: int) -> int:
    """Return the end of the character, the quoted text or the substitution at a position; -1 if it has none."""
    sign, pair = text[at], text[at : at + 2]
    if sign == "\\":
        return at + 2
    if sign in "'`":
        return text.find(sign, at + 1) + 1 or -1
    if pair == "<<":
        return -1
    if pair in ("$(", "<(", ">("):
        return _find_parenthesis(text, at + 2)
    if sign != '"':
        return at + 1
    at += 1
    while at < len(text) and text[at] != '"':
        at = _find_parenthesis(text, at + 2) if text[at : at + 2] == "$(" else at + 1 + (text[at] == "\\")
        if at < 0:
            return -1
    return at + 1 if at < len(text) else -1


def _find_parenthesis(text: str, at: int) -> int:
    """Return the position behind the parenthesis that closes the one before a position; -1 if there is none."""
    depth = 1
    while at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at
    return -1
