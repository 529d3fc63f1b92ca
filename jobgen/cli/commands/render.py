"""`jobgen render`: print manifests, or write a tree of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobgen.api.errors import JobgenError
from jobgen.api.tree_answers import TreeRequest, count_unchanged, note_tree, record_jobs
from jobgen.cli.options import env_option, fsync_option, no_cache_option, shard_option, today_option
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.cli.tree_summary import report_checked, report_written
from jobgen.engine.inputs import record
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.root import open_store
from jobgen.report.summary import count_severities, format_findings

if TYPE_CHECKING:
    from jobgen.api.render import TextFormat
    from jobgen.api.tree import Tree


@click.command("render")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@env_option
@click.option("-o", "--output", metavar="DIR", help="Write a tree: DIR/<env>/<namespace>/<kind>-<name>.yaml.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the tree is not up to date.")
@click.option("--allow-empty", is_flag=True, help="Allow an environment without objects.")
@click.option("--allow-mass-delete", is_flag=True, help="Allow deleting most files of an environment.")
@shard_option
@no_cache_option
@fsync_option
@today_option
@click.option("--format", "format_", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@click.pass_obj
def command(
    directory: Path, /, jobs: tuple[str, ...], envs: tuple[str, ...], output: str | None, **options: Any
) -> Result:
    """Print manifests, or write them as a tree of files.

    JOB is a name or a shell pattern; the default is all jobs.
    """
    return render(directory, jobs, envs, directory / output if output else None, **options)


class _Options(NamedTuple):
    """What is rendered, and where to."""

    path: Path
    jobs: Sequence[str]
    envs: Sequence[str]
    folder: Path | None
    format_: TextFormat
    check: bool = False
    allow_empty: bool = False
    allow_mass_delete: bool = False
    today: str = ""
    shard: str = ""
    fsync: bool = True


def render(path: Path, jobs: Sequence[str], envs: Sequence[str], folder: Path | None, **options: Any) -> Result:
    """Render jobs; nothing is printed or written if there are errors."""
    asked = _Options(path, jobs, envs, folder, **options)
    if asked.check and (folder is None or asked.shard):
        missing = "`--check` compares a tree; name its folder with `-o`"
        whole = "`--check` compares a whole tree; remove `--shard`"
        return error_result(ExitCode.USAGE, whole if asked.shard else missing)
    if folder is None or jobs or asked.shard:
        return _render(asked)[0]
    request = TreeRequest(path, folder, envs, asked.format_, asked.today)
    store = open_store(path)
    unchanged = count_unchanged(store, request)
    if unchanged is not None:
        return report_checked(unchanged) if asked.check else report_written(unchanged)
    with record() as recording:
        # Other processes read the jobs, so what they read is recorded here, before and after.
        record_jobs(path)
        result, tree = _render(asked)
        record_jobs(path)
    if tree is not None and recording.is_whole and recording.is_consistent:
        note_tree(store, request, recording.list_reads(), list(tree.wanted), tree.objects)
    return result


def _render(asked: _Options) -> tuple[Result, Tree | None]:
    """Render jobs; return also the tree if it is up to date now, and there is nothing to say about it."""
    # Imported late: a tree that is up to date does not need them.
    from jobgen.api.project import load, select_environments
    from jobgen.api.render import join_objects
    from jobgen.api.render import render as render_jobs
    from jobgen.api.tree import check_folder, plan_tree
    from jobgen.cli.update_tree import check_tree, update_tree

    folder, envs, shard = asked.folder, asked.envs, asked.shard
    try:
        project = load(asked.path, today=asked.today)
        if folder is not None:
            check_folder(project.root, folder, select_environments(project.config, envs), is_new=bool(shard))
        rendered = render_jobs(
            project,
            asked.jobs,
            environments=envs,
            format=asked.format_,
            allow_empty=asked.allow_empty,
            unique_files=folder is not None,
            shard=shard,
        )
    except JobgenError as error:
        return to_result(error), None
    findings = format_findings(rendered.findings)
    if rendered.failed:
        message = f"{count_severities(rendered.findings)}; nothing was rendered"
        return error_result(ExitCode.ERRORS, message, findings), None
    findings += f"shard {shard.replace('/', ' of ')} has no objects\n" if shard and not rendered.objects else ""
    if folder is None:
        return Result(ExitCode.OK, join_objects(rendered.objects, labeled=not envs), findings), None
    tree = plan_tree(
        project,
        folder,
        rendered,
        some_jobs=bool(asked.jobs),
        some_environments=bool(envs),
        allow_empty=asked.allow_empty,
        allow_mass_delete=asked.allow_mass_delete,
    )
    result, is_current = check_tree(tree) if asked.check else update_tree(tree, fsync=asked.fsync)
    is_noted = is_current and not findings and tree.objects
    return result._replace(err=findings + result.err), tree if is_noted else None
