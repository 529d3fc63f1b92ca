"""Faults mended where they were written: tried in a copy until nothing is left to mend, then put in place."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from jobgen.cli.commands import ExitCode, Result, error_result
from jobgen.cli.commands.lint_run import lint
from jobgen.cli.commands.scope import LintRequest, LintResult
from jobgen.model.finding import Severity, TextEdit
from jobgen.repo import git, layout
from jobgen.repo.atomic import replace_file
from jobgen.yamlio.edit import EditRefusedError, apply_edits

_ROUNDS = 10
_WRITABLE = 0o222
_SAFE, _ALL = 1, 2
_OVERLAYS = "overlays/"
_SOURCES = ("jobs", "overlays", "policies", "schemas", layout.SETTINGS)


class Mended(NamedTuple):
    """A file as it was and as it will be."""

    path: str
    old: bytes
    new: bytes


class Fixed(NamedTuple):
    """What can be mended, file by file, how many findings that makes, what a lint says afterwards, and what is left.

    A file is left as it is, or as it is without unsafe changes, where these would bring more errors to light.
    """

    files: list[Mended]
    findings: int
    linted: LintResult
    left: tuple[str, ...] = ()


class Trust(NamedTuple):
    """Which changes are made: none, safe ones, or all; fewer in files that these would spoil."""

    most: int
    files: dict[str, int]

    def of(self, path: str) -> int:
        """The changes that are made in a file."""
        return self.files.get(path, self.most)


def fixed(asked: LintRequest, *, unsafe: bool) -> Fixed | Result:
    """Mend what can be mended in a copy, over and over, for one change may make room for the next."""
    if asked.stdin is not None:
        return error_result(ExitCode.USAGE, "standard input cannot be mended; leave out `-` or `--fix`")
    root = layout.find_root(asked.directory.resolve())
    base = (root or asked.directory).resolve()
    outside = [path for path in asked.paths if not (asked.directory / path).resolve().is_relative_to(base)]
    if outside:
        return error_result(
            ExitCode.USAGE, f"`{outside[0]}` lies outside {base}; run `--fix` in the folder that it is in"
        )
    try:
        return _tried(asked, root, base, unsafe=unsafe)
    except OSError as fault:
        return error_result(
            ExitCode.ERRORS, f"{fault.filename or base}: {fault.strerror or fault}; nothing was changed"
        )


def _tried(asked: LintRequest, root: Path | None, base: Path, *, unsafe: bool) -> Fixed | Result:
    with tempfile.TemporaryDirectory(prefix="jobgen-") as folder:
        copy = Path(folder).resolve()
        here = Path(os.path.relpath(asked.directory.resolve(), base))
        paths = [os.path.relpath(asked.directory / path, asked.directory) for path in asked.paths]
        loose = [entry.path for path in paths for entry in layout.find_manifests(asked.directory, path)]
        loose += [entry.path for entry in layout.find_manifests(base, ".")] if root is None and not paths else []
        _copy(base, copy, [*_SOURCES, *((here / path).as_posix() for path in loose)])
        # The copy has no history to take the day from.
        today = asked.today or git.read_commit_date(asked.directory)
        return _mended(asked._replace(directory=copy / here, paths=paths, today=today), base, copy, unsafe=unsafe)


def _copy(base: Path, copy: Path, paths: Iterable[str]) -> None:
    for path in dict.fromkeys(map(os.path.normpath, paths)):
        source, target = base / path, copy / path
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        elif source.is_file() and source.resolve().is_relative_to(base):
            real = copy / source.resolve().relative_to(base)
            for parent in (real.parent, target.parent):
                parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, real)
            if not target.exists():
                # A link stays one: what it leads to is what is mended.
                target.symlink_to(os.path.relpath(real, target.parent))


def _mended(asked: LintRequest, base: Path, copy: Path, *, unsafe: bool) -> Fixed | Result:
    linted = lint(asked)
    if isinstance(linted, Result):
        return linted
    before = _errors(linted, copy)
    trust = Trust(_ALL if unsafe else _SAFE, {})
    touched: dict[str, int] = {}
    while True:
        again = _rounds(linted, asked, copy, touched, trust)
        if isinstance(again, Result):
            return again
        worse = {path for path, _ in _errors(again, copy) - before}
        if not worse:
            break
        spoilt = worse & touched.keys() or {path for path in touched if path.startswith(_OVERLAYS)}
        if not spoilt:
            return error_result(ExitCode.INTERNAL_ERROR, "the changes would make new errors; nothing was changed")
        for path in spoilt:
            shutil.copyfile(base / path, copy / path)
            del touched[path]
            trust.files[path] = trust.of(path) - 1
        restored = lint(asked)
        assert isinstance(restored, LintResult), "the files are as they were"
        linted = restored
    files = [Mended(path, (base / path).read_bytes(), (copy / path).read_bytes()) for path in sorted(touched)]
    changed = [file for file in files if file.old != file.new]
    return Fixed(changed, sum(touched.values()), again, tuple(sorted(trust.files)))


def _rounds(
    linted: LintResult, asked: LintRequest, copy: Path, touched: dict[str, int], trust: Trust
) -> LintResult | Result:
    """Change the files until nothing changes any more; what a lint says then."""
    for _ in range(_ROUNDS):
        changed = dict(_round(linted, copy, trust))
        if not changed:
            break
        for path, count in changed.items():
            touched[path] = touched.get(path, 0) + count
        again = lint(asked)
        if isinstance(again, Result):
            return error_result(ExitCode.INTERNAL_ERROR, "a change would break the settings; nothing was changed")
        linted = again
    return linted


def _errors(linted: LintResult, copy: Path) -> Counter[tuple[str, str]]:
    """How many errors stand in each file; in overlays, which speak of many jobs, one may not even become another."""
    errors = [finding for finding in linted.findings if finding.severity is Severity.ERROR]
    paths = [_path_in(copy, linted.root / finding.location.file) for finding in errors]
    return Counter(
        (path, finding.rule if path.startswith(_OVERLAYS) else "") for path, finding in zip(paths, errors, strict=True)
    )


def _round(linted: LintResult, copy: Path, trust: Trust) -> Iterator[tuple[str, int]]:
    """Change every file that can be, once: its path, and how many findings that mends."""
    wanted: dict[str, list[tuple[TextEdit, ...]]] = {}
    for finding in linted.findings:
        if finding.fix:
            # The changes of one fix stand in one file.
            path = _path_in(copy, linted.root / finding.fix.edits[0].location.file)
            if trust.of(path) >= (_SAFE if finding.fix.safe else _ALL):
                wanted.setdefault(path, [])
                wanted[path] += [finding.fix.edits] if finding.fix.edits not in wanted[path] else []
    for path, fixes in wanted.items():
        if path.startswith("..") or not (copy / path).is_file():
            continue
        content = (copy / path).read_bytes()
        new, count = _changed(content, path, fixes)
        if new != content:
            (copy / path).write_bytes(new)
            yield path, count


def _path_in(copy: Path, file: Path) -> str:
    return Path(os.path.relpath(file.resolve(), copy)).as_posix()


def _changed(content: bytes, file: str, fixes: Sequence[tuple[TextEdit, ...]]) -> tuple[bytes, int]:
    """The text with all fixes made, or if they are in each other's way, with as many as can be."""
    try:
        return apply_edits(content, file, [edit for fix in fixes for edit in fix]), len(fixes)
    except EditRefusedError:
        pass
    made: list[TextEdit] = []
    new, count = content, 0
    for fix in fixes:
        try:
            new = apply_edits(content, file, [*made, *fix])
        except EditRefusedError:
            continue
        made += fix
        count += 1
    return new, count


def put_in_place(base: Path, files: Iterable[Mended]) -> dict[str, str]:
    """Write the files that may be written and that nobody has changed meanwhile; of the others, why not."""
    late: dict[str, str] = {}
    for file in files:
        path = base / file.path
        try:
            if not path.stat().st_mode & _WRITABLE:
                late[file.path] = "may not be written"
            elif path.read_bytes() != file.old:
                late[file.path] = "was changed by somebody else meanwhile"
            else:
                replace_file(path, file.new, base)
        except OSError as fault:
            late[file.path] = f"cannot be written: {fault.strerror}"
    return late


def as_diff(files: Iterable[Mended]) -> str:
    """What would change, as a patch."""
    return "".join(_diff(file) for file in files)


def _diff(file: Mended) -> str:
    old, new = (content.decode("utf-8", "replace").splitlines(keepends=True) for content in (file.old, file.new))
    lines = unified_diff(old, new, f"a/{file.path}", f"b/{file.path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
