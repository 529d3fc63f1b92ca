"""A cache on disk: results, by a digest of the inputs they were computed from. Disabled by default.

The cache can only save time. Entries that are damaged or from another version are computed again, and a folder that
cannot be written is not an error. Entries are written atomically, so concurrent runs can share one folder.
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
# Entries that were not used for so long, or exceed the size limit, are removed once a day.
_DAY = 24 * 60 * 60
_MAX_AGE = 30 * _DAY
_MAX_BYTES = 512 * 1024 * 1024
_CLEANUP_MARKER = "tidied"
# Libraries on which results depend: they read YAML and evaluate CEL.
_LIBRARIES = ("yaml", "cel_expr_python")
_folder: str = ""
_salt: bytes = b""


def find_default_folder() -> Path | None:
    """The cache folder of this user; None without a home folder."""
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    # The XDG specification says to ignore relative paths.
    if named and os.path.isabs(named):
        return Path(named) / "jobgen"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    inside = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    return home / inside / "jobgen"


def installation_fingerprint() -> str:
    """A text that changes with the installation: names, sizes and times of the files of jobgen and its libraries."""
    files: list[str] = []
    pending = [os.path.dirname(__file__)]
    while pending:
        with os.scandir(pending.pop()) as found:
            for entry in found:
                if entry.is_dir():
                    pending.append(entry.path)
                elif entry.name.endswith(".py"):
                    files.append(_describe_file(entry.path, entry.stat()))
    for spec in map(PathFinder.find_spec, _LIBRARIES):
        files += [_describe_file(spec.origin, os.stat(spec.origin))] if spec and spec.origin else []
    return "\n".join(sorted(files))


def _describe_file(path: str, status: os.stat_result) -> str:
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def enable(folder: Path | None, salt: str) -> None:
    """Enable the cache; the salt separates entries of different versions of jobgen."""
    global _folder, _salt  # noqa: PLW0603 -- one per process; it never changes results
    _folder = str(folder or "")
    _salt = f"{salt} {sys.version}".encode()


def disable() -> None:
    """Disable the cache."""
    global _folder  # noqa: PLW0603
    _folder = ""


def is_enabled() -> bool:
    """Whether the cache is enabled."""
    return bool(_folder)


def make_key(*parts: bytes | str) -> str:
    """Compute the key of a result from the inputs that it depends on."""
    digest = blake2b(_salt, digest_size=_DIGEST)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def get(key: str) -> bytes | None:
    """The entry of a key; None if there is none or it is damaged."""
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
    """Store an entry; if that fails, it is computed again next time."""
    if not _folder:
        return
    path = _path(key)
    draft = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(draft, "wb") as stream:
            stream.write(blake2b(content, digest_size=_DIGEST).digest() + content)
        os.replace(draft, path)
        _remove_old_entries(os.path.join(_folder, _CLEANUP_MARKER))
    except OSError:
        with suppress(OSError):
            os.unlink(draft)


def _remove_old_entries(marker: str) -> None:
    """Remove entries that are too old, and the oldest beyond the size limit, at most once a day."""
    now = time.time()
    with suppress(OSError):
        if now - os.stat(marker).st_mtime < _DAY:
            return
    with open(marker, "wb"):
        os.utime(marker)
    remaining = _MAX_BYTES
    for used, size, path in sorted(_list_entries(), reverse=True):
        remaining -= size
        if remaining < 0 or now - used > _MAX_AGE:
            with suppress(OSError):
                os.unlink(path)


def _list_entries() -> Iterator[tuple[float, int, str]]:
    """Yield the time of last use, the size and the path of every entry."""
    with os.scandir(_folder) as folders:
        for folder in folders:
            if folder.is_dir(follow_symlinks=False):
                with os.scandir(folder) as files:
                    for file in files:
                        status = file.stat(follow_symlinks=False)
                        yield max(status.st_atime, status.st_mtime), status.st_size, file.path


def _path(key: str) -> str:
    return os.path.join(_folder, key[:2], key[2:])
