"""One module for each command: arguments in, a Result out; only cli.py prints and exits."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from jobgen.catalogue import Catalogue
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


def stopped(code: Code, message: str, err: str = "") -> Result:
    """A command that ends early, with the reason as its last line."""
    return Result(code, err=f"{err}jobgen: {message}\n")


def environments(shelf: Catalogue, named: Sequence[str]) -> list[str] | Result:
    """The environments to work on: those named, or all; one that does not exist is wrong usage."""
    for env in named:
        if env not in shelf.overlays:
            known = ", ".join(sorted(shelf.overlays)) or "none"
            return stopped(
                Code.USAGE, f"there is no environment `{env}`{nearest(env, list(shelf.overlays))} (known: {known})"
            )
    return list(dict.fromkeys(named)) or [env for env in shelf.environments() if not env or env in shelf.overlays]
