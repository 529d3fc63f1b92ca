"""Write single files atomically and durably, inside the repository only.

A file is written beside its place and synced to the disk, moved into place, and then its folder is synced. After a
power failure, it has its old or its new content.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from jobgen.engine.inputs import real_path
from jobgen.model.named_tuple import NamedTuple

_MIN_FILES_FOR_THREADS, _SYNC_THREADS = 16, 8
_PREFIX = "jobgen-scratch-"
_ADVICE = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), "change the permissions of its folder, or write to another one"),
    errno.EROFS: "write to another folder",
    errno.ENOSPC: "free space on the disk",
}


def advise(error: OSError) -> str:
    """Return what to do about a file that cannot be written, after `; `; empty if its reason says all."""
    advice = _ADVICE.get(error.errno or 0)
    return f"; {advice}" if advice else ""


def links_outside(path: str | Path, home: str | Path) -> bool:
    """Return True if symbolic links lead from a path inside a folder to the outside; False for a path outside."""
    named, inside = os.path.abspath(path), os.path.join(real_path(str(home)), "")
    begins = any(f"{named}{os.sep}".startswith(start) for start in (inside, os.path.join(os.path.abspath(home), "")))
    return begins and not os.path.join(real_path(str(path)), "").startswith(inside)


def find_output_fault(path: str | Path, home: str | Path) -> str:
    """Return why nothing may be written at a path: it leads to the outside, or to where only Git may write."""
    if links_outside(path, home):
        return "is outside the repository through a symbolic link"
    inside = os.path.relpath(os.path.realpath(path), os.path.realpath(home))
    return "belongs to Git, which keeps its own files there" if ".git" in map(str.lower, inside.split(os.sep)) else ""


def replace_file(path: Path, content: bytes, home: Path, *, fsync: bool = True) -> str:
    """Replace the content of a file atomically; keep its owner, permissions and attributes.

    Return its folder: the file is durable once that is synced, too. Links must not lead out of the repository: its
    content must not decide which other files are written.
    """
    return replace_files({path: content}, home, fsync=fsync)[0]


def replace_files(files: Mapping[Path, bytes], home: Path, *, fsync: bool = True) -> list[str]:
    """Replace files as `replace_file` does, but none before the contents of all are on the disk; return the folders."""
    drafts: list[_Draft] = []
    try:
        for path, content in files.items():
            _check_inside(path, home)
            draft = _create_draft(path)
            drafts.append(draft)
            with _naming(draft), os.fdopen(draft.descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                _keep_attributes(draft.target, draft.file)
                if fsync:
                    os.fsync(stream.fileno())
        for draft in drafts:
            with _naming(draft):
                os.replace(draft.file, draft.target)
    except BaseException:
        for draft in drafts:
            with suppress(OSError):
                os.unlink(draft.file)
        raise
    return [os.path.dirname(draft.target) for draft in drafts]


class _Draft(NamedTuple):
    """A temporary file beside the place of a file."""

    path: Path
    target: str
    file: str
    descriptor: int


def _create_draft(path: Path) -> _Draft:
    from tempfile import mkstemp

    # A link stays a link: its target is replaced.
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        descriptor, draft = mkstemp(dir=os.path.dirname(target), prefix=".jobgen-")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    return _Draft(path, target, draft, descriptor)


@contextmanager
def _naming(draft: _Draft) -> Iterator[None]:
    """Report errors with the path that the user knows, not that of the temporary file."""
    try:
        yield
    except OSError as error:
        if error.filename in (None, draft.file):
            raise OSError(error.errno, error.strerror, str(draft.path)) from error
        raise


def make_folder(path: Path, home: Path) -> list[str]:
    """Create a folder and its parents, all inside the repository; return the folders to sync."""
    _check_inside(path, home)
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    return [str(folder.parent) for folder in missing]


def sync_files(paths: Sequence[str]) -> None:
    """Make the contents of files durable; the disk does many at once."""
    if len(paths) < _MIN_FILES_FOR_THREADS:
        _sync_share(paths)
        return
    from concurrent.futures import ThreadPoolExecutor

    # A share for each thread: to pass files one by one takes as long as to sync them.
    shares = [paths[number::_SYNC_THREADS] for number in range(_SYNC_THREADS)]
    with ThreadPoolExecutor(_SYNC_THREADS) as threads:
        try:
            results = threads.map(_sync_share, shares)
        except RuntimeError:
            # The system allows no further thread.
            results = map(_sync_share, shares)
        # The first error is raised here.
        list(results)


def _sync_share(paths: Sequence[str]) -> None:
    for path in paths:
        # Windows syncs only files that are open for writing.
        handle = os.open(path, os.O_RDWR)
        try:
            os.fsync(handle)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error
        finally:
            os.close(handle)


def sync_folders(folders: Iterable[str]) -> None:
    """Make the names of files in some folders durable."""
    for folder in sorted(set(folders)):
        # Windows cannot open a folder, and some network file systems cannot sync one.
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _check_inside(path: Path, home: Path) -> None:
    if links_outside(path, home):
        raise OSError(errno.ELOOP, "a symbolic link leads out of the repository, and is not followed", str(path))


def _keep_attributes(target: str, draft: str) -> None:
    """Give a new file the owner, the extended attributes and the permissions of the one that it replaces."""
    try:
        status = os.stat(target)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(draft, 0o666 & ~mask)
        return
    # Only an administrator may give files away; a member of the group may keep the group.
    for owner in ((status.st_uid, status.st_gid), (-1, status.st_gid)) if hasattr(os, "chown") else ():
        with suppress(OSError):
            os.chown(draft, *owner)
            break
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(target):
                with suppress(OSError):
                    os.setxattr(draft, name, os.getxattr(target, name))
    os.chmod(draft, status.st_mode & 0o7777)


@contextmanager
def open_scratch() -> Iterator[Path]:
    """Create a folder that only this user can read, and remove it at the end; remove those of killed runs first."""
    from shutil import rmtree
    from tempfile import mkdtemp

    _remove_abandoned()
    folder = Path(mkdtemp(prefix=f".{_PREFIX}"))
    handle = _lock(folder)
    try:
        # The name shows that the folder is locked, so no other run takes it for abandoned.
        folder = folder.rename(folder.with_name(folder.name.removeprefix(".")))
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _remove_abandoned() -> None:
    from shutil import rmtree
    from tempfile import gettempdir

    with suppress(OSError):
        for entry in list(os.scandir(gettempdir())):
            if entry.name.startswith(_PREFIX) and _is_own_folder(entry):
                handle = _lock(entry.path)
                if handle is not None:
                    rmtree(entry.path, ignore_errors=True)
                    os.close(handle)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        is_own = not hasattr(os, "geteuid") or entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        return is_own and entry.is_dir(follow_symlinks=False)
    return False


def _lock(folder: Path | str) -> int | None:
    """Lock a folder until its handle is closed or the process ends; None if another process has locked it."""
    if sys.platform == "win32":
        return None
    import fcntl

    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
        else:
            return handle
    return None
