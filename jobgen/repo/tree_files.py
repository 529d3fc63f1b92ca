"""Find and read the files of a rendered tree, on disk or in a commit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from jobgen.model.limits import MAX_BYTES
from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.drafts import find_draft
from jobgen.repo.lock import LOCK, LockFile, is_object_path

STAGE = ".jobgen-stage"
"""The folder in which files are written before they replace others."""
MAX_LOCK_BYTES = 64 * 1024 * 1024
_INPUTS = ("jobgen.yaml", "jobs", "overlays")


def find_environments(folder: Folder) -> list[str]:
    """Find the environments that an earlier run wrote below a folder; the unnamed one is the folder itself."""
    if not folder.is_dir():
        return []
    names = [entry.name for entry in folder.iterdir() if not entry.is_symlink() and _has_lock(entry)]
    return sorted([*names, ""] if _has_lock(folder) else names)


def _has_lock(folder: Folder) -> bool:
    return (folder / LOCK).is_symlink() or (folder / LOCK).exists()


def list_own_files(folder: Folder, lock: LockFile) -> Iterator[str]:
    """Return the files of an environment; in a folder that is a jobs repository itself, those beside known files."""
    if not is_jobs_repository(folder):
        return list_files(folder)
    namespaces = {path.partition("/")[0] for path in lock.files if is_object_path(path)}
    return (f"{name}/{path}" for name in sorted(namespaces) for path in list_files(folder / name))


def list_names(folder: Folder) -> list[str]:
    """Return the names of the entries of a folder, sorted."""
    return sorted(entry.name for entry in folder.iterdir())


def list_files(folder: Folder) -> Iterator[str]:
    """Return the paths of all files and links below a folder, hidden ones too, sorted by folder."""
    pending = [("", folder)]
    while pending:
        path, current = pending.pop()
        if not current.is_symlink() and current.is_dir():
            below = [(f"{path}/{entry.name}" if path else entry.name, entry) for entry in current.iterdir()]
            pending += sorted(below, key=lambda pair: pair[0], reverse=True)
        elif path:
            yield path


def stat_files(folder: Path) -> list[tuple[str, os.stat_result]]:
    """Return the paths of all files and links below a folder, as `list_files` does, each with its own stat."""
    found: list[tuple[str, os.stat_result]] = []
    pending = [("", str(folder))]
    while pending:
        path, full = pending.pop()
        with os.scandir(full) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((f"{path}{entry.name}/", entry.path))
                else:
                    found.append((f"{path}{entry.name}", entry.stat(follow_symlinks=False)))
    return sorted(found)


def is_jobs_repository(folder: Folder) -> bool:
    """Whether the folder of an environment is a jobs repository itself."""
    return any((folder / name).exists() for name in _INPUTS)


def holds_only_tree(folder: Path) -> bool:
    """Whether a folder has only the files of an environment: it is no link, no repository, and no run died in it."""
    is_folder = folder.is_dir() and not folder.is_symlink()
    return is_folder and not is_jobs_repository(folder) and not os.path.lexists(folder / STAGE)


def read_content(path: Folder, limit: int = MAX_BYTES) -> bytes | None:
    """Read a regular file; None if it is anything else, or larger than what jobgen writes."""
    if path.is_symlink() or not path.is_file():
        return None
    if isinstance(path, CommitPath):
        entry = path.find_entry()
        return path.commit.read_file(entry, path.path) if entry else None
    draft = find_draft(str(path))
    if draft is not None:
        return draft
    try:
        return path.read_bytes() if path.stat().st_size <= limit else None
    except OSError:
        return None
