"""Where a repository begins, and which files and folders belong to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, overload

from jobgen.engine.inputs import is_file, is_folder, is_link, real_path
from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.files import MANIFEST_SUFFIXES, read_file
from jobgen.repo.walk import list_paths, walk_files

if TYPE_CHECKING:
    from jobgen.engine.store import Store

SETTINGS = "jobgen.yaml"
_OWN_MARKS = {
    **dict.fromkeys(("defects", "jobs", "overlays", "teams"), (b"jobgen.dev",)),
    "policies": (b"AdmissionPolicy",),
    "runtimes": (b"TrainingRuntime",),
    "schemas": (b"platform:", b'"x-kubernetes-', b'"properties"'),
}
"""A text that files have which jobgen reads in a folder."""
_USUAL_FOLDERS = ("docs", "exported", "manifests", "rendered", "site", "tests")
"""Folders that jobs repositories have beside those of jobgen."""
_MAX_SEARCHED = 200
"""How many files of a folder are searched for such a text."""
BASELINE = "jobgen-baseline.json"
"""The name of the baseline, unless another one is given."""
LAYER_FOLDERS = ("defects", "overlays", "policies", "runtimes", "schemas", "teams")
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
    """The nearest folder at or above `start` with a jobgen.yaml; otherwise `start` if it has jobs/ or overlays."""
    folder = find_settings(start)
    if folder is not None:
        return folder
    return start if exists_as(start / "jobs", is_folder) or has_own_files(start, "overlays") else None


def explain_absence(folder: Path, name: str | Path) -> str:
    """Say what is wrong with the name of a folder that is not there."""
    if folder.is_file():
        return f"`{name}` is a file; name its folder: `{Path(name).parent}`"
    return f"there is no folder `{name}`; check the path"


def open_store(folder: Path) -> Store:
    """Open the store of the jobs repository that a folder is in, or of the folder."""
    # Imported late: most commands that look for the root keep no answers.
    from jobgen.engine.store import Store

    resolved = folder.resolve()
    return Store(str(find_root(resolved) or resolved))


def holds_layers(root: Folder, top: str) -> bool:
    """Return True if a folder of layers is jobgen's: it is in a jobs repository, or a file there says so.

    Many repositories have folders that are called overlays, policies or schemas and know nothing of jobgen.
    """
    if is_repository(root) or has_own_files(root, top):
        return True
    if not has_settings(root):
        return False
    # If a folder has kustomizations, its files are theirs.
    entries = islice(walk_files(root, top, MANIFEST_SUFFIXES), _MAX_SEARCHED)
    return not any(entry.path.rpartition("/")[2].startswith("kustomization.") for entry in entries)


def is_repository(folder: Folder) -> bool:
    """Return True if a folder is a jobs repository: it has settings and jobs, specs of jobgen, or nothing but jobs."""
    if not exists_as(folder / "jobs", is_folder):
        return has_own_files(folder, "overlays")
    if has_settings(folder):
        return True
    if isinstance(folder, CommitPath):
        names = {each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith(".")}
    else:
        names = {name.rstrip("/") for name in list_paths(str(folder), "") if name.endswith("/")}
    return names <= {*SOURCE_FOLDERS, *_USUAL_FOLDERS} or has_own_files(folder, "jobs")


def lacks_jobs(root: Folder) -> bool:
    """Return True if a repository has settings and no jobs: all of it is manifests, as in any other repository."""
    return has_settings(root) and not exists_as(root / "jobs", is_folder)


def has_own_files(root: Folder, top: str) -> bool:
    """Return True if a file in a folder is what jobgen reads in a folder of that name."""
    marks = _OWN_MARKS[top]
    contents = (read_file(entry).content for entry in islice(walk_files(root, top, MANIFEST_SUFFIXES), _MAX_SEARCHED))
    return any(mark in content for content in contents for mark in marks)


def find_settings(start: Folder) -> Folder | None:
    """The nearest folder at or above `start` with a jobgen.yaml."""
    folders: Iterable[Folder] = (start, *start.parents)
    return next(filter(has_settings, folders), None)


def has_settings(folder: Folder) -> bool:
    """True if a folder has a jobgen.yaml of settings; in `.github/workflows`, a file of that name is a workflow."""
    return tuple(folder.parts[-2:]) != (".github", "workflows") and exists_as(folder / SETTINGS, is_file)


def exists_as(path: Folder, check: Callable[[str], bool]) -> bool:
    """Return True if a path is a file, or a folder; what is in a folder that cannot be read is not there."""
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
        folder = os.path.dirname(real_path(file) if is_link(file) else file)
        by_folder.setdefault(folder, []).append(file)
    for folder, several in by_folder.items():
        parent, name = os.path.split(folder)
        if name in ("", ".", "..") or is_link(folder):
            resolved = real_path(folder)
        else:
            # The paths of siblings without links differ in their names only.
            if parent not in parents:
                parents[parent] = real_path(parent)
            resolved = os.path.join(parents[parent], name)
        if _is_in_other_repository(resolved, known):
            found.update(several)
    return found


def _is_in_other_repository(folder: str, known: dict[str, bool]) -> bool:
    """Return True if a folder is in another repository, unless this is `known` of it or of a folder above it."""
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
    """Return True if a folder is one of the folders that jobgen reads, or inside one."""
    full = real_path(str(folder))
    sources = (real_path(str(root / name)) for name in SOURCE_FOLDERS)
    return any(os.path.commonpath([full, source]) == source for source in sources)


def folder_exists(root: Folder, folder: str) -> bool:
    """Return True if there is a folder at a path from the root."""
    return exists_as(root / folder, is_folder)
