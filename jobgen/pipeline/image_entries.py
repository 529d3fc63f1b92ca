"""Find entries of `images` of overlays that match no image in any environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.model.data import value_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.suggest import did_you_mean
from jobgen.render.build import build_object, is_spec
from jobgen.render.config import ProjectConfig
from jobgen.render.environment import EnvironmentRunner, Marker, OverlayUse
from jobgen.render.expand import Expander
from jobgen.render.locate import locate
from jobgen.render.read_jobs import read_jobs
from jobgen.render.rewrite_images import IMAGES, list_images, rewrite_images, split_image
from jobgen.render.trace import Tracer
from jobgen.repo import layout
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import ImageChange


def find_idle_images(
    project: ProjectConfig, runners: Sequence[EnvironmentRunner], used: Sequence[OverlayUse], tracer: Tracer
) -> Iterator[Finding]:
    """Report entries of `images` that match no image. Jobs are rendered again only if there may be such entries."""
    hits = {marker for use in used for marker in use.hits}
    idle = {name for runner in runners for name, marker in _list_entries(runner) if marker not in hits}
    if not idle:
        return
    ran = {runner.name for runner in runners}
    others = [EnvironmentRunner(project, name) for name in project.overlays if name not in ran]
    images: set[str] = set()
    for runner in [*runners, *others]:
        if any(name in idle for name, _ in _list_entries(runner)):
            matching = _match_images(project, runner, images)
            if matching is None:
                return
            idle -= matching
    for overlay, place in sorted(idle):
        entries = tracer.traced_project().environment(overlay, []).images
        entry = next(each for each in entries if (each.overlay, each.place) == (overlay, place))
        yield locate(_report(entry, images), f"overlays/{overlay}")


def _list_entries(runner: EnvironmentRunner) -> Iterator[tuple[tuple[str, int], Marker]]:
    for change in runner.expander.environment.images:
        yield (change.overlay, change.place), runner.marker(change.fields, IMAGES)


def _match_images(project: ProjectConfig, runner: EnvironmentRunner, images: set[str]) -> set[tuple[str, int]] | None:
    """The entries of an environment that match an image; None if not all images are known.

    A job that is wrong or inactive may have any. `images` gets the names as the jobs have them.
    """
    environment, kinds = runner.expander.environment, runner.expander.kinds
    expander = Expander(environment._replace(images=()), kinds, runner.expander.day)
    used: list[Deletion] = []
    for job in read_jobs(layout.find_jobs(project.root), project.frameworks, []):
        patches, problems = runner.patches_for(job), list[Problem]()
        if patches is None:
            continue
        made = build_object(job.document, expander, patches, problems, [])
        if made is None or problems:
            return None
        images.update(list_images(made, kinds))
        rewrite_images(made, environment.images_for(is_spec=is_spec(job.document.data)), kinds, used)
    matching = {id(each.asked_by) for each in used}
    return {(change.overlay, change.place) for change in environment.images if id(change.fields) in matching}


def _report(entry: ImageChange, images: set[str]) -> Problem:
    if "registry" in entry.fields:
        node = entry.fields["registry"]
        message = f"no image is from `{value_of(node)}`; change or remove the entry"
    else:
        node = entry.fields["name"]
        names = sorted({split_image(image)[0] for image in images})
        hint = did_you_mean(str(value_of(node)), names) or "; change or remove the entry"
        message = f"no container has the image `{value_of(node)}`{hint}"
    return Problem("patch-matches-nothing", message, node)
