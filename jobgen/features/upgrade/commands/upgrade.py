"""`jobgen upgrade`: rehearse an upgrade before it happens."""

from __future__ import annotations

from pathlib import Path

import click

from jobgen.api.errors import OperationError, UsageError
from jobgen.api.project import list_captures, load
from jobgen.cli.options import env_option, today_option
from jobgen.cli.result import ExitCode, Result
from jobgen.features.upgrade.facts import COMPONENTS, read_versions
from jobgen.features.upgrade.rehearse import describe, rehearse, write_steps
from jobgen.model.finding import pluralize
from jobgen.repo.git import GitError
from jobgen.reports.entries import format_findings
from jobgen.reports.escape import visible
from jobgen.reports.sections import FORMATS


@click.command("upgrade")
@click.option("--kubernetes", default="", metavar="VERSION", help="The release of Kubernetes after the upgrade.")
@click.option("--kueue", default="", metavar="VERSION", help="The version of Kueue after the upgrade.")
@click.option(
    "--operator",
    "operators",
    multiple=True,
    metavar="NAME=VERSION",
    shell_complete=lambda *_: [f"{name}=" for name in COMPONENTS],
    help="The version of an operator after the upgrade, such as trainer=2.3; can be repeated.",
)
@click.option(
    "--to",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A YAML file with `kubernetes` and `operators`, as in `cluster` of an overlay.",
)
@env_option
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="text", show_default=True)
@click.option("--fix", is_flag=True, help="Write what can be written, one commit for each step.")
@today_option
@click.pass_obj
def command(
    directory: Path,
    kubernetes: str,
    kueue: str,
    operators: tuple[str, ...],
    file: Path | None,
    envs: tuple[str, ...],
    *,
    format_: str,
    fix: bool,
    today: str,
) -> Result:
    """Show what other versions would do to the jobs.

    The versions are those of Kubernetes, Kueue and operators, in each environment.

    The declared versions are compared with the new ones: what the cluster would refuse, what Kueue would decide, which
    pods would differ, and the steps to take in their order. It exits with 1 if anything would be refused, never
    admitted, or run without its queue. With --fix, each step declares its new version and fixes what it can.
    """
    project = load(directory, today=today)
    versions = read_versions({"kubernetes": kubernetes, "kueue": kueue}, operators, file)
    if not versions:
        raise UsageError("name the versions after the upgrade, such as `--kueue 0.19` or `--operator trainer=2.3`")
    rehearsal = rehearse(project, versions, envs)
    report = describe(rehearsal)
    lines = [visible(report.summary), *list_captures(project.config, envs)]
    err = format_findings(rehearsal.findings) + "".join(f"{line}\n" for line in lines)
    if fix:
        try:
            for step in write_steps(project, rehearsal):
                left = f"; {pluralize(step.left, 'error')} left" if step.left else ""
                listed = ", ".join(step.files)
                err += visible(f"committed {step.change.component} {step.change.new}: {listed}{left}") + "\n"
        except GitError as error:
            raise OperationError(str(error)) from error
    code = ExitCode.ERRORS if rehearsal.failed else ExitCode.OK
    return Result(code, FORMATS[format_](report), err)
