"""The rendered tree on disk: files appear whole or not at all, and what is not ours is never touched."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from jobgen.repo.lock import LOCK, LockFile, Origin, compute_digest, is_object_path, parse_lock

_STAGE = ".jobgen-stage"

Files = Mapping[str, str]
"""The text of every file of an environment, by `<namespace>/<file>`."""


class TreeExtras(NamedTuple):
    """What stands in an environment's folder beside its objects: files made from the paths of objects, and origins."""

    files: Callable[[str, Sequence[str]], Files] = lambda _, __: {}
    origins: Mapping[str, Origin] = {}


@dataclass(frozen=True, slots=True)
class Drift:
    """What separates a tree on disk from the one that should be there, by path; and what is in the way, with why."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    foreign: tuple[tuple[str, str], ...] = ()
    edited: frozenset[str] = field(default=frozenset(), compare=False)
    """Those of the changed files that are not as we left them."""
    existing_objects: int = field(default=0, compare=False)
    """The number of our objects on disk."""
    left: int = field(default=0, compare=False)
    """The number of objects that there should be."""
    tool: str = ""
    """The version that wrote the tree, if nothing else is different."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.stale or self.foreign or self.tool)


_NOTHING_BESIDE = TreeExtras()


class IncompleteWriteError(Exception):
    """The disk failed while files were exchanged: each is old or new, and the next run does the rest."""


class _NoLockError(Exception):
    """The lock cannot tell which files are ours; its text says why."""


def find_environments(folder: Path) -> list[str]:
    """The environments that an earlier run wrote below a folder; the nameless one is the folder itself."""
    if not folder.is_dir():
        return []
    names = [entry.name for entry in folder.iterdir() if not entry.is_symlink() and os.path.lexists(entry / LOCK)]
    return sorted([*names, ""] if os.path.lexists(folder / LOCK) else names)


