"""Inputs: files on disk, with the drafts of an editor in front of them. Every look at them is recorded.

A draft is a content that differs from that on disk: an open document of an editor, or a fix that is being tried. A
draft that is not on disk counts as a file, as if it had been saved. Commits never change, so their files are not
recorded: their names say what they hold.

An answer that was computed under `record` can be used again if each of its reads gives the same now.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from jobgen.model.digest import blake2b
from jobgen.model.limits import MAX_BYTES
from jobgen.model.named_tuple import NamedTuple

Read = tuple[str, str, str]
"""What was looked at: the name of a probe, its argument, and a digest of what it returned."""

FILE, FOLDER, OTHER, MISSING = "file", "folder", "other", "missing"
_LINK = "link "


class Recording:
    """The reads of one answer."""

    def __init__(self, around: Recording | None = None) -> None:
        self.around = around
        self.reads: dict[tuple[str, str], str] = {}
        self.is_whole = True
        """False if the answer depends on something that is not recorded."""
        self.is_consistent = True
        """False if something changed between two reads, so that the answer belongs to neither content."""

    def list_reads(self) -> list[Read]:
        """Return the reads, in the order in which they were made."""
        return [(*name, digest) for name, digest in self.reads.items()]

    def find(self, name: str, argument: str) -> str | None:
        """Return what a probe returned in this recording, or in one around it; None if it was not asked."""
        recording: Recording | None = self
        while recording is not None:
            if (name, argument) in recording.reads:
                return recording.reads[name, argument]
            recording = recording.around
        return None

    def add(self, reads: Iterable[Read]) -> None:
        """Add what another process has read, or what an answer read that is used again."""
        for name, argument, digest in reads:
            if self.reads.setdefault((name, argument), digest) != digest:
                self.is_consistent = False


_recording: ContextVar[Recording | None] = ContextVar("recording", default=None)
_probes: dict[str, Callable[[str], str]] = {}


@contextmanager
def record() -> Iterator[Recording]:
    """Record what is read in this block. What it reads belongs to the block around it, too."""
    around = _recording.get()
    found = Recording(around)
    token = _recording.set(found)
    try:
        yield found
    finally:
        _recording.reset(token)
        if around is not None:
            around.add(found.list_reads())
            around.is_whole = around.is_whole and found.is_whole
            around.is_consistent = around.is_consistent and found.is_consistent


def add_reads(reads: Iterable[Read]) -> None:
    """Add to the recording what an answer read that is used again."""
    recording = _recording.get()
    if recording is not None:
        recording.add(reads)


def refuse_reuse() -> None:
    """Note that the answer depends on something that is not recorded, so that it is not kept."""
    recording = _recording.get()
    if recording is not None:
        recording.is_whole = False


def holds(read: Read) -> bool:
    """Return True if a read gives the same now."""
    probe, argument, digest = read
    look = _probes.get(probe)
    return look is not None and look(argument) == digest


def find_read_path(read: Read) -> str:
    """Return the path that a read looked at; empty if it looked at something else, such as a program."""
    name, argument, _ = read
    if name in ("digest_file", "start"):
        # A path follows a number of bytes.
        return argument.partition(" ")[2]
    return argument if name in ("describe", "listing", "real_path") else ""


def probe(look: Callable[[str], str]) -> Callable[[str], str]:
    """Make a function one whose answers are recorded, and that is asked again to find out whether an answer holds."""
    name = look.__name__
    _probes[name] = look

    def recorded(argument: str) -> str:
        answer = look(argument)
        _note(name, argument, answer)
        return answer

    return recorded


def slow_probe(look: Callable[[str], str]) -> Callable[[str], str]:
    """Make a function a probe that is asked once in a recording, because it starts a program."""
    name = look.__name__
    recorded = probe(look)

    def asked_once(argument: str) -> str:
        recording = _recording.get()
        answer = recording.find(name, argument) if recording is not None else None
        if answer is None:
            return recorded(argument)
        _note(name, argument, answer)
        return answer

    return asked_once


def _note(name: str, argument: str, answer: str) -> None:
    recording = _recording.get()
    if recording is not None and recording.reads.setdefault((name, argument), answer) != answer:
        recording.is_consistent = False


def digest_bytes(content: bytes) -> str:
    """Return the digest of a content."""
    return blake2b(content, digest_size=16).hexdigest()


class Unread(NamedTuple):
    """Why a file cannot be read."""

    reason: str
    size: int = 0
    """The size of a file that is too large."""


IRREGULAR, TOO_LARGE = "not a regular file", "too large"


def read_bytes(full: str, limit: int = MAX_BYTES) -> bytes | Unread:
    """Read a regular file; a draft is read instead of the file on disk, unless that is no file."""
    found = _read_bytes(full, limit)
    if _recording.get() is not None:
        _note("digest_file", f"{limit} {full}", _describe_content(found))
    return found


def _read_bytes(full: str, limit: int) -> bytes | Unread:
    draft = find_draft(full)
    if draft is not None and (os.path.isfile(full) or not os.path.exists(full)):
        return draft if len(draft) <= limit else Unread(TOO_LARGE, len(draft))
    try:
        status = os.stat(full)
        if not stat.S_ISREG(status.st_mode):
            return Unread(IRREGULAR)
        if status.st_size > limit:
            return Unread(TOO_LARGE, status.st_size)
        with open(full, "rb", buffering=0) as stream:
            return stream.read()
    except OSError as error:
        return Unread(error.strerror or str(error))


def _describe_content(found: bytes | Unread) -> str:
    return f"{found.reason} {found.size}" if isinstance(found, Unread) else digest_bytes(found)


def read_start(full: str, size: int) -> bytes:
    """Read the first bytes of a regular file; none if it cannot be read."""
    found = _read_start(full, size)
    _note("start", f"{size} {full}", digest_bytes(found))
    return found


def _read_start(full: str, size: int) -> bytes:
    draft = find_draft(full)
    if draft is not None:
        return draft[:size]
    with suppress(OSError):
        if stat.S_ISREG(os.stat(full).st_mode):
            with open(full, "rb", buffering=0) as stream:
                return stream.read(size)
    return b""


@probe
def describe(full: str) -> str:
    """Return what is at a path: a file, a folder, something else, or nothing; and whether it is a link."""
    try:
        status = os.lstat(full)
        if not stat.S_ISLNK(status.st_mode):
            return _name_mode(status.st_mode)
    except OSError:
        return _name_unsaved(full)
    except ValueError:
        return MISSING
    try:
        return _LINK + _name_mode(os.stat(full).st_mode)
    except OSError:
        return _LINK + _name_unsaved(full)


def _name_unsaved(full: str) -> str:
    """Return what is at a path where nothing is on disk."""
    if find_draft(full) is not None:
        return FILE
    return FOLDER if next(list_unsaved(full), None) is not None else MISSING


def _name_mode(mode: int) -> str:
    return FILE if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else OTHER


@probe
def real_path(full: str) -> str:
    """Return a path without links."""
    return os.path.realpath(full)


@probe
def find_program(names: str) -> str:
    """Return the first of some programs that is on PATH, with its path and its time; empty if there is none.

    One in the current folder does not count, even if PATH or Windows names that: it may belong to the repository.
    """
    # Like every probe, it is in a module that every look-up imports. Imported late: most lints need no program.
    from shutil import which

    folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    path = os.pathsep.join(folders)
    for name in names.split():
        found = which(name, path=path)
        if found is not None and os.path.isabs(found):
            return f"{name} {found} {os.stat(found).st_mtime_ns}"
    return ""


def find_top(folder: str) -> str:
    """Return the top of the repository around a folder; the folder itself if it is in none."""
    start = here = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return start
        here = above
    return here


def is_link(full: str) -> bool:
    """Return True if there is a symbolic link at a path."""
    return describe(full).startswith(_LINK)


def exists(full: str) -> bool:
    """Return True if there is anything at a path; a link counts as what it leads to."""
    return not describe(full).endswith(MISSING)


def exists_itself(full: str) -> bool:
    """Return True if there is anything at a path, also a link that leads nowhere."""
    return describe(full) != MISSING


def is_file(full: str) -> bool:
    """Return True if there is a file at a path."""
    return describe(full).endswith(FILE)


def is_folder(full: str) -> bool:
    """Return True if there is a folder at a path."""
    return describe(full).endswith(FOLDER)


def list_folder(full: str) -> list[Entry]:
    """Return the entries of a folder, in any order, or raise an OSError; files that are not on disk count, too."""
    entries: list[Entry] = []
    try:
        entries += _scan(full)
    finally:
        if _recording.get() is not None:
            _note("listing", full, _describe_entries(entries))
    return entries


def _scan(full: str) -> list[Entry]:
    entries: list[Entry] = list(list_unsaved(full))
    if not entries or os.path.lexists(full):
        with os.scandir(full) as found:
            entries += found
    return entries


def _describe_entries(entries: Iterable[Entry]) -> str:
    names: list[str] = []
    for entry in entries:
        sort = "l" if entry.is_symlink() else ""
        # Links that lead to each other lead nowhere.
        with suppress(OSError):
            sort += "d" if entry.is_dir(follow_symlinks=False) else "f" if entry.is_file() else ""
        names.append(f"{entry.name}\0{sort}")
    return digest_bytes("\n".join(sorted(names)).encode("utf-8", "surrogatepass"))


def _look_at_listing(full: str) -> str:
    entries: list[Entry] = []
    with suppress(OSError):
        entries += _scan(full)
    return _describe_entries(entries)


def _look_at_file(argument: str) -> str:
    limit, _, full = argument.partition(" ")
    return _describe_content(_read_bytes(full, int(limit)))


def _look_at_start(argument: str) -> str:
    size, _, full = argument.partition(" ")
    return digest_bytes(_read_start(full, int(size)))


_probes |= {"digest_file": _look_at_file, "start": _look_at_start, "listing": _look_at_listing}


class UnsavedEntry(NamedTuple):
    """A file or folder that is not on disk, as an entry of its folder."""

    name: str
    path: str
    is_folder: bool

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 -- as of `os.DirEntry`
        """Return True if it is a folder."""
        return self.is_folder

    def is_file(self) -> bool:
        """Return True if it is a file."""
        return not self.is_folder

    def is_symlink(self) -> bool:
        """Return True if it is a symbolic link."""
        return False


Entry = os.DirEntry[str] | UnsavedEntry


class _Drafts:
    """Contents by real path. More may be added while they are used."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents
        self._names: frozenset[str] = frozenset()
        self._unsaved: list[str] = []
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


def list_unsaved(folder: str) -> Iterator[UnsavedEntry]:
    """Return the files and folders in a folder that are not on disk."""
    return _drafts.get().list_unsaved(folder)
