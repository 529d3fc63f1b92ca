"""Find references: the jobs that a patch or an overlay reaches, and the files that use a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobgen.features.editor import reach
from jobgen.features.editor.context import Context, find_framework_name, find_overlay_name
from jobgen.features.editor.cursor import Part
from jobgen.features.editor.definition import MAX_LOCATIONS, find_indexed_job
from jobgen.features.editor.index import IndexedJob, list_jobs
from jobgen.features.editor.named import find_name, list_uses
from jobgen.model.data import Location, location_of, value_of
from jobgen.repo.root import SETTINGS


def find_references(context: Context) -> list[Location]:
    """Return where what is at a position is used, without that position itself."""
    with context.workspace.reading():
        for find in _FINDERS:
            found = list(dict.fromkeys(find(context)))
            own = context.cursor.location
            others = [place for place in found if (place.file, place.line) != (context.file, own.line)]
            if found:
                return others[:MAX_LOCATIONS]
    return []


def _find_uses_of_overlay(context: Context) -> Iterator[Location]:
    """Yield the settings and overlays that name an overlay."""
    name = find_overlay_name(context)
    if not name or context.ready is None:
        return
    project = context.ready.prepared.tracer.traced_project()
    yield from reach.list_extending(project, name)
    listed = project.settings.get("environments", ())
    yield from (place for each in listed if value_of(each) == name and (place := location_of(each)))
    if context.file != SETTINGS and context.cursor.path == ("metadata", "name"):
        yield from _locate(reach.list_jobs_in(context.workspace.index, _list_environments(context, name)))


def _find_uses_of_framework(context: Context) -> Iterator[Location]:
    name = find_framework_name(context)
    yield from _locate([job for job in list_jobs(context.workspace.index) if name and job.framework == name])


def _find_uses_of_name(context: Context) -> Iterator[Location]:
    name = find_name(context)
    if name is not None:
        yield from list_uses(context, name)


def _find_patches_of_job(context: Context) -> Iterator[Location]:
    """Yield the patches that match the job whose name is at the position."""
    job = find_indexed_job(context) if context.cursor.path == ("metadata", "name") else None
    if job is None or context.ready is None:
        return
    names = sorted({patch for each in job.environments for patch in each.patches})
    for overlay in sorted({overlay for overlay, _ in names}):
        for patch, place in reach.list_patches(context.ready, overlay):
            if patch in names and place is not None:
                yield place


def _find_reached_jobs(context: Context) -> Iterator[Location]:
    """Yield the jobs that a line of an overlay reaches."""
    if context.ready is None or not reach.find_overlay(context.file) or context.cursor.part is Part.COMMENT:
        return
    yield from _locate(list_reached(context))


def list_reached(context: Context) -> list[IndexedJob]:
    """Return the jobs that the patch at a position matches, or the jobs of the overlay's environments."""
    overlay, index = reach.find_overlay(context.file), context.workspace.index
    if context.ready is None or not overlay:
        return []
    patch = reach.find_patch(context.ready, context.file, context.cursor)
    if patch is not None:
        return reach.list_patched_jobs(index, patch)
    if context.cursor.path[:2] == ("spec", "patches"):
        return []
    jobs = reach.list_jobs_in(index, _list_environments(context, overlay))
    # Manifests have no defaults.
    is_default = context.cursor.path[:2] == ("spec", "defaults")
    return [job for job in jobs if job.kind == "TrainingJob"] if is_default else jobs


def _list_environments(context: Context, overlay: str) -> list[str]:
    assert context.ready is not None
    project = context.ready.run.project
    return reach.list_environments(project, list(context.ready.prepared.environments), overlay)


def _locate(jobs: list[IndexedJob]) -> Iterator[Location]:
    return (job.location for job in jobs)


_FINDERS: tuple[Callable[[Context], Iterator[Location]], ...] = (
    _find_uses_of_overlay,
    _find_uses_of_framework,
    _find_uses_of_name,
    _find_patches_of_job,
    _find_reached_jobs,
)