def compare_tree(
    folder: Path, wanted: Files, *, partial: bool = False, env: str = "", beside: TreeExtras = _NOTHING_BESIDE
) -> Drift:
    """How an environment's folder differs from the files that belong in it; with `partial`, there may be others."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return Drift(foreign=(("", _not_a_folder(folder)),))
    try:
        lock = _locked(folder)
    except _NoLockError as bad:
        return Drift(foreign=((LOCK, str(bad)),))
    plan = _plan(lock, wanted, env, beside, partial=partial)
    namespaces = {path.partition("/")[0] for path in plan.texts if is_object_path(path)}
    blocked = {name: why for name in sorted(namespaces) if (why := _not_a_folder(folder / name))}
    found: dict[str, list[str]] = {"missing": [], "changed": []}
    foreign = list(blocked.items())
    for path, text in sorted(plan.texts.items()):
        ours = path in lock.files
        state = "" if path.partition("/")[0] in blocked else _state(folder / path, text.encode(), ours=ours)
        if state in found:
            found[state].append(path)
        elif state:
            foreign.append((path, state))
    stale = [path for path in sorted(lock.files) if path not in plan.lock.files and _stands(folder, path)]
    same = not (foreign or stale or any(found.values()))
    tool = ""
    if same and _text_on_disk(folder) != plan.lock.text():
        renamed = plan.lock._replace(origin=plan.lock.origin._replace(tool=lock.origin.tool))
        if lock.origin.tool and _text_on_disk(folder) == renamed.text():
            tool = lock.origin.tool
        else:
            found["changed"].append(LOCK)
    edited = frozenset(path for path in found["changed"] if path != LOCK and _is_edited(folder / path, lock, path))
    standing = sum(1 for path in lock.files if is_object_path(path) and _stands(folder, path))
    left = sum(map(is_object_path, plan.lock.files))
    missing, changed = tuple(found["missing"]), tuple(found["changed"])
    return Drift(missing, changed, tuple(stale), tuple(foreign), edited, standing, left, tool)


class _Plan(NamedTuple):
    """What a folder is to hold: the texts that have to be there, and the lock that names all files."""

    texts: Files
    lock: LockFile


def _plan(lock: LockFile, wanted: Files, env: str, beside: TreeExtras, *, partial: bool) -> _Plan:
    kept = {path: known for path, known in lock.files.items() if is_object_path(path)} if partial else {}
    objects = sorted({*kept, *wanted})
    texts = {**wanted, **(beside.files(env, objects) if objects else {})}
    origin = beside.origins.get(env, Origin())
    jobs = {path: known for path, known in lock.origin.jobs.items() if path in kept}
    files = {**kept, **{path: compute_digest(text) for path, text in texts.items()}}
    return _Plan(texts, LockFile(files, origin._replace(jobs={**jobs, **origin.jobs})))


def write_tree(
    folder: Path,
    wanted: Mapping[str, Files],
    *,
    partial: bool = False,
    beside: TreeExtras = _NOTHING_BESIDE,
    refused: Callable[[Mapping[str, Drift]], object] = lambda _: False,
) -> dict[str, Drift]:
    """Bring environments up to date and say what was different; if anything is in the way, nothing is written.

    All files are staged before the first is replaced, so a full disk is noticed in time. A lock names old and new files
    while they are exchanged, so what a run leaves behind that dies in between is finished by the next. Runs that write
    to one folder wait for each other. What is `refused` is not written either.
    """
    with _alone(folder):
        drifts = {
            env: compare_tree(folder / env, files, partial=partial, env=env, beside=beside)
            for env, files in wanted.items()
        }
        if any(drift.foreign for drift in drifts.values()) or refused(drifts):
            return drifts
        try:
            for env in wanted:
                _clear_stage(folder / env)
            work = {env: drift for env, drift in drifts.items() if drift}
            for env, drift in work.items():
                lock = _locked(folder / env)
                _stage(folder / env, _plan(lock, wanted[env], env, beside, partial=partial), lock, drift)
            for env, drift in work.items():
                _exchange(folder / env, drift)
        finally:
            for env in wanted:
                _clear_stage(folder / env)
                _prune(folder / env, folder)
        return drifts


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other runs out; the system lets go when the process ends, however it ends."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        # Some network file systems have no locks; there, runs have to be kept apart by whoever starts them.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _not_a_folder(path: Path) -> str:
    """Why files cannot be put into a folder, if they cannot."""
    if path.is_symlink():
        return "is a symbolic link, which is not followed; remove it"
    return "is not a folder; move it" if path.exists() and not path.is_dir() else ""


def _state(full: Path, content: bytes, *, ours: bool) -> str:
    """`missing`, `changed`, nothing if the file is as it should be, or why it cannot be replaced."""
    try:
        status = os.lstat(full)
    except FileNotFoundError:
        return "missing"
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link, which is not followed; remove it"
    if not stat.S_ISREG(status.st_mode):
        return "is not a file; move it"
    if status.st_size == len(content) and full.read_bytes() == content:
        return ""
    return "changed" if ours else "was not written by jobgen; move it"


def _stands(folder: Path, path: str) -> bool:
    """Whether a path leads to a file without leaving the folder."""
    full = folder / path
    return not full.parent.is_symlink() and not full.is_symlink() and full.is_file()


def _stage(folder: Path, plan: _Plan, lock: LockFile, drift: Drift) -> None:
    """Write everything that is new beside the tree, numbered in the order of the drift."""
    stage = folder / _STAGE
    stage.mkdir(parents=True)
    for number, path in enumerate(_renewed(drift)):
        _write_new(stage / str(number), plan.texts[path])
    _write_new(stage / "both", LockFile({**lock.files, **plan.lock.files}, plan.lock.origin).text() or "")
    final = plan.lock.text()
    if final is not None:
        _write_new(stage / "lock", final)


def _exchange(folder: Path, drift: Drift) -> None:
    stage, lock = folder / _STAGE, folder / LOCK
    try:
        os.replace(stage / "both", lock)
        for number, path in enumerate(_renewed(drift)):
            (folder / path).parent.mkdir(exist_ok=True)
            os.replace(stage / str(number), folder / path)
        for path in drift.stale:
            (folder / path).unlink()
            _prune((folder / path).parent, folder)
        if (stage / "lock").exists():
            os.replace(stage / "lock", lock)
        else:
            lock.unlink()
    except OSError as error:
        raise IncompleteWriteError(f"{error.filename2 or error.filename}: {error.strerror}") from error


def _renewed(drift: Drift) -> list[str]:
    return [path for path in (*drift.missing, *drift.changed) if path != LOCK]


def _write_new(path: Path, text: str) -> None:
    with open(path, "x", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _clear_stage(folder: Path) -> None:
    """Remove what this run or one that died has staged; a link of that name is removed, and not followed."""
    stage = folder / _STAGE
    if folder.is_symlink() or not os.path.lexists(stage):
        return
    if stage.is_symlink() or not stage.is_dir():
        stage.unlink()
    else:
        shutil.rmtree(stage)


def _prune(folder: Path, top: Path) -> None:
    """Remove folders that are empty, from one up to another, which stays."""
    # A folder that holds something refuses to go.
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent


def _locked(folder: Path) -> LockFile:
    """The files that an earlier run wrote, with their digests and origins."""
    if os.path.lexists(folder / LOCK) and ((folder / LOCK).is_symlink() or not (folder / LOCK).is_file()):
        raise _NoLockError("is not a file of jobgen; remove it")
    text = _text_on_disk(folder)
    if text is None:
        return LockFile()
    lock = parse_lock(text)
    if lock is None:
        remedy = "restore it, or delete the folder and render it anew"
        raise _NoLockError(f"does not say which files are jobgen's; {remedy}")
    return lock


def _text_on_disk(folder: Path) -> str | None:
    try:
        return (folder / LOCK).read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def _is_edited(full: Path, lock: LockFile, path: str) -> bool:
    """Whether a file of ours is not what the lock says we wrote."""
    return compute_digest(full.read_bytes().decode("utf-8", "surrogateescape")) != lock.files.get(path)
