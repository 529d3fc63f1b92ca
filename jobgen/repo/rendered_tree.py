"""The rendered tree on disk: files are replaced atomically, and files that jobgen did not write are never touched."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from jobgen.engine.inputs import FILE, FOLDER, MISSING, Unread, read_bytes
from jobgen.model.limits import MAX_BYTES
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.atomic import sync_files, sync_folders
from jobgen.repo.commit import CommitPath, Folder, describe_path, list_folder_names
from jobgen.repo.lock import LOCK, LockFile, Origin, compute_digest, is_object_path, parse_lock
from jobgen.repo.root import SOURCE_FOLDERS

STAGE = ".jobgen-stage"
"""The folder in which files are written before they replace others."""
MAX_LOCK_BYTES = 64 * 1024 * 1024


def find_environments(folder: Folder) -> list[str]:
    """Find the environments that an earlier run wrote below a folder; the unnamed one is the folder itself."""
    if not describe_path(folder).endswith(FOLDER):
        return []
    names = [name for name in list_folder_names(folder) if describe_path(folder / name) == FOLDER]
    return sorted(name for name in (*names, "") if describe_path(folder / name / LOCK) != MISSING)


def list_own_files(folder: Folder, lock: LockFile) -> Iterator[str]:
    """Return the files of an environment; in a folder that is a jobs repository itself, those beside known files."""
    if not is_jobs_repository(folder):
        return list_files(folder)
    namespaces = {path.partition("/")[0] for path in lock.files if is_object_path(path)}
    return (f"{name}/{path}" for name in sorted(namespaces) for path in list_files(folder / name))


def list_names(folder: Folder) -> list[str]:
    """Return the names of the entries of a folder, sorted."""
    return sorted(list_folder_names(folder))


def list_files(folder: Folder) -> Iterator[str]:
    """Return the paths of all files and links below a folder, hidden ones too, sorted by folder."""
    pending = [("", folder)]
    while pending:
        path, current = pending.pop()
        if describe_path(current) == FOLDER:
            below = [(f"{path}/{name}" if path else name, current / name) for name in list_folder_names(current)]
            pending += sorted(below, key=lambda pair: pair[0], reverse=True)
        elif path:
            yield path


def is_jobs_repository(folder: Folder) -> bool:
    """Return True if the folder of an environment is a jobs repository itself."""
    return not all(describe_path(folder / name).endswith(MISSING) for name in ("jobgen.yaml", "jobs", "overlays"))


def read_content(path: Folder, limit: int = MAX_BYTES) -> bytes | None:
    """Read a regular file; None if it is anything else, or larger than what jobgen writes."""
    if describe_path(path) != FILE:
        return None
    if isinstance(path, CommitPath):
        entry = path.find_entry()
        return path.commit.read_file(entry, path.path) if entry else None
    found = read_bytes(str(path), limit)
    return None if isinstance(found, Unread) else found


_SOURCES = tuple(f"{folder}/" for folder in SOURCE_FOLDERS)
_STALE_AND_EDITED = "is not wanted any more, but was changed after jobgen wrote it; move it, or remove it"
_Sync = Callable[[Iterable[str]], None]
Files = Mapping[str, str]
"""The text of every file of an environment, by `<namespace>/<file>`."""


class TreeExtras(NamedTuple):
    """The metadata of environments: files derived from the paths of objects, and the inputs for the lock file."""

    files: Callable[[str, Sequence[str]], Files] = lambda _, __: {}
    origins: Mapping[str, Origin] = {}


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences between a tree on disk and the wanted one, by path; and what blocks writing, with the reason."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    foreign: tuple[tuple[str, str], ...] = ()
    edited: frozenset[str] = field(default=frozenset(), compare=False)
    """The changed files that were edited since jobgen wrote them."""
    existing_objects: int = field(default=0, compare=False)
    wanted_objects: int = field(default=0, compare=False)
    tool: str = ""
    """The version of jobgen that wrote the tree, if that is the only difference."""
    unlisted: tuple[str, ...] = field(default=(), compare=False)
    """Files in the folder that jobgen did not write; a GitOps engine would apply them."""
    lock: str = field(default="", compare=False)
    """The digest of the wanted lock file; empty if nothing is wanted."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.stale or self.foreign or self.tool)


_NO_EXTRAS = TreeExtras()


class IncompleteWriteError(Exception):
    """The disk failed while files were replaced: each file is old or new, and the next run completes the rest."""


def compare_tree(
    folder: Path, wanted: Files, *, partial: bool = False, env: str = "", extras: TreeExtras = _NO_EXTRAS
) -> Drift:
    """Compare the folder of an environment with the wanted files; with `partial`, it may have others."""
    return _compare(folder, wanted, env, extras, partial=partial).drift


