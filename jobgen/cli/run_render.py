"""Print manifests, or write a tree of files; `jobgen render` without the description of its options."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobgen.api.tree_answers import TreeRequest, count_unchanged, note_tree, record_jobs
from jobgen.cli.result import ExitCode, Result, error_result
from jobgen.cli.tree_result import Options, report_checked, report_written
from jobgen.engine.inputs import record
from jobgen.repo.root import open_store

if TYPE_CHECKING:
    from jobgen.api.render import Tree


def run_command(
    directory: Path, /, jobs: tuple[str, ...], envs: tuple[str, ...], output: str | None, *, watch: bool, **options: Any
) -> Result:
    """Run `jobgen render` with the values of its parameters."""
    folder = directory / output if output else None
    run = partial(render, directory, jobs, envs, folder, **options)
    if not watch:
        return run()
    if options["check"] or (folder is not None and options["since"]):
        message = "`--watch` keeps a whole tree up to date; remove `--check` and `--since`, or `-o`"
        return error_result(ExitCode.USAGE, message)
    # Imported late, as it is rarely needed.
    from jobgen.cli.watch import watch as run_on_changes

    def run_and_record() -> Result:
        # Other processes may read the jobs.
        record_jobs(directory)
        return run()

    return run_on_changes(run_and_record, directory, folder)


def render(path: Path, jobs: Sequence[str], envs: Sequence[str], folder: Path | None, **options: Any) -> Result:
    """Render jobs; nothing is printed or written if there are errors."""
    asked = Options(path, jobs, envs, folder, **options)
    if asked.check and folder is None:
        return error_result(ExitCode.USAGE, "`--check` compares a tree; name its folder with `-o`")
    if asked.since and asked.check:
        return error_result(ExitCode.USAGE, "`--since` renders a part of the objects; remove `--check`")
    # That a tree is up to date does not say that it is allowed.
    if folder is None or jobs or asked.since or asked.enforce:
        return _run(asked)[0]
    request = TreeRequest(path, folder, envs, asked.format_, asked.today)
    store = open_store(path)
    unchanged = count_unchanged(store, request)
    if unchanged is not None:
        return report_checked(unchanged) if asked.check else report_written(unchanged)
    with record() as recording:
        # Other processes read the jobs, so what they read is recorded here, before and after.
        record_jobs(path)
        result, tree = _run(asked)
        record_jobs(path)
    if tree is not None and recording.is_whole and recording.is_consistent:
        note_tree(store, request, recording.list_reads(), list(tree.wanted), tree.objects)
    return result


def _run(asked: Options) -> tuple[Result, Tree | None]:
    # A tree that is up to date needs nothing that renders.
    from jobgen.cli.render_jobs import run_render

    return run_render(asked)
