"""The files of a commit, read from Git's objects. Nothing is written, and links are followed inside the commit only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from jobgen.engine import inputs
from jobgen.model.limits import MAX_BYTES
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo import files, git
from jobgen.repo.files import FileEntry, report_file

_MAX_TREE_BYTES = 64 * 1024 * 1024
_MAX_TOTAL_BYTES = 256 * 1024 * 1024
_AHEAD, _MAX_AHEAD_BYTES = 500, 16 * 1024 * 1024
"""How many files, and how many bytes, are read at once."""
_MAX_PATH = 4096


class Entry(NamedTuple):
    """An entry of a folder: its mode, and the name of its object."""

    mode: int
    object: str

    @property
    def is_folder(self) -> bool:
        """Return True if it is a folder."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        """Return True if it is a symbolic link."""
        return stat.S_ISLNK(self.mode)

    @property
    def is_file(self) -> bool:
        """Return True if it is a regular file; a submodule is neither a file nor a folder."""
        return stat.S_ISREG(self.mode)


class Commit:
    """A commit, and those of its objects that have been read."""

    def __init__(self, name: str, date: str, reader: git.ObjectReader) -> None:
        self.name = name
        self.date = date
        self._reader = reader
        self._folders: dict[str, dict[str, Entry]] = {}
        self._sizes: dict[str, int] = {}
        self._contents: dict[str, bytes] = {}
        self._ahead: dict[str, bytes] = {}
        self._total = 0
        self.top = Entry(stat.S_IFDIR, reader.describe(f"{name}^{{tree}}").name)

    def list_folder(self, entry: Entry, path: str) -> dict[str, Entry]:
        """Return the entries of a folder by name, sorted."""
        if entry.object not in self._folders:
            info = self._reader.describe(entry.object)
            if info.type != "tree" or info.size > _MAX_TREE_BYTES:
                raise self.make_error(path, "is not a valid folder")
            self._folders[entry.object] = self._parse_tree(self._reader.read(entry.object), path)
        return self._folders[entry.object]

    def _parse_tree(self, content: bytes, path: str) -> dict[str, Entry]:
        """Parse a tree object. Git does not create trees with odd or repeated names, but other programs can."""
        length = len(self.name) // 2
        entries: dict[str, Entry] = {}
        start = 0
        while start < len(content):
            space, end = content.find(b" ", start), content.find(b"\0", start)
            mode, name = content[start:space], os.fsdecode(content[space + 1 : end])
            if not start < space < end or len(content) <= end + length or mode.strip(b"01234567"):
                raise self.make_error(path, "is not a valid folder")
            if name in ("", ".", "..") or "/" in name:
                raise self.make_error(path, f"has an entry with the name `{name}`")
            if name in entries:
                raise self.make_error(path, f"has two entries with the name `{name}`")
            entries[name] = Entry(int(mode, 8), content[end + 1 : end + 1 + length].hex())
            start = end + 1 + length
        return dict(sorted(entries.items()))

    def measure_file(self, entry: Entry, path: str) -> int:
        """Return the size of a file."""
        if entry.object not in self._sizes:
            info = self._reader.describe(entry.object)
            if info.type != "blob":
                raise self.make_error(path, "is not a valid file")
            self._sizes[entry.object] = info.size
        return self._sizes[entry.object]

    def read_file(self, entry: Entry, path: str) -> bytes:
        """Return the content of a file."""
        if entry.object not in self._contents:
            self._total += self.measure_file(entry, path)
            if self._total > _MAX_TOTAL_BYTES:
                limit = f"the limit is {_MAX_TOTAL_BYTES // 1024 // 1024} MiB"
                raise git.GitError(f"the files of commit {self.name[:10]} are too large; {limit}")
            known = self._ahead.pop(entry.object, None)
            self._contents[entry.object] = self._reader.read(entry.object) if known is None else known
        return self._contents[entry.object]

    def read_ahead(self, files: Sequence[tuple[str, Entry]], limit: int) -> Iterator[tuple[str, Entry]]:
        """Yield files after many of them have been read at once, because each answer of Git takes time.

        One that is larger than the limit, or not valid, is read by `read_file`, which reports it.
        """
        for start in range(0, len(files), _AHEAD):
            batch = files[start : start + _AHEAD]
            names = list(dict.fromkeys(each.object for _, each in batch if each.is_file))
            unknown = [name for name in names if name not in self._sizes]
            for info in self._reader.describe_each(unknown):
                if info is not None and info.type == "blob":
                    self._sizes[info.name] = info.size
            wanted = [name for name in names if name not in self._contents and self._sizes.get(name, limit) < limit]
            if sum(self._sizes[name] for name in wanted) <= _MAX_AHEAD_BYTES:
                self._ahead = dict(zip(wanted, self._reader.read_each(wanted), strict=True))
            yield from batch
        self._ahead = {}

    def find(self, path: str) -> tuple[str, Entry | None] | None:
        """Return a path without links, and what is there or None; None alone if the path leads out of the commit."""
        pending = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        if path.startswith("/"):
            return None
        found: list[tuple[str, Entry | None]] = [("", self.top)]
        links = 0
        while pending:
            part = pending.pop()
            parent, entry = found[-1]
            if part == "..":
                found.pop()
                if not found:
                    return None
                continue
            child = f"{parent}/{part}" if parent else part
            entry = self.list_folder(entry, parent).get(part) if entry and entry.is_folder else None
            if entry is None or not entry.is_link:
                found.append((child, entry))
                continue
            links += 1
            target = os.fsdecode(self.read_file(entry, child)) if self.measure_file(entry, child) <= _MAX_PATH else ""
            if target.startswith("/"):
                return None
            if links > 40 or not target:
                return child, None
            pending += [part for part in reversed(target.split("/")) if part not in ("", ".")]
        return found[-1]

    def make_error(self, path: str, reason: str) -> git.GitError:
        """Return the error that an object of the commit is not valid."""
        return git.GitError(f"`{path or '.'}` {reason} in commit {self.name[:10]}; check it with `git fsck`")


class CommitPath(NamedTuple):
    """A path in a commit, with the methods of `pathlib.Path` that readers of a repository need.

    It is not an `os.PathLike`, so it cannot be opened on disk by mistake.
    """

    commit: Commit
    path: str = ""
    """From the top of the work tree; a path that leads out of the commit starts with `/`."""

    def __str__(self) -> str:
        return f"{self.commit.name[:10]}:{self.path}"

    def __truediv__(self, path: str) -> CommitPath:
        joined = str(PurePosixPath(self.path, path))
        return CommitPath(self.commit, "" if joined == "." else joined)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parts(self) -> tuple[str, ...]:
        """All names of the path."""
        return PurePosixPath(self.path).parts

    @property
    def parents(self) -> list[CommitPath]:
        """All folders above, the nearest first."""
        return [CommitPath(self.commit, "/".join(self.parts[:length])) for length in reversed(range(len(self.parts)))]

    def resolve(self) -> CommitPath:
        """Follow all links."""
        found = self.commit.find(self.path)
        return CommitPath(self.commit, found[0] if found else "/")

    def leads_out(self) -> bool:
        """Return True if the path leads out of the commit."""
        return self.commit.find(self.path) is None

    def is_relative_to(self, folder: CommitPath) -> bool:
        """Return True if the path is a folder or below it."""
        return PurePosixPath(self.path).is_relative_to(folder.path)

    def exists(self) -> bool:
        """Return True if there is something, after all links."""
        return self.find_entry() is not None

    def is_file(self) -> bool:
        """Return True if there is a regular file, after all links."""
        entry = self.find_entry()
        return entry is not None and entry.is_file

    def is_dir(self) -> bool:
        """Return True if there is a folder, after all links."""
        entry = self.find_entry()
        return entry is not None and entry.is_folder

    def is_symlink(self) -> bool:
        """Return True if the path itself is a link."""
        parent = self.commit.find(os.path.dirname(self.path))
        if parent is None or parent[1] is None or not parent[1].is_folder:
            return False
        entry = self.commit.list_folder(parent[1], parent[0]).get(self.name)
        return entry is not None and entry.is_link

    def iterdir(self) -> Iterator[CommitPath]:
        """The entries of a folder."""
        entry = self.find_entry()
        for name in self.commit.list_folder(entry, self.path) if entry else ():
            yield self / name

    def walk(self, limit: int = 300_000) -> list[tuple[str, Entry]]:
        """All files, links and submodules below a folder, except in hidden folders, ordered by path."""
        top = self.find_entry()
        pending = [("", top)] if top else []
        found: list[tuple[str, Entry]] = []
        count = 0
        while pending:
            below, entry = pending.pop()
            count += 1
            if count > limit:
                raise self.commit.make_error(self.path, f"has more than {limit} entries")
            if len(below) > _MAX_PATH:
                raise self.commit.make_error(self.path, f"has a path with more than {_MAX_PATH} characters")
            if not entry.is_folder:
                found.append((below, entry))
                continue
            prefix = f"{below}/" if below else ""
            named = self.commit.list_folder(entry, f"{self.path}/{below}" if below else self.path)
            shown = ((name, each) for name, each in named.items() if not (each.is_folder and name.startswith(".")))
            pending += reversed([(prefix + name, each) for name, each in shown])
        return found

    def find_entry(self) -> Entry | None:
        """What is at the path, after all links."""
        found = self.commit.find(self.path)
        return found[1] if found else None


Folder = Path | CommitPath
"""A folder that files are read from: on disk, or in a commit."""


def describe_path(path: Folder) -> str:
    """Return what is at a path, on disk or in a commit, as `inputs.describe` does."""
    if not isinstance(path, CommitPath):
        return inputs.describe(str(path))
    what = inputs.FOLDER if path.is_dir() else inputs.FILE if path.is_file() else inputs.OTHER
    return ("link " if path.is_symlink() else "") + (what if path.exists() else inputs.MISSING)


def list_folder_names(folder: Folder) -> list[str]:
    """Return the names of the entries of a folder."""
    entries = folder.iterdir() if isinstance(folder, CommitPath) else inputs.list_folder(str(folder))
    return [entry.name for entry in entries]


@contextmanager
def open_commit(folder: Path, name: str) -> Iterator[CommitPath]:
    """Open a folder of a repository as it was at a commit."""
    prefix, reader = git.find_prefix(folder), git.ObjectReader(folder)
    try:
        yield CommitPath(Commit(name, git.read_commit_date(folder, name), reader), prefix)
    finally:
        reader.close()


def read_date(folder: Folder) -> str:
    """The date of the commit that a folder belongs to; empty without a commit."""
    return folder.commit.date if isinstance(folder, CommitPath) else git.read_day(folder)


def walk_committed(root: CommitPath, top: str, suffixes: tuple[str, ...]) -> Iterator[FileEntry]:
    """Find the files below a folder of a commit, and what is skipped there."""
    folder, inside = root / top, root.resolve()
    home = folder.resolve()
    if folder.is_symlink() and not home.is_relative_to(inside):
        yield files.report_link_outside(top)
    elif folder.is_dir():
        for below, entry in root.commit.read_ahead(folder.walk(), MAX_BYTES):
            if below.rpartition("/")[2].startswith("."):
                yield FileEntry(f"{top}/{below}", skipped=files.HIDDEN)
            elif entry.is_file or entry.is_link:
                file = CommitPath(home.commit, f"{home.path}/{below}" if home.path else below)
                yield find_committed(file, entry, f"{top}/{below}", suffixes, inside)
            else:
                yield report_file(
                    f"{top}/{below}", "unreadable-file", "a submodule; its files are not part of the commit"
                )


def find_committed(
    file: CommitPath, entry: Entry, path: str, suffixes: tuple[str, ...], inside: CommitPath
) -> FileEntry:
    """Read a file or link of a commit, as `walk_folder` finds it on disk."""
    if entry.is_link and file.is_dir():
        is_inside = file.resolve().is_relative_to(inside)
        return report_file(path, "linked-folder", files.LINKED_FOLDER) if is_inside else files.report_link_outside(path)
    if path.lower().endswith(suffixes) or (entry.is_link and file.leads_out()):
        return _read_object(file.commit, entry, path) if entry.is_file else read_committed(file, path, inside)
    content = _read_object(file.commit, entry, path).content if entry.is_file else None
    return FileEntry(path, content=content, skipped=files.OTHER_EXTENSION)


def read_committed(file: CommitPath, path: str, inside: CommitPath) -> FileEntry:
    """Read a file of a commit; links lead to other files of the same folder only."""
    if not file.resolve().is_relative_to(inside):
        return files.report_link_outside(path)
    entry = file.find_entry()
    if entry is None or not entry.is_file:
        return report_file(path, "unreadable-file", files.LINK_NOWHERE if file.is_symlink() else "not a regular file")
    return _read_object(file.commit, entry, path)


def _read_object(commit: Commit, entry: Entry, path: str) -> FileEntry:
    size = commit.measure_file(entry, path)
    if size > MAX_BYTES:
        return files.report_too_large(path, size)
    return FileEntry(path, content=commit.read_file(entry, path))
