"""What overlays reach: the jobs of a patch, and the jobs of an overlay's environments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.features.editor.cursor import Cursor, get_path
from jobgen.features.editor.index import FileIndex, IndexedJob, list_jobs
from jobgen.features.editor.workspace import Ready
from jobgen.model.data import Location, location_of, value_of
from jobgen.render.config import ProjectConfig
from jobgen.spec.overlay import PatchName, list_ancestors, name_patch


def find_overlay(file: str) -> str:
    """Return the overlay of a file, by its path from the root; empty if it is in none."""
    top, *folders = file.split("/")
    return folders[0] if top == "overlays" and len(folders) > 1 else ""


def find_patch(ready: Ready, file: str, cursor: Cursor) -> PatchName | None:
    """Return the patch at a position of an overlay; None if the position is in no patch."""
    match cursor.path:
        case ("spec", "patches", int() as number, *_):
            node = get_path(cursor.tree, ("spec", "patches", number))
        case _:
            return None
    place = location_of(node)
    overlay = find_overlay(file)
    found = (name for name, known in list_patches(ready, overlay) if place is not None and known == place)
    return next(found, None)


def list_patches(ready: Ready, overlay: str) -> Iterator[tuple[PatchName, Location | None]]:
    """Yield the patches of an overlay, and where each begins."""
    project = ready.prepared.tracer.traced_project()
    known = project.overlays.get(overlay)
    patches = (patch for spec in known.specs for patch in spec.get("patches", ())) if known else ()
    for patch in patches:
        yield name_patch(patch, overlay), location_of(patch)


def list_environments(project: ProjectConfig, environments: list[str], overlay: str) -> list[str]:
    """Return those of some environments that have an overlay, or are it."""
    return [name for name in environments if overlay in list_ancestors(name, project.overlays)]


def list_extending(project: ProjectConfig, overlay: str) -> Iterator[Location]:
    """Yield where other overlays name one in `extends`; the project must have locations."""
    for other in project.overlays.values():
        for parent in (parent for spec in other.specs for parent in spec.get("extends", ())):
            location = location_of(parent)
            if value_of(parent) == overlay and location is not None:
                yield location


def list_patched_jobs(index: Mapping[str, FileIndex], patch: PatchName) -> list[IndexedJob]:
    """Return the jobs that a patch matches in any environment."""
    return [job for job in list_jobs(index) if any(patch in each.patches for each in job.environments)]


def list_jobs_in(index: Mapping[str, FileIndex], environments: list[str]) -> list[IndexedJob]:
    """Return the jobs of some environments."""
    names = frozenset(environments)
    return [job for job in list_jobs(index) if any(each.environment in names for each in job.environments)]
