"""Where a repository begins, and which files and folders belong to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import overload

from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.drafts import is_file, is_folder

SETTINGS = "jobgen.yaml"
_WORKFLOWS = (".github", "workflows")
# Folders that package managers fill.
DEPENDENCY_FOLDERS = frozenset(("node_modules", "__pycache__", "site-packages", "venv", "bower_components"))
LAYER_FOLDERS = ("overlays", "policies", "runtimes", "schemas", "teams")
"""The folders of what is common to jobs."""
SOURCE_FOLDERS = ("jobs", *LAYER_FOLDERS)
"""The folders that people write in."""


@overload
def find_root(start: Path) -> Path | None: ...
@overload
def find_root(start: CommitPath) -> CommitPath | None: ...
@overload
def find_root(start: Folder) -> Folder | None: ...
def find_root(start: Folder) -> Folder | None:
    """The nearest folder at or above `start` with a jobgen.yaml; otherwise `start` if it has jobs/ or overlays/."""
    folder = find_settings(start)
    if folder is not None:
        return folder
    return start if any(exists_as(start / name, is_folder) for name in ("jobs", "overlays")) else None


def find_settings(start: Folder) -> Folder | None:
    """The nearest folder at or above `start` with a jobgen.yaml."""
    folder: Folder
    for folder in (start, *start.parents):
        if has_settings(folder):
            return folder
    return None


def has_settings(folder: Folder) -> bool:
    """Whether a folder has a jobgen.yaml of settings; in `.github/workflows`, a file of that name is a workflow."""
    return tuple(folder.parts[-2:]) != _WORKFLOWS and exists_as(folder / SETTINGS, is_file)


def exists_as(path: Folder, check: Callable[[str], bool]) -> bool:
    """Whether a path is a file, or a folder; what is in a folder that cannot be read is not there."""
    if isinstance(path, CommitPath):
        return path.is_file() if check is is_file else path.is_dir()
    return check(str(path))


def find_files_of_other_repositories(files: Iterable[str], root: Folder) -> set[str]:
    """The files that belong to the jobs of a repository other than `root`, and were found from outside of it."""
    known = {str(root.resolve()): False}
    parents: dict[str, str] = {}
    found: set[str] = set()
    by_folder: dict[str, list[str]] = {}
    for file in files:
        folder = os.path.dirname(os.path.realpath(file) if os.path.islink(file) else file)
        by_folder.setdefault(folder, []).append(file)
    for folder, several in by_folder.items():
        if _is_in_other_repository(_resolve_folder(folder, parents), known):
            found.update(several)
    return found


def _resolve_folder(folder: str, parents: dict[str, str]) -> str:
    """The path of a folder without links. Those of its siblings differ in their names only."""
    parent, name = os.path.split(folder)
    if name in ("", ".", "..") or os.path.islink(folder):
        return os.path.realpath(folder)
    if parent not in parents:
        parents[parent] = os.path.realpath(parent)
    return os.path.join(parents[parent], name)


def _is_in_other_repository(folder: str, known: dict[str, bool]) -> bool:
    """Whether a folder is in another repository, unless this is `known` of it or of a folder above it."""
    passed: list[str] = []
    while folder not in known:
        passed.append(folder)
        above = os.path.dirname(folder)
        if os.path.basename(folder) == "jobs" or (is_file(f"{folder}/{SETTINGS}") and has_settings(Path(folder))):
            known[folder] = True
        elif above == folder:
            known[folder] = False
        else:
            folder = above
    known.update(dict.fromkeys(passed, known[folder]))
    return known[folder]


def is_source_folder(root: Path, folder: Path) -> bool:
    """Whether a folder is one of the folders that jobgen reads, or inside one."""
    full = os.path.realpath(folder)
    sources = (os.path.realpath(root / name) for name in SOURCE_FOLDERS)
    return any(os.path.commonpath([full, source]) == source for source in sources)


def folder_exists(root: Folder, folder: str) -> bool:
    """Whether there is a folder at a path from the root."""
    return exists_as(root / folder, is_folder)
