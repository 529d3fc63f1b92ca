"""Find and read files of a commit as those on disk are: links are followed only inside the repository."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.model.limits import MAX_BYTES
from jobgen.repo.commit import Commit, CommitPath, Entry
from jobgen.repo.files import (
    HIDDEN,
    LINK_NOWHERE,
    LINKED_FOLDER,
    OTHER_EXTENSION,
    FileEntry,
    report_file,
    report_link_outside,
    report_too_large,
)

_SUBMODULE = "a submodule; its files are not part of the commit"


def walk_committed(root: CommitPath, top: str, suffixes: tuple[str, ...]) -> Iterator[FileEntry]:
    """Find the files below a folder of a commit, and what is skipped there."""
    folder, inside = root / top, root.resolve()
    home = folder.resolve()
    if folder.is_symlink() and not home.is_relative_to(inside):
        yield report_link_outside(top)
    elif folder.is_dir():
        for below, entry in root.commit.read_ahead(folder.walk(), MAX_BYTES):
            if below.rpartition("/")[2].startswith("."):
                yield FileEntry(f"{top}/{below}", skipped=HIDDEN)
            elif entry.is_file or entry.is_link:
                file = CommitPath(home.commit, f"{home.path}/{below}" if home.path else below)
                yield find_committed(file, entry, f"{top}/{below}", suffixes, inside)
            else:
                yield report_file(f"{top}/{below}", "unreadable-file", _SUBMODULE)


def find_committed(
    file: CommitPath, entry: Entry, path: str, suffixes: tuple[str, ...], inside: CommitPath
) -> FileEntry:
    """Read a file or link of a commit, as `walk_folder` finds it on disk."""
    if entry.is_link and file.is_dir():
        is_inside = file.resolve().is_relative_to(inside)
        return report_file(path, "linked-folder", LINKED_FOLDER) if is_inside else report_link_outside(path)
    if path.lower().endswith(suffixes) or (entry.is_link and file.leads_out()):
        return _read_object(file.commit, entry, path) if entry.is_file else read_committed(file, path, inside)
    content = _read_object(file.commit, entry, path).content if entry.is_file else None
    return FileEntry(path, content=content, skipped=OTHER_EXTENSION)


def read_committed(file: CommitPath, path: str, inside: CommitPath) -> FileEntry:
    """Read a file of a commit; links lead to other files of the same folder only."""
    if not file.resolve().is_relative_to(inside):
        return report_link_outside(path)
    entry = file.find_entry()
    if entry is None or not entry.is_file:
        return report_file(path, "unreadable-file", LINK_NOWHERE if file.is_symlink() else "not a regular file")
    return _read_object(file.commit, entry, path)


def _read_object(commit: Commit, entry: Entry, path: str) -> FileEntry:
    size = commit.measure_file(entry, path)
    return report_too_large(path, size) if size > MAX_BYTES else FileEntry(path, content=commit.read_file(entry, path))
