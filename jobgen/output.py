"""The rendered tree on disk: files appear whole or not at all, and what is not ours is never touched."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LOCK = "jobgen.lock.json"
"""Names the files of an environment that are ours; everything else in its folder is somebody else's."""

_STAGE = ".jobgen-stage"
# What we write is a file in the folder of a namespace; a lock that lists anything else was not written by us.
_OURS = re.compile(r"[^./\\\0][^/\\\0]*/[^./\\\0][^/\\\0]*\.(?:yaml|json)\Z")
_ENTRY = re.compile(r'^ *("[^"\n]*"): "([0-9a-f]{64})",?$', re.MULTILINE)

Files = Mapping[str, str]
"""The text of every file of an environment, by `<namespace>/<file>`."""


@dataclass(frozen=True, slots=True)
class Drift:
    """What separates a tree on disk from the one that should be there, by path; and what is in the way, with why."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    foreign: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.stale or self.foreign)


class UnfinishedError(Exception):
    """The disk failed while files were exchanged: each is old or new, and the next run does the rest."""


class _NoLockError(Exception):
    """The lock cannot tell which files are ours; its text says why."""


def environments(folder: Path) -> list[str]:
    """The environments that an earlier run wrote below a folder; the nameless one is the folder itself."""
    if not folder.is_dir():
        return []
    names = [entry.name for entry in folder.iterdir() if not entry.is_symlink() and os.path.lexists(entry / LOCK)]
    return sorted([*names, ""] if os.path.lexists(folder / LOCK) else names)


def compare(folder: Path, wanted: Files, *, partial: bool = False) -> Drift:
    """How an environment's folder differs from the files that belong in it; with `partial`, there may be others."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return Drift(foreign=(("", _not_a_folder(folder)),))
    try:
        ours = _locked(folder)
    except _NoLockError as bad:
        return Drift(foreign=((LOCK, str(bad)),))
    namespaces = {path.partition("/")[0] for path in wanted}
    blocked = {name: why for name in sorted(namespaces) if (why := _not_a_folder(folder / name))}
    found: dict[str, list[str]] = {"missing": [], "changed": []}
    foreign = list(blocked.items())
    for path, text in sorted(wanted.items()):
        state = "" if path.partition("/")[0] in blocked else _state(folder / path, text.encode(), ours=path in ours)
        if state in found:
            found[state].append(path)
        elif state:
            foreign.append((path, state))
    stale = [] if partial else [path for path in sorted(ours) if path not in wanted and _stands(folder, path)]
    if not (foreign or stale or any(found.values())) and _text_on_disk(folder) != _final(ours, wanted, partial=partial):
        found["changed"].append(LOCK)
    return Drift(tuple(found["missing"]), tuple(found["changed"]), tuple(stale), tuple(foreign))


def write(folder: Path, wanted: Mapping[str, Files], *, partial: bool = False) -> dict[str, Drift]:
    """Bring environments up to date and say what was different; if anything is in the way, nothing is written.

    All files are staged before the first is replaced, so a full disk is noticed in time. A lock names old and new files
    while they are exchanged, so what a run leaves behind that dies in between is finished by the next. Runs that write
    to one folder wait for each other.
    """
    with _alone(folder):
        drifts = {env: compare(folder / env, files, partial=partial) for env, files in wanted.items()}
        if any(drift.foreign for drift in drifts.values()):
            return drifts
        try:
            for env in wanted:
                _clear_stage(folder / env)
            work = {env: drift for env, drift in drifts.items() if drift}
            for env, drift in work.items():
                _stage(folder / env, wanted[env], drift, partial=partial)
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


def _stage(folder: Path, wanted: Files, drift: Drift, *, partial: bool) -> None:
    """Write everything that is new beside the tree, numbered in the order of the drift."""
    stage, ours = folder / _STAGE, _locked(folder)
    stage.mkdir(parents=True)
    for number, path in enumerate(_renewed(drift)):
        _write_new(stage / str(number), wanted[path])
    _write_new(stage / "both", _lock_text({**ours, **_digests(wanted)}))
    final = _final(ours, wanted, partial=partial)
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
        raise UnfinishedError(f"{error.filename2 or error.filename}: {error.strerror}") from error


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


def _locked(folder: Path) -> dict[str, str]:
    """The files that an earlier run wrote, with their digests."""
    if os.path.lexists(folder / LOCK) and ((folder / LOCK).is_symlink() or not (folder / LOCK).is_file()):
        raise _NoLockError("is not a file of jobgen; remove it")
    text = _text_on_disk(folder)
    if text is None:
        return {}
    files = _conflicting(text) if "\n<<<<<<< " in f"\n{text}" else _listed(text)
    if files is None:
        remedy = "restore it, or delete the folder and render it anew"
        raise _NoLockError(f"does not say which files are jobgen's; {remedy}")
    return {path: digest for path, digest in files.items() if _OURS.match(path)}


def _listed(text: str) -> dict[str, str] | None:
    try:
        lock = json.loads(text)
        known = lock["version"] == 1 and all(isinstance(digest, str) for digest in lock["files"].values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return dict(lock["files"]) if known else None


def _conflicting(text: str) -> dict[str, str]:
    """The lock of a merge that Git could not finish: what either side lists is ours."""
    return {str(json.loads(path)): digest for path, digest in _ENTRY.findall(text)}


def _text_on_disk(folder: Path) -> str | None:
    try:
        return (folder / LOCK).read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def _final(ours: Mapping[str, str], wanted: Files, *, partial: bool) -> str | None:
    """The lock once the folder is up to date; where nothing is left, there is none."""
    files = {**ours, **_digests(wanted)} if partial else _digests(wanted)
    return _lock_text(files) if files else None


def _digests(wanted: Files) -> dict[str, str]:
    import hashlib

    return {path: hashlib.sha256(text.encode()).hexdigest() for path, text in wanted.items()}


def _lock_text(files: Mapping[str, str]) -> str:
    return json.dumps({"version": 1, "files": dict(sorted(files.items()))}, indent=2) + "\n"
