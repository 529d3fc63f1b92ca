"""Names of objects: queues, runtimes, volumes, secrets, namespaces, jobs. Where they are defined, and who uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

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
from jobgen.features.editor.workspace import Ready
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location, TracedKey, TracedScalar, location_of, value_of
from jobgen.rendering.config import ProjectConfig
from jobgen.repo.files import read_file
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
    project = context.ready.prepared.tracer.traced_project()
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
        for overlay in context.ready.prepared.tracer.traced_project().overlays.values():
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
    known = ready.prepared.tracer.traced_project().overlays.get(overlay)
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
