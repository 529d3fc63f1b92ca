"""Lenses: short texts above jobs, patches and overlays that say what they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from typing import NamedTuple

from jobgen.compare.impact import runs_pods
from jobgen.features.editor import named
from jobgen.features.editor.decisions import NO_DECISIONS, Decisions, describe_decisions, find_decision
from jobgen.features.editor.index import IndexedJob, locate_jobs
from jobgen.features.editor.workspace import Ready, Workspace, load_ready
from jobgen.features.page import fleet
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.pipeline.lint_checks import LintChecks
from jobgen.rendering.environment import new_overlay_use
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Job
from jobgen.reports.entries import pluralize

_INACTIVE_REASON = lazy_pattern(r"^it (?:is )?")
_CONTENT = lazy_pattern(r"\s*[^\s#]")
MAX_JOBS = 100
"""Jobs of a file that are rendered for its lenses. A sweep may have thousands, and each costs a few milliseconds."""


class Lens(NamedTuple):
    """A text about a line. A click shows the rendered job in an environment, or lists jobs."""

    text: str
    location: Location
    environment: str | None = None
    jobs: tuple[Location, ...] = ()


def list_lenses(workspace: Workspace, file: str, decisions: Decisions = NO_DECISIONS) -> list[Lens]:
    """Return the lenses of a file, by its path from the root. `decisions` are those of Kueue that still hold."""
    with workspace.reading():
        ready = load_ready(workspace)
        if ready is None:
            return []
        if workspace.is_job(file):
            return list(_list_job_lenses(workspace, ready, file, decisions))
        return list(_list_overlay_lenses(workspace, ready, file))


def _list_job_lenses(workspace: Workspace, ready: Ready, file: str, decisions: Decisions) -> Iterator[Lens]:
    findings: list[Finding] = []
    jobs = list(read_jobs([workspace.find_entry(file)], ready.run.project.frameworks, findings))
    errors = [finding.location.line for finding in findings if finding.severity is Severity.ERROR]
    text = workspace.read(file).content.decode("utf-8", "replace").split("\n") if errors else []
    starts = [1, *(number + 1 for number, line in enumerate(text, 1) if line.startswith("---"))]
    broken: set[int] = set()
    for line in errors:
        first = max(start for start in starts if start <= max(line, 1))
        is_content = (number for number in range(first, line) if _CONTENT.match(text[number - 1]))
        broken.add(next(is_content, max(line, 1)))
    for line in sorted(broken):
        yield Lens("the job cannot be rendered; see the findings", Location(file, line, 1))
    checks, counted = ready.prepared.checks, jobs[:MAX_JOBS]
    assert isinstance(checks, LintChecks)
    for location, group in groupby(zip(locate_jobs(counted), counted, strict=True), key=lambda pair: pair[0]):
        members = [job for _, job in group]
        for checker in checks.environments.values():
            name = checker.runner.name
            cells = [cell for job in members if (cell := _describe_job(job, checker))]
            if cells:
                objects = ((each.identity for each in cell.objects) for cell in cells)
                decided = (find_decision(decisions, name, identities) for identities in objects)
                queues = describe_decisions(filter(None, decided))
                yield Lens(_describe_cells(name, cells) + (f" ({queues})" if queues else ""), location, name)
    if len(jobs) > MAX_JOBS:
        yield Lens(f"{len(jobs):,} jobs, of which {MAX_JOBS} are counted here", jobs[0].location)


def _describe_job(job: Job, checker: EnvironmentChecker) -> fleet.FleetCell | None:
    """Return what a job requests in an environment; None if it does not belong to it or runs no pods."""
    runner = checker.runner
    patches = runner.patches_for(job)
    made = runner.render_job(job, patches, new_overlay_use()) if patches is not None else None
    if not made:
        return fleet.describe_missing(0, job, runner)
    measured = [fleet.measure_object(checker.checker, each) for each in made]
    first = measured[0]
    return fleet.describe_rendered(0, measured) if first.pods or runs_pods(first.manifest) else None


def _describe_cells(environment: str, cells: Sequence[fleet.FleetCell]) -> str:
    before = f"{environment}: " if environment else ""
    first = cells[0]
    if len(cells) > 1:
        idle = sum(cell.state in (fleet.BROKEN, fleet.INACTIVE) for cell in cells)
        not_rendered = f", {idle} not rendered" if idle else ""
        return f"{before}{pluralize(len(cells), 'job')}{not_rendered}, {_describe_amounts(cells)}"
    if first.state == fleet.BROKEN:
        return before + first.reason.removeprefix("it ")
    if first.state == fleet.INACTIVE:
        return before + _INACTIVE_REASON.sub("", first.reason).partition(":")[0].partition(";")[0]
    held = "" if first.state == fleet.ACTIVE else f", {first.reason.removeprefix('it is ')}"
    return f"{before}{_describe_amounts(cells)}{held}"


def _describe_amounts(cells: Sequence[fleet.FleetCell]) -> str:
    total = reduce(add_totals, (cell.resources for cell in cells), ResourceTotals())
    parts = [pluralize(sum(cell.pods for cell in cells), "pod")]
    parts += [pluralize(total.gpus, "GPU")] if total.gpus else []
    parts += [f"queue {queue}" for queue in sorted({cell.queue for cell in cells if cell.queue})[:2]]
    return ", ".join(parts)


def _list_overlay_lenses(workspace: Workspace, ready: Ready, file: str) -> Iterator[Lens]:
    overlay = named.find_overlay(file)
    if not overlay or not workspace.index:
        return
    for patch, location in named.list_patches(ready, overlay):
        if location is not None and location.file == file:
            jobs = named.list_patched_jobs(workspace.index, patch)
            yield Lens(pluralize(len(jobs), "job"), location, jobs=_locate(jobs))
    names = [runner.name for runner in ready.prepared.runners]
    environments = named.list_environments(ready.run.project, names, overlay)
    jobs = named.list_jobs_in(workspace.index, environments)
    for name in environments:
        rendered = [each for job in jobs for each in job.environments if each.environment == name]
        objects = sum(len(each.objects) for each in rendered)
        own = [job for job in jobs if any(each.environment == name for each in job.environments)]
        yield Lens(f"{name}: {pluralize(objects, 'object')}", Location(file, 1, 1), jobs=_locate(own))


def _locate(jobs: Iterable[IndexedJob]) -> tuple[Location, ...]:
    return tuple(dict.fromkeys(job.location for job in jobs))
