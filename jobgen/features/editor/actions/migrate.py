"""Offer to migrate a job to another kind: what `jobgen migrate` writes, and what is lost."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from jobgen.features.editor.actions.offers import REWRITE, ActionRequest, Change, Offer, loses_comments, return_change
from jobgen.features.editor.actions.verify import MORE_ERRORS, is_new, read_editable, try_change
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
    if not is_yaml or not request.is_invoked or not request.workspace.is_job(request.file) or not _can_migrate():
        return
    found = _find_job(request)
    if found is None:
        return
    project, job, size = found
    for kind in _list_targets(project, job):
        name = f"{kind.name} of {kind.platform}"
        made = _migrate(request.workspace, project, job, size, kind)
        if isinstance(made, _Migration):
            lost = f" ({pluralize(len(made.lost), 'field')} lost)" if made.lost else ""
            make = partial(return_change, _make_change(made))
            yield Offer(f"migrate {kind.platform}/{kind.name}", f"Migrate to {name}{lost}", REWRITE, make)


def _can_migrate() -> bool:
    return "convert" in all_features()


class _Migration(NamedTuple):
    """The files of a migrated job, and the fields that are lost."""

    files: Mapping[str, bytes]
    lost: tuple[str, ...]
    loses_comments: bool


def _make_change(made: _Migration) -> Change:
    """Return the change, with what the user has to confirm. Values are left out, because they may be secrets."""
    note = f"lost: {', '.join(made.lost)}" if made.lost else "no field is lost; review the changes"
    comments = "; the comments of the manifest are lost" if made.loses_comments else ""
    return Change(made.files, visible(f"{note}{comments}"))


def _find_job(request: ActionRequest) -> tuple[ProjectConfig, Job, int] | None:
    """Return the project, the selected job, and the number of members if it is a sweep."""
    content = read_editable(request.workspace, request.file)
    if isinstance(content, str):
        return None
    cursor = find_cursor(content.decode("utf-8", "replace"), request.range.line, request.range.column, request.file)
    if cursor.path not in _PATHS or not cursor.is_complete:
        return None
    ready = load_ready(request.workspace)
    if ready is None:
        return None
    jobs = [job for job in request.workspace.read_jobs(ready, request.file) if job.position == cursor.document]
    # The items of a List have no text of their own.
    if not jobs or (len(jobs) > 1 and not jobs[0].document.sweep):
        return None
    return ready.run.project, jobs[0], len(jobs)


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


def _migrate(workspace: Workspace, project: ProjectConfig, job: Job, size: int, kind: Kind) -> _Migration | str:
    """Migrate a job; a text says why that is impossible."""
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
        return outputs[0].report if outputs else "there is nothing to migrate"
    files = _write_outputs(workspace, job, outputs)
    if isinstance(files, str):
        return files
    if try_change(workspace, {job.file.path: files[job.file.path]}).has_new_errors:
        return MORE_ERRORS
    lost = tuple(dict.fromkeys(field for output in outputs for field in output.lost))
    return _Migration(files, lost, loses_comments(job.file.content, files[job.file.path]))


def _write_outputs(workspace: Workspace, job: Job, outputs: list[MigrationOutput]) -> Mapping[str, bytes] | str:
    """Return the changed file of a job, and new files for the runtimes that it needs."""
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
        elif (there := read_editable(workspace, path)) != new:
            return there if isinstance(there, str) else f"`{path}` exists already"
    return files
