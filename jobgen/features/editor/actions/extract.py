"""Offer to move a value of a job to the defaults of an overlay, if the objects of the job stay the same."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from jobgen.features.editor.actions.offers import EXTRACT, ActionRequest, Change, Offer, loses_comments, return_change
from jobgen.features.editor.actions.verify import read_editable, try_change
from jobgen.features.editor.cursor import Cursor, find_cursor, get_path
from jobgen.features.editor.workspace import Ready, Workspace, load_ready
from jobgen.model.data import Plain, TracedKey, untraced
from jobgen.model.finding import TextEdit, pluralize
from jobgen.rendering.build import is_spec
from jobgen.rendering.environment import new_overlay_use
from jobgen.rendering.trace import Job
from jobgen.spec.overlay import list_ancestors
from jobgen.yamlio.edit import EditRefusedError, apply_edits

_MAX_SECONDS = 0.4
"""How long other jobs are compared, at most."""
_MAX_NAMES = 5


class _Field(NamedTuple):
    """A field of a job: its path in the spec, its key, and its value."""

    path: tuple[str, ...]
    key: TracedKey
    value: Plain


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
        runners = [each for each in ready.prepared.runners if any(each.patches_for(job) is not None for job in own)]
        chains = [list_ancestors(runner.name, ready.run.project.overlays) for runner in runners]
        for overlay in reversed(chains[0]) if chains else ():
            if all(overlay in chain for chain in chains):
                yield from _offer(request, ready, own, field, overlay)


def _find_field(cursor: Cursor) -> _Field | None:
    """Return the field of a spec at a position; that of the list, if it is in one."""
    steps = [str(step) for step in takewhile(lambda step: isinstance(step, str), cursor.path)]
    if len(steps) < 2 or steps[0] != "spec" or not cursor.is_complete:
        return None
    holder = get_path(cursor.tree, steps[:-1])
    key = next((key for key in holder if key == steps[-1]), None) if isinstance(holder, dict) else None
    return _Field(tuple(steps[1:]), key, untraced(holder[key])) if isinstance(key, TracedKey) else None


def _offer(request: ActionRequest, ready: Ready, jobs: Sequence[Job], field: _Field, overlay: str) -> Iterator[Offer]:
    workspace = request.workspace
    files = _move(workspace, ready, request.file, field, overlay)
    before = [_render(ready, job) for job in jobs]
    if files is None or None in before:
        return
    with workspace.trying(files):
        after = workspace.load()
        moved = [job for job in workspace.read_jobs(after, request.file) if job.position == jobs[0].position]
        if [_render(after, job) for job in moved] != before:
            return
        changed, unknown = _compare_others(workspace, ready, after, overlay, jobs[0])
    if try_change(workspace, files).has_new_errors:
        return
    more = f" (changes {pluralize(len(changed), 'other job')})" if changed else ""
    title = f"Move `{'.'.join(field.path)}` to the defaults of overlay {overlay}{more}"
    shown, rest = ", ".join(changed[:_MAX_NAMES]), len(changed) - _MAX_NAMES
    notes = [f"it also changes {shown}{f' and {rest} more' if rest > 0 else ''}"] if changed else []
    notes += [f"{pluralize(unknown, 'other job')} can also change"] if unknown else []
    is_lost = loses_comments(jobs[0].file.content, files[request.file])
    notes += ["the comment after the value is lost"] if is_lost else []
    make = partial(return_change, Change(files, "; ".join(notes)))
    yield Offer(f"extract {overlay}", title, EXTRACT, make)


def _move(workspace: Workspace, ready: Ready, file: str, field: _Field, overlay: str) -> Mapping[str, bytes] | None:
    """Return both files after the move; None if that is impossible, or the overlay has another default."""
    specs = ready.prepared.tracer.traced_project().overlays[overlay].specs
    node: Any = next((spec for spec in specs if "defaults" in spec), specs[-1])
    steps = ["defaults", *field.path]
    while len(steps) > 1 and isinstance(node.get(steps[0]), dict) and node[steps[0]]:
        node = node[steps.pop(0)]
    edits = {file: [TextEdit("remove", field.key.location)]}
    if steps[0] not in node:
        value = field.value
        for step in reversed(steps[1:]):
            value = {step: value}
        last = list(node)[-1]
        if not isinstance(last, TracedKey):
            return None
        edits[last.location.file] = [TextEdit("add", last.location, value, steps[0])]
    elif len(steps) > 1 or untraced(node[steps[0]]) != field.value:
        return None
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


def _render(ready: Ready, job: Job) -> dict[str, list[Any]] | None:
    """Return the objects of a job by environment; None if it has errors."""
    found: dict[str, list[Any]] = {}
    for runner in ready.prepared.runners:
        patches = runner.patches_for(job)
        if patches is None:
            continue
        made = runner.render_job(job, patches, new_overlay_use())
        if made is None:
            return None
        found[runner.name] = [each.object for each in made]
    return found


def _compare_others(
    workspace: Workspace, before: Ready, after: Ready, overlay: str, own: Job
) -> tuple[tuple[str, ...], int]:
    """Render the other specs of environments that use an overlay before and after a change, as many as time allows.

    Return the names of those that change, and how many were not compared.
    """
    overlays = before.run.project.overlays
    using = {each.name for each in before.prepared.runners if overlay in list_ancestors(each.name, overlays)}
    others: dict[str, set[int]] = {}
    for file, index in workspace.index.items():
        for known in index.jobs:
            is_own = (file, known.position) == (own.file.path, own.position)
            is_using = any(each.environment in using for each in known.environments)
            if not is_own and known.kind == "TrainingJob" and is_using:
                others.setdefault(file, set()).add(known.position)
    end = time.monotonic() + _MAX_SECONDS
    changed: dict[str, None] = {}
    left = sum(map(len, others.values()))
    for file, positions in others.items():
        if time.monotonic() > end:
            break
        left -= len(positions)
        for job in workspace.read_jobs(after, file):
            if job.position in positions and _render(before, job) != _render(after, job):
                changed[job.document.sweep or job.document.name] = None
    return tuple(changed), left
