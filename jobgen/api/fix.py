"""Fix findings: apply the fixes in memory until nothing changes any more, then write the files."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from pathlib import Path

from jobgen.api.errors import JobgenError, UsageError
from jobgen.api.lint_files import Lint, LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.engine.inputs import edited
from jobgen.model.finding import Finding, Severity, TextEdit
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.redact import redact_lines
from jobgen.repo.atomic import replace_file, sync_folders
from jobgen.repo.files import FileEntry, read_file
from jobgen.repo.root import SETTINGS, find_root
from jobgen.yamlio.edit import EditRefusedError, apply_edits, find_refusal

CHANGED = "was changed in the meantime"
"""The reason for which a file is not written although it could be: the next run can fix it."""

MAX_ROUNDS = 11
_SAFE, _ALL = 1, 2
_OVERLAYS = "overlays/"


class FixedFile(NamedTuple):
    """A file before and after its fixes."""

    path: str
    old: bytes
    new: bytes
    findings: int = 0


class FixResult(NamedTuple):
    """The fixed files, and those that could not be fixed, or not completely."""

    files: list[FixedFile]
    limited: tuple[str, ...] = ()
    """Files in which some fixes were not applied, because they would lead to more errors."""
    failed: tuple[tuple[str, str], ...] = ()
    """Files that were not fixed, each with the reason."""
    revealed: Mapping[str, str] = {}
    """The first of the errors that the fixes of a limited file would lead to."""
    unsafe: int = 0
    """How many of the findings that are left unsafe fixes would fix."""


class _Levels(NamedTuple):
    """Which fixes to apply: none (0), safe ones (1) or all (2); lower in files where fixes led to errors."""

    default: int
    files: dict[str, int]
    revealed: dict[str, str]

    def find(self, path: str) -> int:
        """Return the level of a file."""
        return self.files.get(path, self.default)


class _Drafts:
    """The files of a repository with their fixes, in memory: the disk stays as it is until all fixes are known.

    A file is read once, and linted with that content before it is edited: another program may change it meanwhile.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.contents: dict[str, bytes] = {}
        """The current contents of the files that were read, by real path."""
        self.originals: dict[str, bytes] = {}
        """Their contents on disk, by path from the base."""
        self.fixed: dict[str, int] = {}
        """The number of fixed findings of each file, by its path from the base."""
        self.failed: dict[str, str] = {}

    def read(self, path: str) -> bytes | None:
        """Return the current content of a file; None if it has not been read, and thus not linted with that content."""
        return self.contents.get(os.path.realpath(self.base / path))

    def load(self, path: str) -> bool:
        """Read a file; return whether that is possible."""
        full = os.path.realpath(self.base / path)
        file = read_file(FileEntry(path, full)) if os.path.isfile(full) else None
        if file is None or file.finding:
            return False
        self.contents[full] = self.originals[path] = file.content
        return True

    def write(self, path: str, content: bytes, count: int) -> None:
        """Give a file new content."""
        self.contents[os.path.realpath(self.base / path)] = content
        self.fixed[path] = self.fixed.get(path, 0) + count

    def revert(self, path: str) -> None:
        """Give a file its old content."""
        self.contents[os.path.realpath(self.base / path)] = self.originals[path]
        del self.fixed[path]

    def path_of(self, linted: Lint, file: str) -> str:
        """Return the path of a finding's file from the base; the one that a link refers to."""
        return Path(os.path.relpath(os.path.realpath(linted.root / file), self.base)).as_posix()


def compute_fixes(request: LintRequest, *, unsafe: bool) -> FixResult:
    """Compute the fixes of all files, repeatedly, because one fix may enable the next; nothing is written.

    Raise a UsageError if standard input or a file outside the folder is to be fixed.
    """
    if request.stdin is not None:
        raise UsageError("standard input cannot be fixed; remove `-` or `--fix`")
    base = (find_root(request.directory.resolve()) or request.directory).resolve()
    outside = [path for path in request.paths if not (request.directory / path).resolve().is_relative_to(base)]
    if outside:
        raise UsageError(f"`{outside[0]}` is outside of {base}; run `--fix` in its folder")
    drafts = _Drafts(base)
    with edited(drafts.contents):
        levels = _Levels(_ALL if unsafe else _SAFE, {}, {})
        left = _fix_all(request, drafts, levels)
        files = [
            FixedFile(path, drafts.originals[path], drafts.contents[os.path.realpath(base / path)], count)
            for path, count in sorted(drafts.fixed.items())
        ]
        is_more = not unsafe and any(finding.fix and not finding.fix.safe for finding in left.findings)
        count = _count_unsafe(request, drafts) if is_more else 0
    changed = [file for file in files if file.old != file.new]
    limited = tuple(sorted(levels.files))
    return FixResult(changed, limited, tuple(sorted(drafts.failed.items())), levels.revealed, count)


