"""Go to definition, find references, and names of objects: where a value is set, and what a name stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from jobgen.features.editor.completion.names import (
    FOLDER,
    JOB,
    KINDS_WITH_SCOPES,
    OVERLAY,
    POLICY,
    TEAM,
    find_keyed_kind,
    find_named_kind,
)
from jobgen.features.editor.context import Context
from jobgen.features.editor.cursor import Cursor, Part, Path, get_path, walk
from jobgen.features.editor.index import LABEL, FileIndex, IndexedJob, list_jobs
from jobgen.features.editor.symbols import list_policies
from jobgen.features.editor.values import explain_value, to_real_file
from jobgen.features.editor.workspace import Ready
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location, TracedKey, TracedScalar, location_of, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.runs import SOURCE_ANNOTATION
from jobgen.repo import layout
from jobgen.repo.files import read_file
from jobgen.repo.lock import TREE
from jobgen.repo.root import SETTINGS
from jobgen.spec.overlay import PatchName, list_ancestors, name_patch
from jobgen.spec.teams import Team
from jobgen.yamlio.read import read

_MAX_FILES = 300
"""Files that are read to find the lines with a name."""
_OWN_KINDS = ("JobTests", "Overlay", "Team", "TrainingJob")
_WILDCARDS = frozenset("*?[")
_SHORT_KINDS = {"PVC": "PersistentVolumeClaim"}


class Name(NamedTuple):
    """A name, and the kind of what it names: a kind of objects, or a job."""

    kind: str
    text: str

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that objects with this name may have."""
        others = [kind for kind, several in KINDS_WITH_SCOPES.items() if self.kind in several]
        return (self.kind, *KINDS_WITH_SCOPES.get(self.kind, ()), *others)


def find_name(context: Context) -> Name | None:
    """Return the name at a position; None if there is none. Overlays and policies have their own functions.

    A pattern is a name only of jobs and teams.
    """
    cursor = context.cursor
    if not cursor.text or cursor.part is Part.COMMENT:
        return None
    kind = _find_kind(cursor.tree, cursor.path, is_key=cursor.part is Part.KEY)
    if not kind or kind in (FOLDER, OVERLAY, POLICY):
        return None
    is_pattern = not _WILDCARDS.isdisjoint(cursor.text)
    return None if is_pattern and kind not in (JOB, TEAM) else Name(kind, cursor.text)


def _find_kind(tree: Any, path: Path, *, is_key: bool) -> str:
    if is_key:
        kind = find_keyed_kind(path[:-1])
        return "" if kind == LABEL else kind
    match path:
        case (*outer, "metadata", "name") if not outer or outer[:1] == ["items"]:
            found = value_of(get_path(tree, (*outer, "kind")))
            return found if isinstance(found, str) and found not in _OWN_KINDS else ""
        case _:
            kind = find_named_kind(path, get_path(tree, path[:-1]))
            return _SHORT_KINDS.get(kind, kind)


def list_definitions(context: Context, name: Name) -> Iterator[Location]:
    """Yield where a name is defined: the manifests, runtimes and queues with it, or the jobs that a pattern matches."""
    if name.kind == JOB:
        yield from (job.location for job in list_jobs(context.workspace.index) if fnmatchcase(job.name, name.text))
        return
    jobs = list_jobs(context.workspace.index)
    yield from (job.location for job in jobs if job.name == name.text and job.kind in name.kinds)
    if context.ready is None:
        return
    project = context.ready.layers.tracer.traced_project()
    if name.kind == TEAM:
        yield from (locate_team(team, project) for team in project.teams.all if fnmatchcase(team.name, name.text))
    runtime = project.runtimes.get(name.text) if "ClusterTrainingRuntime" in name.kinds else None
    place = location_of(runtime["metadata"]["name"]) if runtime else None
    if place is not None:
        yield place
    if name.kind == "LocalQueue":
        yield from (
            key.location
            for overlay in project.overlays.values()
            for spec in overlay.specs
            for key in as_mapping(get_path(spec, ("cluster", "queues")))
            if key == name.text and isinstance(key, TracedKey)
        )


def locate_team(team: Team, project: ProjectConfig) -> Location:
    """Return where a team is written: its file, or its name in the settings."""
    keys = project.settings.get("teams", ()) if team.file == SETTINGS else ()
    found = (key.location for key in keys if key == team.name and isinstance(key, TracedKey))
    return next(found, Location(team.file))


