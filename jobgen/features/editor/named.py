"""Names of objects: queues, runtimes, volumes, secrets, namespaces, jobs. Where they are defined, and who uses them."""

from __future__ import annotations

from collections.abc import Iterator
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
from jobgen.features.editor.cursor import Part, Path, get_path, walk
from jobgen.features.editor.index import LABEL, list_jobs
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location, TracedKey, TracedScalar, location_of, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.config import ProjectConfig
from jobgen.repo.files import read_file
from jobgen.repo.root import SETTINGS
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
    """Return the kind of the name at a path; empty if it is none."""
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
    yield from (
        job.location for job in list_jobs(context.workspace.index) if job.name == name.text and job.kind in name.kinds
    )
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


def list_uses(context: Context, name: Name) -> Iterator[Location]:
    """Yield the lines of jobs and overlays with a name."""
    if name.kind == JOB:
        yield from list_definitions(context, name)
        return
    kinds = frozenset(name.kinds)
    files = [
        file
        for file, known in context.workspace.index.items()
        if any(each[1] == name.text and each[0] in kinds for each in known.names)
    ]
    for file in files[:_MAX_FILES]:
        content = read_file(context.workspace.find_entry(file))
        for document in read(content.content, file, traced=True).documents:
            yield from _list_in(document.data, (), name)
    if context.ready is not None:
        for overlay in context.ready.prepared.tracer.traced_project().overlays.values():
            for spec in overlay.specs:
                yield from _list_in(spec, ("spec",), name)


def count_files(context: Context, name: Name) -> int:
    """Return how many files of jobs use or define a name."""
    kinds = frozenset(name.kinds)
    index = context.workspace.index.values()
    return sum(any(each[1] == name.text and each[0] in kinds for each in known.names) for known in index)


def _list_in(tree: Any, start: Path, name: Name) -> Iterator[Location]:
    for path, node in walk(tree, start):
        is_key = isinstance(node, TracedKey)
        if value_of(node) == name.text and isinstance(node, (TracedKey, TracedScalar)):
            whole = tree if not start else {start[0]: tree}
            if _find_kind(whole, path, is_key=is_key) in name.kinds:
                yield node.location