def _compare(folder: Path, wanted: Files, env: str, extras: TreeExtras, *, partial: bool) -> _Comparison:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return _Comparison(Drift(foreign=(("", _find_obstacle(folder)),)))
    lock = _read_lock(folder)
    if isinstance(lock, str):
        return _Comparison(Drift(foreign=((LOCK, lock),)))
    texts, new = _make_plan(lock, wanted, env, extras, partial=partial)
    # In a jobs repository, kustomization.yaml and .gitattributes may be those of the repository.
    is_repository = is_jobs_repository(folder)
    namespaces = {path.partition("/")[0] for path in texts if is_object_path(path)}
    blocked = {name: why for name in sorted(namespaces) if (why := _find_obstacle(folder / name))}
    found: dict[str, list[str]] = {"missing": [], "changed": []}
    foreign = list(blocked.items())
    for path, text in sorted(texts.items()):
        known = path in lock.files and not (
            is_repository and not is_object_path(path) and is_edited(folder, lock, path)
        )
        state = "" if path.partition("/")[0] in blocked else _compare_file(f"{folder}/{path}", text, known=known)
        if state in found:
            found[state].append(path)
        elif state:
            foreign.append((path, state))
    unwanted = [path for path in sorted(lock.files) if path not in new.files and _is_file_inside(folder, path)]
    # A lock file may list files that jobgen did not write. Only the content shows that nothing is lost.
    stale = [path for path in unwanted if not is_edited(folder, lock, path)]
    foreign += [(path, _STALE_AND_EDITED) for path in unwanted if path not in stale]
    same = not (foreign or stale or any(found.values()))
    tool, wanted_lock = "", new.text()
    if same and _read_lock_text(folder) != wanted_lock:
        renamed = new._replace(origin=new.origin._replace(tool=lock.origin.tool))
        if lock.origin.tool and _read_lock_text(folder) == renamed.text():
            tool = lock.origin.tool
        else:
            found["changed"].append(LOCK)
    edited = frozenset(path for path in found["changed"] if path != LOCK and is_edited(folder, lock, path))
    existing = sum(1 for path in lock.files if is_object_path(path) and _is_file_inside(folder, path))
    named = {*lock.files, *new.files, *dict(foreign), LOCK}
    drift = Drift(
        tuple(found["missing"]),
        tuple(found["changed"]),
        tuple(stale),
        tuple(foreign),
        edited=edited,
        existing_objects=existing,
        wanted_objects=sum(map(is_object_path, new.files)),
        tool=tool,
        unlisted=tuple(path for path in list_own_files(folder, lock) if path not in named),
        lock=compute_digest(wanted_lock) if wanted_lock else "",
    )
    return _Comparison(drift, lock, texts, new)


class _Comparison(NamedTuple):
    """How a folder differs from the wanted state, its lock file, and that state."""

    drift: Drift
    lock: LockFile = LockFile()
    texts: Files = MappingProxyType({})
    wanted: LockFile = LockFile()


def _make_plan(lock: LockFile, wanted: Files, env: str, extras: TreeExtras, *, partial: bool) -> tuple[Files, LockFile]:
    kept = {path: known for path, known in lock.files.items() if is_object_path(path)} if partial else {}
    objects = sorted({*kept, *wanted})
    texts = {**wanted, **(extras.files(env, objects) if objects else {})}
    origin = extras.origins.get(env, Origin())
    jobs = {path: known for path, known in lock.origin.jobs.items() if path in kept}
    files = {**kept, **{path: compute_digest(text) for path, text in texts.items()}}
    new = LockFile(files, origin._replace(jobs={**jobs, **origin.jobs}))
    # A later commit that renders the same tree leaves it as it is.
    as_before = new._replace(origin=new.origin._replace(source=lock.origin.source))
    return texts, as_before if lock.origin.source and as_before == lock else new


def write_tree(
    folder: Path,
    wanted: Mapping[str, Files],
    *,
    partial: bool = False,
    extras: TreeExtras = _NO_EXTRAS,
    refused: Callable[[Mapping[str, Drift]], object] = lambda _: False,
    fsync: bool = True,
) -> dict[str, Drift]:
    """Update environments and return their differences; if anything blocks writing, or `refused` does, write nothing.

    All files are staged before the first is replaced, so a full disk is noticed in time. While files are replaced, the
    lock file lists old and new ones, so the next run completes an interrupted one. Concurrent runs wait for each other.
    With `fsync`, the same holds after a power failure.
    """
    sync: _Sync = sync_folders if fsync else lambda _: None
    with _lock_folder(folder, sync):
        compared = {env: _compare(folder / env, files, env, extras, partial=partial) for env, files in wanted.items()}
        drifts = {env: found.drift for env, found in compared.items()}
        if any(drift.foreign for drift in drifts.values()) or refused(drifts):
            return drifts
        try:
            for env in wanted:
                _clear_stage(folder / env)
            work = {env: drift for env, drift in drifts.items() if drift}
            staged = [path for env in work for path in _stage(folder / env, compared[env])]
            if fsync:
                sync_files(staged)
            sync(map(str, (folder, *(folder / env for env in work))))
            for env, drift in work.items():
                _replace_files(folder / env, drift, sync)
        finally:
            for env in wanted:
                _clear_stage(folder / env)
                _remove_empty_folders(folder / env, folder)
        return drifts


