"""One module for each command: arguments in, a Result out; only cli.py prints and exits."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from jobgen.catalogue import Catalogue, load
from jobgen.repo import SETTINGS
from jobgen.report import Report, text
from jobgen.schema import nearest


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


def environments(shelf: Catalogue, named: Sequence[str]) -> list[str] | Result:
    """The environments to work on: those named, or all; wrong settings, or one that does not exist, are wrong usage."""
    if any(finding.mark.file == SETTINGS for finding in shelf.findings):
        wrong = [finding for finding in load(shelf.root, marked=True).findings if finding.mark.file == SETTINGS]
        return stopped(Code.USAGE, f"{text.summary(wrong)} in the settings; nothing was done", text.render(wrong))
    for env in named:
        if env not in shelf.overlays:
            known = ", ".join(sorted(shelf.overlays)) or "none"
            return stopped(
                Code.USAGE, f"there is no environment `{env}`{nearest(env, list(shelf.overlays))} (known: {known})"
            )
    return list(dict.fromkeys(named or shelf.environments()))
