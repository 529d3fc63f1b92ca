"""Report what only all jobs together show: selectors and deletions without effect, conflicts, refusals of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.environment import EnvironmentRunner, OverlayUse, Rendered
from jobgen.pipeline.file_result import FileResult
from jobgen.pipeline.memory import RunMemory
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.repo.files import FileEntry

if TYPE_CHECKING:
    from jobgen.pipeline.load_policies import PolicyFiles


class AllJobs(NamedTuple):
    """The results of all files of a run."""

    project: ProjectConfig
    runners: list[EnvironmentRunner]
    entries: Sequence[FileEntry]
    parts: Sequence[FileResult]
    tracer: Tracer
    memory: RunMemory | None
    checked: bool
    is_standalone: bool
    """Whether the files are checked by themselves, and are no environment together."""
    progress: Callable[[], None]

    @property
    def uses(self) -> list[OverlayUse]:
        """Which parts of overlays took effect, by file."""
        return [part.used for part in self.parts]

    def list_made(self) -> list[Rendered]:
        """Return all objects, without their data."""
        return [made for part in self.parts for made in part.made]

    def list_jobs(self) -> Iterator[Job]:
        """Return all jobs of the repository; if their outlines are in memory, these."""
        if self.memory is None:
            return read_jobs(layout.find_jobs(self.project.root), self.project.frameworks, [])
        return (job for entry in self.entries for job in self.memory.list_outlines(entry))


def find_across_jobs(jobs: AllJobs, policy_files: PolicyFiles | None) -> Iterator[Finding]:
    """Report what only all jobs together show."""
    if jobs.is_standalone:
        # Overlays delete something in jobs of the repository, which are not among these files.
        if not any(runner.name for runner in jobs.runners):
            yield from _find_dead_deletions(jobs)
        yield from _find_cluster_problems(jobs, is_whole=False)
        made = jobs.list_made() if jobs.checked else []
        if len({each.identity for each in made}) < len(made):
            from jobgen.pipeline.standalone_objects import find_conflicting_copies, list_alone

            yield from find_conflicting_copies(made, jobs.entries, jobs.tracer, list_alone(jobs.entries))
        return
    # Imported late: files that are named need nothing of it.
    from jobgen.pipeline.selectors import find_unknown_roles, find_unlisted_overlays

    # A patch, a deletion or a policy may be there for a job that could not be read or rendered, or for a team.
    is_complete = jobs.project.teams.is_complete and not any("" in part.unchecked for part in jobs.parts)
    yield from _find_dead_deletions(jobs, of_layers=is_complete)
    if is_complete:
        yield from _find_idle(jobs)
    yield from find_unknown_roles(jobs.project, jobs.runners, jobs.tracer, jobs.list_jobs)
    if policy_files and is_complete:
        yield from policy_files.find_unmatched(made.identity for made in jobs.list_made())
    if jobs.checked:
        from jobgen.pipeline.cross_job import cross_job_findings

        rows = (row for part in jobs.parts for row in part.rows)
        yield from cross_job_findings(rows, jobs.runners, jobs.entries, jobs.tracer)
        yield from find_unlisted_overlays(jobs.project, jobs.tracer)
        yield from _find_cluster_problems(jobs, is_whole=is_complete)


def _find_idle(jobs: AllJobs) -> Iterator[Finding]:
    """Report parts of overlays that no job uses, and runtimes that no job refers to."""
    from jobgen.pipeline.selector_entries import find_idle_entries
    from jobgen.pipeline.selectors import SelectorUse, find_idle_selectors, find_unused_runtimes

    project, runners, tracer = jobs.project, jobs.runners, jobs.tracer
    used = {patch for use in jobs.uses for patch in use.patches}
    made = jobs.list_made()
    selectors = SelectorUse(project, runners, used, {each.env for each in made}, jobs.checked, jobs.list_jobs)
    yield from find_idle_selectors(selectors, tracer)
    if not jobs.checked:
        return
    yield from find_idle_entries(project, runners, made, tracer, jobs.list_jobs)
    if any(runner.expander.environment.images for runner in runners):
        from jobgen.pipeline.image_entries import find_idle_images

        yield from find_idle_images(project, runners, jobs.uses, tracer)
    if project.runtimes:
        yield from find_unused_runtimes(project, made, tracer)


def _find_cluster_problems(jobs: AllJobs, *, is_whole: bool) -> Iterator[Finding]:
    """Report what the state of a cluster refuses, as far as files show it."""
    if not jobs.checked:
        return
    from jobgen.pipeline.cluster_rules import find_cluster_problems

    yield from find_cluster_problems(
        jobs.runners,
        jobs.list_made(),
        jobs.entries,
        jobs.tracer,
        is_whole=is_whole,
        is_standalone=jobs.is_standalone,
        memory=jobs.memory,
        progress=jobs.progress,
    )


def _find_dead_deletions(jobs: AllJobs, *, of_layers: bool = True) -> list[Finding]:
    """Report deletion markers that deleted nothing. Only jobs that can decide this are processed with locations.

    Those of overlays and kinds only with `of_layers`.
    """
    used, tracer = jobs.uses, jobs.tracer
    hits = {marker: where for part in used for marker, where in part.hits.items()}
    misses = [miss for part in used for miss in part.misses] if of_layers else []
    with_problems = [where for marker, where in misses if marker not in hits]
    with_problems += [where for part in used for where in part.own_misses]
    if not with_problems:
        return []
    # Jobs in which a marker deletes something count too.
    relevant = {where.place for where in (*with_problems, *hits.values())}
    files = {path for path, *_ in relevant}
    read = read_jobs([entry for entry in jobs.entries if entry.path in files], tracer.project.frameworks, [])
    dead = tracer.find_dead_deletions([job for job in read if (job.file.path, job.position, job.item) in relevant])
    return [finding for finding in dead if of_layers or finding.location.file in files]
