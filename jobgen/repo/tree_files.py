"""Find and read the files of a rendered tree, on disk or in a commit."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.engine.inputs import FILE, FOLDER, MISSING, Unread, read_bytes
from jobgen.model.limits import MAX_BYTES
from jobgen.repo.commit import CommitPath, Folder, describe_path, list_folder_names
from jobgen.repo.lock import LOCK, LockFile, is_object_path

STAGE = ".jobgen-stage"
"""The folder in which files are written before they replace others."""
MAX_LOCK_BYTES = 64 * 1024 * 1024
_INPUTS = ("jobgen.yaml", "jobs", "overlays")


def find_environments(folder: Folder) -> list[str]:
    """Find the environments that an earlier run wrote below a folder; the unnamed one is the folder itself."""
    if not describe_path(folder).endswith(FOLDER):
        return []
    names = [name for name in list_folder_names(folder) if _is_own_folder(folder / name) and _has_lock(folder / name)]
    return sorted([*names, ""] if _has_lock(folder) else names)


def _has_lock(folder: Folder) -> bool:
    return describe_path(folder / LOCK) != MISSING


def _is_own_folder(path: Folder) -> bool:
    return describe_path(path) == FOLDER


def list_own_files(folder: Folder, lock: LockFile) -> Iterator[str]:
    """Return the files of an environment; in a folder that is a jobs repository itself, those beside known files."""
    if not is_jobs_repository(folder):
        return list_files(folder)
    namespaces = {path.partition("/")[0] for path in lock.files if is_object_path(path)}
    return (f"{name}/{path}" for name in sorted(namespaces) for path in list_files(folder / name))


def list_names(folder: Folder) -> list[str]:
    """Return the names of the entries of a folder, sorted."""
    return sorted(list_folder_names(folder))


def list_files(folder: Folder) -> Iterator[str]:
    """Return the paths of all files and links below a folder, hidden ones too, sorted by folder."""
    pending = [("", folder)]
    while pending:
        path, current = pending.pop()
        if _is_own_folder(current):
            below = [(f"{path}/{name}" if path else name, current / name) for name in list_folder_names(current)]
            pending += sorted(below, key=lambda pair: pair[0], reverse=True)
        elif path:
            yield path


def is_jobs_repository(folder: Folder) -> bool:
    """Whether the folder of an environment is a jobs repository itself."""
    return not all(describe_path(folder / name).endswith(MISSING) for name in _INPUTS)


def read_content(path: Folder, limit: int = MAX_BYTES) -> bytes | None:
    """Read a regular file; None if it is anything else, or larger than what jobgen writes."""
    if describe_path(path) != FILE:
        return None
    if isinstance(path, CommitPath):
        entry = path.find_entry()
        return path.commit.read_file(entry, path.path) if entry else None
    found = read_bytes(str(path), limit)
    return None if isinstance(found, Unread) else found
