"""Help and version as click prints them, stored by `tools/build_ready.py` and shown without click."""

from __future__ import annotations

from jobgen.cli.result import ExitCode, Result, find_columns
from jobgen.repo import ready

WIDTH = 78
"""The width of the stored text: that of click for terminals with 80 columns and more, and for other outputs."""


def find_help(arguments: list[str]) -> Result | None:
    """Return the answer to a question for the help or the version; None if click has to answer."""
    if arguments not in ([], ["-h"], ["--help"], ["--version"]):
        return None
    version, line_break, text = ready.read_help().partition("\n")
    if not text or (arguments != ["--version"] and find_columns() - 2 < WIDTH):
        return None
    if not arguments:
        return Result(ExitCode.USAGE, err=text)
    return Result(ExitCode.OK, f"{version}{line_break}" if arguments == ["--version"] else text)
