"""What tells files from what they were before: most by their stamps, without reading them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import blake2b

from jobgen.repo import layout

FileStat = tuple[int, int, int, int]
"""Size, the times of its content and of its entry, and the number of a file on its disk."""


# A file that is written twice within what a disk calls one moment has one time for both.
_YOUNG = 2_000_000_000


def stat_file(path: str) -> FileStat | None:
    """What tells a file from what it was before, without reading it; None if there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def is_racy(found: FileStat, moment: int) -> bool:
    """Whether a file was so new at a moment that a later change may have left it with the same stamp."""
    return max(found[1:3]) > moment - _YOUNG


def digest_files(files: Iterable[layout.File]) -> bytes:
    """What names the layers that a lint depends on: the paths and contents of their files."""
    digest = blake2b(digest_size=16)
    for file in files:
        wrong = f"{file.finding.rule} {file.finding.message}" if file.finding else ""
        digest.update(f"{file.path} {len(file.content)} {wrong}\n".encode("utf-8", "surrogatepass"))
        digest.update(file.content)
    return digest.digest()
