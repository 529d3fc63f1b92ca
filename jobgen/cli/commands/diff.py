"""`jobgen diff`: show what a change does to jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from jobgen.api.diff import diff, format_names
from jobgen.api.errors import JobgenError
from jobgen.cli.options import env_option, no_cache_option, today_option
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.report.summary import count_severities, format_findings


@click.command("diff")
@click.argument("revisions", default="", metavar="[BASE[..HEAD]]")
@env_option
@click.option("--format", "format_", type=click.Choice(format_names()), default="text", show_default=True)
@click.option("--folders", nargs=2, metavar="OLD NEW", help="Compare two folders instead of revisions.")
@click.option("--exit-code", is_flag=True, help="Exit 1 if anything changes.")
@click.option("--repo-url", default="", metavar="URL", help="Where the repository can be browsed, for links of html.")
@no_cache_option
@today_option
@click.pass_obj
def command(directory: Path, /, revisions: str, envs: tuple[str, ...], **options: Any) -> Result:
    """Show what a change does: which jobs start, stop or restart, and how many GPUs they use.

    BASE is compared with the work tree; BASE..HEAD compares two commits; BASE...HEAD starts at their merge base. The
    default for BASE is the commit where this branch left the default branch. A folder is a jobs repository, a rendered
    tree, or contains manifests.
    """
    return diff_states(directory, revisions, envs, **options)


def diff_states(
    directory: Path,
    revisions: str,
    envs: Sequence[str],
    *,
    folders: tuple[str, str] | None = None,
    format_: str,
    exit_code: bool,
    today: str = "",
    repo_url: str = "",
) -> Result:
    """Compare two commits, a commit and the work tree, or two folders."""
    if folders and revisions:
        return error_result(ExitCode.USAGE, "`--folders` replaces revisions; give one of them")
    try:
        result = diff(
            directory, revisions, folders=folders, environments=envs, format=format_, today=today, repo_url=repo_url
        )
    except JobgenError as error:
        return to_result(error)
    if result.failed:
        message = f"{count_severities(result.findings)} in {result.failed}; nothing was compared"
        return error_result(ExitCode.ERRORS, message, format_findings(result.findings))
    return Result(ExitCode.ERRORS if exit_code and result.objects else ExitCode.OK, result.text)