@contextmanager
def _lock_folder(folder: Path, sync: _Sync) -> Iterator[None]:
    """Lock out other runs; the system releases the lock when the process ends."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    sync(str(each.parent) for each in missing)
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        # Some network file systems have no locks; runs are not separated there.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _find_obstacle(path: Path) -> str:
    """The reason for which files cannot be written into a folder, or an empty string."""
    if path.is_symlink():
        return "is a symbolic link, which is not followed; remove it"
    return "is not a folder; move it" if path.exists() and not path.is_dir() else ""


def _compare_file(full: str, text: str, *, known: bool) -> str:
    """`missing`, `changed`, an empty string if the file is up to date, or the reason why it cannot be replaced."""
    try:
        status = os.lstat(full)
    except FileNotFoundError:
        return "missing"
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link, which is not followed; remove it"
    if not stat.S_ISREG(status.st_mode):
        return "is not a file; move it"
    content = text.encode()
    if status.st_size == len(content):
        with open(full, "rb", buffering=0) as stream:
            if stream.read() == content:
                return ""
    return "changed" if known else "was not written by jobgen; move it"


def _is_file_inside(folder: Path, path: str) -> bool:
    """Return True if a path is a file inside the folder, without symbolic links."""
    full = folder / path
    return not full.parent.is_symlink() and not full.is_symlink() and full.is_file()


def _stage(folder: Path, compared: _Comparison) -> list[str]:
    """Write all new files into the staging folder, numbered in the order of the drift, and return their paths."""
    drift, lock, wanted, new = compared
    (folder / STAGE).mkdir(parents=True)
    texts = {str(number): wanted[path] for number, path in enumerate(_files_to_write(drift))}
    texts["both"] = LockFile({**lock.files, **new.files}, new.origin).text() or ""
    final = new.text()
    if final is not None:
        texts["lock"] = final
    paths = [f"{folder}/{STAGE}/{name}" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        with open(path, "xb") as stream:
            stream.write(text.encode())
    return paths


def _replace_files(folder: Path, drift: Drift, sync: _Sync) -> None:
    stage, lock = folder / STAGE, folder / LOCK
    written = _files_to_write(drift)
    changed = {os.path.dirname(f"{folder}/{path}") for path in (*written, *drift.stale)}
    try:
        os.replace(stage / "both", lock)
        sync([str(folder)])
        for name in {os.path.dirname(path) for path in written}:
            (folder / name).mkdir(exist_ok=True)
        for number, path in enumerate(written):
            os.replace(f"{stage}/{number}", f"{folder}/{path}")
        for path in drift.stale:
            (folder / path).unlink()
            _remove_empty_folders((folder / path).parent, folder)
        # The final lock must not be on the disk before the files that it lists.
        sync([*changed, str(folder)])
        if (stage / "lock").exists():
            os.replace(stage / "lock", lock)
        else:
            lock.unlink()
        sync([str(folder)])
    except OSError as error:
        raise IncompleteWriteError(f"{error.filename2 or error.filename}: {error.strerror}") from error


def _files_to_write(drift: Drift) -> list[str]:
    return [path for path in (*drift.missing, *drift.changed) if path != LOCK]


def _clear_stage(folder: Path) -> None:
    """Remove the staging folder of this run or of one that died; a link of that name is removed, not followed."""
    stage = folder / STAGE
    if folder.is_symlink() or not os.path.lexists(stage):
        return
    if stage.is_symlink() or not stage.is_dir():
        stage.unlink()
    else:
        import shutil

        shutil.rmtree(stage)


def _remove_empty_folders(folder: Path, top: Path) -> None:
    """Remove empty folders from `folder` up to `top`, which stays."""
    # rmdir fails for a folder that is not empty.
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent


def _read_lock(folder: Path) -> LockFile | str:
    """Read the lock file of an earlier run; return the reason if it cannot be used."""
    if os.path.lexists(folder / LOCK) and ((folder / LOCK).is_symlink() or not (folder / LOCK).is_file()):
        return "is not one of jobgen's files; remove it"
    text = _read_lock_text(folder)
    if text is None:
        return LockFile()
    lock = parse_lock(text)
    if lock is None:
        return "does not list jobgen's files; restore it, or delete the folder and render it again"
    # jobgen writes nothing into the folders that it reads.
    left_out = _SOURCES if is_jobs_repository(folder) else ()
    return lock._replace(files={path: known for path, known in lock.files.items() if not path.startswith(left_out)})


def _read_lock_text(folder: Path) -> str | None:
    try:
        if (folder / LOCK).stat().st_size > MAX_LOCK_BYTES:
            return ""
        return (folder / LOCK).read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def is_edited(folder: Folder, lock: LockFile, path: str) -> bool:
    """Return True if a file was edited since jobgen wrote it, according to the lock file."""
    content = read_content(folder / path)
    return content is None or compute_digest(content.decode("utf-8", "surrogateescape")) != lock.files.get(path)
