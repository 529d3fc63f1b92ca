"""Find and read what is at a path that a user names, inside or outside of a repository."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from jobgen.engine.inputs import exists, exists_itself, is_folder, list_folder, read_start, real_path, refuse_reuse
from jobgen.model.data import Location
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_SUGGESTIONS, MAX_WALKED_BYTES, MAX_WALKED_ENTRIES, MAX_WALKED_FILES
from jobgen.repo import files
from jobgen.repo.atomic import links_outside
from jobgen.repo.commit import CommitPath, Folder, find_committed, read_committed
from jobgen.repo.files import MANIFEST_SUFFIXES, TEMPLATE_SUFFIXES, File, FileEntry
from jobgen.repo.lock import KUSTOMIZATION, LOCK
from jobgen.repo.root import find_root
from jobgen.repo.walk import CHART_FOLDERS, walk_folder

_FOUND_SUFFIXES = (*MANIFEST_SUFFIXES, *TEMPLATE_SUFFIXES)
_BASELINE = lazy_pattern(r'\s*\{\s*"version":\s*[0-9]+,\s*"(?:findings|paths)":\s*\[')


def find_manifests(folder: Folder, path: str) -> Iterator[FileEntry]:
    """Find the manifests at a path, which may be outside of a jobs repository: a file, or all files below a folder."""
    return (entry for entry in find_files(folder, path) if not entry.skipped)


def find_files(folder: Folder, path: str, is_excluded: Callable[[str], bool] = lambda _: False) -> Iterator[FileEntry]:
    """Find the manifests at a path, and what is skipped there. A file that is named is skipped only if it is excluded.

    As for kubectl, hidden files in a folder are manifests too.
    """
    if isinstance(folder, CommitPath):
        for entry in _find_committed_manifests(folder, path):
            yield FileEntry(entry.path, skipped=files.EXCLUDED) if is_excluded(entry.path) else entry
        return
    full = os.path.join(folder, path)
    root = find_root(Path(folder).resolve())
    if root is not None and links_outside(full, root):
        yield files.report_link_outside(path)
        return
    if not exists_itself(full):
        above = os.path.dirname(path.rstrip("/"))
        around = os.path.join(folder, above)
        names = [posixpath.join(above, entry.name) for entry in list_folder(around)] if is_folder(around) else []
        yield files.report_missing_path(path, names[:MAX_SUGGESTIONS])
        return
    if not is_folder(full):
        # The files that jobgen writes next to the objects of a tree may be named like others, by a hook for example.
        excluded = files.EXCLUDED if is_excluded(path) else ""
        yield FileEntry(path, full, skipped=excluded, optional=_is_own_output(full))
        return
    yield from _find_in_folder(full, path, is_excluded)


def _find_in_folder(full: str, path: str, is_excluded: Callable[[str], bool]) -> Iterator[FileEntry]:
    """Find what is below a folder on disk, or only the finding that it holds too much."""
    base = os.path.normpath(path).replace(os.sep, "/")
    found: list[FileEntry] = []
    size = 0
    walked = walk_folder(full, base, _FOUND_SUFFIXES, real_path(full) + os.sep, is_excluded, any_files=True)
    for count, entry in enumerate(walked):
        found.append(entry)
        if base == ".":
            shown = entry.path.removeprefix("./")
            finding = entry.finding and entry.finding._replace(location=Location(shown))
            found[-1] = entry._replace(path=shown, finding=finding)
        size += files.measure_file(entry)
        if count >= MAX_WALKED_ENTRIES or size > MAX_WALKED_BYTES:
            # The sizes of files are not recorded.
            refuse_reuse()
            yield files.report_too_many_files(path)
            return
    if sum(not entry.skipped for entry in found) > MAX_WALKED_FILES:
        yield files.report_too_many_files(path)
    else:
        yield from found


def _is_own_output(full: str) -> bool:
    """True if a file is one that jobgen writes next to the objects of a rendered tree, or a baseline of any name."""
    folder, name = os.path.split(full)
    if name == KUSTOMIZATION:
        return exists(os.path.join(folder, LOCK))
    start = read_start(full, 200).decode("latin-1") if name.endswith(".json") and name != LOCK else ""
    return name == LOCK or _BASELINE.match(start) is not None


def _skip_committed(top: CommitPath, below: str) -> str:
    """Return why a file of a commit is not read, as `walk_folder` does on disk."""
    folders = below.split("/")[:-1]
    if not files.DEPENDENCY_FOLDERS.isdisjoint(folders):
        return files.DEPENDENCIES
    charts = ["/".join((*folders[:index], "Chart.yaml")) for index, name in enumerate(folders) if name in CHART_FOLDERS]
    return files.HELM_CHART if any((top / chart).exists() for chart in charts) else ""


def read_first(folders: Iterable[Folder], path: str) -> File | None:
    """Read the file at a path in the first folder where it can be read."""
    for folder in folders:
        if isinstance(folder, CommitPath):
            found = files.read_file(read_committed(folder / path, path, folder.resolve()))
        else:
            found = files.read_path(os.path.join(folder, path), path, folder)
        if not found.finding:
            return found
    return None


def _find_committed_manifests(folder: CommitPath, path: str) -> Iterator[FileEntry]:
    full = folder / path
    root = find_root(folder.resolve())
    is_inside = root is not None and posixpath.normpath(full.path).startswith(posixpath.join(root.path, ""))
    if not (full.exists() or full.is_symlink()):
        yield files.report_missing_path(path)
        return
    if not full.is_dir():
        is_metadata = full.name == LOCK or (full.name == KUSTOMIZATION and (full.parents[0] / LOCK).exists())
        found = read_committed(full, path, root if root and is_inside else CommitPath(folder.commit))
        yield found._replace(optional=is_metadata)
        return
    top = full.resolve()
    if root and is_inside and not top.is_relative_to(root):
        yield files.report_link_outside(path)
        return
    base = posixpath.normpath(path)
    for below, entry in top.walk():
        shown = below if base == "." else f"{base}/{below}"
        if not (entry.is_file or entry.is_link):
            yield FileEntry(shown, skipped=files.OTHER_REPOSITORY)
        elif reason := _skip_committed(top, below):
            yield FileEntry(shown, skipped=reason)
        else:
            found = find_committed(top / below, entry, shown, _FOUND_SUFFIXES, top)
            is_link = entry.is_link and "." not in posixpath.basename(shown)
            if is_link and found.skipped == files.OTHER_EXTENSION and not (top / below).exists():
                yield files.report_link_nowhere(shown)
                continue
            is_linked = found.finding is not None and found.finding.rule == "linked-folder"
            yield FileEntry(shown, skipped=files.LINKED) if is_linked else found._replace(optional=True)
