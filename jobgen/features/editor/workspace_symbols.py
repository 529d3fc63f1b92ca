"""Symbols of a workspace: jobs, overlays, kinds and policies whose names match what a user types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobgen.features.editor.index import FileIndex
from jobgen.features.editor.policies import list_policies
from jobgen.features.editor.symbols import SymbolKind
from jobgen.features.editor.values import to_real_file
from jobgen.features.editor.workspace import Workspace, load_ready
from jobgen.model.data import Location, location_of, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.render.config import ProjectConfig

MAX_FOUND = 500
_MAX_QUERY = 100


class Named(NamedTuple):
    """Something with a name, and where it is."""

    name: str
    kind: SymbolKind
    detail: str
    location: Location


def find_symbols(workspace: Workspace, query: str) -> list[Named]:
    """Return what matches a query, the best first: names that start with it, contain it, or have its letters."""
    found = list(_list_jobs(workspace.index))
    ready = load_ready(workspace)
    if ready is not None:
        with workspace.reading():
            found += _list_layers(ready.prepared.tracer.traced_project())
            found += (
                Named(name, SymbolKind.POLICY, "policy", to_real_file(location))
                for name, location in list_policies(workspace.root)
            )
    return _select(found, query[:_MAX_QUERY])


def _list_jobs(index: Mapping[str, FileIndex]) -> Iterator[Named]:
    for file in index.values():
        sweeps: set[int] = set()
        for job in file.jobs:
            if not job.sweep:
                detail = f"{job.kind} {job.framework}".strip()
                yield Named(job.name, SymbolKind.JOB, detail, job.location)
            elif job.position not in sweeps:
                sweeps.add(job.position)
                yield Named(job.sweep, SymbolKind.JOB, "sweep", job.location)


def _list_layers(project: ProjectConfig) -> Iterator[Named]:
    for name, overlay in project.overlays.items():
        for spec in overlay.specs[:1]:
            location = location_of(spec)
            if location is not None:
                yield Named(name, SymbolKind.OVERLAY, "overlay", Location(location.file))
    for kind in project.kinds:
        location = location_of(kind.kind)
        if location is not None:
            yield Named(kind.name, SymbolKind.KIND, str(value_of(kind.api_version)), to_real_file(location))


def _select(found: Iterable[Named], query: str) -> list[Named]:
    wanted = query.casefold()
    ranked = [(rank, each) for each in found if (rank := _rank(each.name.casefold(), wanted)) is not None]
    ranked.sort(key=lambda pair: (pair[0], len(pair[1].name), pair[1].name, pair[1].location))
    return [each for _, each in ranked[:MAX_FOUND]]


def _rank(name: str, query: str) -> int | None:
    """Return how well a name matches, 0 is best; None if it does not."""
    at = name.find(query)
    if at >= 0:
        return 0 if at == 0 else 1
    letters = iter(name)
    return 2 if all(letter in letters for letter in query) else None
