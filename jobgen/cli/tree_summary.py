"""The results for a rendered tree that is up to date, or was brought up to date."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen import __version__
from jobgen.cli.result import ExitCode, Result
from jobgen.report.summary import pluralize


def report_written(total: int, written: int = 0, removed: int = 0) -> Result:
    """Report what was written to a tree."""
    summary = f"{pluralize(total, 'object')}: {written} written, {total - written} unchanged, {removed} removed\n"
    return Result(ExitCode.OK, err=summary)


def report_checked(total: int, versions: Sequence[str] = ()) -> Result:
    """Report that a tree is up to date; other versions of jobgen may have written it."""
    note = f"the tree was written by jobgen {', '.join(versions)}; {__version__} renders the same\n" if versions else ""
    return Result(ExitCode.OK, err=f"{note}{pluralize(total, 'object')}, all up to date\n")
