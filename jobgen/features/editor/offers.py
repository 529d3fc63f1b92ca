"""What an editor can offer at a position, such as a migration: checked by a lint, as the smallest edits of files."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import TYPE_CHECKING

from jobgen.api.errors import JobgenError
from jobgen.features.editor.cursor import find_cursor
from jobgen.features.editor.lint_workspace import FileFindings, list_layer_findings
from jobgen.features.editor.workspace import Workspace, load_ready
from jobgen.model.data import Location
from jobgen.model.features import all_features
from jobgen.model.finding import Finding, Severity, pluralize
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.trace import Job
from jobgen.repo.atomic import links_outside
from jobgen.reports.escape import visible

if TYPE_CHECKING:
    from jobgen.features.convert.migrate.convert_job import MigrationOutput
    from jobgen.spec.kinds import Kind


QUICK_FIX = "quickfix"
FIX_ALL = "source.fixAll.jobgen"
EXTRACT = "refactor.extract"
REWRITE = "refactor.rewrite"
KINDS = (QUICK_FIX, FIX_ALL, EXTRACT, REWRITE)
"""The kinds of the protocol; a client asks for some of them."""


class Change(NamedTuple):
    """New contents of files, by path from the root. A file that does not exist is created."""

    files: Mapping[str, bytes]
    note: str = ""
    """What the user has to confirm; empty if nothing can be lost."""


class Offer(NamedTuple):
    """An action: `make` returns the change, or why there is none."""

    id: str
    """Names it among the offers for one position."""
    title: str
    kind: str
    make: Callable[[], Change | str]
    findings: tuple[Finding, ...] = ()
    """The findings that it removes."""
    is_preferred: bool = False


def return_change(change: Change) -> Change:
    """Return a change: what makes it, if it is known already."""
    return change


class ActionRequest(NamedTuple):
    """A request for the actions at a range of a file, by its path from the root."""

    workspace: Workspace
    file: str
    range: Location
    findings: tuple[Finding, ...]
    """All findings in the file. Their locations are valid in its current content."""
    is_invoked: bool = True
    """True if the user asked for actions. Otherwise the cursor moved, and only what is quick to find is wanted."""

    def is_selected(self, location: Location) -> bool:
        """Return True if the range touches a location of the file."""
        if location.file != self.file:
            return False
        start, end = _bounds(self.range)
        first, last = _bounds(location)
        return first <= end and start <= last

    def is_asked_about(self, location: Location) -> bool:
        """True if the range touches a location, or is a cursor on its line: on `replicas` of a wrong `replicas: 2`."""
        at = self.range
        is_cursor = (at.line, at.column) == (at.end_line, at.end_column)
        return self.is_selected(location) or (
            is_cursor and location.file == self.file and location.line <= at.line <= _bounds(location)[1][0]
        )

    def list_nearest_first(self) -> list[Finding]:
        """Return the findings, first those that the range touches."""
        return sorted(self.findings, key=lambda finding: not self.is_selected(finding.location))


def _bounds(location: Location) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and the last position of a location. One without an end is one character."""
    start = location.line, location.column
    if not location.end_line:
        return start, (location.line, location.column + 1)
    return start, max(start, (location.end_line, location.end_column))


