"""Process files one by one: read their jobs, render them, and check their objects if the run does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from jobgen.engine.workers import parallel_map
from jobgen.model.finding import Finding, Severity
from jobgen.model.progress import notify
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.file_result import FileParts, FileResult, new_result
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact_results import redact_results
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo.files import FileEntry
from jobgen.repo.lock import digest_data

if TYPE_CHECKING:
    from jobgen.rendering.run_state import RunState

Found = TypeVar("Found")


def map_files(
    run: RunState,
    runners: Sequence[EnvironmentRunner],
    entries: Sequence[FileEntry],
    process: Callable[[Sequence[FileEntry]], list[Found]],
) -> list[Found]:
    """Process files in several processes if they are many, and report the progress."""

    def report(done: int, total: int) -> None:
        run.progress(done * len(runners), total * len(runners))
        notify(done, total, "files")

    return parallel_map(entries, process, report)


def process_files(
    run: RunState, runners: Sequence[EnvironmentRunner], tracer: Tracer, share: Sequence[FileEntry]
) -> list[FileParts]:
    """Process files one by one, without looking at the others."""
    frameworks = run.project.frameworks
    own = [new_result() for _ in share]
    read = [
        list(read_jobs([entry], frameworks, part.findings, part.comments if run.checked else None, part.skipped))
        for entry, part in zip(share, own, strict=True)
    ]
    for entry, jobs, part in zip(share, read, own, strict=True):
        _note_jobs(run, tracer, jobs, part)
        if run.inputs is not None:
            run.inputs.note_jobs(entry, jobs)
    by_environment = [_run_environment(run, runner, tracer, read) for runner in runners]
    results = list(zip(own, *by_environment, strict=True))
    redact_results(run.project, share, results)
    return results


def _note_jobs(run: RunState, tracer: Tracer, jobs: Sequence[Job], part: FileResult) -> None:
    """Note the jobs of a file, and what is wrong with the file by itself."""
    # A document with an error is not a job.
    part.unchecked.extend("" for finding in part.findings if finding.severity is Severity.ERROR)
    for job in jobs:
        part.jobs.append((job.document.name, job.position, job.item))
        part.names.update(filter(None, (job.document.name, job.document.sweep)))
        if run.checks is not None:
            part.findings.extend(drop_repeated(job, part, list(run.checks.check_job(run, tracer, job))))


def _run_environment(
    run: RunState, runner: EnvironmentRunner, tracer: Tracer, read: Sequence[Sequence[Job]]
) -> list[FileResult]:
    """The results of files, whose jobs have been read, in one environment."""
    results = [new_result() for _ in read]
    pairs = [(job, part) for jobs, part in zip(read, results, strict=True) for job in jobs]
    for (_, part), made in zip(pairs, _render_jobs(run, runner, tracer, pairs), strict=True):
        part.made.extend(made)
    return results


def _render_jobs(
    run: RunState, runner: EnvironmentRunner, tracer: Tracer, jobs: Sequence[tuple[Job, FileResult]]
) -> list[list[Rendered]]:
    """Render jobs in one environment and check their objects if the run does; the objects of each job."""
    found = [_render_job(run, runner, tracer, job, part) for job, part in jobs]
    if run.checks is None:
        return [_finish_objects(run, job, several) for (job, _), several in zip(jobs, found, strict=True)]
    pairs = zip(jobs, found, strict=True)
    every = [(job, part, made) for (job, part), several in pairs for made in several]
    if run.leaves_objects:
        for _, part, made in every:
            part.objects.append(made.object)
    finished = iter(run.checks.check_objects(run, runner.name, tracer, every))
    return [[made._replace(object=next(finished)) for made in several] for several in found]


def _finish_objects(run: RunState, job: Job, several: Sequence[Rendered]) -> list[Rendered]:
    # Members of a sweep have the digest of their sweep.
    digest = digest_data(job.sweep or job.document.data) if run.digested and several else ""
    return [made._replace(object=run.finish(made.object), job_digest=digest) for made in several]


def _render_job(run: RunState, runner: EnvironmentRunner, tracer: Tracer, job: Job, part: FileResult) -> list[Rendered]:
    patches = runner.patches_for(job)
    if patches is None:
        return []
    part.used.patches.update(patch.name for patch in patches)
    if not (run.wanted(job.document.name) or (job.document.sweep and run.wanted(job.document.sweep))):
        return []
    made = runner.render_job(job, patches, part.used)
    if made is None:
        part.findings.extend(drop_repeated(job, part, tracer.findings(job, runner.name)))
        part.unchecked.append("")
    elif run.deployable and made and runner.find_missing_images(made[0].object):
        part.findings.extend(drop_repeated(job, part, tracer.findings(job, runner.name, runner.find_missing_images)))
        made = None
    if made:
        part.used.patches.update(patch.name for patch in runner.list_runtime_patches(made))
    else:
        # It has errors, or it is paused, done or expired.
        part.unchecked.append(job.document.name)
    return made or []


def drop_repeated(job: Job, part: FileResult, findings: list[Finding]) -> list[Finding]:
    """Return the findings of a job, without those that another member of its sweep has already."""
    if not job.document.sweep:
        return findings
    known = {(found.location, found.rule, found.message, found.env) for found in part.findings}
    return [found for found in findings if (found.location, found.rule, found.message, found.env) not in known]
