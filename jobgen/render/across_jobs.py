"""Report what only all jobs together show: selectors and deletions without effect."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.model.finding import Finding
from jobgen.render.read_jobs import read_jobs
from jobgen.render.run_state import AllJobs


def find_across_jobs(jobs: AllJobs) -> Iterator[Finding]:
    """Report what only all jobs together show."""
    run, checks = jobs.run, jobs.run.checks
    if jobs.is_standalone:
        # Overlays delete something in jobs of the repository, which are not among these files.
        if not any(runner.name for runner in jobs.runners):
            yield from _find_dead_deletions(jobs)
        yield from checks.find_across(jobs, is_complete=False) if checks is not None else ()
        return
    # Imported late: files that are named need nothing of it.
    from jobgen.render.selectors import SelectorUse, find_idle_selectors, find_unknown_roles

    # A patch, a deletion or a policy may be there for a job that could not be read or rendered, or for a team.
    is_complete = run.project.teams.is_complete and not any("" in part.unchecked for part in jobs.parts)
    yield from _find_dead_deletions(jobs, of_layers=is_complete)
    if is_complete:
        used = {patch for use in jobs.uses for patch in use.patches}
        filled = {each.env for each in jobs.list_made()}
        use = SelectorUse(run.project, jobs.runners, used, filled, run.checked, jobs.list_jobs)
        yield from find_idle_selectors(use, jobs.tracer)
    yield from find_unknown_roles(run.project, jobs.runners, jobs.tracer, jobs.list_jobs)
    if checks is not None:
        yield from checks.find_across(jobs, is_complete=is_complete)


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
