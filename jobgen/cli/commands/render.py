"""`jobgen render`: print manifests, or write a tree of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click

from jobgen import __version__
from jobgen.api.errors import JobgenError
from jobgen.api.project import load, select_environments
from jobgen.api.render import TextFormat, join_objects
from jobgen.api.render import render as render_jobs
from jobgen.api.tree import Tree, check_folder, compare_tree, count_deleted, deletes_too_much, plan_tree, write_tree
from jobgen.cli.options import env_option, fsync_option, no_cache_option, today_option
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.cli.terminal import Progress
from jobgen.repo.lock import is_object_path
from jobgen.repo.rendered_tree import Drift
from jobgen.report.escape import visible
from jobgen.report.summary import count_severities, format_findings, pluralize

_MAX_SHOWN_FILES, _MAX_SHOWN_LINES = 5, 12


@click.command("render")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@env_option
@click.option("-o", "--output", metavar="DIR", help="Write a tree: DIR/<env>/<namespace>/<kind>-<name>.yaml.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the tree is not up to date.")
@click.option("--allow-empty", is_flag=True, help="Allow an environment without objects.")
@click.option("--allow-mass-delete", is_flag=True, help="Allow deleting most files of an environment.")
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
    progress = Progress()
    try:
        folder = directory / output if output else None
        return render(directory, jobs, envs, folder, progress=progress, **options)
    finally:
        progress.clear()


def render(
    path: Path,
    jobs: Sequence[str],
    envs: Sequence[str],
    folder: Path | None,
    *,
    format_: TextFormat,
    progress: Callable[[int, int], None] = lambda _, __: None,
    check: bool = False,
    allow_empty: bool = False,
    allow_mass_delete: bool = False,
    today: str = "",
    fsync: bool = True,
) -> Result:
    """Render jobs; nothing is printed or written if there are errors."""
    if check and folder is None:
        return error_result(ExitCode.USAGE, "`--check` compares a tree; name its folder with `-o`")
    try:
        project = load(path, today=today)
        if folder is not None:
            check_folder(project.root, folder, select_environments(project.config, envs))
        rendered = render_jobs(
            project,
            jobs,
            environments=envs,
            format=format_,
            allow_empty=allow_empty,
            unique_files=folder is not None,
            progress=progress,
        )
    except JobgenError as error:
        return to_result(error)
    findings = format_findings(rendered.findings)
    if rendered.failed:
        return error_result(ExitCode.ERRORS, f"{count_severities(rendered.findings)}; nothing was rendered", findings)
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
    result = _check(tree) if check else _write(tree, fsync=fsync)
    return result._replace(err=findings + result.err)


def _write(tree: Tree, *, fsync: bool) -> Result:
    try:
        drifts = write_tree(tree, fsync=fsync)
    except JobgenError as error:
        return to_result(error)
    blocked = list(_format_foreign(tree.folder, drifts)) or list(_format_deletions(tree, drifts))
    if blocked:
        return error_result(ExitCode.ERRORS, "nothing was written", "".join(blocked))
    total = tree.objects
    written = sum(is_object_path(path) for drift in drifts.values() for path in (*drift.missing, *drift.changed))
    removed = sum(map(count_deleted, drifts.values()))
    summary = f"{pluralize(total, 'object')}: {written} written, {total - written} unchanged, {removed} removed\n"
    return Result(ExitCode.OK, err=summary)


def _check(tree: Tree) -> Result:
    try:
        drifts = compare_tree(tree)
        lines = [*_format_foreign(tree.folder, drifts), *_format_differences(tree, drifts)]
        unlisted = list(_format_unlisted(tree.folder, drifts))
    except OSError as error:
        return error_result(ExitCode.INTERNAL_ERROR, f"{error.filename or tree.folder}: {error.strerror}")
    if lines or unlisted:
        message = f"the tree is not up to date; run `jobgen render -o {tree.folder}`"
        if not lines:
            message = f"jobgen did not write {pluralize(len(unlisted), 'file')} of the tree; remove them"
        return error_result(ExitCode.ERRORS, message, "".join((*lines, *unlisted)))
    versions = ", ".join(sorted({drift.tool for drift in drifts.values() if drift.tool}))
    note = f"the tree was written by jobgen {versions}; {__version__} renders the same\n" if versions else ""
    return Result(ExitCode.OK, err=f"{note}{pluralize(tree.objects, 'object')}, all up to date\n")


def _format_deletions(tree: Tree, drifts: Mapping[str, Drift]) -> Iterator[str]:
    """Yield a line for each environment that would lose all or most of its objects without permission."""
    for env, drift in drifts.items():
        option = deletes_too_much(tree, drift)
        if option:
            deleted = count_deleted(drift)
            total = drift.existing_objects
            files = f"{deleted} of {total} files" if drift.wanted_objects else f"all {pluralize(deleted, 'file')}"
            yield visible(f"{tree.folder / env}: {files} would be deleted; allow it with {option}") + "\n"


def _format_foreign(folder: Path, drifts: Mapping[str, Drift]) -> Iterator[str]:
    for env, drift in drifts.items():
        for path, reason in drift.foreign:
            yield visible(f"{folder / env / path}: {reason}") + "\n"


def _format_unlisted(folder: Path, drifts: Mapping[str, Drift]) -> Iterator[str]:
    for env, drift in drifts.items():
        for path in drift.unlisted:
            yield visible(f"{folder / env / path}: was not written by jobgen; remove it, or move it") + "\n"


def _format_differences(tree: Tree, drifts: Mapping[str, Drift]) -> Iterator[str]:
    shown = 0
    for env, drift in drifts.items():
        for state, paths in (("missing", drift.missing), ("", drift.changed), ("stale", drift.stale)):
            for path in paths:
                change = state or ("edited by hand" if path in drift.edited else "out of date")
                yield visible(f"{tree.folder / env / path}: {change}") + "\n"
                if not state and path in tree.wanted[env] and shown < _MAX_SHOWN_FILES:
                    shown += 1
                    yield from _diff_lines(tree.folder / env / path, tree.wanted[env][path])


def _diff_lines(full: Path, wanted: str) -> Iterator[str]:
    """Yield the first lines that rendering would change in a file."""
    current = full.read_bytes().decode("utf-8", "replace").splitlines()
    lines = list(unified_diff(current, wanted.splitlines(), n=0, lineterm=""))[2:]
    yield from (f"    {visible(line)}\n" for line in lines[:_MAX_SHOWN_LINES])
    if len(lines) > _MAX_SHOWN_LINES:
        yield f"    … {pluralize(len(lines) - _MAX_SHOWN_LINES, 'more line')}\n"
