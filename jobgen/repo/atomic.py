"""Single files on disk, written whole or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

_ASTRAY = "a symbolic link leads out of the repository, and is not followed"


def links_outside(path: str | Path, home: str | Path) -> bool:
    """Whether a path that begins in a folder is led out of it by symbolic links; what was named outside is not."""
    named, inside = os.path.abspath(path), os.path.join(os.path.realpath(home), "")
    begins = any(f"{named}{os.sep}".startswith(start) for start in (inside, os.path.join(os.path.abspath(home), "")))
    return begins and not os.path.join(os.path.realpath(path), "").startswith(inside)


def replace_file(path: Path, content: bytes, home: Path) -> None:
    """Put new content in the place of a file, which keeps its rights; whoever reads it meanwhile sees old or new.

    What a repository holds must not decide which files outside of it are written.
    """
    # A link stays a link: what it leads to is what changes.
    from tempfile import mkstemp

    _stay(path, home)
    target = os.path.realpath(path)
    descriptor, draft = mkstemp(dir=os.path.dirname(target), prefix=".jobgen-")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(draft, _rights(target))
        os.replace(draft, target)
    except BaseException as fault:
        with suppress(OSError):
            os.unlink(draft)
        if isinstance(fault, OSError) and fault.filename in (None, draft):
            # Nobody knows the draft by its name.
            raise OSError(fault.errno, fault.strerror, str(path)) from fault
        raise


def make_folder(path: Path, home: Path) -> None:
    """Make a folder and those above it, none of them out of the repository."""
    _stay(path, home)
    path.mkdir(parents=True, exist_ok=True)


def _stay(path: Path, home: Path) -> None:
    if links_outside(path, home):
        raise OSError(errno.ELOOP, _ASTRAY, str(path))


def _rights(path: str) -> int:
    """The rights of a file; those that a new one gets where there is none."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
