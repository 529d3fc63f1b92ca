"""Walk the folders of a repository, on disk or in a commit; what is skipped is listed with the reason."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from jobgen.engine.inputs import (
    Entry,
    exists,
    exists_itself,
    is_file,
    is_folder,
    is_link,
    list_folder,
    real_path,
)
from jobgen.model.limits import MAX_WALKED_ENTRIES
from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.files import (
    DEPENDENCIES,
    DEPENDENCY_FOLDERS,
    EXCLUDED,
    HELM_CHART,
    HIDDEN,
    LINKED,
    LINKED_FOLDER,
    OTHER_EXTENSION,
    OTHER_REPOSITORY,
    FileEntry,
    report_file,
    report_link_outside,
)

_ANY_FOLDERS = "**"
_MAX_PATTERNS = 100
_MAX_LENGTH = 200
"""The same as in the schema of the settings: more, or longer ones, are errors there and match nothing here."""


class ExcludePattern(NamedTuple):
    """A pattern as it is written, the names that it matches, and whether it matches only folders."""

    text: str
    names: tuple[str, ...]
    only_folders: bool

    def matches(self, path: str) -> bool:
        """Return True if a file, by its path from the root, or one of the folders above it matches."""
        parts = path.split("/")
        states = self._skip_folders({0})
        for number, part in enumerate(parts, 1):
            ahead = {state + (self.names[state] != _ANY_FOLDERS) for state in states if self._fits(state, part)}
            states = self._skip_folders(ahead)
            if len(self.names) in states and not (self.only_folders and number == len(parts)):
                return True
        return False

    def _fits(self, state: int, part: str) -> bool:
        return state < len(self.names) and (self.names[state] == _ANY_FOLDERS or fnmatchcase(part, self.names[state]))

    def _skip_folders(self, states: set[int]) -> set[int]:
        """Add the states after each `**`, which may match no folder."""
        found = set(states)
        for state in range(len(self.names)):
            if state in found and self.names[state] == _ANY_FOLDERS:
                found.add(state + 1)
        return found


def parse_patterns(texts: Iterable[str]) -> tuple[ExcludePattern, ...]:
    """Parse the patterns of a list."""
    return tuple(_parse_pattern(text) for text in islice(texts, _MAX_PATTERNS) if len(text) <= _MAX_LENGTH)


def _parse_pattern(text: str) -> ExcludePattern:
    body = text.rstrip("/")
    written = [name for name in body.split("/") if name not in ("", ".")]
    # `**/**` is the same as `**`.
    names = tuple(name for before, name in pairwise(["", *written]) if not before == name == _ANY_FOLDERS)
    return ExcludePattern(text, names if "/" in body else (_ANY_FOLDERS, *names), text.endswith("/"))


def is_excluded(path: str, patterns: Sequence[ExcludePattern]) -> bool:
    """Return True if a pattern matches a path."""
    return any(pattern.matches(path) for pattern in patterns)


_MAX_SEARCHED = 50_000
"""How many files and folders are looked at to find repositories."""
# What Go, PHP and Ruby write into the folder of copied dependencies.
_VENDOR_LISTS = ("modules.txt", "autoload.php", "bundle", "github.com", "k8s.io")
CHART_FOLDERS = frozenset(("charts", "templates"))


class PathEntry(NamedTuple):
    """A file or folder, on disk or not, as an entry of its folder that is looked up by its path."""

    name: str
    path: str

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return True if it is a folder."""
        return is_folder(self.path) and (follow_symlinks or not self.is_symlink())

    def is_file(self) -> bool:
        """Return True if it is a file."""
        return is_file(self.path)

    def is_symlink(self) -> bool:
        """Return True if it is a symbolic link."""
        return is_link(self.path)


_AnyEntry = Entry | PathEntry


def find_unmatched_patterns(root: Folder, patterns: Sequence[ExcludePattern]) -> list[ExcludePattern]:
    """The patterns that match nothing in a repository; none if it has too many files to tell."""
    left = list(patterns)
    every = (path for path, _ in root.walk()) if isinstance(root, CommitPath) else _list_paths(str(root))
    for count, path in enumerate(every):
        left = [pattern for pattern in left if not pattern.matches(path)]
        if not left or count > MAX_WALKED_ENTRIES:
            return []
    return left


def _list_paths(root: str) -> Iterator[str]:
    """The paths of all files of a repository, except those of Git."""
    pending = [(root, "")]
    while pending:
        full, path = pending.pop()
        with suppress(OSError):
            for entry, inner, below in _list_folder(full, path):
                if entry.is_dir(follow_symlinks=False):
                    pending += [(inner, below)] if entry.name != ".git" else []
                else:
                    yield below[1:]


def list_paths(folder: str, start: str) -> list[str]:
    """The files and folders below a folder whose path from it may begin with a text; folders end in a slash."""
    above, name = os.path.split(start)
    found = [entry.name + "/" * entry.is_dir() for entry in list_folder(os.path.join(folder, above))]
    return sorted(os.path.join(above, each) for each in found if name.startswith(".") or not each.startswith("."))


def walk_files(root: Folder, top: str, suffixes: tuple[str, ...]) -> Iterator[FileEntry]:
    """Find regular files below a folder, ordered by path; links that lead out of the repository become findings."""
    return (entry for entry in walk_all(root, top, suffixes) if not entry.skipped)


