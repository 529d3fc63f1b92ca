"""`jobgen drift`: show what differs between the repository and what runs."""

from __future__ import annotations

from pathlib import Path

import click

from jobgen.api.errors import UsageError
from jobgen.api.project import load, select_environments
from jobgen.cli.options import env_option, today_option
from jobgen.cli.result import ExitCode, Result
from jobgen.features.live.capture import Kubectl, find_folder
from jobgen.features.live.drift import describe, find_drift
from jobgen.repo.captures import read_capture_day
from jobgen.reports.entries import format_findings
from jobgen.reports.escape import visible
from jobgen.reports.sections import FORMATS


@click.command("drift")
@env_option
@click.option("--context", default="", metavar="NAME", help="The context of kubectl; default: its current one.")
@click.option("--captured", is_flag=True, help="Compare with the captured state, without a cluster.")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="text", show_default=True)
@today_option
@click.pass_obj
def command(
    directory: Path, envs: tuple[str, ...], *, context: str, captured: bool, format_: str, today: str
) -> Result:
    """Compare what is rendered with what runs.

    It shows missing, changed, stale and extra objects.

    Only fields that a manifest sets are compared, as an apply would see them. It reads the cluster with `kubectl get`,
    or with --captured the folder that `jobgen capture` wrote. It exits with 1 if anything differs or cannot be read.
    """
    project = load(directory, today=today)
    drifts = []
    for env in select_environments(project.config, envs):
        day = ""
        if captured:
            folder = find_folder(project.config, env)
            day = read_capture_day(project.root, folder)
            if not day:
                raise UsageError(f"`{folder}` has no capture; run `jobgen capture -e {env}`")
        drifts.append(find_drift(project.config, env, None if captured else Kubectl(context), day))
    report = describe(drifts)
    err = "".join(format_findings(drift.findings) for drift in drifts) + visible(report.summary) + "\n"
    code = ExitCode.ERRORS if any(drift.failed for drift in drifts) else ExitCode.OK
    return Result(code, FORMATS[format_](report), err)
