"""`jobgen report`: write one HTML page about all jobs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from jobgen.api.errors import UsageError
from jobgen.api.project import load
from jobgen.cli.complete import complete_files, complete_folders
from jobgen.cli.options import env_option, no_cache_option, since_option, today_option
from jobgen.cli.result import ExitCode, Result, write_files
from jobgen.features.page.report import ReportResult, report
from jobgen.repo.atomic import find_output_fault
from jobgen.reports.entries import format_findings, group_findings, pluralize
from jobgen.reports.escape import visible

PAGE = "index.html"
STDOUT = "-"


@click.command("report")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    shell_complete=complete_folders,
    help="Write DIR/index.html; `-` is standard output.",
)
@env_option
@since_option(help="Mark findings that are new since a revision.")
@click.option("--repo-url", metavar="URL", help="Web address of the repository; default: the remote origin.")
@click.option(
    "--prices",
    default="",
    metavar="FILE",
    shell_complete=complete_files,
    help="File with prices of GPU hours; shows costs.",
)
@click.option(
    "--baseline",
    default="",
    metavar="FILE",
    shell_complete=complete_files,
    help="Leave out findings that this file lists.",
)
@no_cache_option
@today_option
@click.pass_obj
def command(directory: Path, /, output: str, envs: tuple[str, ...], today: str, **options: Any) -> Result:
    """Write one HTML page about all jobs.

    The page shows all environments.

    The page is one file and needs no network. It shows what the other commands print: states, requests, findings,
    queues, manifests, and which file set each value. Findings do not change the exit code. The exit code is 1 if a job
    cannot be rendered.
    """
    folder = directory / output
    project = load(directory, today=today)
    if output != STDOUT:
        check_folder(project.root, folder, output)
    found = report(project, environments=envs, **options)
    failed = None if output == STDOUT else write_files({folder / PAGE: found.page}, project.root)
    if failed:
        return failed
    code = ExitCode.ERRORS if found.failed else ExitCode.OK
    code = ExitCode.INTERNAL_ERROR if found.incomplete else code
    return Result(code, found.page if output == STDOUT else "", _summarize(found, folder / PAGE, output))


def check_folder(root: Path, folder: Path, output: str) -> None:
    """Raise a UsageError if the page cannot be written to a folder."""
    if not output:
        raise UsageError("`-o` is empty; name a folder, or `-` for standard output")
    if folder.suffix in {".html", ".htm"} and not os.path.isdir(folder):
        raise UsageError(f"`{output}` names a file; name the folder for {PAGE}, or `-` for standard output")
    nearest = next(each for each in (folder, *folder.parents) if os.path.exists(each))
    if not os.path.isdir(nearest):
        raise UsageError(f"`{nearest}` is not a folder; choose another one")
    if os.path.isdir(folder / PAGE):
        raise UsageError(f"`{folder / PAGE}` is a folder; choose a folder other than `{output}`")
    fault = find_output_fault(folder / PAGE, root)
    if fault:
        raise UsageError(f"`{output}` {fault}; choose another folder")
    if os.path.lexists(folder / PAGE) and (os.path.islink(folder / PAGE) or not os.path.isfile(folder / PAGE)):
        # The file of a link, such as a job, would be replaced by the page.
        raise UsageError(f"`{folder / PAGE}` is not a regular file; remove it, or choose another folder")


def _summarize(found: ReportResult, path: Path, output: str) -> str:
    """Return what the page lacks and why, and what was written."""
    lines = [f"the queues of `{env}` are unknown: {reason}" for env, reason in found.unknown_queues.items()]
    errors = format_findings(found.errors) + "".join(f"{visible(line)}\n" for line in lines)
    counts = f"{pluralize(found.jobs, 'job')}, {pluralize(len(group_findings(found.findings)), 'finding')}"
    size = f"{len(found.page.encode()) // 1024} KiB"
    place = "" if output == STDOUT else f"{visible(str(path))}: "
    lacks = f"; {pluralize(len(found.errors) + len(lines), 'error')}, so the page is not complete" if errors else ""
    unchecked = "; a broken schema or policy prevented checks, see the findings" if found.incomplete else ""
    return f"{errors}{place}{counts}, {size}{lacks}{unchecked}\n"
