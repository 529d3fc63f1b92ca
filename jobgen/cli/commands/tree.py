"""A rendered tree brought up to date, or compared with what it should be; and what is too much to delete at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from jobgen import __version__
from jobgen.cli.commands import ExitCode, Result, error_result, pluralize
from jobgen.repo import rendered_tree
from jobgen.repo.lock import is_object_path
from jobgen.repo.rendered_tree import Drift, IncompleteWriteError, TreeExtras
from jobgen.report.escape import visible

_A_FEW = 3
"""So many files may go at once, whatever their share."""
_SHOWN_FILES, _SHOWN_LINES = 5, 12


class Tree(NamedTuple):
    """A folder and what belongs in it: files by environment, all of each environment's or only some."""

    folder: Path
    wanted: dict[str, dict[str, str]]
    partial: bool
    beside: TreeExtras
    allow_empty: bool = False
    allow_mass_delete: bool = False

    @property
    def objects(self) -> int:
        """The number of objects that were rendered."""
        return sum(map(len, self.wanted.values()))


def write_tree(tree: Tree) -> Result:
    """Bring the tree up to date, unless something is in the way or too much would go."""

    def refused(drifts: Mapping[str, Drift]) -> bool:
        return any(_losses(tree, drifts))

    try:
        drifts = rendered_tree.write_tree(
            tree.folder, tree.wanted, partial=tree.partial, extras=tree.beside, refused=refused
        )
    except IncompleteWriteError as unfinished:
        return error_result(ExitCode.ERRORS, f"{unfinished}; the next run will finish the tree")
    except OSError as error:
        return error_result(ExitCode.ERRORS, f"{error.filename or tree.folder}: {error.strerror}; nothing was written")
    in_the_way = list(_foreign(tree.folder, drifts)) or list(_losses(tree, drifts))
    if in_the_way:
        return error_result(ExitCode.ERRORS, "nothing was written", "".join(in_the_way))
    total = tree.objects
    written = sum(is_object_path(path) for drift in drifts.values() for path in (*drift.missing, *drift.changed))
    removed = sum(is_object_path(path) for drift in drifts.values() for path in drift.stale)
    said = f"{pluralize(total, 'object')}: {written} written, {total - written} unchanged, {removed} removed\n"
    return Result(ExitCode.OK, err=said)


def check_tree(tree: Tree) -> Result:
    """Say what is different in the tree, with the first lines of the differences; nothing is written."""
    try:
        drifts = {
            env: rendered_tree.compare_tree(tree.folder / env, files, partial=tree.partial, env=env, extras=tree.beside)
            for env, files in tree.wanted.items()
        }
        lines = [*_foreign(tree.folder, drifts), *_differences(tree, drifts)]
    except OSError as error:
        return error_result(ExitCode.ERRORS, f"{error.filename or tree.folder}: {error.strerror}")
    if lines:
        return error_result(
            ExitCode.ERRORS, f"the tree is not up to date; run `jobgen render -o {tree.folder}`", "".join(lines)
        )
    tools = sorted({drift.tool for drift in drifts.values() if drift.tool})
    said = f"the tree was written by jobgen {', '.join(tools)}; {__version__} makes the same of it\n" if tools else ""
    return Result(ExitCode.OK, err=f"{said}{pluralize(tree.objects, 'object')}, all up to date\n")


def _losses(tree: Tree, drifts: Mapping[str, Drift]) -> Iterator[str]:
    """Environments that would lose all their objects, or most of them, though nobody said that this is meant."""
    for env, drift in drifts.items():
        gone = sum(map(is_object_path, drift.stale))
        where = visible(str(tree.folder / env))
        if gone and not drift.wanted_objects and not tree.allow_empty:
            yield f"{where}: all {pluralize(gone, 'file')} would be deleted; --allow-empty says that this is meant\n"
        elif drift.wanted_objects and gone > max(_A_FEW, drift.existing_objects / 2) and not tree.allow_mass_delete:
            what = f"{gone} of {drift.existing_objects} files would be deleted"
            yield f"{where}: {what}; --allow-mass-delete says that this is meant\n"


def _foreign(folder: Path, drifts: Mapping[str, Drift]) -> Iterator[str]:
    for env, drift in drifts.items():
        for path, why in drift.foreign:
            yield visible(f"{folder / env / path}: {why}") + "\n"


def _differences(tree: Tree, drifts: Mapping[str, Drift]) -> Iterator[str]:
    shown = 0
    for env, drift in drifts.items():
        for what, paths in (("missing", drift.missing), ("", drift.changed), ("stale", drift.stale)):
            for path in paths:
                word = what or ("edited by hand" if path in drift.edited else "out of date")
                yield visible(f"{tree.folder / env / path}: {word}") + "\n"
                if not what and path in tree.wanted[env] and shown < _SHOWN_FILES:
                    shown += 1
                    yield from _lines(tree.folder / env / path, tree.wanted[env][path])


def _lines(full: Path, wanted: str) -> Iterator[str]:
    """The first lines of what a render would change in a file."""
    there = full.read_bytes().decode("utf-8", "replace").splitlines()
    lines = list(unified_diff(there, wanted.splitlines(), n=0, lineterm=""))[2:]
    yield from (f"    {visible(line)}\n" for line in lines[:_SHOWN_LINES])
    if len(lines) > _SHOWN_LINES:
        yield f"    … {pluralize(len(lines) - _SHOWN_LINES, 'more line')}\n"