def list_files(context: Context, name: Name) -> list[str]:
    """Return the files of jobs that use or define a name."""
    kinds, index = frozenset(name.kinds), context.workspace.index
    return [
        file for file, known in index.items() if any(text == name.text and kind in kinds for kind, text in known.names)
    ]


def list_uses(context: Context, name: Name) -> Iterator[Location]:
    """Yield the lines of jobs and overlays with a name."""
    if name.kind == JOB:
        yield from list_definitions(context, name)
        return
    for file in list_files(context, name)[:_MAX_FILES]:
        content = read_file(context.workspace.find_entry(file))
        for document in read(content.content, file, traced=True).documents:
            yield from _list_in(document.data, (), name)
    if context.ready is not None:
        for overlay in context.ready.layers.tracer.traced_project().overlays.values():
            for spec in overlay.specs:
                yield from _list_in(spec, ("spec",), name)


def _list_in(tree: Any, start: Path, name: Name) -> Iterator[Location]:
    for path, node in walk(tree, start):
        is_key = isinstance(node, TracedKey)
        if value_of(node) == name.text and isinstance(node, (TracedKey, TracedScalar)):
            whole = tree if not start else {start[0]: tree}
            if _find_kind(whole, path, is_key=is_key) in name.kinds:
                yield node.location


def find_overlay(file: str) -> str:
    """Return the overlay of a file, by its path from the root; empty if it is in none."""
    top, *folders = file.split("/")
    return folders[0] if top == "overlays" and len(folders) > 1 else ""


def find_patch(ready: Ready, file: str, cursor: Cursor) -> PatchName | None:
    """Return the patch at a position of an overlay; None if the position is in no patch."""
    match cursor.path:
        case ("spec", "patches", int(), *_):
            place = location_of(get_path(cursor.tree, cursor.path[:3]))
        case _:
            return None
    patches = list_patches(ready, find_overlay(file))
    return next((name for name, known in patches if place is not None and known == place), None)


def list_patches(ready: Ready, overlay: str) -> Iterator[tuple[PatchName, Location | None]]:
    """Yield the patches of an overlay, and where each begins."""
    known = ready.layers.tracer.traced_project().overlays.get(overlay)
    for spec in known.specs if known else ():
        yield from ((name_patch(patch, overlay), location_of(patch)) for patch in spec.get("patches", ()))


def list_environments(project: ProjectConfig, environments: list[str], overlay: str) -> list[str]:
    """Return those of some environments that have an overlay, or are it."""
    return [name for name in environments if overlay in list_ancestors(name, project.overlays)]


def list_patched_jobs(index: Mapping[str, FileIndex], patch: PatchName) -> list[IndexedJob]:
    """Return the jobs that a patch matches in any environment."""
    return [job for job in list_jobs(index) if any(patch in each.patches for each in job.environments)]


def list_jobs_in(index: Mapping[str, FileIndex], environments: list[str]) -> list[IndexedJob]:
    """Return the jobs of some environments."""
    names = frozenset(environments)
    return [job for job in list_jobs(index) if any(each.environment in names for each in job.environments)]


MAX_LOCATIONS = 1000


def find_definitions(context: Context) -> list[Location]:
    """Return the locations of what is at a position, without that position itself."""
    with context.workspace.reading():
        named = (to_real_file(place) for find in _FINDERS for place in find(context))
        found = (_select_others(context, each) for each in (_find_anchor(context), named, _find_overridden(context)))
        return next(filter(None, found), [])[:MAX_LOCATIONS]


def _select_others(context: Context, places: Iterator[Location]) -> list[Location]:
    """Return one location for each line, without those of what is at the position itself."""
    found: dict[tuple[str, int], Location] = {}
    for place in places:
        # The first is the most exact.
        found.setdefault((place.file, place.line), place)
    own = {context.cursor.location.line}
    node = get_path(context.cursor.tree, context.cursor.path)
    if context.cursor.part is Part.KEY and isinstance(node, (dict, list)):
        own |= {below.line for _, each in walk(node) if (below := location_of(each)) is not None}
    return [place for place in found.values() if place.file != context.file or place.line not in own]


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


def _find_meant(context: Context) -> Iterator[Location]:
    """Yield the policy or overlay that is named, the lines that set the value, and what else has the name."""
    rule, overlay, root = context.find_rule_name(), context.find_overlay_name(), context.workspace.root
    yield from (place for known, place in (list_policies(root) if rule else ()) if known == rule)
    for known, file in layout.read_overlays(layout.own_layers(root)) if overlay else ():
        if known == overlay and file.path != context.file:
            yield Location(file.path)
    if context.ready is not None and context.cursor.text:
        found = explain_value(context.workspace, context.ready, context.file, context.cursor)
        places = (field.sources[0].location for field in (found.fields if found else ()))
        yield from (place for place in places if place is not None)
    name = find_name(context)
    if name is not None:
        is_own = context.cursor.path[-2:] == ("metadata", "name")
        own = [job.location for job in list_indexed_jobs(context) if is_own and job.name == name.text]
        yield from (place for place in list_definitions(context, name) if place not in own)


