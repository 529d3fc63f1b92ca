"""Faults mended where they were written: tried in a copy until nothing is left to mend, then put in place."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from jobgen import repo
from jobgen.commands import Code, Result, stopped
from jobgen.commands.linting import Asked, Linted, lint
from jobgen.edit import RefusedError, edited
from jobgen.files import replace_file
from jobgen.model import Edit, Finding, Severity

_ROUNDS = 10
_SOURCES = ("jobs", "overlays", "policies", "schemas", repo.SETTINGS)


class Mended(NamedTuple):
    """A file as it was and as it will be."""

    path: str
    old: bytes
    new: bytes


class Fixed(NamedTuple):
    """What can be mended, file by file, how many findings that makes, and what a lint says afterwards."""

    files: list[Mended]
    findings: int
    linted: Linted


def fixed(asked: Asked, *, unsafe: bool) -> Fixed | Result:
    """Mend what can be mended in a copy, over and over, for one change may make room for the next."""
    if asked.stdin is not None:
        return stopped(Code.USAGE, "standard input cannot be mended; leave out `-` or `--fix`")
    base = (repo.find_root(asked.directory.resolve()) or asked.directory).resolve()
    outside = [path for path in asked.paths if not (asked.directory / path).resolve().is_relative_to(base)]
    if outside:
        return stopped(Code.USAGE, f"`{outside[0]}` lies outside {base}; run `--fix` in the folder that it is in")
    with tempfile.TemporaryDirectory(prefix="jobgen-") as folder:
        copy = Path(folder).resolve()
        here = Path(os.path.relpath(asked.directory.resolve(), base))
        paths = [os.path.relpath(asked.directory / path, asked.directory) for path in asked.paths]
        _copy(base, copy, [*_SOURCES, *((here / path).as_posix() for path in paths)])
        inside = asked._replace(directory=copy / here, paths=paths)
        return _mended(inside, base, copy, unsafe=unsafe)


def _copy(base: Path, copy: Path, paths: Iterable[str]) -> None:
    for path in dict.fromkeys(map(os.path.normpath, paths)):
        source, target = base / path, copy / path
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def _mended(asked: Asked, base: Path, copy: Path, *, unsafe: bool) -> Fixed | Result:
    linted = lint(asked)
    if isinstance(linted, Result):
        return linted
    before = _errors(linted)
    touched: dict[str, int] = {}
    for _ in range(_ROUNDS):
        changed = dict(_round(linted, copy, unsafe=unsafe))
        if not changed:
            break
        for path, count in changed.items():
            touched[path] = touched.get(path, 0) + count
        again = lint(asked)
        if isinstance(again, Result):
            return stopped(Code.BROKEN, "a change would break the settings; nothing was changed")
        linted = again
    if _errors(linted) > before:
        return stopped(Code.BROKEN, "the changes would make new errors; nothing was changed")
    files = [Mended(path, (base / path).read_bytes(), (copy / path).read_bytes()) for path in sorted(touched)]
    return Fixed([file for file in files if file.old != file.new], sum(touched.values()), linted)


def _errors(linted: Linted) -> int:
    return sum(finding.severity is Severity.ERROR for finding in linted.findings)


def _round(linted: Linted, copy: Path, *, unsafe: bool) -> Iterator[tuple[str, int]]:
    """Change every file that can be, once: its path, and how many findings that mends."""
    wanted: dict[str, list[tuple[Edit, ...]]] = {}
    for finding in linted.findings:
        for file, edits in _by_file(finding, unsafe=unsafe).items():
            if edits not in wanted.setdefault(file, []):
                wanted[file].append(edits)
    for file, fixes in wanted.items():
        path = (linted.root / file).resolve()
        if not path.is_relative_to(copy) or not path.is_file():
            continue
        content = path.read_bytes()
        new, count = _changed(content, file, fixes)
        if new != content:
            path.write_bytes(new)
            yield path.relative_to(copy).as_posix(), count


def _by_file(finding: Finding, *, unsafe: bool) -> dict[str, tuple[Edit, ...]]:
    fix = finding.fix
    if fix is None or not (fix.safe or unsafe):
        return {}
    files = dict.fromkeys(edit.mark.file for edit in fix.edits)
    return {file: tuple(edit for edit in fix.edits if edit.mark.file == file) for file in files}


def _changed(content: bytes, file: str, fixes: Sequence[tuple[Edit, ...]]) -> tuple[bytes, int]:
    """The text with all fixes made, or if they are in each other's way, with as many as can be."""
    try:
        return edited(content, file, [edit for fix in fixes for edit in fix]), len(fixes)
    except RefusedError:
        pass
    made: list[Edit] = []
    new, count = content, 0
    for fix in fixes:
        try:
            new = edited(content, file, [*made, *fix])
        except RefusedError:
            continue
        made += fix
        count += 1
    return new, count


def put_in_place(base: Path, files: Iterable[Mended]) -> list[str]:
    """Write the files that nobody has changed meanwhile; the others are named."""
    late: list[str] = []
    for file in files:
        path = base / file.path
        if path.read_bytes() == file.old:
            replace_file(path, file.new)
        else:
            late.append(file.path)
    return late


def as_diff(files: Iterable[Mended]) -> str:
    """What would change, as a patch."""
    return "".join(_diff(file) for file in files)


def _diff(file: Mended) -> str:
    old, new = (content.decode("utf-8", "replace").splitlines(keepends=True) for content in (file.old, file.new))
    lines = unified_diff(old, new, f"a/{file.path}", f"b/{file.path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