def walk_all(root: Folder, top: str, suffixes: tuple[str, ...]) -> Iterator[FileEntry]:
    """Find the files below a folder of a repository as `walk_files` does, and what is skipped there."""
    if isinstance(root, CommitPath):
        # Imported late: most runs read files.
        from jobgen.repo.commit import walk_committed

        yield from walk_committed(root, top, suffixes)
        return
    inside = os.path.join(real_path(str(root)), "")
    full = os.path.join(root, top)
    if is_link(full) and not real_path(full).startswith(inside):
        yield report_link_outside(top)
    elif is_folder(full):
        yield from walk_folder(full, top, suffixes, inside)


def walk_folder(
    full: str,
    path: str,
    suffixes: tuple[str, ...],
    inside: str,
    is_excluded: Callable[[str], bool] = lambda _: False,
    *,
    any_files: bool = False,
) -> Iterator[FileEntry]:
    """Find the files below a folder, and what is skipped there.

    With `any_files`, the folder is not one of jobgen: hidden files are read, and folders of others are skipped.
    """
    # Folders may be nested deeper than Python's stack allows, so pending ones are kept in a list.
    pending: list[tuple[_AnyEntry | None, str, str]] = [(None, full, path)]
    while pending:
        entry, full, path = pending.pop()
        if entry is not None and is_excluded(path):
            yield FileEntry(path, full, skipped=EXCLUDED)
        elif entry is not None and (found := _find_entry(entry, path, suffixes, inside, any_files=any_files)):
            yield found
        else:
            try:
                pending += _list_folder(full, path)
            except OSError as error:
                yield report_file(path, "unreadable-file", f"the folder cannot be read: {error.strerror}")


def find_one(root: str, path: str, suffixes: tuple[str, ...], *, any_files: bool = False) -> FileEntry | None:
    """Find one file as a walk of its folders does: it may be in a folder that is skipped; None if it is a folder."""
    inside = os.path.join(real_path(root), "")
    names = path.split("/")
    for count in range(1, len(names) + 1):
        below = "/".join(names[:count])
        entry = PathEntry(names[count - 1], os.path.join(root, *names[:count]))
        found = _find_entry(entry, below, suffixes, inside, any_files=any_files)
        if found is not None:
            return found
    return None


def _find_entry(
    entry: _AnyEntry, path: str, suffixes: tuple[str, ...], inside: str, *, any_files: bool
) -> FileEntry | None:
    """Return an entry of a folder, or why it is skipped; None for a folder that is entered."""
    full = entry.path
    if entry.is_dir(follow_symlinks=False):
        reason = _skip_folder(entry, full, any_files=any_files)
        return FileEntry(path, full, skipped=reason) if reason else None
    if entry.name.startswith(".") and not (any_files and path.lower().endswith(suffixes) and entry.is_file()):
        return FileEntry(path, full, skipped=HIDDEN)
    if entry.is_symlink() and is_folder(full):
        found = _report_linked_folder(full, path, inside)
        is_inside = found.finding is not None and found.finding.rule == "linked-folder"
        return FileEntry(path, full, skipped=LINKED) if any_files and is_inside else found
    if path.lower().endswith(suffixes):
        leads_out = entry.is_symlink() and not real_path(full).startswith(inside)
        return report_link_outside(path) if leads_out else FileEntry(path, full, optional=any_files)
    return FileEntry(path, full, skipped=OTHER_EXTENSION)


def _skip_folder(entry: _AnyEntry, full: str, *, any_files: bool) -> str:
    """Return why a folder is not entered, or an empty string."""
    if entry.name.startswith("."):
        return HIDDEN
    if not any_files:
        return ""
    if entry.name in DEPENDENCY_FOLDERS or exists(os.path.join(full, "pyvenv.cfg")):
        return DEPENDENCIES
    if entry.name == "vendor" and any(exists(os.path.join(full, name)) for name in _VENDOR_LISTS):
        return DEPENDENCIES
    if exists_itself(os.path.join(full, ".git")):
        return OTHER_REPOSITORY
    is_template = entry.name in CHART_FOLDERS
    return HELM_CHART if is_template and is_file(os.path.join(os.path.dirname(full), "Chart.yaml")) else ""


def _list_folder(full: str, path: str) -> Iterator[tuple[_AnyEntry, str, str]]:
    """The entries of a folder, last first."""
    entries = sorted(list_folder(full), key=lambda entry: entry.name, reverse=True)
    return ((entry, entry.path, f"{path}/{entry.name}") for entry in entries)


def _report_linked_folder(full: str, path: str, inside: str) -> FileEntry:
    if not (real_path(full) + os.sep).startswith(inside):
        return report_link_outside(path)
    return report_file(path, "linked-folder", LINKED_FOLDER)


def find_folders(folder: Path, limit: int, is_wanted: Callable[[Path], bool]) -> list[Path]:
    """The folders below a folder that are wanted, the nearest first; links and hidden folders are not followed.

    At most `limit` are returned, and large folders are not searched to the end.
    """
    found: list[Path] = []
    pending, count = deque([str(folder)]), 0
    while pending and len(found) < limit and count < _MAX_SEARCHED:
        try:
            listed = list_folder(pending.popleft())
            entries = sorted(islice(listed, _MAX_SEARCHED - count), key=lambda entry: entry.name)
        except OSError:
            continue
        count += len(entries)
        inside = [entry.path for entry in entries if _is_searched(entry)]
        found += [Path(each) for each in inside if is_wanted(Path(each))]
        pending += inside
    return found[:limit]


def _is_searched(entry: _AnyEntry) -> bool:
    return (
        not entry.name.startswith(".") and entry.name not in DEPENDENCY_FOLDERS and entry.is_dir(follow_symlinks=False)
    )