def _find_kinds(context: Context) -> Iterator[Location]:
    """Yield the kinds of a framework: those of the job at the position, else all of them."""
    framework, name = context.find_framework_name(), context.find_kind_name()
    if context.ready is None or not (framework or name):
        return
    job = find_indexed_job(context) if framework else None
    own = {each.objects[0][:2] for each in job.environments if each.objects} if job else ()
    for kind in context.ready.layers.tracer.traced_project().kinds:
        place = location_of(kind.kind)
        is_meant = framework in kind.frameworks or name in (kind.name, *kind.aliases)
        if is_meant and place is not None and (not own or any(kind.describes(*each) for each in own)):
            yield place


def _find_source(context: Context) -> Iterator[Location]:
    """Yield the job that a rendered object comes from: the annotation names its file."""
    cursor = context.cursor
    if cursor.path[-1:] != (SOURCE_ANNOTATION,) or cursor.part is not Part.VALUE:
        return
    known = context.workspace.index.get(cursor.text)
    if known and known.jobs:
        own = (
            job
            for job in known.jobs
            if any(made.name == context.name for each in job.environments for made in each.objects)
        )
        yield next(own, known.jobs[0]).location
        return
    is_inside = cursor.text.startswith("jobs/") and ".." not in cursor.text.split("/")
    if is_inside and (context.workspace.root / cursor.text).is_file():
        yield Location(cursor.text)


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


_FINDERS = (_find_meant, _find_kinds, _find_source, _find_rendered)


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
    name = context.find_overlay_name()
    if not name or context.ready is None:
        return
    project = context.ready.layers.tracer.traced_project()
    extended = [each for other in project.overlays.values() for spec in other.specs for each in spec.get("extends", ())]
    for each in (*extended, *project.settings.get("environments", ())):
        place = location_of(each)
        if value_of(each) == name and place is not None:
            yield place
    if context.file != SETTINGS and context.cursor.path == ("metadata", "name"):
        jobs = list_jobs_in(context.workspace.index, _list_environments(context, name))
        yield from (job.location for job in jobs)


def _find_uses_of_framework(context: Context) -> Iterator[Location]:
    name = context.find_framework_name()
    yield from (job.location for job in list_jobs(context.workspace.index) if name and job.framework == name)


def _find_uses_of_name(context: Context) -> Iterator[Location]:
    name = find_name(context)
    if name is not None:
        yield from list_uses(context, name)


def _find_patches_of_job(context: Context) -> Iterator[Location]:
    job = find_indexed_job(context) if context.cursor.path == ("metadata", "name") else None
    if job is None or context.ready is None:
        return
    names = sorted({patch for each in job.environments for patch in each.patches})
    for overlay in sorted({overlay for overlay, _ in names}):
        for patch, place in list_patches(context.ready, overlay):
            if patch in names and place is not None:
                yield place


def _find_reached_jobs(context: Context) -> Iterator[Location]:
    if context.cursor.part is not Part.COMMENT:
        yield from (job.location for job in list_reached(context))


def list_reached(context: Context) -> list[IndexedJob]:
    """Return the jobs that the patch at a position matches, or the jobs of the overlay's environments."""
    overlay, index = find_overlay(context.file), context.workspace.index
    if context.ready is None or not overlay:
        return []
    patch = find_patch(context.ready, context.file, context.cursor)
    if patch is not None:
        return list_patched_jobs(index, patch)
    if context.cursor.path[:2] == ("spec", "patches"):
        return []
    jobs = list_jobs_in(index, _list_environments(context, overlay))
    # Manifests have no defaults.
    is_default = context.cursor.path[:2] == ("spec", "defaults")
    return [job for job in jobs if job.kind == "TrainingJob"] if is_default else jobs


def _list_environments(context: Context, overlay: str) -> list[str]:
    assert context.ready is not None
    project = context.ready.project
    return list_environments(project, list(context.ready.layers.environments), overlay)


_REFERENCE_FINDERS = (
    *(_find_uses_of_overlay, _find_uses_of_framework, _find_uses_of_name),
    *(_find_patches_of_job, _find_reached_jobs),
)
