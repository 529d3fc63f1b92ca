"""Where things are: the only module that walks folders and reads the files of a repository."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobgen.model import Finding, Mark, Severity
from jobgen.source.limits import MAX_BYTES

SETTINGS = "jobgen.yaml"
_ENDINGS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class File:
    """A file of the repository: its path from the root, and its bytes or why there are none."""

    path: str
    content: bytes = b""
    finding: Finding | None = None


def find_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` with a jobgen.yaml; else `start` itself if it has jobs/ or overlays/."""
    for folder in (start, *start.parents):
        if (folder / SETTINGS).is_file():
            return folder
    return start if (start / "jobs").is_dir() or (start / "overlays").is_dir() else None


def shipped(name: str) -> Path:
    """A folder that travels with jobgen: inside the wheel, or beside the package in a checkout."""
    inside = Path(__file__).parent / name
    return inside if inside.is_dir() else Path(__file__).parent.parent / name


def jobs(root: Path) -> Iterator[File]:
    """All files under jobs/, in the order of their paths."""
    return _walk(root, "jobs", _ENDINGS)


def overlays(root: Path) -> Iterator[tuple[str, File]]:
    """All files of overlays/<env>/, with the name of their environment."""
    for file in _walk(root, "overlays", _ENDINGS):
        parts = file.path.split("/")
        yield (parts[1] if len(parts) > 2 else ""), file


def kinds(root: Path) -> Iterator[File]:
    """Kind descriptions: those that travel with jobgen, then the repository's own, which win."""
    home = shipped("schemas")
    if home.parent != root:
        yield from _walk(home.parent, "schemas", (".yaml",))
    yield from _walk(root, "schemas", (".yaml",))


def settings(root: Path) -> File | None:
    """The settings file, if there is one."""
    return read_file(root, SETTINGS) if (root / SETTINGS).exists() else None


def read_file(root: Path, path: str) -> File:
    """One file, or the finding that says why it cannot be read."""
    full = root / path
    try:
        status = os.stat(full)
        if not stat.S_ISREG(status.st_mode):
            return _refused(path, "unreadable-file", "not a regular file")
        if status.st_size > MAX_BYTES:
            size, limit = status.st_size // 1024 // 1024, MAX_BYTES // 1024 // 1024
            return _refused(path, "file-too-large", f"{size} MiB is too large for a manifest; the limit is {limit} MiB")
        with open(full, "rb") as stream:
            return File(path, stream.read())
    except OSError as error:
        return _refused(path, "unreadable-file", f"cannot be read: {error.strerror}")


def _walk(root: Path, top: str, endings: tuple[str, ...]) -> Iterator[File]:
    """Regular files below a folder in the order of their paths; links that leave the repository are refused."""
    inside = os.path.realpath(root) + os.sep
    pending = [top] if (root / top).is_dir() else []
    while pending:
        path = pending.pop()
        full = os.path.join(root, path)
        if os.path.islink(full) and not os.path.realpath(full).startswith(inside):
            yield _refused(
                path, "link-out-of-repository", "a symbolic link that leads out of the repository; it is not followed"
            )
        elif not os.path.isdir(full):
            yield read_file(root, path)
        elif os.path.islink(full):
            yield _refused(path, "linked-folder", "a symbolic link to a folder; it is not followed")
        else:
            pending += _entries(full, path, endings)


def _entries(full: str, path: str, endings: tuple[str, ...]) -> list[str]:
    """What a folder holds that is of interest, last first."""
    try:
        with os.scandir(full) as entries:
            names = [
                entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in entries
                if not entry.name.startswith(".") and (entry.is_dir() or entry.name.endswith(endings))
            ]
    except OSError:
        # The folder itself becomes the unreadable file.
        return []
    return [f"{path}/{name.rstrip('/')}" for name in sorted(names, reverse=True)]


def _refused(path: str, rule: str, message: str) -> File:
    return File(path, finding=Finding(rule, "yaml", Severity.ERROR, message, Mark(path)))
