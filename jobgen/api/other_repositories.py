"""Refuse to lint files of another jobs repository: without its settings and overlays, they are not what is rendered."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from jobgen.api.errors import UsageError
from jobgen.api.lint_files import LintFiles, LintRequest, is_repository_file, split_paths
from jobgen.repo.files import FileEntry, starts_object
from jobgen.repo.root import SETTINGS, find_root, find_settings, has_settings

_MAX_NAMED = 3


def check_paths(request: LintRequest) -> None:
    """Raise a UsageError if a path is another jobs repository, or in one of its folders."""
    root = find_root(request.directory.resolve())
    _, standalone = split_paths(request.directory, root, request.paths)
    for path in standalone:
        inside = (request.directory / path).resolve()
        if inside != root and has_settings(inside):
            raise UsageError(f"`{path}` is another jobs repository; lint it with `{_make_command(path)}`")
        other = find_settings(inside.parent)
        if not isinstance(other, Path) or other == root:
            continue
        below = inside.relative_to(other).as_posix()
        if is_repository_file(below):
            shown = os.path.relpath(other, request.directory.resolve())
            command = _make_command(shown, *(() if below == SETTINGS else (below,)))
            raise UsageError(f"`{path}` is in another jobs repository, `{shown}`; lint it with `{command}`")


def refuse_repositories(request: LintRequest, files: LintFiles) -> None:
    """Raise a UsageError if a folder contains other jobs repositories."""
    entries = files.standalone or ()
    found = [posixpath.dirname(entry.path) or "." for entry in entries if _is_settings(entry)]
    full = {folder: (request.directory / folder).resolve() for folder in found}
    folders = [folder for folder in found if full[folder] != files.root and has_settings(full[folder])]
    if folders:
        raise UsageError(_describe(folders, entries))


def _is_settings(entry: FileEntry) -> bool:
    """Whether a file of a folder is the settings of a repository; an object can be in a file of that name."""
    return entry.optional and posixpath.basename(entry.path) == SETTINGS and not starts_object(entry)


def _describe(folders: Sequence[str], entries: Iterable[FileEntry]) -> str:
    command = _make_command(folders[0])
    if len(folders) == 1:
        text = f"`{folders[0]}` is another jobs repository; lint it with `{command}`"
    else:
        names = [f"`{folder}`" for folder in folders[:_MAX_NAMED]]
        names += [f"{len(folders) - _MAX_NAMED} more"] if len(folders) > _MAX_NAMED else []
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        text = f"{listed} are other jobs repositories; lint each of them, the first with `{command}`"
    inside = tuple(f"{folder}/" for folder in folders)
    has_others = any(not entry.path.startswith(inside) for entry in entries)
    return f"{text}; to lint other manifests, name their folders" if has_others else text


def _make_command(folder: str, *paths: str) -> str:
    return shlex.join(("jobgen", "-C", folder, "lint", *paths))
