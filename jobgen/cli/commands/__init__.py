"""One module for each command: arguments in, a Result out; only cli.py prints and exits."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from jobgen.report import Report, text


class Code(IntEnum):
    """Exit codes, the same for every command."""

    FINE = 0
    ERRORS = 1
    USAGE = 2
    NOTHING = 3
    BROKEN = 4


class Result(NamedTuple):
    """What a command says: its exit code, its data, and what it tells people."""

    code: Code
    out: str = ""
    err: str = ""
    report: Report | None = None
    """What a lint found, for those who want it in another form too."""


def stopped(code: Code, message: str, err: str = "") -> Result:
    """A command that ends early, with the reason as its last line."""
    return Result(code, err=f"{err}jobgen: {text.visible(message)}\n")


def counted(count: int, noun: str) -> str:
    """`1 object`, `2 objects`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
