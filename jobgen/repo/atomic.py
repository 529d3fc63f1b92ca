"""Write single files atomically, inside the repository only."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

_LINK_OUTSIDE = "a symbolic link leads out of the repository, and is not followed"


def links_outside(path: str | Path, home: str | Path) -> bool:
    """Whether symbolic links lead from a path inside a folder to the outside; False for a path outside."""
    named, inside = os.path.abspath(path), os.path.join(os.path.realpath(home), "")
    begins = any(f"{named}{os.sep}".startswith(start) for start in (inside, os.path.join(os.path.abspath(home), "")))
    return begins and not os.path.join(os.path.realpath(path), "").startswith(inside)


def replace_file(path: Path, content: bytes, home: Path) -> None:
    """Replace the content of a file atomically and keep its permissions.

    Links must not lead out of the repository: its content must not decide which other files are written.
    """
    from tempfile import mkstemp

    _check_inside(path, home)
    # A link stays a link: its target is replaced.
    target = os.path.realpath(path)
    descriptor, draft = mkstemp(dir=os.path.dirname(target), prefix=".jobgen-")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(draft, _permissions(target))
        os.replace(draft, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(draft)
        if isinstance(error, OSError) and error.filename in (None, draft):
            # Report the path that the user knows, not that of the temporary file.
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def make_folder(path: Path, home: Path) -> None:
    """Create a folder and its parents, all inside the repository."""
    _check_inside(path, home)
    path.mkdir(parents=True, exist_ok=True)


def _check_inside(path: Path, home: Path) -> None:
    if links_outside(path, home):
        raise OSError(errno.ELOOP, _LINK_OUTSIDE, str(path))


def _permissions(path: str) -> int:
    """The permissions of a file; those of a new file if it does not exist."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
