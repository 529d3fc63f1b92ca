"""Render jobs, print them or write them as a tree of files, and report what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path

from jobgen.api.errors import JobgenError
from jobgen.api.project import load, select_environments
from jobgen.api.render import (
    ChangedObjects,
    Tree,
    check_folder,
    compare_tree,
    count_deleted,
    deletes_too_much,
    join_objects,
    keep_changed,
    plan_tree,
    write_tree,
)
from jobgen.api.render import render as render_jobs
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.cli.tree_result import Options, report_checked, report_written
from jobgen.rendering.redact import redact_diff
from jobgen.repo.lock import is_object_path
from jobgen.repo.rendered_tree import Drift
from jobgen.reports.entries import count_severities, format_findings, pluralize
from jobgen.reports.escape import visible

_MAX_SHOWN_FILES, _MAX_SHOWN_LINES = 5, 12
_MAX_LISTED = 100
"""How many files of a sort are listed; a tree that was never rendered may have thousands."""


def run_render(asked: Options) -> tuple[Result, Tree | None]:
    """Render jobs; return also the tree if it is up to date now, and there is nothing to say about it."""
    folder, envs = asked.folder, asked.envs
    try:
        project = load(asked.path, today=asked.today)
        if folder is not None:
            part = "`--since`" if asked.since else ""
            check_folder(project.root, folder, select_environments(project.config, envs), part=part)
        rendered = render_jobs(
            project,
            asked.jobs,
            environments=envs,
            format=asked.format_,
            allow_empty=asked.allow_empty,
            unique_files=folder is not None,
        )
        changed = None
        if asked.since and not rendered.failed:
            changed = keep_changed(project, rendered, asked.since, asked.jobs, envs, asked.format_)
    except JobgenError as error:
        return to_result(error), None
    findings = format_findings(rendered.findings)
    if rendered.failed:
        message = f"{count_severities(rendered.findings)}; nothing was rendered"
        return error_result(ExitCode.ERRORS, message, findings), None
    if changed:
        findings += _describe_changed(changed, len(rendered.objects), asked.since)
        rendered = changed.rendered
    is_written = folder is not None and not asked.check
    if asked.enforce or (asked.enforce is None and is_written and project.config.teams.all):
        # Imported late: a render checks nothing.
        from jobgen.api.enforce import find_refused

        refused = find_refused(project.config, rendered.environments, {one.location.file for one in rendered.objects})
        if refused:
            undone = (
                "nothing was written; `--no-enforce` allows it" if asked.enforce is None else "nothing was rendered"
            )
            message = f"{count_severities(refused)}; {undone}"
            return error_result(ExitCode.ERRORS, message, format_findings(refused)), None
    if folder is None or (changed and not rendered.objects):
        # An empty List is a List, too.
        out = join_objects(rendered.objects, asked.format_, labeled=not envs) if folder is None else ""
        return Result(ExitCode.OK, out, findings), None
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


def _describe_changed(changed: ChangedObjects, total: int, since: str) -> str:
    """Name what is gone, and count what has changed."""
    lines = [
        f"gone since {since}: {one}{f' in {envs}' if (envs := ', '.join(filter(None, several))) else ''}"
        for one, several in changed.gone
    ]
    if len(lines) > _MAX_LISTED:
        lines[_MAX_LISTED:] = [f"and {len(lines) - _MAX_LISTED} more"]
    if changed.errors:
        errors = pluralize(changed.errors, "error")
        lines.append(f"{since} has {errors}; the objects that it cannot render count as changed")
    lines.append(f"{len(changed.rendered.objects)} of {pluralize(total, 'object')} changed since {since}")
    return "".join(f"{visible(line)}\n" for line in lines)


def update_tree(tree: Tree, *, fsync: bool) -> tuple[Result, bool]:
    """Write a tree; return also whether it is up to date now."""
    try:
        drifts = write_tree(tree, fsync=fsync)
    except JobgenError as error:
        return to_result(error), False
    blocked = list(_format_foreign(tree.folder, drifts))
    for env, drift in drifts.items() if not blocked else ():
        # An environment would lose all or most of its objects.
        option = deletes_too_much(tree, drift)
        if option:
            deleted, total = count_deleted(drift), drift.existing_objects
            files = f"{deleted} of {total} files" if drift.wanted_objects else f"all {pluralize(deleted, 'file')}"
            blocked.append(visible(f"{tree.folder / env}: {files} would be deleted; allow it with {option}") + "\n")
    if blocked:
        return error_result(ExitCode.ERRORS, "nothing was written", "".join(blocked)), False
    written = sum(is_object_path(path) for drift in drifts.values() for path in (*drift.missing, *drift.changed))
    removed = sum(map(count_deleted, drifts.values()))
    return report_written(tree.objects, written, removed), _is_current(drifts)


def check_tree(tree: Tree) -> tuple[Result, bool]:
    """Compare a tree with the files on disk; return also whether it is up to date."""
    try:
        drifts = compare_tree(tree)
        lines = [*_format_foreign(tree.folder, drifts), *_format_differences(tree, drifts)]
        unlisted = [
            visible(f"{tree.folder / env / path}: was not written by jobgen; remove it, or move it") + "\n"
            for env, drift in drifts.items()
            for path in drift.unlisted
        ]
        count = len(unlisted)
        unlisted = [*unlisted[:_MAX_LISTED], *_count_rest(count)]
    except OSError as error:
        return error_result(ExitCode.INTERNAL_ERROR, f"{error.filename or tree.folder}: {error.strerror}"), False
    if lines or unlisted:
        message = f"the tree is not up to date; run `jobgen render -o {tree.folder}`"
        if not lines:
            message = f"jobgen did not write {pluralize(count, 'file')} of the tree; remove them"
        return error_result(ExitCode.ERRORS, message, "".join((*lines, *unlisted))), False
    versions = sorted({drift.tool for drift in drifts.values() if drift.tool})
    return report_checked(tree.objects, versions), _is_current(drifts)


def _is_current(drifts: Mapping[str, Drift]) -> bool:
    """Return True if this version wrote a tree, and no file of it is one that others wrote."""
    return not any(drift.unlisted or drift.tool for drift in drifts.values())


def _format_foreign(folder: Path, drifts: Mapping[str, Drift]) -> Iterator[str]:
    for env, drift in drifts.items():
        for path, reason in drift.foreign:
            yield visible(f"{folder / env / path}: {reason}") + "\n"


def _format_differences(tree: Tree, drifts: Mapping[str, Drift]) -> Iterator[str]:
    differences = [
        (env, path, state or ("edited by hand" if path in drift.edited else "out of date"), not state)
        for env, drift in drifts.items()
        for state, paths in (("missing", drift.missing), ("", drift.changed), ("stale", drift.stale))
        for path in paths
    ]
    shown = 0
    for env, path, change, has_lines in differences[:_MAX_LISTED]:
        yield visible(f"{tree.folder / env / path}: {change}") + "\n"
        if has_lines and path in tree.wanted[env] and shown < _MAX_SHOWN_FILES:
            shown += 1
            current = (tree.folder / env / path).read_bytes().decode("utf-8", "replace")
            wanted = tree.wanted[env][path]
            changed = list(unified_diff(current.splitlines(), wanted.splitlines(), n=0, lineterm=""))[2:]
            lines = redact_diff(changed, current, wanted)
            yield from (f"    {visible(line)}\n" for line in lines[:_MAX_SHOWN_LINES])
            if len(lines) > _MAX_SHOWN_LINES:
                yield f"    … {pluralize(len(lines) - _MAX_SHOWN_LINES, 'more line')}\n"
    yield from _count_rest(len(differences))


def _count_rest(count: int) -> Iterator[str]:
    if count > _MAX_LISTED:
        yield f"and {pluralize(count - _MAX_LISTED, 'more file')}\n"
