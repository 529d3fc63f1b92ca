"""A cache on disk: results, by a digest of the inputs they were computed from. Disabled by default.

The cache can only save time. Entries that are damaged or from another version are computed again, and a folder that
cannot be written is not an error. Entries are written atomically, so concurrent runs can share one folder.

Entries are results of checks, never manifests or layers. They are data (JSON, or a checked CEL expression), are
authenticated with a random secret that only this user can read, and have a limited size.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

from jobgen.model.digest import blake2b, compare_digest

_DIGEST = 16
# Entries that were not used for so long, or exceed the size limit, are removed once a day.
_DAY = 24 * 60 * 60
_MAX_AGE = 30 * _DAY
_MAX_BYTES = 512 * 1024 * 1024
_MAX_ENTRY = 64 * 1024 * 1024
_SECRET, _SECRET_BYTES = "secret", 32
_OTHERS, _OTHERS_WRITE = 0o077, 0o022
# A pipe or a device must not block or be opened.
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
_REPOSITORY_MARKS = (".git", ".hg", "jobgen.yaml")
# Libraries on which results depend: they read YAML and evaluate CEL.
_LIBRARIES = ("yaml", "cel_expr_python")
_SHIPPED, _READ = ("defects", "schemas", "policies"), (".py", ".json", ".yaml")
_folder: str = ""
_salt: bytes = b""
_secret: bytes = b""


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


@functools.cache
def installation_fingerprint() -> str:
    """A text that changes with the installation: names, sizes and times of the files of jobgen and its libraries."""
    package = os.path.dirname(__file__)
    # In a checkout, schemas and policies are beside the package; in a wheel, they are its data.
    pending = [package, *(os.path.join(os.path.dirname(package), name) for name in _SHIPPED)]
    files: list[str] = []
    while pending:
        folder = pending.pop()
        with suppress(FileNotFoundError), os.scandir(folder) as found:
            for entry in found:
                if entry.name.endswith(_READ):
                    files.append(_describe_file(entry.path, entry.stat()))
                elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    for spec in map(PathFinder.find_spec, _LIBRARIES):
        files += [_describe_file(spec.origin, os.stat(spec.origin))] if spec and spec.origin else []
    return "\n".join(sorted(files))


def _describe_file(path: str, status: os.stat_result) -> str:
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def enable(folder: Path | None, salt: str, work: Path | None = None) -> None:
    """Enable the cache; the salt separates entries of different versions of jobgen.

    The folder is not used if others can write to it, or if it is inside a repository or the folder `work`, whose
    content may come from others: entries decide what a lint reports.
    """
    global _folder, _salt, _secret  # noqa: PLW0603 -- one per process; it never changes results
    _salt = blake2b(f"{salt} {sys.version}".encode()).digest()
    _folder = "" if folder is None or _is_inside_repository(folder, work) else str(folder)
    _secret = b""


def enable_default(work: Path) -> None:
    """Enable the cache of this user for a run in a folder."""
    enable(find_default_folder(), installation_fingerprint(), work)


def disable() -> None:
    """Disable the cache."""
    global _folder  # noqa: PLW0603
    _folder = ""


def is_enabled() -> bool:
    """Return True if the cache is enabled."""
    return bool(_folder)


def _is_open() -> bool:
    """Return True if the cache can be used; its folder is opened on first use, and disabled if it cannot be used."""
    global _folder, _secret  # noqa: PLW0603
    if _folder and not _secret:
        with suppress(OSError):
            _secret = _open_folder(_folder)
        _folder = _folder if _secret else ""
    return bool(_folder)


def find_obstacle(folder: Path | None, work: Path | None = None) -> str:
    """Why a folder cannot be the cache, in one word; empty if it can. It is created if it is missing, as by any run."""
    if folder is None:
        return "homeless"
    if _is_inside_repository(folder, work):
        return "repository"
    try:
        if _open_folder(str(folder)):
            return "" if os.access(folder, os.W_OK) else "unwritable"
        status = os.lstat(folder)
    except OSError:
        return "unwritable"
    if not stat.S_ISDIR(status.st_mode):
        return "file"
    return "shared" if _is_own(status) else "foreign"


def measure_entries(folder: Path) -> tuple[int, int]:
    """The number of entries of a cache, and their size in bytes."""
    sizes = [size for _, size, _ in _list_entries(str(folder))]
    return len(sizes), sum(sizes)


def _is_inside_repository(folder: Path, work: Path | None) -> bool:
    real = Path(os.path.realpath(folder))
    around = (real, *real.parents)
    return (work is not None and Path(os.path.realpath(work)) in around) or any(
        os.path.lexists(parent / name) for parent in around for name in _REPOSITORY_MARKS
    )


def _open_folder(folder: str) -> bytes:
    """Create the folder if it is missing, and return the secret of this user; empty if others can write to it."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or not _is_own(status) or status.st_mode & _OTHERS_WRITE:
        return b""
    if status.st_mode & _OTHERS:
        os.chmod(folder, 0o700)
    path = os.path.join(folder, _SECRET)
    return _read(path, _SECRET_BYTES) or _create_secret(path)


