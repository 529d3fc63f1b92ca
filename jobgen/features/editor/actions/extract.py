"""Offer to move a value of a job to the defaults of an overlay, if the objects of the job stay the same."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from jobgen.features.editor.actions.offers import EXTRACT, ActionRequest, Change, Offer, loses_comments, return_change
from jobgen.features.editor.actions.verify import read_editable, try_change
from jobgen.features.editor.cursor import Cursor, find_cursor
from jobgen.features.editor.workspace import Ready, Workspace, load_ready
from jobgen.model.data import Plain, TracedKey, untraced
from jobgen.model.finding import TextEdit, pluralize
from jobgen.rendering.build import is_spec
from jobgen.rendering.environment import EnvironmentRunner, new_overlay_use
from jobgen.rendering.trace import Job
from jobgen.spec.overlay import list_ancestors
from jobgen.yamlio.edit import EditRefusedError, apply_edits

_MAX_SECONDS = 0.4
"""How long other jobs are compared, at most."""
_MAX_NAMES = 5
_Objects = dict[str, list[Any]]
"""The objects of a job by environment."""


class _Field(NamedTuple):
    """A field of a job: its path in the spec, its key, and its value."""

    path: tuple[str, ...]
    key: TracedKey
    value: Plain


class _OtherJobs(NamedTuple):
    """What a change does to other jobs."""

    changed: tuple[str, ...]
    unknown: int
    """How many jobs were not compared, because there are too many."""


def list_extractions(request: ActionRequest) -> Iterator[Offer]:
    """Offer the overlays that all environments of the job have in common, the nearest first."""
    workspace = request.workspace
    if not request.is_invoked or not workspace.is_repository or not workspace.is_job(request.file):
        return
    content = read_editable(workspace, request.file)
    if isinstance(content, str):
        return
    cursor = find_cursor(content.decode("utf-8", "replace"), request.range.line, request.range.column, request.file)
    field = _find_field(cursor)
    if field is None:
        return
    with workspace.reading():
        ready = load_ready(workspace)
        if ready is None:
            return
        jobs = workspace.read_jobs(ready, request.file)
        own = [job for job in jobs if job.position == cursor.document and is_spec(job.document.data)]
        for overlay in _list_common_overlays(ready, own) if own else ():
            yield from _offer(request, ready, own, field, overlay)


def _find_field(cursor: Cursor) -> _Field | None:
    """Return the field of a spec at a position; that of the list, if it is in one."""
    steps: list[str] = []
    for step in cursor.path:
        if not isinstance(step, str):
            break
        steps.append(step)
    if len(steps) < 2 or steps[0] != "spec" or not cursor.is_complete:
        return None
    holder: Any = cursor.tree
    for step in steps[:-1]:
        holder = holder.get(step) if isinstance(holder, dict) else None
    key = next((key for key in holder if key == steps[-1]), None) if isinstance(holder, dict) else None
    return _Field(tuple(steps[1:]), key, untraced(holder[key])) if isinstance(key, TracedKey) else None


def _list_common_overlays(ready: Ready, jobs: Sequence[Job]) -> list[str]:
    runners = [each for each in ready.prepared.runners if any(each.patches_for(job) is not None for job in jobs)]
    chains = [list_ancestors(runner.name, ready.run.project.overlays) for runner in runners]
    return [name for name in reversed(chains[0]) if all(name in chain for chain in chains)] if chains else []


def _offer(request: ActionRequest, ready: Ready, jobs: Sequence[Job], field: _Field, overlay: str) -> Iterator[Offer]:
    workspace = request.workspace
    files = _move(workspace, ready, request.file, field, overlay)
    before = _render_all(ready, jobs)
    if files is None or before is None:
        return
    others = _list_other_jobs(workspace, ready, overlay, jobs)
    with workspace.trying(files):
        after = workspace.load()
        moved = [job for job in workspace.read_jobs(after, request.file) if job.position == jobs[0].position]
        if _render_all(after, moved) != before:
            return
        found = _compare_others(workspace, ready, after, others)
    if try_change(workspace, files).has_new_errors:
        return
    more = f" (changes {pluralize(len(found.changed), 'other job')})" if found.changed else ""
    title = f"Move `{'.'.join(field.path)}` to the defaults of overlay {overlay}{more}"
    note = _describe(found, loses_comment=loses_comments(jobs[0].file.content, files[request.file]))
    make = partial(return_change, Change(files, note))
    yield Offer(f"extract {overlay}", title, EXTRACT, make)


def _describe(others: _OtherJobs, *, loses_comment: bool) -> str:
    """Return what the user has to confirm."""
    shown = ", ".join(others.changed[:_MAX_NAMES])
    rest = len(others.changed) - _MAX_NAMES
    notes = [f"it also changes {shown}{f' and {rest} more' if rest > 0 else ''}"] if others.changed else []
    notes += [f"{pluralize(others.unknown, 'other job')} may change too"] if others.unknown else []
    notes += ["the comment after the value is lost"] if loses_comment else []
    return "; ".join(notes)


def _move(workspace: Workspace, ready: Ready, file: str, field: _Field, overlay: str) -> Mapping[str, bytes] | None:
    """Return both files after the move; None if that is impossible, or the overlay has another default."""
    added = _find_addition(ready, field, overlay)
    if isinstance(added, str):
        return None
    edits = {file: [TextEdit("remove", field.key.location)]}
    edits |= {edit.location.file: [edit] for edit in added}
    files: dict[str, bytes] = {}
    for path, several in edits.items():
        content = read_editable(workspace, path)
        if isinstance(content, str):
            return None
        try:
            files[path] = apply_edits(content, path, several)
        except EditRefusedError:
            return None
    return files


def _find_addition(ready: Ready, field: _Field, overlay: str) -> list[TextEdit] | str:
    """Return the edit that adds a default to an overlay, or none if it has it; a text says why that is impossible."""
    specs = ready.prepared.tracer.traced_project().overlays[overlay].specs
    node: Any = next((spec for spec in specs if "defaults" in spec), specs[-1])
    steps = ["defaults", *field.path]
    while len(steps) > 1 and isinstance(node.get(steps[0]), dict) and node[steps[0]]:
        node = node[steps.pop(0)]
    if steps[0] in node:
        is_same = len(steps) == 1 and untraced(node[steps[0]]) == field.value
        return [] if is_same else "the overlay has another default"
    value = field.value
    for step in reversed(steps[1:]):
        value = {step: value}
    last = list(node)[-1]
    return [TextEdit("add", last.location, value, steps[0])] if isinstance(last, TracedKey) else "it has no location"


def _render_all(ready: Ready, jobs: Sequence[Job]) -> list[_Objects] | None:
    """Return the objects of jobs; None if one of them has errors."""
    found = [_render(ready.prepared.runners, job) for job in jobs]
    return [each for each in found if each is not None] if all(each is not None for each in found) else None


def _render(runners: Sequence[EnvironmentRunner], job: Job) -> _Objects | None:
    found: _Objects = {}
    for runner in runners:
        patches = runner.patches_for(job)
        if patches is None:
            continue
        made = runner.render_job(job, patches, new_overlay_use())
        if made is None:
            return None
        found[runner.name] = [each.object for each in made]
    return found


def _list_other_jobs(workspace: Workspace, ready: Ready, overlay: str, jobs: Sequence[Job]) -> dict[str, set[int]]:
    """Return the other specs of environments that use an overlay: their positions by file."""
    overlays = ready.run.project.overlays
    using = {each.name for each in ready.prepared.runners if overlay in list_ancestors(each.name, overlays)}
    others: dict[str, set[int]] = {}
    for file, index in workspace.index.items():
        for job in index.jobs:
            is_own = (file, job.position) == (jobs[0].file.path, jobs[0].position)
            if not is_own and job.kind == "TrainingJob" and any(each.environment in using for each in job.environments):
                others.setdefault(file, set()).add(job.position)
    return others


def _compare_others(workspace: Workspace, before: Ready, after: Ready, others: Mapping[str, set[int]]) -> _OtherJobs:
    """Render other jobs before and after a change, as many as the time allows."""
    end = time.monotonic() + _MAX_SECONDS
    changed: dict[str, None] = {}
    left = sum(map(len, others.values()))
    for file, positions in others.items():
        if time.monotonic() > end:
            break
        left -= len(positions)
        for job in workspace.read_jobs(after, file):
            if job.position in positions and _differs(before, after, job):
                changed[job.document.sweep or job.document.name] = None
    return _OtherJobs(tuple(changed), left)


def _differs(before: Ready, after: Ready, job: Job) -> bool:
    return _render(before.prepared.runners, job) != _render(after.prepared.runners, job)
