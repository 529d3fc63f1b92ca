"""`jobgen diff`: show what a change does to jobs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from jobgen.api.diff import diff, format_names
from jobgen.api.errors import JobgenError
from jobgen.cli.complete import complete_folders, complete_revisions
from jobgen.cli.options import env_option, no_cache_option, today_option
from jobgen.cli.result import ExitCode, Result, error_result, to_result, write_files
from jobgen.compare.formats.text import list_governance
from jobgen.model.finding import Severity
from jobgen.model.suggest import list_alternatives
from jobgen.rendering.left_out import name_left_out
from jobgen.reports.entries import count_severities, format_findings

_EXTENSIONS = {".md": "markdown", ".html": "html", ".json": "json", ".txt": "text"}
"""The format of a file, by the end of its name."""


def _parse_outputs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return a format and a file for each value."""
    return list(map(_parse_output, values))


def _parse_output(value: str) -> tuple[str, str]:
    known = format_names()
    extensions = [extension for extension, name in _EXTENSIONS.items() if name in known]
    name, _, path = value.partition("=")
    if path and name in known:
        # The form of 0.2, for one more minor version.
        found = _EXTENSIONS.get(os.path.splitext(path)[1], "")
        named = path if found == name else next((path + end for end in extensions if _EXTENSIONS[end] == name), "")
        instead = f"write `-o {named}`" if named else f"write `--format {name} > {path}`"
        warnings.warn(
            f"`-o {value}` is deprecated: `-o` is a file, and its extension the format; {instead}", stacklevel=2
        )
        return name, path
    found = _EXTENSIONS.get(os.path.splitext(value)[1], "")
    if found not in known:
        ends = list_alternatives(f"`{extension}`" for extension in extensions)
        raise click.UsageError(f"`-o {value}` names no format; write a file that ends in {ends}, such as `-o diff.md`")
    return found, value


@click.command("diff")
@click.argument("revisions", default="", metavar="[BASE[..HEAD]]", shell_complete=complete_revisions)
@env_option
@click.option("--format", "format_", type=click.Choice(format_names()), default="text", show_default=True)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    callback=_parse_outputs,
    metavar="FILE",
    help="Also write FILE, as .md, .html, .json or .txt; can be repeated.",
)
@click.option(
    "--folders",
    nargs=2,
    metavar="OLD NEW",
    shell_complete=complete_folders,
    help="Compare two folders instead of revisions.",
)
@click.option("--exit-code", is_flag=True, help="Exit 1 if anything changes.")
@click.option("--repo-url", metavar="URL", help="Web address of the repository, for html; default: the remote origin.")
@no_cache_option
@today_option
@click.pass_obj
def command(directory: Path, /, revisions: str, envs: tuple[str, ...], **options: Any) -> Result:
    """Show what a change does to jobs and GPUs.

    It lists which jobs start, stop or restart, and how many GPUs they use.

    BASE is compared with the work tree; BASE..HEAD compares two commits; BASE...HEAD starts at their merge base. The
    default for BASE is the commit where this branch left the default branch. With --folders, each folder is a jobs
    repository, a rendered tree, or a folder with manifests.
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
    repo_url: str | None = None,
    outputs: Sequence[tuple[str, str]] = (),
) -> Result:
    """Compare two commits, a commit and the work tree, or two folders."""
    if folders and revisions:
        return error_result(ExitCode.USAGE, "`--folders` replaces revisions; give one of them")
    try:
        result = diff(
            directory,
            revisions,
            folders=folders,
            environments=envs,
            format=format_,
            today=today,
            repo_url=repo_url,
            more_formats=[name for name, _ in outputs],
        )
    except JobgenError as error:
        return to_result(error)
    # Without a comparison there is only the page that says so.
    written = {directory / path: result.texts[name] for name, path in outputs if name in result.texts}
    failed = write_files(written, directory)
    if result.failed and not failed:
        message = f"{count_severities(result.findings)} in {result.failed}; nothing was compared"
        listed = "".join(f"{line}\n" for line in list_governance(result.governance))
        text = format_findings(result.findings) + listed
        return error_result(ExitCode.ERRORS, message, text)._replace(out=result.text)
    if any(each.severity is Severity.ERROR for each in result.tree) and not failed:
        message = f"the rendered tree is not what {result.head} renders"
        found = (*result.findings, *result.tree)
        return error_result(ExitCode.ERRORS, message, format_findings(found))._replace(out=result.text)
    if result.findings and not failed:
        lacks = name_left_out("not compared", [each.left_out for each in result.not_compared])
        message = f"{count_severities(result.findings)}{lacks}"
        return error_result(ExitCode.ERRORS, message, format_findings(result.findings))._replace(out=result.text)
    return failed or Result(ExitCode.ERRORS if exit_code and result.objects else ExitCode.OK, result.text)
