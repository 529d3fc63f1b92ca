"""`jobgen teams`: show who owns what, and what is used of each budget."""

from __future__ import annotations

from pathlib import Path

import click

from jobgen.api.project import load
from jobgen.cli.complete import complete_teams
from jobgen.cli.options import env_option, today_option
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.features.teams.teams import FORMATS, teams
from jobgen.reports.entries import count_severities, format_findings


@click.command("teams")
@click.argument("names", nargs=-1, metavar="[TEAM]...", shell_complete=complete_teams)
@env_option
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="text", show_default=True)
@today_option
@click.pass_obj
def command(directory: Path, names: tuple[str, ...], envs: tuple[str, ...], *, format_: str, today: str) -> Result:
    """Show what teams own, can use and use.

    It compares the use of each team with its budget.

    Teams are files in teams/, or `teams` in jobgen.yaml. See docs/teams.md.
    """
    project = load(directory, today=today)
    if not project.config.teams.all and not project.findings:
        message = "there are no teams; write `teams/<name>.yaml`, or `teams` in jobgen.yaml"
        return error_result(ExitCode.NOTHING_TO_DO, message)
    result = teams(project, names, environments=envs, format=format_)
    if result.failed:
        message = f"{count_severities(result.findings)}; nothing was counted"
        return error_result(ExitCode.ERRORS, message, format_findings(result.findings))
    return Result(ExitCode.OK, result.text)