def _count_unsafe(request: LintRequest, drafts: _Drafts) -> int:
    """Return how many findings unsafe fixes would fix after the safe ones: they are applied to the drafts."""
    trial = _Drafts(drafts.base)
    # What a lint reads are the contents of these drafts.
    trial.contents = drafts.contents
    trial.originals = {path: drafts.contents[os.path.realpath(drafts.base / path)] for path in drafts.originals}
    trial.failed = dict(drafts.failed)
    _fix_all(request, trial, _Levels(_ALL, {}, {}))
    return sum(trial.fixed.values())


def _fix_all(request: LintRequest, drafts: _Drafts, levels: _Levels) -> Lint:
    """Fix all files as far as their levels allow, and return the lint of the result."""
    linted = find_findings(request)
    before = _count_errors(linted, drafts)
    known = {(finding.location.file, finding.fault) for finding in linted.findings}
    while True:
        after: Lint | None = linted
        for _ in range(MAX_ROUNDS):
            if after is None or not _fix_once(after, drafts, levels):
                break
            try:
                after = find_findings(request)
            except JobgenError:
                # A fix broke the settings.
                after = None
        more = _count_errors(after, drafts) - before if after else Counter({(SETTINGS, ""): 1})
        if after and not more:
            return after
        new = [each for each in _list_errors(after) if (each.location.file, each.fault) not in known]
        for path in _find_causes({path for path, _ in more}, after, drafts):
            drafts.revert(path)
            levels.files[path] = levels.find(path) - 1
            if after and new:
                own = (each for each in new if drafts.path_of(after, each.location.file) == path)
                error = next(own, new[0])
                levels.revealed.setdefault(path, f"{error.location}: {error.message} [{error.rule}]")
        linted = find_findings(request)


def _list_errors(linted: Lint | None) -> list[Finding]:
    """Return the errors of a lint: one in several environments is one."""
    errors = [finding for finding in linted.findings if finding.severity is Severity.ERROR] if linted else []
    return list({(error.location, error.fault): error for error in errors}.values())


def _find_causes(paths: set[str], linted: Lint | None, drafts: _Drafts) -> set[str]:
    """Return the fixed files that may have led to new errors in some files: these, those that they refer to, or all."""
    related: set[str] = set()
    for finding in linted.findings if linted else ():
        if linted and drafts.path_of(linted, finding.location.file) in paths:
            related |= {drafts.path_of(linted, each.location.file) for each in finding.related}
    overlays = {path for path in drafts.fixed if path.startswith(_OVERLAYS)}
    return paths & drafts.fixed.keys() or related & drafts.fixed.keys() or overlays or set(drafts.fixed)


def _count_errors(linted: Lint, drafts: _Drafts) -> Counter[tuple[str, str]]:
    """Count the errors of each file; in overlays, which affect many jobs, also by rule."""
    errors = _list_errors(linted)
    paths = [drafts.path_of(linted, finding.location.file) for finding in errors]
    return Counter(
        (path, finding.rule if path.startswith(_OVERLAYS) else "") for path, finding in zip(paths, errors, strict=True)
    )


def _fix_once(linted: Lint, drafts: _Drafts, levels: _Levels) -> bool:
    """Apply the fixes of one lint; return whether to lint again. A file that fails does not stop the others."""
    wanted: dict[str, list[tuple[TextEdit, ...]]] = {}
    for fix in (finding.fix for finding in linted.findings if finding.fix):
        # All edits of a fix are in one file.
        path = drafts.path_of(linted, fix.edits[0].location.file)
        if levels.find(path) >= (_SAFE if fix.safe else _ALL):
            known = wanted.setdefault(path, [])
            known += [fix.edits] if fix.edits not in known else []
    changed = False
    for path, fixes in wanted.items():
        if path.startswith("..") or path in drafts.failed:
            continue
        content = drafts.read(path)
        if content is None:
            # Its findings may be about another content than the one that is read now: lint again first.
            changed = drafts.load(path) or changed
            continue
        if b"sops" in content and b"ENC[" in content:
            drafts.failed[path] = "is encrypted by SOPS, which signs it as it is; edit it with `sops`"
            continue
        try:
            new, count = apply_fixes(content, path, fixes)
        except Exception as error:  # noqa: BLE001 -- a fault in one file must not keep the others from being fixed
            drafts.failed[path] = (
                f"cannot be fixed: `{type(error).__name__}`: {error}; please report this bug in jobgen"
            )
            continue
        if new != content:
            drafts.write(path, new, count)
            changed = True
        elif refusal := find_refusal(content):
            drafts.failed[path] = f"cannot be fixed: {refusal}"
    return changed


