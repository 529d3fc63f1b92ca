"""`jobgen render`: print manifests, or write a tree of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobgen.api import tree_cache
from jobgen.api.errors import JobgenError
from jobgen.api.tree_cache import TreeRequest
from jobgen.cli.options import env_option, fsync_option, no_cache_option, shard_option, today_option
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.cli.tree_summary import report_checked, report_written
from jobgen.report.summary import count_severities, format_findings

if TYPE_CHECKING:
    from jobgen.api.render import TextFormat


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


def render(
    path: Path,
    jobs: Sequence[str],
    envs: Sequence[str],
    folder: Path | None,
    *,
    format_: TextFormat,
    check: bool = False,
    allow_empty: bool = False,
    allow_mass_delete: bool = False,
    today: str = "",
    shard: str = "",
    fsync: bool = True,
) -> Result:
    """Render jobs; nothing is printed or written if there are errors."""
    if check and (folder is None or shard):
        missing = "`--check` compares a tree; name its folder with `-o`"
        return error_result(ExitCode.USAGE, "`--check` compares a whole tree; remove `--shard`" if shard else missing)
    inputs = None
    if folder is not None and not jobs and not shard:
        inputs = tree_cache.read_inputs(TreeRequest(path, folder, envs, format_, today))
        unchanged = tree_cache.count_unchanged(inputs)
        if unchanged is not None:
            return report_checked(unchanged) if check else report_written(unchanged)
    # Imported late: a tree that is up to date does not need them.
    from jobgen.api.project import load, select_environments
    from jobgen.api.render import join_objects
    from jobgen.api.render import render as render_jobs
    from jobgen.api.tree import check_folder, plan_tree
    from jobgen.cli.update_tree import check_tree, update_tree

    try:
        project = load(path, today=today)
        if folder is not None:
            check_folder(project.root, folder, select_environments(project.config, envs), is_new=bool(shard))
        rendered = render_jobs(
            project,
            jobs,
            environments=envs,
            format=format_,
            allow_empty=allow_empty,
            unique_files=folder is not None,
            shard=shard,
        )
    except JobgenError as error:
        return to_result(error)
    findings = format_findings(rendered.findings)
    if rendered.failed:
        return error_result(ExitCode.ERRORS, f"{count_severities(rendered.findings)}; nothing was rendered", findings)
    findings += f"shard {shard.replace('/', ' of ')} has no objects\n" if shard and not rendered.objects else ""
    if folder is None:
        return Result(ExitCode.OK, join_objects(rendered.objects, labeled=not envs), findings)
    tree = plan_tree(
        project,
        folder,
        rendered,
        some_jobs=bool(jobs),
        some_environments=bool(envs),
        allow_empty=allow_empty,
        allow_mass_delete=allow_mass_delete,
    )
    result, locks = check_tree(tree) if check else update_tree(tree, fsync=fsync)
    if locks and not findings and not rendered.dated:
        tree_cache.put(inputs, tree.objects, locks)
    return result._replace(err=findings + result.err)
