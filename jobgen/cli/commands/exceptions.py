"""`jobgen exceptions`: list the exceptions of a repository."""

from __future__ import annotations

from pathlib import Path

import click

from jobgen.api.exceptions import exceptions
from jobgen.api.project import load
from jobgen.cli.options import today_option
from jobgen.cli.result import ExitCode, Result


@click.command("exceptions")
@click.option("--expired", is_flag=True, help="List only expired exceptions; exit 1 if there are any.")
@click.option("--format", "format_", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@today_option
@click.pass_obj
def command(directory: Path, *, expired: bool, format_: str, today: str) -> Result:
    """List the findings that jobgen.yaml accepts.

    It shows where each exception applies, why, who added it and when it expires.
    """
    result = exceptions(load(directory, today=today), expired=expired, format=format_)
    return Result(ExitCode.ERRORS if expired and result.exceptions else ExitCode.OK, result.text)
