"""`jobgen codeowners`: write CODEOWNERS from the teams."""

from __future__ import annotations

from pathlib import Path

import click

from jobgen.api.project import load
from jobgen.cli.result import ExitCode, Result, error_result, write_files
from jobgen.features.teams.teams import list_deciding, write_owners
from jobgen.model.data import value_of
from jobgen.model.finding import Severity
from jobgen.repo import git
from jobgen.repo.code_owners import CODE_OWNERS_FILES
from jobgen.repo.files import read_path
from jobgen.reports.entries import format_findings


@click.command("codeowners")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the file is not up to date.")
@click.pass_obj
def command(directory: Path, *, check: bool) -> Result:
    """Write the owners of folders to CODEOWNERS.

    First come the folders of each team.

    Then come the files that decide about all jobs, with `owners` of jobgen.yaml.

    jobgen updates the existing file, or creates `.github/CODEOWNERS`. It keeps lines that it did not write.
    """
    project = load(directory)
    if any(finding.severity is Severity.ERROR for finding in project.findings):
        return error_result(ExitCode.ERRORS, "nothing was written", format_findings(project.findings))
    owners = [str(value_of(each)) for each in project.config.settings.get("owners", ())]
    if not project.config.teams.all and not owners:
        return error_result(ExitCode.NOTHING_TO_DO, "there are no teams; write `teams/<name>.yaml`")
    try:
        prefix = git.find_prefix(project.root)
    except git.GitError:
        prefix = ""
    top = project.root.parents[prefix.count("/")] if prefix else project.root
    name = next((each for each in CODE_OWNERS_FILES if (top / each).exists()), CODE_OWNERS_FILES[0])
    file = read_path(top / name, name, top) if (top / name).exists() else None
    if file and file.finding:
        return error_result(ExitCode.ERRORS, "nothing was written", format_findings([file.finding]))
    old = file.content.decode("utf-8", "surrogateescape") if file else ""
    new = write_owners(old, project.config.teams.all, prefix, owners, list_deciding(project.config))
    if new == old:
        return Result(ExitCode.OK, f"{name} is up to date\n")
    if check:
        return error_result(ExitCode.ERRORS, f"{name} is not up to date; run `jobgen codeowners`")
    return write_files({top / name: new}, top) or Result(ExitCode.OK, f"{name} written\n")
