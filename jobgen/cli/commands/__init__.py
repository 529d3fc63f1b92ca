"""One module for each command: arguments in, a Result out; only cli.py prints and exits."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from jobgen.report import Report
from jobgen.report.escape import visible


class ExitCode(IntEnum):
    """Exit codes, the same for every command."""

    OK = 0
    ERRORS = 1
    USAGE = 2
    NOTHING_TO_DO = 3
    INTERNAL_ERROR = 4


class Result(NamedTuple):
    """What a command says: its exit code, its data, and what it tells people."""

    code: ExitCode
    out: str = ""
    err: str = ""
    report: Report | None = None
    """What a lint found, for those who want it in another form too."""


def error_result(code: ExitCode, message: str, err: str = "") -> Result:
    """A command that ends early, with the reason as its last line."""
    return Result(code, err=f"{err}jobgen: {visible(message)}\n")


def pluralize(count: int, noun: str) -> str:
    """`1 object`, `2 objects`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
