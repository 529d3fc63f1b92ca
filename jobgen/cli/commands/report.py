"""`jobgen report`: write one HTML page about all jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobgen.api.errors import JobgenError
from jobgen.api.project import load
from jobgen.api.report import report
from jobgen.cli.options import env_option, no_cache_option, today_option
from jobgen.cli.result import ExitCode, Result, to_result
from jobgen.cli.write_files import write_files
from jobgen.report.summary import pluralize

PAGE = "index.html"


@click.command("report")
@click.option("-o", "--output", required=True, metavar="DIR", help="Write DIR/index.html.")
@env_option
@click.option("--repo-url", default="", metavar="URL", help="Where the repository can be browsed, for links.")
@click.option("--since", default="", metavar="REV", help="Mark the findings that are new since a revision.")
@click.option("--prices", default="", metavar="FILE", help="Prices of an hour of a GPU, for costs.")
@no_cache_option
@today_option
@click.pass_obj
def command(directory: Path, /, output: str, envs: tuple[str, ...], today: str, **options: Any) -> Result:
    """Write one HTML page about all jobs in all environments.

    The page is one file, needs no network, and shows what the other commands print: states, requests, findings,
    manifests, and who set each value.
    """
    try:
        project = load(directory, today=today)
        found = report(project, environments=envs, **options)
    except JobgenError as error:
        return to_result(error)
    path = directory / output / PAGE
    failed = write_files({path: found.page}, project.root)
    size = len(found.page.encode()) // 1024
    summary = f"{path}: {pluralize(found.jobs, 'job')}, {pluralize(found.findings, 'finding')}, {size} KiB\n"
    return failed or Result(ExitCode.OK, err=summary)
