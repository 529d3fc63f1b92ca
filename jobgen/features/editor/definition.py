"""Go to definition, and find references: where a value is set, what a name stands for, and what uses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jobgen.features.editor import named
from jobgen.features.editor.context import (
    Context,
    find_framework_name,
    find_kind_name,
    find_overlay_name,
    find_rule_name,
)
from jobgen.features.editor.cursor import Part, get_path, walk
from jobgen.features.editor.index import IndexedJob, list_jobs
from jobgen.features.editor.named import find_name, list_definitions, list_uses
from jobgen.features.editor.symbols import list_policies
from jobgen.features.editor.values import explain_value, find_winners, to_real_file
from jobgen.model.data import Location, location_of, value_of
from jobgen.rendering.runs import SOURCE_ANNOTATION
from jobgen.repo import layout
from jobgen.repo.files import read_file
from jobgen.repo.lock import TREE
from jobgen.repo.root import SETTINGS

MAX_LOCATIONS = 1000


def find_definitions(context: Context) -> list[Location]:
    """Return the locations of what is at a position, without that position itself."""
    with context.workspace.reading():
        several = (_find_anchor(context), _find_all(context), _find_overridden(context))
        found = (_select_others(context, places) for places in several)
        return next(filter(None, found), [])[:MAX_LOCATIONS]


def _select_others(context: Context, places: Iterator[Location]) -> list[Location]:
    """Return one location for each line, without those of what is at the position itself."""
    found: dict[tuple[str, int], Location] = {}
    for place in places:
        # The first is the most exact.
        found.setdefault((place.file, place.line), place)
    own = {context.cursor.location.line, *_list_lines(context)}
    return [place for place in found.values() if place.file != context.file or place.line not in own]


def _list_lines(context: Context) -> Iterator[int]:
    """Yield the lines of the mapping or list whose key is at the position."""
    node = get_path(context.cursor.tree, context.cursor.path)
    if context.cursor.part is Part.KEY and isinstance(node, (dict, list)):
        places = (location_of(each) for _, each in walk(node))
        yield from (place.line for place in places if place is not None)


def _find_all(context: Context) -> Iterator[Location]:
    return (to_real_file(place) for find in _FINDERS for place in find(context))


def _find_anchor(context: Context) -> Iterator[Location]:
    """Yield the anchor of an alias: the last one before it with its name."""
    cursor = context.cursor
    if cursor.part is not Part.VALUE or not cursor.text.startswith("*"):
        return
    lines = read_file(context.workspace.find_entry(context.file)).content.decode("utf-8", "replace").split("\n")
    anchor = re.compile(rf"(?:^|[\s\[{{,])(&{re.escape(cursor.text[1:])})(?=[\s,\]}}]|$)")
    for number in range(min(cursor.location.line, len(lines)), 0, -1):
        if lines[number - 1].startswith("---"):
            return
        match = anchor.search(lines[number - 1])
        if match:
            yield Location(context.file, number, match.start(1) + 1, number, match.end(1) + 1)
            return


def _find_policy(context: Context) -> Iterator[Location]:
    name = find_rule_name(context)
    yield from (place for known, place in list_policies(context.workspace.root) if name and known == name)


def _find_overlay(context: Context) -> Iterator[Location]:
    name = find_overlay_name(context)
    if name:
        yield from (
            Location(file.path)
            for known, file in layout.read_overlays(context.workspace.root)
            if known == name and file.path != context.file
        )


def _find_kinds(context: Context) -> Iterator[Location]:
    """Yield the kinds of a framework: those of the job at the position, else all of them."""
    framework, name = find_framework_name(context), find_kind_name(context)
    if context.ready is None or not (framework or name):
        return
    kinds = [
        kind
        for kind in context.ready.prepared.tracer.traced_project().kinds
        if framework in kind.frameworks or name in (kind.name, *kind.aliases)
    ]
    own = _find_kinds_of_job(context) if framework else frozenset()
    for kind in kinds:
        place = location_of(kind.kind)
        if place is not None and (not own or any(kind.describes(*each) for each in own)):
            yield place


def _find_kinds_of_job(context: Context) -> frozenset[tuple[str, str]]:
    """Return API version and kind of the objects of the job at the position."""
    job = find_indexed_job(context)
    return frozenset(each.objects[0][:2] for each in job.environments if each.objects) if job else frozenset()


def _find_named(context: Context) -> Iterator[Location]:
    """Yield the objects and jobs that a name stands for."""
    name = find_name(context)
    if name is not None:
        is_own = context.cursor.path[-2:] == ("metadata", "name")
        own = [job.location for job in list_indexed_jobs(context) if is_own and job.name == name.text]
        yield from (place for place in list_definitions(context, name) if place not in own)


def _find_source(context: Context) -> Iterator[Location]:
    """Yield the job that a rendered object comes from: the annotation names its file."""
    cursor = context.cursor
    if cursor.path[-1:] != (SOURCE_ANNOTATION,) or cursor.part is not Part.VALUE:
        return
    known = context.workspace.index.get(cursor.text)
    jobs = list(known.jobs) if known else []
    named = [
        job for job in jobs if any(made.name == context.name for each in job.environments for made in each.objects)
    ]
    if jobs:
        yield (named or jobs)[0].location
        return
    is_inside = cursor.text.startswith("jobs/") and ".." not in cursor.text.split("/")
    if is_inside and (context.workspace.root / cursor.text).is_file():
        yield Location(cursor.text)


def _find_winners(context: Context) -> Iterator[Location]:
    """Yield the lines that set the value in each environment."""
    if context.ready is not None and context.cursor.text:
        found = explain_value(context.workspace, context.ready, context.file, context.cursor)
        yield from find_winners(found.fields if found else ())


def _find_overridden(context: Context) -> Iterator[Location]:
    """Yield the lines that a value overrides: what the definition is if the value itself wins everywhere."""
    if context.ready is None or not context.cursor.text:
        return
    found = explain_value(context.workspace, context.ready, context.file, context.cursor)
    for field in found.fields if found else ():
        for source in field.sources[1:2]:
            if source.location is not None:
                yield to_real_file(source.location)


def _find_rendered(context: Context) -> Iterator[Location]:
    """Yield the rendered objects of a job, if a rendered tree is committed."""
    job = find_indexed_job(context) if context.cursor.path == ("metadata", "name") else None
    if job is None:
        return
    root = context.workspace.root
    for each in job.environments:
        for made in each.objects:
            stem = f"{TREE}/{each.environment}/{made.namespace or 'default'}/{made.kind.lower()}-{made.name}"
            yield from (Location(path) for path in (f"{stem}.yaml", f"{stem}.json") if (root / path).is_file())


def list_rendered_environments(context: Context) -> list[str]:
    """Return the environments with objects of the job whose name is at a position."""
    job = find_indexed_job(context) if context.cursor.path == ("metadata", "name") else None
    return [each.environment for each in job.environments if each.objects] if job else []


def list_indexed_jobs(context: Context) -> list[IndexedJob]:
    """Return the jobs of the document at a position as the background process knows them."""
    known = context.workspace.index.get(context.file)
    return [job for job in known.jobs if job.position == context.cursor.document] if known else []


def find_indexed_job(context: Context) -> IndexedJob | None:
    """Return the job at a position as the background process knows it; of a sweep, the first one."""
    jobs = list_indexed_jobs(context)
    named = [job for job in jobs if job.name == context.name]
    return next(iter(named or jobs), None)


_FINDERS: tuple[Callable[[Context], Iterator[Location]], ...] = (
    _find_policy,
    _find_overlay,
    _find_winners,
    _find_named,
    _find_kinds,
    _find_source,
    _find_rendered,
)


def find_references(context: Context) -> list[Location]:
    """Return where what is at a position is used, without that position itself."""
    with context.workspace.reading():
        for find in _REFERENCE_FINDERS:
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
    yield from named.list_extending(project, name)
    listed = project.settings.get("environments", ())
    yield from (place for each in listed if value_of(each) == name and (place := location_of(each)))
    if context.file != SETTINGS and context.cursor.path == ("metadata", "name"):
        yield from _locate(named.list_jobs_in(context.workspace.index, _list_environments(context, name)))


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
        for patch, place in named.list_patches(context.ready, overlay):
            if patch in names and place is not None:
                yield place


def _find_reached_jobs(context: Context) -> Iterator[Location]:
    """Yield the jobs that a line of an overlay reaches."""
    if context.ready is None or not named.find_overlay(context.file) or context.cursor.part is Part.COMMENT:
        return
    yield from _locate(list_reached(context))


def list_reached(context: Context) -> list[IndexedJob]:
    """Return the jobs that the patch at a position matches, or the jobs of the overlay's environments."""
    overlay, index = named.find_overlay(context.file), context.workspace.index
    if context.ready is None or not overlay:
        return []
    patch = named.find_patch(context.ready, context.file, context.cursor)
    if patch is not None:
        return named.list_patched_jobs(index, patch)
    if context.cursor.path[:2] == ("spec", "patches"):
        return []
    jobs = named.list_jobs_in(index, _list_environments(context, overlay))
    # Manifests have no defaults.
    is_default = context.cursor.path[:2] == ("spec", "defaults")
    return [job for job in jobs if job.kind == "TrainingJob"] if is_default else jobs


def _list_environments(context: Context, overlay: str) -> list[str]:
    assert context.ready is not None
    project = context.ready.run.project
    return named.list_environments(project, list(context.ready.prepared.environments), overlay)


def _locate(jobs: list[IndexedJob]) -> Iterator[Location]:
    return (job.location for job in jobs)


_REFERENCE_FINDERS: tuple[Callable[[Context], Iterator[Location]], ...] = (
    _find_uses_of_overlay,
    _find_uses_of_framework,
    _find_uses_of_name,
    _find_patches_of_job,
    _find_reached_jobs,
)