def apply_fixes(content: bytes, file: str, fixes: Sequence[tuple[TextEdit, ...]]) -> tuple[bytes, int]:
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


def write_fixes(base: Path, files: Iterable[FixedFile], *, fsync: bool = True) -> dict[str, str]:
    """Write fixed files, and return those that were not written with the reason."""
    skipped: dict[str, str] = {}
    folders: set[str] = set()
    for file in files:
        path = base / file.path
        try:
            current = path.read_bytes()
            if not path.stat().st_mode & 0o222:
                skipped[file.path] = "is read-only"
            elif current not in (file.old, file.new):
                skipped[file.path] = CHANGED
            elif current == file.old:
                folders.add(replace_file(path, file.new, base, fsync=fsync))
        except OSError as error:
            skipped[file.path] = f"cannot be written: {error.strerror}"
    if fsync:
        sync_folders(folders)
    return skipped


def format_diff(files: Iterable[FixedFile]) -> str:
    """Return the changes as a unified diff."""
    found: list[str] = []
    for file in files:
        old, new = (content.decode("utf-8", "replace").splitlines(keepends=True) for content in (file.old, file.new))
        lines = unified_diff(old, new, f"a/{file.path}", f"b/{file.path}")
        found += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join(found)


_MAX_LINES = 20
_MAX_TEXT = 60
_MAX_COMPARED = 1_000
"""Between the first and the last changed line, more lines are not compared, because that takes long."""


_ALIKE = 0.6
_NEAR = 10
"""How many lines further a line is looked for."""
_WORDS = re.compile(r"\s+|[,{}\[\]]|:(?=\s|$)|(?:[^\s,{}\[\]:]|:(?!\s|$))+")
"""Words, and what separates them."""


def describe_changes(files: Iterable[FixedFile]) -> list[str]:
    """Return a line for each changed line of the files, such as `a.yaml:7: gpus -> gpu`; of many, the first."""
    found = [change for file in files for change in _describe_file(file)]
    more = len(found) - _MAX_LINES
    return found if more < 2 else [*found[:_MAX_LINES], f"and {more} more"]


def _describe_file(file: FixedFile) -> Iterator[str]:
    old, new = (content.decode("utf-8", "replace").splitlines() for content in (file.old, file.new))
    old_shown, new_shown = redact_lines(old), redact_lines(new)
    start, end = _count_common(old, new)
    if max(len(old), len(new)) - start - end > _MAX_COMPARED:
        yield f"{file.path}:{start + 1}: changed"
        return
    middle = old[start : len(old) - end], new[start : len(new) - end]
    for tag, *places in SequenceMatcher(None, *middle, autojunk=False).get_opcodes():
        first, last, new_first, new_last = (place + start for place in places)
        for number, other in _pair_lines(old[first:last], new[new_first:new_last]) if tag != "equal" else ():
            before = old_shown[first + number] if number is not None else ""
            after = new_shown[new_first + other] if other is not None else ""
            line = first + number if number is not None else new_first + (other or 0)
            yield f"{file.path}:{line + 1}: {_describe_line(before, after)}"


def _pair_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
    """Yield the lines that became others, as indexes, and those without a counterpart, in their order.

    A line became another if it has the same key, or most of its characters.
    """
    start = 0
    for number, line in enumerate(old):
        same = (place for place in range(start, min(start + _NEAR, len(new))) if _is_same_entry(line, new[place]))
        found = next(same, None)
        yield from ((None, place) for place in range(start, found if found is not None else start))
        yield number, found
        start = start if found is None else found + 1
    yield from ((None, place) for place in range(start, len(new)))


def _is_same_entry(old: str, new: str) -> bool:
    (key, colon, _), (other, _, _) = (line.strip().partition(":") for line in (old, new))
    matcher = SequenceMatcher(None, old.strip(), new.strip(), autojunk=False)
    return bool(colon and key == other) or (matcher.real_quick_ratio() > _ALIKE and matcher.ratio() > _ALIKE)


def _describe_line(before: str, after: str) -> str:
    """Return what differs between two lines, in whole words; an empty line does not exist on that side."""
    old, new = (_WORDS.findall(line) for line in (before, after))
    start, end = _count_common(old, new)
    removed, added = (_shorten("".join(words[start : len(words) - end]).strip(" ,")) for words in (old, new))
    if removed and added:
        return f"`{removed}` -> `{added}`"
    # Only white space differs, or a value that is not shown.
    return f"removed `{removed}`" if removed else f"added `{added}`" if added else "changed"


def _count_common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many items both start with, and how many of the others they end with."""
    start, end, least = 0, 0, min(len(old), len(new))
    while start < least and old[start] == new[start]:
        start += 1
    while end < least - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
