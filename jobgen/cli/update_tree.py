"""Write a rendered tree or compare it with the files on disk, and report what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path

from jobgen.api.errors import JobgenError
from jobgen.api.tree import Tree, compare_tree, count_deleted, deletes_too_much, write_tree
from jobgen.cli.result import ExitCode, Result, error_result, to_result
from jobgen.cli.tree_summary import report_checked, report_written
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.lock import is_object_path
from jobgen.repo.rendered_tree import Drift
from jobgen.report.escape import visible
from jobgen.report.summary import pluralize

_MAX_SHOWN_FILES, _MAX_SHOWN_LINES = 5, 12
_MAX_LISTED = 100
"""How many files of a sort are listed; a tree that was never rendered may have thousands."""


class Update(NamedTuple):
    """The result for a tree, and whether it is up to date now."""

    result: Result
    is_current: bool = False


def update_tree(tree: Tree, *, fsync: bool) -> Update:
    """Write a tree."""
    try:
        drifts = write_tree(tree, fsync=fsync)
    except JobgenError as error:
        return Update(to_result(error))
    blocked = list(_format_foreign(tree.folder, drifts)) or list(_format_deletions(tree, drifts))
    if blocked:
        return Update(error_result(ExitCode.ERRORS, "nothing was written", "".join(blocked)))
    written = sum(is_object_path(path) for drift in drifts.values() for path in (*drift.missing, *drift.changed))
    removed = sum(map(count_deleted, drifts.values()))
    return Update(report_written(tree.objects, written, removed), _is_current(drifts))


def check_tree(tree: Tree) -> Update:
    """Compare a tree with the files on disk."""
    try:
        drifts = compare_tree(tree)
        lines = [*_format_foreign(tree.folder, drifts), *_format_differences(tree, drifts)]
        unlisted = list(_format_unlisted(tree.folder, drifts))
        count = len(unlisted)
        unlisted = _shorten(unlisted)
    except OSError as error:
        return Update(error_result(ExitCode.INTERNAL_ERROR, f"{error.filename or tree.folder}: {error.strerror}"))
    if lines or unlisted:
        message = f"the tree is not up to date; run `jobgen render -o {tree.folder}`"
        if not lines:
            message = f"jobgen did not write {pluralize(count, 'file')} of the tree; remove them"
        return Update(error_result(ExitCode.ERRORS, message, "".join((*lines, *unlisted))))
    versions = sorted({drift.tool for drift in drifts.values() if drift.tool})
    return Update(report_checked(tree.objects, versions), _is_current(drifts))


def _is_current(drifts: Mapping[str, Drift]) -> bool:
    """Return True if this version wrote a tree, and no file of it is one that others wrote."""
    return not any(drift.unlisted or drift.tool for drift in drifts.values())


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
            yield from _diff_lines(tree.folder / env / path, tree.wanted[env][path])
    yield from _count_rest(len(differences))


def _shorten(lines: list[str]) -> list[str]:
    return [*lines[:_MAX_LISTED], *_count_rest(len(lines))]


def _count_rest(count: int) -> Iterator[str]:
    if count > _MAX_LISTED:
        yield f"and {pluralize(count - _MAX_LISTED, 'more file')}\n"


def _diff_lines(full: Path, wanted: str) -> Iterator[str]:
    """Yield the first lines that rendering would change in a file."""
    current = full.read_bytes().decode("utf-8", "replace").splitlines()
    lines = list(unified_diff(current, wanted.splitlines(), n=0, lineterm=""))[2:]
    yield from (f"    {visible(line)}\n" for line in lines[:_MAX_SHOWN_LINES])
    if len(lines) > _MAX_SHOWN_LINES:
        yield f"    … {pluralize(len(lines) - _MAX_SHOWN_LINES, 'more line')}\n"