def _create_secret(path: str) -> bytes:
    """Create the secret that authenticates entries; of concurrent runs, one creates it."""
    draft = f"{path}.{os.getpid()}"
    handle = os.open(draft, _NEW_FILE, 0o600)
    try:
        with open(handle, "wb") as stream:
            stream.write(os.urandom(_SECRET_BYTES))
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)
    return _read(path, _SECRET_BYTES) or b""


def _read(path: str, limit: int) -> bytes | None:
    """Read a regular file that only this user can access; None if it is anything else, or longer than the limit."""
    try:
        handle = os.open(path, os.O_RDONLY | _FLAGS)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        is_public = os.name == "posix" and status.st_mode & _OTHERS
        if not stat.S_ISREG(status.st_mode) or not _is_own(status) or is_public or status.st_size > limit:
            return None
        with open(handle, "rb", buffering=0, closefd=False) as stream:
            return stream.read(status.st_size)
    except OSError:
        return None
    finally:
        os.close(handle)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def make_key(*parts: bytes | str) -> str:
    """Compute the key of a result from the inputs that it depends on."""
    digest = blake2b(_salt, digest_size=_DIGEST)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def get(key: str) -> bytes | None:
    """The entry of a key; None if there is none, it is damaged, or this user did not write it."""
    found = _read(_path(key), _MAX_ENTRY) if _is_open() else None
    if found is None:
        return None
    return found[_DIGEST:] if compare_digest(_sign(key, found[_DIGEST:]), found[:_DIGEST]) else None


def put(key: str, content: bytes) -> None:
    """Store an entry; if that fails, it is computed again next time."""
    if len(content) > _MAX_ENTRY - _DIGEST or not _is_open():
        return
    path = _path(key)
    draft = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            os.unlink(draft)
        with open(os.open(draft, _NEW_FILE, 0o600), "wb") as stream:
            stream.write(_sign(key, content) + content)
        os.replace(draft, path)
        _remove_old_entries(os.path.join(_folder, "tidied"))
    except OSError:
        with suppress(OSError):
            os.unlink(draft)


def _sign(key: str, content: bytes) -> bytes:
    """Authenticate an entry under its key, so that it cannot take the place of another."""
    digest = blake2b(key.encode(), digest_size=_DIGEST, key=_secret)
    digest.update(content)
    return digest.digest()


def _remove_old_entries(marker: str) -> None:
    """Remove entries that are too old, and the oldest beyond the size limit, at most once a day."""
    now = time.time()
    with suppress(OSError):
        if now - os.stat(marker).st_mtime < _DAY:
            return
    with suppress(FileNotFoundError):
        os.unlink(marker)
    os.close(os.open(marker, _NEW_FILE, 0o600))
    remaining = _MAX_BYTES
    for used, size, path in sorted(_list_entries(_folder), reverse=True):
        remaining -= size
        if remaining < 0 or now - used > _MAX_AGE:
            with suppress(OSError):
                os.unlink(path)


def _list_entries(place: str) -> Iterator[tuple[float, int, str]]:
    """Yield the time of last use, the size and the path of every entry."""
    with os.scandir(place) as folders:
        for folder in folders:
            if folder.is_dir(follow_symlinks=False):
                with os.scandir(folder) as files:
                    for file in files:
                        status = file.stat(follow_symlinks=False)
                        yield max(status.st_atime, status.st_mtime), status.st_size, file.path


def _path(key: str) -> str:
    return os.path.join(_folder, key[:2], key[2:])
