"""Words that stand in one item of a command line, where Python or a shell takes the item for one word.

Nothing splits an item: `[python, "train.py --lr=1"]` looks for a file whose name has a space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jobgen.k8s.shell import SHELLS
from jobgen.k8s.shell.commands import INIT_PROGRAMS, split_words
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_PYTHON = lazy_pattern(r"(?:python|pypy)[\d.]*\Z")
_OPTIONS_OF_PYTHON = frozenset(("-W", "-X", "--check-hash-based-pycs"))
SCRIPT_AND_MORE = lazy_pattern(r"[^\s'\"]+\.(?:py|sh)\s+\S")
"""A file and what follows it."""
_MODULE_AND_MORE = lazy_pattern(r"[\w.]+\s+\S")
# Options of Python without values, or `-m` and a module.
_OPTION_AND_MORE = lazy_pattern(r"-(?:[bBdEiIOPqsSuvx]+|m)\s+\S")
_SCRIPT_OF_SHELL = lazy_pattern(r"(-[a-z]*c)\s+(\S.*)", re.DOTALL)
_PROGRAM_AND_MORE = lazy_pattern(r"\s*[\w./+-]+\s+\S")
_STARTS = frozenset(("bash", "cd", "echo", "env", "exec", "export", "pip", "set", "sh", "source", "torchrun"))


class Joined(NamedTuple):
    """An item with words, and the items to write instead."""

    at: int
    parts: tuple[str, ...]


def find_joined(words: Sequence[str]) -> Joined | None:
    """Return the item at which a command line of Python or of a shell certainly fails, because it has several words."""
    at = next((at for at, word in enumerate(words) if word not in INIT_PROGRAMS), len(words))
    if at >= len(words):
        return None
    name = words[at].rpartition("/")[2]
    if at and _PROGRAM_AND_MORE.match(words[at]):
        return _split(words, at)
    if name in SHELLS:
        return _find_in_shell(words, at + 1)
    return _find_in_python(words, at + 1) if _PYTHON.match(name) else None


def _split(words: Sequence[str], at: int) -> Joined | None:
    parts = split_words(words[at]) if "\n" not in words[at].strip() else ()
    return Joined(at, parts) if len(parts) > 1 else None


def _find_in_python(words: Sequence[str], at: int) -> Joined | None:
    while at < len(words) and words[at][:1] == "-" and words[at] != "-":
        if words[at] == "-m":
            is_joined = at + 1 < len(words) and _MODULE_AND_MORE.match(words[at + 1])
            return _split(words, at + 1) if is_joined else None
        if words[at][:2] == "-c":
            return None
        if _OPTION_AND_MORE.match(words[at]):
            return _split(words, at)
        at += 2 if words[at] in _OPTIONS_OF_PYTHON else 1
    return _split(words, at) if at < len(words) and SCRIPT_AND_MORE.match(words[at]) else None


def _find_in_shell(words: Sequence[str], at: int) -> Joined | None:
    while at < len(words) and words[at][:1] in ("-", "+"):
        script = _SCRIPT_OF_SHELL.fullmatch(words[at])
        if script is not None:
            return Joined(at, (script[1], script[2]))
        if words[at][0] == "-" and words[at][1:2] != "-" and "c" in words[at]:
            return None
        at += 2 if "o" in words[at] and words[at][1:2] != "-" else 1
    if at >= len(words) or not _PROGRAM_AND_MORE.match(words[at]):
        return None
    if SCRIPT_AND_MORE.match(words[at]):
        return _split(words, at)
    first, text = words[at].split(maxsplit=1)[0], words[at]
    is_command = first in _STARTS or _PYTHON.match(first) is not None or not text.endswith(".sh")
    return Joined(at, ("-c", text)) if is_command else None
