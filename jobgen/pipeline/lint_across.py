"""Report what only all jobs together show a lint: conflicts, refusals of a cluster, and entries without effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jobgen.model.finding import Finding
from jobgen.pipeline.environment_checker import EnvironmentChecker
from jobgen.render.run_state import AllJobs

if TYPE_CHECKING:
    from jobgen.pipeline.load_policies import PolicyFiles


def find_across(
    jobs: AllJobs, checkers: Mapping[str, EnvironmentChecker], policies: PolicyFiles | None, *, is_complete: bool
) -> Iterator[Finding]:
    """Report what all jobs of a lint show together; with `is_complete`, all of them could be read and rendered."""
    made = jobs.list_made()
    if jobs.is_standalone:
        yield from _find_cluster_problems(jobs, checkers, is_whole=False)
        if len({each.identity for each in made}) < len(made):
            from jobgen.pipeline.standalone_objects import find_conflicting_copies, list_alone

            yield from find_conflicting_copies(made, jobs.entries, jobs.tracer, list_alone(jobs.entries))
        return
    # Imported late: files that are named need nothing of it.
    from jobgen.pipeline.cross_job import cross_job_findings
    from jobgen.render.selectors import find_unlisted_overlays

    if is_complete:
        yield from _find_idle(jobs)
        yield from policies.find_unmatched(each.identity for each in made) if policies else ()
    rows = (row for part in jobs.parts for row in part.rows)
    yield from cross_job_findings(rows, list(checkers.values()), jobs.entries, jobs.tracer)
    yield from find_unlisted_overlays(jobs.run.project, jobs.tracer)
    yield from _find_cluster_problems(jobs, checkers, is_whole=is_complete)


def _find_idle(jobs: AllJobs) -> Iterator[Finding]:
    """Report entries of selectors and images that no job uses, and runtimes that no job refers to."""
    from jobgen.pipeline.selector_entries import find_idle_entries
    from jobgen.render.selectors import find_unused_runtimes

    project, runners, tracer = jobs.run.project, jobs.runners, jobs.tracer
    yield from find_idle_entries(project, runners, jobs.list_made(), tracer, jobs.list_jobs)
    if any(runner.expander.environment.images for runner in runners):
        from jobgen.pipeline.image_entries import find_idle_images

        yield from find_idle_images(project, runners, jobs.uses, tracer)
    if project.runtimes:
        yield from find_unused_runtimes(project, jobs.list_made(), tracer)


def _find_cluster_problems(
    jobs: AllJobs, checkers: Mapping[str, EnvironmentChecker], *, is_whole: bool
) -> Iterator[Finding]:
    """Report what the state of a cluster refuses, as far as files show it."""
    from jobgen.pipeline.cluster_rules import find_cluster_problems

    yield from find_cluster_problems(list(checkers.values()), jobs, is_whole=is_whole)
