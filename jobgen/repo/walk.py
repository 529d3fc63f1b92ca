"""Walk the folders of a repository, on disk or in a commit; what is skipped is listed with the reason."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from pathlib import Path

from jobgen.engine.inputs import Entry, exists, exists_itself, is_file, is_folder, is_link, list_folder, real_path
from jobgen.model.limits import MAX_WALKED_ENTRIES
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo import files
from jobgen.repo.commit import CommitPath, Folder, walk_committed
from jobgen.repo.files import FileEntry

ANY_FOLDERS = "**"
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
        folder, _, name = path.rpartition("/")
        states = _reach(self.names, folder)
        if _END in states:
            return True
        return not self.only_folders and len(self.names) in _advance(self.names, states, name)


_END = -1
"""The state of a folder that is matched, or is inside of one that is."""
_MAX_KEPT = 200_000
_reached: dict[tuple[tuple[str, ...], str], frozenset[int]] = {}


def _reach(names: tuple[str, ...], folder: str) -> frozenset[int]:
    """Return the places in a pattern after a folder, which are kept: most files share theirs."""
    pending: list[tuple[str, str]] = []
    states = frozenset((_END,))
    at = folder
    while at:
        known = _reached.get((names, at))
        if known is not None:
            states = known
            break
        above, _, part = at.rpartition("/")
        pending.append((at, part))
        at = above
    else:
        states = _pass_any(names, {0})
    if len(_reached) > _MAX_KEPT:
        _reached.clear()
    for path, part in reversed(pending):
        if _END not in states:
            states = _advance(names, states, part)
            states = frozenset((_END,)) if len(names) in states else states
        _reached[names, path] = states
    return states


def match_names(names: Sequence[str], parts: Sequence[str]) -> Iterator[bool]:
    """Yield for each part of a path whether a pattern matches the path up to it; `**` is any number of folders.

    All ways through the pattern are followed at once, so that no pattern takes long.
    """
    states = _pass_any(names, {0})
    for part in parts:
        states = _advance(names, states, part)
        yield len(names) in states


def _advance(names: Sequence[str], states: Iterable[int], part: str) -> frozenset[int]:
    """Return the places in a pattern after one more part of a path."""
    found = set()
    for at in states:
        if at < len(names):
            name = names[at]
            if name == ANY_FOLDERS:
                found.add(at)
            elif name == part or fnmatchcase(part, name):
                found.add(at + 1)
    return _pass_any(names, found)


def _pass_any(names: Sequence[str], states: set[int]) -> frozenset[int]:
    """Add the states after each `**`, which may match no folder."""
    pending = list(states)
    for at in pending:
        if at < len(names) and names[at] == ANY_FOLDERS:
            pending.append(at + 1)
    return frozenset(pending)


def parse_patterns(texts: Iterable[str]) -> tuple[ExcludePattern, ...]:
    """Parse the patterns of a list."""
    patterns: list[ExcludePattern] = []
    for text in islice(texts, _MAX_PATTERNS):
        if len(text) > _MAX_LENGTH:
            continue
        body = text.rstrip("/")
        written = [name for name in body.split("/") if name not in ("", ".")]
        # `**/**` is the same as `**`.
        names = tuple(name for before, name in pairwise(["", *written]) if not before == name == ANY_FOLDERS)
        names = names if "/" in body else (ANY_FOLDERS, *names)
        patterns.append(ExcludePattern(text, names, text.endswith("/")))
    return tuple(patterns)


def is_excluded(path: str, patterns: Sequence[ExcludePattern]) -> bool:
    """Return True if a pattern matches a path."""
    return any(pattern.matches(path) for pattern in patterns)


_MAX_SEARCHED = 50_000
"""How many files and folders are looked at to find repositories."""
# What Go, PHP and Ruby write into the folder of copied dependencies.
VENDOR_LISTS = ("modules.txt", "autoload.php", "bundle", "github.com", "k8s.io")
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
        yield from walk_committed(root, top, suffixes)
        return
    inside = os.path.join(real_path(str(root)), "")
    full = os.path.join(root, top)
    if is_link(full) and not real_path(full).startswith(inside):
        yield files.report_link_outside(top)
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
            yield FileEntry(path, full, skipped=files.EXCLUDED)
        elif entry is not None and (found := _find_entry(entry, path, suffixes, inside, any_files=any_files)):
            yield found
        else:
            try:
                pending += _list_folder(full, path)
            except OSError as error:
                yield files.report_file(path, "unreadable-file", f"the folder cannot be read: {error.strerror}")


def find_one(root: str, path: str, suffixes: tuple[str, ...], *, any_files: bool = False) -> FileEntry | None:
    """Find one file as a walk of its folders does: it may be in a folder that is skipped; None if it is a folder."""
    inside = os.path.join(real_path(root), "")
    names = path.split("/")
    for count, name in enumerate(names, 1):
        entry = PathEntry(name, os.path.join(root, *names[:count]))
        found = _find_entry(entry, "/".join(names[:count]), suffixes, inside, any_files=any_files)
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
        return FileEntry(path, full, skipped=files.HIDDEN)
    if entry.is_symlink() and is_folder(full):
        if not (real_path(full) + os.sep).startswith(inside):
            return files.report_link_outside(path)
        found = files.report_file(path, "linked-folder", files.LINKED_FOLDER)
        return FileEntry(path, full, skipped=files.LINKED) if any_files else found
    if path.lower().endswith(suffixes):
        leads_out = entry.is_symlink() and not real_path(full).startswith(inside)
        return files.report_link_outside(path) if leads_out else FileEntry(path, full, optional=any_files)
    if any_files and entry.is_symlink() and "." not in entry.name and not exists(full):
        return files.report_link_nowhere(path)
    return FileEntry(path, full, skipped=files.OTHER_EXTENSION)


def _skip_folder(entry: _AnyEntry, full: str, *, any_files: bool) -> str:
    if entry.name.startswith(".") and not (any_files and entry.name in files.OBJECT_FOLDERS):
        return files.HIDDEN
    if not any_files:
        return ""
    if entry.name in files.DEPENDENCY_FOLDERS or exists(os.path.join(full, "pyvenv.cfg")):
        return files.DEPENDENCIES
    if entry.name == "vendor" and any(exists(os.path.join(full, name)) for name in VENDOR_LISTS):
        return files.DEPENDENCIES
    if exists_itself(os.path.join(full, ".git")):
        return files.OTHER_REPOSITORY
    metadata = os.path.join(os.path.dirname(full), files.CHART_METADATA)
    return files.HELM_CHART if entry.name in CHART_FOLDERS and is_file(metadata) else ""


def _list_folder(full: str, path: str) -> Iterator[tuple[_AnyEntry, str, str]]:
    """The entries of a folder, last first."""
    entries = sorted(list_folder(full), key=lambda entry: entry.name, reverse=True)
    return ((entry, entry.path, f"{path}/{entry.name}") for entry in entries)


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
        shown = [
            each for each in entries if not each.name.startswith(".") and each.name not in files.DEPENDENCY_FOLDERS
        ]
        inside = [entry.path for entry in shown if entry.is_dir(follow_symlinks=False)]
        found += [Path(each) for each in inside if is_wanted(Path(each))]
        pending += inside
    return found[:limit]
