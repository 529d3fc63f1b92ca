"""Single files on disk, written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Put new content in the place of a file, which keeps its rights; whoever reads it meanwhile sees old or new."""
    # A link stays a link: what it leads to is what changes.
    from tempfile import mkstemp

    target = os.path.realpath(path)
    descriptor, draft = mkstemp(dir=os.path.dirname(target), prefix=".jobgen-")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(draft, _rights(target))
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def _rights(path: str) -> int:
    """The rights of a file; those that a new one gets where there is none."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
