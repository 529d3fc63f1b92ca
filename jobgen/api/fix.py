"""Fix findings: apply the fixes in a copy until nothing changes any more, then write the files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from jobgen.api.errors import JobgenError, OperationError, ToolError, UsageError
from jobgen.api.lint_files import LintRequest, LintRun
from jobgen.api.lint_run import run_lint
from jobgen.model.finding import Severity, TextEdit
from jobgen.repo import git, layout
from jobgen.repo.atomic import replace_file
from jobgen.yamlio.edit import EditRefusedError, apply_edits

_MAX_ROUNDS = 10
_WRITABLE = 0o222
_SAFE, _ALL = 1, 2
_OVERLAYS = "overlays/"
_SOURCES = ("jobs", "overlays", "policies", "schemas", layout.SETTINGS)


class FixedFile(NamedTuple):
    """A file before and after its fixes."""

    path: str
    old: bytes
    new: bytes


class FixResult(NamedTuple):
    """The fixed files, and a lint of the files with their fixes."""

    files: list[FixedFile]
    findings: int
    """The number of fixed findings."""
    linted: LintRun
    limited: tuple[str, ...] = ()
    """Files in which some fixes were not applied, because they would lead to more errors."""


class FixLevels(NamedTuple):
    """Which fixes to apply: none (0), safe ones (1) or all (2); lower in files where fixes led to errors."""

    default: int
    files: dict[str, int]

    def level(self, path: str) -> int:
        """Return the level of a file."""
        return self.files.get(path, self.default)


def compute_fixes(request: LintRequest, *, unsafe: bool) -> FixResult:
    """Apply fixes in a copy of the files, repeatedly, because one fix may enable the next.

    Raises:
        UsageError: Standard input or a file outside the folder cannot be fixed.
        OperationError: Files could not be read.
        ToolError: The fixes would lead to new errors.

    """
    if request.stdin is not None:
        raise UsageError("standard input cannot be fixed; remove `-` or `--fix`")
    root = layout.find_root(request.directory.resolve())
    base = (root or request.directory).resolve()
    outside = [path for path in request.paths if not (request.directory / path).resolve().is_relative_to(base)]
    if outside:
        raise UsageError(f"`{outside[0]}` is outside of {base}; run `--fix` in its folder")
    try:
        return _fix_in_copy(request, root, base, unsafe=unsafe)
    except OSError as error:
        message = f"{error.filename or base}: {error.strerror or error}; nothing was changed"
        raise OperationError(message) from error


def _fix_in_copy(request: LintRequest, root: Path | None, base: Path, *, unsafe: bool) -> FixResult:
    with tempfile.TemporaryDirectory(prefix="jobgen-") as folder:
        copy = Path(folder).resolve()
        here = Path(os.path.relpath(request.directory.resolve(), base))
        paths = [os.path.relpath(request.directory / path, request.directory) for path in request.paths]
        files = [entry.path for path in paths for entry in layout.find_manifests(request.directory, path)]
        files += [entry.path for entry in layout.find_manifests(base, ".")] if root is None and not paths else []
        _copy_files(base, copy, [*_SOURCES, *((here / path).as_posix() for path in files)])
        # The copy has no commit to take the date from.
        today = request.today or git.read_commit_date(request.directory)
        return _fix_all(request._replace(directory=copy / here, paths=paths, today=today), base, copy, unsafe=unsafe)


def _copy_files(base: Path, copy: Path, paths: Iterable[str]) -> None:
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
                # A link stays a link: the file that it refers to is fixed.
                target.symlink_to(os.path.relpath(real, target.parent))


def _fix_all(request: LintRequest, base: Path, copy: Path, *, unsafe: bool) -> FixResult:
    linted = run_lint(request)
    before = _count_errors(linted, copy)
    levels = FixLevels(_ALL if unsafe else _SAFE, {})
    fixed: dict[str, int] = {}
    while True:
        after = _fix_repeatedly(linted, request, copy, fixed, levels)
        with_new_errors = {path for path, _ in _count_errors(after, copy) - before}
        if not with_new_errors:
            break
        reverted = with_new_errors & fixed.keys() or {path for path in fixed if path.startswith(_OVERLAYS)}
        if not reverted:
            raise ToolError("the fixes would lead to new errors; nothing was changed")
        for path in reverted:
            shutil.copyfile(base / path, copy / path)
            del fixed[path]
            levels.files[path] = levels.level(path) - 1
        linted = run_lint(request)
    files = [FixedFile(path, (base / path).read_bytes(), (copy / path).read_bytes()) for path in sorted(fixed)]
    changed = [file for file in files if file.old != file.new]
    return FixResult(changed, sum(fixed.values()), after, tuple(sorted(levels.files)))


def _fix_repeatedly(
    linted: LintRun, request: LintRequest, copy: Path, fixed: dict[str, int], levels: FixLevels
) -> LintRun:
    """Fix the files until nothing changes any more, and return the last lint."""
    for _ in range(_MAX_ROUNDS):
        changed = dict(_fix_once(linted, copy, levels))
        if not changed:
            break
        for path, count in changed.items():
            fixed[path] = fixed.get(path, 0) + count
        try:
            linted = run_lint(request)
        except JobgenError as error:
            raise ToolError("a fix would break the settings; nothing was changed") from error
    return linted


def _count_errors(linted: LintRun, copy: Path) -> Counter[tuple[str, str]]:
    """Count the errors of each file; in overlays, which affect many jobs, also by rule."""
    errors = [finding for finding in linted.findings if finding.severity is Severity.ERROR]
    paths = [_relative_path(copy, linted.root / finding.location.file) for finding in errors]
    return Counter(
        (path, finding.rule if path.startswith(_OVERLAYS) else "") for path, finding in zip(paths, errors, strict=True)
    )


def _fix_once(linted: LintRun, copy: Path, levels: FixLevels) -> Iterator[tuple[str, int]]:
    """Apply the fixes of one lint; yield the path of each changed file, and how many findings were fixed there."""
    wanted: dict[str, list[tuple[TextEdit, ...]]] = {}
    for finding in linted.findings:
        if finding.fix:
            # All edits of a fix are in one file.
            path = _relative_path(copy, linted.root / finding.fix.edits[0].location.file)
            if levels.level(path) >= (_SAFE if finding.fix.safe else _ALL):
                wanted.setdefault(path, [])
                wanted[path] += [finding.fix.edits] if finding.fix.edits not in wanted[path] else []
    for path, fixes in wanted.items():
        if path.startswith("..") or not (copy / path).is_file():
            continue
        content = (copy / path).read_bytes()
        new, count = _apply_fixes(content, path, fixes)
        if new != content:
            (copy / path).write_bytes(new)
            yield path, count


def _relative_path(copy: Path, file: Path) -> str:
    return Path(os.path.relpath(file.resolve(), copy)).as_posix()


def _apply_fixes(content: bytes, file: str, fixes: Sequence[tuple[TextEdit, ...]]) -> tuple[bytes, int]:
    """Apply all fixes, or if they conflict, as many as possible."""
    try:
        return apply_edits(content, file, [edit for fix in fixes for edit in fix]), len(fixes)
    except EditRefusedError:
        pass
    applied: list[TextEdit] = []
    new, count = content, 0
    for fix in fixes:
        try:
            new = apply_edits(content, file, [*applied, *fix])
        except EditRefusedError:
            continue
        applied += fix
        count += 1
    return new, count


def write_fixes(base: Path, files: Iterable[FixedFile]) -> dict[str, str]:
    """Write fixed files, and return those that were not written with the reason."""
    skipped: dict[str, str] = {}
    for file in files:
        path = base / file.path
        try:
            if not path.stat().st_mode & _WRITABLE:
                skipped[file.path] = "is read-only"
            elif path.read_bytes() != file.old:
                skipped[file.path] = "was changed in the meantime"
            else:
                replace_file(path, file.new, base)
        except OSError as error:
            skipped[file.path] = f"cannot be written: {error.strerror}"
    return skipped


def format_diff(files: Iterable[FixedFile]) -> str:
    """Return the changes as a unified diff."""
    return "".join(_diff_file(file) for file in files)


def _diff_file(file: FixedFile) -> str:
    old, new = (content.decode("utf-8", "replace").splitlines(keepends=True) for content in (file.old, file.new))
    lines = unified_diff(old, new, f"a/{file.path}", f"b/{file.path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
