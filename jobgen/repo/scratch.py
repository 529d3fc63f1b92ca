"""Temporary folders for files that another program must read. A killed run leaves its folder to the next one."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "jobgen-scratch-"
_UNLOCKED = f".{_PREFIX}"


@contextmanager
def open_scratch() -> Iterator[Path]:
    """Create a folder that only this user can read, and remove it at the end; remove those of killed runs first."""
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_UNLOCKED))
    handle = _lock(folder)
    try:
        # The name shows that the folder is locked, so no other run takes it for abandoned.
        folder = folder.rename(folder.with_name(folder.name.removeprefix(".")))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _remove_abandoned() -> None:
    with suppress(OSError):
        for entry in list(os.scandir(tempfile.gettempdir())):
            if entry.name.startswith(_PREFIX) and _is_own_folder(entry):
                handle = _lock(entry.path)
                if handle is not None:
                    shutil.rmtree(entry.path, ignore_errors=True)
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

    handle = None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if handle is not None:
            os.close(handle)
        return None
    return handle
