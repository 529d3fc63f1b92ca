"""`jobgen queue`: show which jobs Kueue admits."""

from __future__ import annotations

from pathlib import Path

import click

from jobgen.api.project import list_captures, load
from jobgen.cli.complete import complete_files, complete_jobs
from jobgen.cli.options import env_option, today_option
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.features.kueue.queue import queue
from jobgen.features.kueue.queues.formats import FORMATS
from jobgen.model.features import has_part
from jobgen.rendering.left_out import name_left_out
from jobgen.reports.entries import count_severities, format_findings


@click.command("queue")
@click.argument("jobs", nargs=-1, metavar="[JOB]...", shell_complete=complete_jobs)
@env_option
@click.option(
    "--assume",
    "assumptions",
    multiple=True,
    metavar="running=NAMES|all|none",
    shell_complete=lambda *_: ["running=all", "running=none"],
    help="Jobs that already run, separated by commas; default: none.",
)
@click.option(
    "--without-cluster", "lost", multiple=True, metavar="NAME", help="A worker cluster of MultiKueue that is lost."
)
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="CHANGE",
    shell_complete=lambda *_: ["cq/", "cohort/", "lq/", "flavor/", "node/", "priority/", "job/"],
    help="Compare with a change, such as cq/research.h100+=32 or job/x.replicas=4; can be repeated.",
)
@click.option(
    "--what-if-file",
    type=click.Path(),
    metavar="FILE",
    help="Compare with the changes of a YAML file: partial objects, or a list of `changes`.",
)
@click.option("--suggest", is_flag=True, help="Find the smallest changes of quota that admit all jobs, or each JOB.")
@click.option("--timeline", is_flag=True, help="Show when each job starts and ends, and how much of the quota is used.")
@click.option(
    "--from",
    "begin",
    default="",
    metavar="DATE",
    help="Day or time when the timeline begins, such as 2026-11-18T08:00Z; default: the date of the commit.",
)
@click.option(
    "--history",
    default="",
    metavar="FILE",
    shell_complete=complete_files,
    help="Runs of jobs, for their durations: a CSV file of the repository with name, start, end and gpus.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice([*FORMATS.names(), *(["html"] if has_part("queue.html") else [])]),
    default="text",
    show_default=True,
)
@click.option(
    "--exit-code",
    is_flag=True,
    help="Exit 1 if a job is never admitted, names a queue that Kueue ignores, or cannot meet its deadline.",
)
@today_option
@click.pass_obj
def command(
    directory: Path,
    jobs: tuple[str, ...],
    envs: tuple[str, ...],
    assumptions: tuple[str, ...],
    lost: tuple[str, ...],
    what_if: tuple[str, ...],
    *,
    what_if_file: str | None,
    suggest: bool,
    timeline: bool,
    begin: str,
    history: str,
    format_: str,
    exit_code: bool,
    today: str,
) -> Result:
    """Show which jobs Kueue admits, and why.

    It shows which jobs wait and for what, and which can never be admitted.

    Queues come from the repository and from the exported state of the cluster (`cluster.state` in an overlay). All jobs
    of an environment arrive at the same time. JOB selects the jobs to show. With --timeline, jobs also end: their
    durations come from `run.expected`, a history of runs, or a capture of the cluster. --what-if and --without-cluster
    then compare the times before and after.
    """
    running: list[str] = []
    for assumption in assumptions:
        name, found, value = assumption.partition("=")
        names = [each.strip() for each in value.split(",") if each.strip()]
        if name != "running" or not found or not names:
            message = f"`--assume {assumption}` is not an assumption"
            hint = "write `running=` and names of jobs, `all` or `none`"
            return error_result(ExitCode.USAGE, f"{message}; {hint}")
        running += names
    if not timeline and (format_ == "html" or begin or history):
        option = "--format html" if format_ == "html" else "--from" if begin else "--history"
        return error_result(ExitCode.USAGE, f"`{option}` shows a timeline; add `--timeline`")
    project = load(directory, today=today)
    result = queue(
        project,
        jobs,
        environments=envs,
        running=running or ["none"],
        lost=lost,
        what_if=what_if,
        what_if_file=str(directory / what_if_file) if what_if_file else None,
        suggest=suggest,
        format=format_,
        timeline=timeline,
        begin=begin,
        history=history,
    )
    if result.failed:
        lacks = name_left_out("left out", result.left_out) if result.text else "; nothing was decided"
        message = f"{count_severities(result.findings)}{lacks}"
        return error_result(ExitCode.ERRORS, message, format_findings(result.findings))._replace(out=result.text)
    is_refused = exit_code and (
        any(each.is_failure for report in result.reports for each in report.decision.answers)
        or any(row.is_failure for each in result.timelines for row in each.rows)
    )
    captures = "".join(f"{each}\n" for each in list_captures(project.config, envs))
    return Result(ExitCode.ERRORS if is_refused else ExitCode.OK, result.text, captures)
