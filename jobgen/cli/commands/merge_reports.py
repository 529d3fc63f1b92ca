"""`jobgen merge-reports`: merge the reports of shards."""

from __future__ import annotations

from pathlib import Path

import click

from jobgen.api.merge_reports import FORMATS, merge_reports
from jobgen.cli.complete import complete_files
from jobgen.cli.options import no_cache_option
from jobgen.cli.result import ExitCode, Result, write_files


@click.command("merge-reports")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=complete_files)
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Default: the format of the reports.")
@click.option("-o", "--output", metavar="FILE", shell_complete=complete_files, help="Write the report to a file.")
@no_cache_option
@click.pass_obj
def command(directory: Path, /, files: tuple[str, ...], format_: str | None, output: str | None) -> Result:
    """Merge the reports of all shards of `lint` or `test` into one report.

    FILE is a report in JSON, SARIF or JUnit that a run with `--shard` wrote. Run this command in the checkout that was
    linted. The exit code is the same as without shards.
    """
    merged = merge_reports(directory, files, format=format_ or "")
    code = ExitCode.INTERNAL_ERROR if merged.incomplete else ExitCode.ERRORS if merged.failed else ExitCode.OK
    err = f"{merged.summary}\n" if merged.summary else ""
    if output is None:
        return Result(code, merged.text, err)
    failed = write_files({directory / output: merged.text}, directory)
    return failed or Result(code, err=err)