_LINE = lazy_pattern(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#", re.MULTILINE)
_MAX_LINES = 2_000
"""A longer part that changes is replaced as a whole: comparing its lines would take too long."""


class Replacement(NamedTuple):
    """New text for a part of the old one. Offsets count characters from the beginning of the old text."""

    start: int
    end: int
    text: str


def list_replacements(old: str, new: str) -> list[Replacement]:
    """Return the replacements that turn the old text into the new one, in order; they do not touch each other."""
    old_lines, new_lines = split_lines(old), split_lines(new)
    found: list[Replacement] = []
    offset, line = 0, 0
    for first, last, new_first, new_last in _list_changed_lines(old_lines, new_lines):
        offset += sum(map(len, old_lines[line:first]))
        line = first
        before, after = "".join(old_lines[first:last]), "".join(new_lines[new_first:new_last])
        found.append(_trim(before, after, offset))
    return found


def loses_comments(before: bytes, after: bytes) -> bool:
    """Return True if a text has fewer comments than before."""
    old, new = (len(_COMMENT.findall(text.decode("utf-8", "replace"))) for text in (before, after))
    return new < old


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their ends, by the line ends of the protocol."""
    return _LINE.findall(text)


def _list_changed_lines(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the parts that changed: first and last line of the old text, and of the new one."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(left) + len(right) > _MAX_LINES:
        yield head, len(old) - tail, head, len(new) - tail
        return
    for tag, first, last, new_first, new_last in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            yield head + first, head + last, head + new_first, head + new_last


def _trim(before: str, after: str, offset: int) -> Replacement:
    """Leave out what both texts begin and end with. A line end of two characters is never divided."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    if before[start - 1 : start + 1] == "\r\n":
        start -= 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    if before[len(before) - end - 1 : len(before) - end + 1] == "\r\n":
        end -= 1
    return Replacement(offset + start, offset + len(before) - end, after[start : len(after) - end])


MORE_ERRORS = "the file would have more errors than before"
_OVERLAYS = "overlays/"
_MAX_JOBS = 20
"""How many jobs are linted to see what a change of an overlay, a kind or a policy leads to."""


def read_editable(workspace: Workspace, file: str) -> bytes | str:
    """Return the content of a file that may be edited; a text says why it may not."""
    if workspace.find_relative(os.path.join(workspace.root, file)) is None:
        return f"`{file}` is not in this folder"
    if links_outside(os.path.join(workspace.root, file), workspace.root):
        return f"`{file}` is a link that leads out of this folder"
    read = workspace.read(file)
    return read.finding.message if read.finding else read.content


def is_new(workspace: Workspace, file: str) -> bool:
    """Return True if a file can be created: there is nothing at its path, and no link leads it out of the folder."""
    full = os.path.join(workspace.root, file)
    is_there = os.path.lexists(full) or os.path.realpath(full) in workspace.drafts
    return not is_there and workspace.find_relative(full) is not None and not links_outside(full, workspace.root)


def list_checked_files(workspace: Workspace, changed: Iterable[str], findings: Iterable[Finding] = ()) -> list[str]:
    """Return the files to lint when some files change.

    A layer concerns many jobs, so a few of them are linted: those of the findings, then the first. The background
    process lints all of them once the change is made.
    """
    files = dict.fromkeys(changed)
    if not all(map(workspace.is_job, files)):
        objects = {each.object for each in findings if each.object}
        for file, index in workspace.index.items():
            if any(not objects.isdisjoint(made.objects) for job in index.jobs for made in job.environments):
                files[file] = None
        files |= dict.fromkeys(list(workspace.index)[:_MAX_JOBS])
    return list(files)


class Found(NamedTuple):
    """The findings of some files with the layers that they use."""

    findings: tuple[Finding, ...]
    is_complete: bool = True
    """False if the settings have errors, so that nothing else is known."""


def find_findings(workspace: Workspace, files: Iterable[str]) -> Found:
    """Lint files with the layers that they use."""
    with workspace.reading():
        try:
            ready = workspace.load()
        except JobgenError as error:
            return Found(tuple(error.findings), is_complete=False)
        found: dict[Finding, None] = {}
        layers = list_layer_findings(ready.project, ready.layers.findings)
        for file in files:
            found |= dict.fromkeys(workspace.lint_job(ready, file) if workspace.is_job(file) else layers.get(file, ()))
    return Found(tuple(found))


class Outcome(NamedTuple):
    """What is found before and after a change."""

    before: Found
    after: Found
    behind: tuple[Finding, ...] = ()
    """What the last lint of everything found behind the errors of layers, in files that the change leaves alone."""

    @property
    def has_new_errors(self) -> bool:
        """Return True if the change leads to errors.

        As `jobgen lint --fix` does, errors of a job are counted together: one that hides others may be replaced by one
        of them. Errors in the settings hide everything.
        """
        if self.before.is_complete == self.after.is_complete:
            known = _count_errors(self.before.findings) | _count_errors(self.behind)
            return bool(_count_errors(self.after.findings) - known)
        return self.before.is_complete


def try_change(workspace: Workspace, contents: Mapping[str, bytes], findings: Iterable[Finding] = ()) -> Outcome:
    """Lint the files that a change concerns, before and after it."""
    files = list_checked_files(workspace, contents, findings)
    before = find_findings(workspace, files)
    # Jobs are not rendered with a layer that has errors, as `before` is; a lint of the workspace repairs it.
    is_hidden = any(file.startswith(_OVERLAYS) for file, _ in _count_errors(before.findings))
    others = [file for file in files if file not in contents and is_hidden]
    behind = (each for file in others for each in workspace.snapshot.findings.get(file, FileFindings()).all)
    with workspace.trying(contents):
        return Outcome(before, find_findings(workspace, files), tuple(behind))


def _count_errors(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    return Counter(
        (file := each.location.file, each.rule if file.startswith(_OVERLAYS) else "")
        for each in findings
        if each.severity is Severity.ERROR
    )


# The modules that migrate jobs are imported in functions: most sessions never need them.

_PATHS = frozenset((("apiVersion",), ("kind",), ("spec", "framework")))
"""The fields that decide about the kind of a job."""
_SUCCESSOR = "TrainJob"


def list_migrations(request: ActionRequest) -> Iterator[Offer]:
    """Offer the kinds that a job can be migrated to, where its kind or framework is written."""
    is_yaml = request.file.endswith((".yaml", ".yml"))
    is_possible = is_yaml and request.is_invoked and "convert" in all_features()
    content = read_editable(request.workspace, request.file) if is_possible else ""
    if isinstance(content, str) or not request.workspace.is_job(request.file):
        return
    cursor = find_cursor(content.decode("utf-8", "replace"), request.range.line, request.range.column, request.file)
    ready = load_ready(request.workspace) if cursor.path in _PATHS and cursor.is_complete else None
    if ready is None:
        return
    jobs = [job for job in request.workspace.read_jobs(ready, request.file) if job.position == cursor.document]
    # The items of a List have no text of their own.
    if not jobs or (len(jobs) > 1 and not jobs[0].document.sweep):
        return
    project, job = ready.project, jobs[0]
    for kind in _list_targets(project, job):
        made = _migrate(request.workspace, project, job, len(jobs), kind)
        if made is None:
            continue
        files, lost, names = made
        # Values are left out of what the user has to confirm, because they may be secrets.
        note = f"lost: {', '.join(lost)}" if lost else "no field is lost; review the changes"
        if loses_comments(job.file.content, files[job.file.path]):
            note += "; the comments of the manifest are lost"
        make = partial(return_change, Change(files, visible(note)))
        # Not every editor asks for a confirmation, so the title says what the user accepts.
        accepted = [f"accept {name}" for name in names] + ([f"{pluralize(len(lost), 'field')} lost"] if lost else [])
        title = f"Migrate to {kind.name} of {kind.platform}" + (f" ({', '.join(accepted)})" if accepted else "")
        yield Offer(f"migrate {kind.platform}/{kind.name}", title, REWRITE, make)


def _list_targets(project: ProjectConfig, job: Job) -> Iterator[Kind]:
    """Yield the kinds to offer: those of platforms that the repository uses.

    A manifest has a kind of its own, so the successor of its kind is offered too, or any if its kind is deprecated. The
    kind of a spec is decided by the platform of its environments.
    """
    from jobgen.features.convert.migrate.convert_job import find_source
    from jobgen.features.convert.migrate.migrate_job import target_framework

    origin = find_source(job, project, "", ())
    if isinstance(origin, str):
        return
    used = {name for env in project.environments() for name in project.environment(env, []).cluster.list_platforms()}
    for kind in project.kinds:
        if kind is origin.kind or not kind.frameworks or not target_framework(origin.framework, kind):
            continue
        is_successor = kind.name == _SUCCESSOR or (origin.kind.deprecated and not kind.deprecated)
        if kind.platform in used or (is_successor and not origin.is_spec):
            yield kind


def _migrate(
    workspace: Workspace, project: ProjectConfig, job: Job, size: int, kind: Kind
) -> tuple[Mapping[str, bytes], Sequence[str], Sequence[str]] | None:
    """Return the files of a migrated job, the fields and roles that are lost, and the names of all other differences.

    None if it cannot be migrated.
    """
    from jobgen.features.convert.migrate.convert_job import (
        convert_job,
        convert_with_runtimes,
        list_members,
        needs_runtime,
    )
    from jobgen.features.convert.migrate.differences import FIELDS, ROLES, list_names

    with workspace.reading():
        # The platform alone may have several kinds for a framework; the name alone may be that of several platforms.
        others = [each for each in project.kinds if each.name == kind.name and each is not kind]
        target = kind.platform if others else kind.name
        if needs_runtime(job, size, project, target, ()):
            jobs = list_members(job, project) if job.document.sweep else [job]
            outputs = convert_with_runtimes(jobs, project, list_names())
        else:
            outputs = [convert_job(job, size, project, target, (), list_names())]
    if not outputs or not outputs[0].text or any(output.verdict.is_refused for output in outputs):
        return None
    files = _write_outputs(workspace, job, outputs)
    if files is None or try_change(workspace, {job.file.path: files[job.file.path]}).has_new_errors:
        return None
    names = sorted({name for output in outputs for name in output.verdict.needed} - {FIELDS, ROLES})
    return files, list(dict.fromkeys(field for output in outputs for field in output.lost)), names


def _write_outputs(workspace: Workspace, job: Job, outputs: list[MigrationOutput]) -> Mapping[str, bytes] | None:
    """Return the changed file of a job, and new files for the runtimes that it needs; None if others are there."""
    from jobgen.features.convert.migrate.draft import replace_documents

    text = replace_documents(job.file, {job.position: outputs[0].text})
    if b"\r\n" in job.file.content:
        text = text.replace("\n", "\r\n")
    files = {job.file.path: text.encode()}
    folder = "" if workspace.is_repository else posixpath.dirname(job.file.path)
    for output in outputs[1:]:
        path = posixpath.join(folder, f"{output.name}.yaml")
        new = output.text.encode()
        if is_new(workspace, path):
            files[path] = new
        elif read_editable(workspace, path) != new:
            return None
    return files
