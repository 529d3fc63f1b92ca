"""Contents of files that differ from those on disk: the open documents of an editor, or fixes that are being tried.

A document that is not on disk counts as a file, as if it had been saved: it is new, or its file has been deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from jobgen.model.named_tuple import NamedTuple


class UnsavedEntry(NamedTuple):
    """A file or folder that is not on disk, as an entry of its folder."""

    name: str
    path: str
    is_folder: bool

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 -- as of `os.DirEntry`
        """Whether it is a folder."""
        return self.is_folder

    def is_file(self) -> bool:
        """Whether it is a file."""
        return not self.is_folder

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""
        return False


class PathEntry(NamedTuple):
    """A file or folder, on disk or not, as an entry of its folder that is looked up by its path."""

    name: str
    path: str

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""
        return is_folder(self.path) and (follow_symlinks or not self.is_symlink())

    def is_file(self) -> bool:
        """Whether it is a file."""
        return is_file(self.path)

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""
        return os.path.islink(self.path)


class _Drafts:
    """Contents by real path. More may be added while they are used."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents
        self._names: frozenset[str] = frozenset()
        self._unsaved: list[str] = []
        self._inodes: frozenset[tuple[int, int]] = frozenset()
        self._count = 0

    def find(self, full: str) -> bytes | None:
        """Return the content of a file; None if that on disk is used."""
        if not self._contents:
            return None
        self._update()
        # Most files are neither open nor links, so their real paths are not needed.
        if os.path.basename(full) not in self._names and not os.path.islink(full):
            return None
        return self._contents.get(os.path.realpath(full))

    def has(self, full: str, status: os.stat_result) -> bool:
        """Whether a file, whose stat is known, has another content than that on disk."""
        if not self._contents:
            return False
        self._update()
        # The stat of a link is that of its file.
        if os.path.basename(full) not in self._names and (status.st_dev, status.st_ino) not in self._inodes:
            return False
        return os.path.realpath(full) in self._contents

    def list_unsaved(self, folder: str) -> Iterator[UnsavedEntry]:
        """Return the files and folders in a folder that are not on disk."""
        self._update()
        if not self._unsaved:
            return
        start = os.path.join(os.path.realpath(folder), "")
        below = (real[len(start) :].partition(os.sep) for real in self._unsaved if real.startswith(start))
        for name, is_folder in {name: bool(rest) for name, _, rest in below}.items():
            if not (is_folder and os.path.lexists(start + name)):
                yield UnsavedEntry(name, os.path.join(folder, name), is_folder)

    def _update(self) -> None:
        if self._count != len(self._contents):
            self._count = len(self._contents)
            self._names = frozenset(map(os.path.basename, self._contents))
            self._unsaved = [real for real in self._contents if not os.path.lexists(real)]
            self._inodes = frozenset(_list_inodes(self._contents))


def _list_inodes(files: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Return the device and inode of each file that is on disk."""
    for file in files:
        with suppress(OSError):
            status = os.stat(file)
            yield status.st_dev, status.st_ino


_drafts: ContextVar[_Drafts] = ContextVar("drafts", default=_Drafts({}))  # noqa: B039 -- it is empty, and stays so


@contextmanager
def edited(contents: Mapping[str, bytes]) -> Iterator[None]:
    """Read some files, by their real paths, with other contents than those on disk."""
    token = _drafts.set(_Drafts(contents))
    try:
        yield
    finally:
        _drafts.reset(token)


def find_draft(full: str) -> bytes | None:
    """Return the content that is used instead of that on disk; None if there is none."""
    return _drafts.get().find(full)


def has_draft(full: str, status: os.stat_result) -> bool:
    """Whether a file, whose stat is known, has another content than that on disk."""
    return _drafts.get().has(full, status)


def list_unsaved(folder: str) -> Iterator[UnsavedEntry]:
    """Return the files and folders in a folder that are not on disk."""
    return _drafts.get().list_unsaved(folder)


def is_file(full: str) -> bool:
    """Whether there is a file at a path."""
    return os.path.isfile(full) or find_draft(full) is not None


def is_folder(full: str) -> bool:
    """Whether there is a folder at a path."""
    return os.path.isdir(full) or (not os.path.lexists(full) and next(list_unsaved(full), None) is not None)
