"""What was worked out before: bytes by the content they were made of, on disk; off until somebody switches it on.

A memory can only save time. What is damaged, unreadable or from another jobgen is made anew, and a folder that cannot
be written is no fault. Entries appear whole or not at all, so any number of runs can share one folder.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from importlib.machinery import PathFinder
from pathlib import Path

_DIGEST = 16
# What nobody has looked up for so long, or does not fit, is forgotten; once a day is enough to see to it.
_DAY = 24 * 60 * 60
_KEPT = 30 * _DAY
_MOST_BYTES = 512 * 1024 * 1024
_TIDIED = "tidied"
# What is remembered depends on them too: how YAML is read, and how CEL is evaluated.
_LIBRARIES = ("yaml", "cel_expr_python")
_folder: str = ""
_salt: bytes = b""


def find_default_folder() -> Path | None:
    """Where programs of this machine keep what they can make again; None for somebody without a home."""
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    # A relative path would mean another folder everywhere; the specification says to ignore it.
    if named and os.path.isabs(named):
        return Path(named) / "jobgen"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    inside = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    return home / inside / "jobgen"


def installation_fingerprint() -> str:
    """What tells this jobgen from another: the names, sizes and times of its own files, and of what it is built on."""
    files: list[str] = []
    pending = [os.path.dirname(__file__)]
    while pending:
        with os.scandir(pending.pop()) as found:
            for entry in found:
                if entry.is_dir():
                    pending.append(entry.path)
                elif entry.name.endswith(".py"):
                    files.append(_stamped(entry.path, entry.stat()))
    for spec in map(PathFinder.find_spec, _LIBRARIES):
        files += [_stamped(spec.origin, os.stat(spec.origin))] if spec and spec.origin else []
    return "\n".join(sorted(files))


def _stamped(path: str, status: os.stat_result) -> str:
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def enable(folder: Path | None, salt: str) -> None:
    """Remember from now on; what another jobgen or another Python has made is told apart by the salt."""
    global _folder, _salt  # noqa: PLW0603 -- one for the process: it changes how fast things are, never what they are
    _folder = str(folder or "")
    _salt = f"{salt} {sys.version}".encode()


def disable() -> None:
    """Remember nothing, and look nothing up."""
    global _folder  # noqa: PLW0603
    _folder = ""


def is_enabled() -> bool:
    """Whether anything is remembered."""
    return bool(_folder)


def make_key(*parts: bytes | str) -> str:
    """A name for what is made of these parts."""
    digest = blake2b(_salt, digest_size=_DIGEST)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def get(key: str) -> bytes | None:
    """What was kept under a key, if it is still what it was."""
    if not _folder:
        return None
    try:
        with open(_path(key), "rb", buffering=0) as stream:
            found = stream.read()
    except OSError:
        return None
    digest, content = found[:_DIGEST], found[_DIGEST:]
    return content if blake2b(content, digest_size=_DIGEST).digest() == digest else None


def put(key: str, content: bytes) -> None:
    """Keep something under a key; where that cannot be done, it is made again next time."""
    if not _folder:
        return
    path = _path(key)
    draft = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(draft, "wb") as stream:
            stream.write(blake2b(content, digest_size=_DIGEST).digest() + content)
        os.replace(draft, path)
        _tidy(os.path.join(_folder, _TIDIED))
    except OSError:
        with suppress(OSError):
            os.unlink(draft)


def _tidy(marker: str) -> None:
    """Forget what is old, and the oldest of what is too much, unless somebody did so today."""
    now = time.time()
    with suppress(OSError):
        if now - os.stat(marker).st_mtime < _DAY:
            return
    with open(marker, "wb"):
        os.utime(marker)
    room = _MOST_BYTES
    for used, size, path in sorted(_entries(), reverse=True):
        room -= size
        if room < 0 or now - used > _KEPT:
            with suppress(OSError):
                os.unlink(path)


def _entries() -> Iterator[tuple[float, int, str]]:
    """All that is kept: when it was last used, how large it is, and where it stands."""
    with os.scandir(_folder) as folders:
        for folder in folders:
            if folder.is_dir(follow_symlinks=False):
                with os.scandir(folder) as files:
                    for file in files:
                        status = file.stat(follow_symlinks=False)
                        yield max(status.st_atime, status.st_mtime), status.st_size, file.path


def _path(key: str) -> str:
    return os.path.join(_folder, key[:2], key[2:])
