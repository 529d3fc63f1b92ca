"""The rendered tree on disk: files appear whole or not at all, and what is not ours is never touched."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOCK = "jobgen.lock.json"
_STAGE = ".jobgen-stage"


@dataclass(frozen=True, slots=True)
class Drift:
    """What separates a tree on disk from the one that should be there, by path."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.stale or self.foreign)


def environments(folder: Path) -> list[str]:
    """The environments that an earlier run wrote below a folder."""
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if not entry.is_symlink() and (entry / LOCK).is_file())


def compare(folder: Path, wanted: Mapping[str, str], *, partial: bool = False) -> Drift:
    """How an environment's folder differs from the files that belong in it, or from some of them."""
    ours = _locked(folder)
    missing: list[str] = []
    changed: list[str] = []
    foreign: list[str] = []
    for path, text in sorted(wanted.items()):
        full = folder / path
        if _leads_astray(folder, path):
            foreign.append(path)
        elif not full.exists():
            missing.append(path)
        elif not full.is_file() or full.read_bytes() != text.encode():
            (changed if path in ours and full.is_file() else foreign).append(path)
    stale = [] if partial else [path for path in sorted(ours) if path not in wanted and (folder / path).is_file()]
    if not (missing or changed or stale) and _locked(folder) != _lock(folder, wanted, partial=partial):
        changed.append(LOCK)
    return Drift(tuple(missing), tuple(changed), tuple(stale), tuple(foreign))


def write(folder: Path, wanted: Mapping[str, str], *, partial: bool = False) -> None:
    """Bring an environment's folder up to date; with `partial`, files that are not wanted stay.

    All files are staged first, so a full disk is noticed before the first is replaced. The lock names old and new
    files while they are exchanged, so a run that dies in between is finished by the next.
    """
    drift = compare(folder, wanted, partial=partial)
    assert not drift.foreign, "the caller has asked about files that are not ours"
    if not drift:
        return
    stage = folder / _STAGE
    shutil.rmtree(stage, ignore_errors=True)
    changed = [path for path in (*drift.missing, *drift.changed) if path != LOCK]
    final = _lock(folder, wanted, partial=partial)
    try:
        for number, path in enumerate(changed):
            _stage(stage / str(number), wanted[path])
        _stage(stage / "both", _lock_text({**_locked(folder), **final}))
        _stage(stage / "lock", _lock_text(final))
        os.replace(stage / "both", folder / LOCK)
        for number, path in enumerate(changed):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage / str(number), folder / path)
        for path in drift.stale:
            _remove(folder, path)
        os.replace(stage / "lock", folder / LOCK)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    if not final:
        _remove(folder, LOCK)


def _lock(folder: Path, wanted: Mapping[str, str], *, partial: bool) -> dict[str, str]:
    """The files that are ours once the folder is up to date, with their digests."""
    import hashlib

    digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in wanted.items()}
    return {**_locked(folder), **digests} if partial else digests


def _lock_text(files: Mapping[str, str]) -> str:
    return json.dumps({"version": 1, "files": dict(sorted(files.items()))}, indent=2) + "\n"


def _stage(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _remove(folder: Path, path: str) -> None:
    """Remove a file of ours, and the folders that it leaves empty."""
    (folder / path).unlink(missing_ok=True)
    for parent in (folder / path).parents:
        if any(parent.iterdir()):
            return
        parent.rmdir()
        if parent == folder:
            return


def _locked(folder: Path) -> dict[str, str]:
    """The files that an earlier run wrote; a lock that cannot be read names none."""
    try:
        files = dict(json.loads((folder / LOCK).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {path: digest for path, digest in files.items() if _is_below(path) and not _leads_astray(folder, path)}


def _is_below(path: str) -> bool:
    return not Path(path).is_absolute() and ".." not in Path(path).parts


def _leads_astray(folder: Path, path: str) -> bool:
    """Whether a symbolic link below the folder would lead the path elsewhere."""
    steps = [folder / path, *(folder / path).parents]
    return any(step.is_symlink() for step in steps[: len(Path(path).parts)]) or folder.is_symlink()
