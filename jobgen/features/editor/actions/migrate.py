"""Offer to migrate a job to another kind: what `jobgen migrate` writes, and what is lost."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from jobgen.features.editor.actions.offers import (
    REWRITE,
    ActionRequest,
    Change,
    Offer,
    is_new,
    loses_comments,
    read_editable,
    return_change,
    try_change,
)
from jobgen.features.editor.cursor import find_cursor
from jobgen.features.editor.workspace import Workspace, load_ready
from jobgen.model.features import all_features
from jobgen.model.finding import pluralize
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.trace import Job
from jobgen.reports.escape import visible

if TYPE_CHECKING:
    from jobgen.features.convert.migrate.convert_job import MigrationOutput
    from jobgen.spec.kinds import Kind

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
    project, job = ready.run.project, jobs[0]
    for kind in _list_targets(project, job):
        made = _migrate(request.workspace, project, job, len(jobs), kind)
        if made is None:
            continue
        files, lost = made
        # Values are left out of what the user has to confirm, because they may be secrets.
        note = f"lost: {', '.join(lost)}" if lost else "no field is lost; review the changes"
        if loses_comments(job.file.content, files[job.file.path]):
            note += "; the comments of the manifest are lost"
        make = partial(return_change, Change(files, visible(note)))
        title = f"Migrate to {kind.name} of {kind.platform}"
        title += f" ({pluralize(len(lost), 'field')} lost)" if lost else ""
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
) -> tuple[Mapping[str, bytes], Sequence[str]] | None:
    """Return the files of a migrated job, and the fields that are lost; None if it cannot be migrated."""
    from jobgen.features.convert.migrate.convert_job import (
        convert_job,
        convert_with_runtimes,
        list_members,
        needs_runtime,
    )

    with workspace.reading():
        # The platform alone may have several kinds for a framework; the name alone may be that of several platforms.
        others = [each for each in project.kinds if each.name == kind.name and each is not kind]
        target = kind.platform if others else kind.name
        if needs_runtime(job, size, project, target, ()):
            outputs = convert_with_runtimes(list_members(job, project) if job.document.sweep else [job], project)
        else:
            outputs = [convert_job(job, size, project, target)]
    if not outputs or not outputs[0].text:
        return None
    files = _write_outputs(workspace, job, outputs)
    if files is None or try_change(workspace, {job.file.path: files[job.file.path]}).has_new_errors:
        return None
    return files, list(dict.fromkeys(field for output in outputs for field in output.lost))


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
