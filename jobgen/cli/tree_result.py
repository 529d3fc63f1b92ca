"""What a render asks for, and what it says about a tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobgen import __version__
from jobgen.cli.result import ExitCode, Result
from jobgen.model.named_tuple import NamedTuple
from jobgen.reports.entries import pluralize

if TYPE_CHECKING:
    from jobgen.api.render import TextFormat


class Options(NamedTuple):
    """What is rendered, and where to."""

    path: Path
    jobs: Sequence[str]
    envs: Sequence[str]
    folder: Path | None
    format_: TextFormat
    check: bool = False
    allow_empty: bool = False
    allow_mass_delete: bool = False
    today: str = ""
    fsync: bool = True
    since: str = ""
    """A revision; only what differs from it is rendered."""
    enforce: bool | None = None
    """True if limits of teams, mandatory rules and policies hold for what is rendered; None for trees of teams."""


def report_written(total: int, written: int = 0, removed: int = 0) -> Result:
    """Report what was written to a tree."""
    summary = f"{pluralize(total, 'object')}: {written} written, {total - written} unchanged, {removed} removed\n"
    return Result(ExitCode.OK, err=summary)


def report_checked(total: int, versions: Sequence[str] = ()) -> Result:
    """Report that a tree is up to date; other versions of jobgen may have written it."""
    note = f"the tree was written by jobgen {', '.join(versions)}; {__version__} renders the same\n" if versions else ""
    return Result(ExitCode.OK, err=f"{note}{pluralize(total, 'object')}, all up to date\n")
