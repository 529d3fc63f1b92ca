"""Prove that files which are not written yet render to the manifests that they were made of.

The repository is rendered with the files in front of those on disk, exactly as `jobgen render` does it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobgen.engine.inputs import edited
from jobgen.features.convert.importing.pod_fields import remove_server_fields
from jobgen.features.convert.importing.verify import (
    find_differences,
    format_differences,
    is_equivalent,
    leave_out_namespace,
)
from jobgen.model.data import Plain, location_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import Rendered
from jobgen.rendering.render_task import RenderTask, render_jobs
from jobgen.spec.overlay import list_ancestors

_RUNTIMES = frozenset(("TrainingRuntime", "ClusterTrainingRuntime"))
"""What a repository adds to a TrainJob if it has the runtime."""


class Promise(NamedTuple):
    """A document of a new file, and the objects that it must render to."""

    path: str
    position: int
    name: str
    place: str
    """Where the manifest was read, for messages."""
    objects: Sequence[Mapping[str, Plain]]
    platform: str = ""
    """The platform of a job, which not every environment has."""
    is_placed: bool = False
    """True if overlays give the manifest its namespace, as they do to the job."""


class Breach(NamedTuple):
    """A promise that is not kept, and why."""

    place: str
    reason: str
    details: tuple[str, ...] = ()


def prove_files(
    root: Path, files: Mapping[str, str], promises: Sequence[Promise], replaced: Sequence[str] = ()
) -> list[Breach]:
    """Return the promises that the files, by their paths from the root, would not keep in some environment.

    `replaced` are the real paths of manifests that the files take the place of.
    """
    drafts = dict.fromkeys(replaced, b"")
    drafts |= {os.path.realpath(root / path): text.encode("utf-8", "surrogateescape") for path, text in files.items()}
    names = {each.name for each in promises}
    with edited(drafts):
        project = config.load_own(root)
        result = render_jobs(project, project.environments(), names.__contains__, RenderTask(deployable=True))
        made = [each for each in result.objects if each.location.file in files]
        selectors = _find_selectors(project)
    places = {(each.path, each.position): each for each in promises}
    breaches = list(_list_refusals(result.findings, files, promises))
    breaches += () if breaches else _compare(made, places, selectors)
    return list(dict.fromkeys(breaches))


def _list_refusals(
    findings: Sequence[Finding], files: Mapping[str, str], promises: Sequence[Promise]
) -> Iterator[Breach]:
    """Yield the errors that keep the repository, or one of the files, from being rendered."""
    by_path = {each.path: each for each in reversed(promises)}
    for finding in findings:
        concerned = [finding.location.file, *(each.location.file for each in finding.related)]
        own = next((path for path in concerned if path in files), "")
        if finding.severity is not Severity.ERROR or not (own or not finding.location.file.startswith("jobs/")):
            continue
        promise = by_path.get(own)
        within = f" in `{finding.env}`" if finding.env else ""
        place = promise.place if promise else str(finding.location)
        at = "" if finding.location.file in files else f" ({finding.location})"
        yield Breach(place, f"it cannot be rendered{within}: {finding.message}{at if promise else ''}")


def _find_selectors(project: ProjectConfig) -> dict[str, frozenset[str]]:
    """Return where the environments select their jobs, the nearest overlay of each, and the platforms of those there.

    It is empty if all select every job.
    """
    traced = config.load(project.layers, traced=True)
    found: dict[str, frozenset[str]] = {}
    for env in project.environments():
        specs = [spec for name in list_ancestors(env, traced.overlays) for spec in traced.overlays[name].specs]
        nearest = next((spec["jobs"] for spec in reversed(specs) if "jobs" in spec), None)
        location = location_of(nearest)
        if location:
            place = f"{location.file}:{location.line}"
            platforms = project.environment(env, []).cluster.list_platforms()
            found[place] = found.get(place, frozenset()).union(platforms)
    return found


def _compare(
    made: Sequence[Rendered], promises: Mapping[tuple[str, int], Promise], selectors: Mapping[str, frozenset[str]]
) -> Iterator[Breach]:
    """Yield each document that does not render to its objects in an environment, or in none."""
    rendered: dict[tuple[str, int], dict[str, list[Rendered]]] = {}
    for each in made:
        rendered.setdefault((each.location.file, each.position), {}).setdefault(each.env, []).append(each)
    for key, promise in promises.items():
        if key not in rendered:
            serving = [place for place, platforms in selectors.items() if promise.platform in platforms]
            places = ", ".join(serving or selectors)
            advice = f"; add it to `jobs` in {places}" if places else ""
            yield Breach(promise.place, f"no environment selects it, so it would not be rendered{advice}")
        for env, several in rendered.get(key, {}).items():
            details = tuple(_list_differences(several, promise))
            if details:
                where = f" in `{env}`" if env else ""
                yield Breach(promise.place, f"it would not render to this object{where}", details)


def _list_differences(made: Sequence[Rendered], promise: Promise) -> Iterator[str]:
    wanted = promise.objects
    objects: list[Any] = [remove_server_fields(dict(each.object))[0] for each in made if not _is_runtime(each)]
    if promise.is_placed:
        objects = [leave_out_namespace(each) for each in objects]
    for one, other in zip(wanted, objects, strict=False):
        if not is_equivalent(dict(one), other):
            yield from format_differences(find_differences(dict(one), other))
    for other in objects[len(wanted) :]:
        yield f"a {other.get('kind')} would be rendered beside it"
    if len(objects) < len(wanted):
        yield f"{len(wanted) - len(objects)} objects of {len(wanted)} would be missing"


def _is_runtime(made: Rendered) -> bool:
    return made.companion > 0 and made.identity.kind in _RUNTIMES
