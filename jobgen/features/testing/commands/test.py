"""`jobgen test`: run the tests of jobs."""

from __future__ import annotations

from pathlib import Path

import click

from jobgen.api.project import load
from jobgen.cli.complete import complete_files
from jobgen.cli.options import env_option, today_option
from jobgen.cli.result import ExitCode, Result, write_files
from jobgen.features.testing.job_tests import FORMATS, JobTestsResult, run_tests
from jobgen.reports.entries import format_findings, pluralize


@click.command("test")
@click.argument("names", nargs=-1, metavar="[TEST|FILE]...", shell_complete=complete_files)
@env_option
@click.option("--update", is_flag=True, help="Write the snapshots that differ.")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="text", show_default=True)
@today_option
@click.pass_obj
def command(
    directory: Path,
    names: tuple[str, ...],
    envs: tuple[str, ...],
    *,
    update: bool,
    format_: str,
    today: str,
) -> Result:
    """Run the job tests in tests/*.yaml.

    They test values, expressions, findings, effects of a change, and snapshots.

    See docs/tests.md.
    """
    project = load(directory, today=today)
    result = run_tests(project, names, environments=envs, format=format_)
    if update:
        old = {each.location for each in result.outcomes if each.expectation == "snapshot" and each.is_failed}
        written = write_files({project.root / path: text for path, text in result.snapshots.items()}, project.root)
        if written:
            return written
        result = run_tests(project, names, environments=envs, format=format_)
        note = f"{pluralize(len(old), 'expectation')} with other snapshots; {len(result.snapshots)} written\n"
        return _report(result, format_, note)
    return _report(result, format_)


def _report(result: JobTestsResult, format_: str, note: str = "") -> Result:
    """Return the report; formats for programs have their summary on the standard error."""
    summary = "" if format_ == "text" else f"{result.summary}\n"
    code = ExitCode.ERRORS if result.failed else ExitCode.OK
    return Result(code, result.text, format_findings(result.findings) + note + summary)
