"""Process files one by one: read their jobs, render them in each environment, and hand the objects to the stage.

Jobs are processed without locations, in several processes if there are many files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from jobgen.engine.workers import parallel_map
from jobgen.model.budget import RUN, TOO_MANY_STEPS, OverBudgetError
from jobgen.model.data import ValidFields
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.model.progress import notify
from jobgen.rendering.build import is_spec, manifest_errors
from jobgen.rendering.config import find_errors
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.file_result import FileResult, new_result
from jobgen.rendering.locate import locate
from jobgen.rendering.mended_jobs import MendedJob, keep_independent, mend_job
from jobgen.rendering.redact_results import redact_results
from jobgen.rendering.result_inputs import ALL_PATCHES, ResultInputs
from jobgen.rendering.run_values import LoadedLayers, RunRequest
from jobgen.rendering.trace import Job
from jobgen.repo.files import FileEntry

Found = TypeVar("Found")


def map_files(
    request: RunRequest,
    environments: int,
    entries: Sequence[FileEntry],
    process: Callable[[Sequence[FileEntry]], list[Found]],
) -> list[Found]:
    """Process files in several processes if they are many, and report the progress in so many environments."""

    def report(done: int, total: int) -> None:
        request.progress(done * environments, total * environments)
        notify(done, total, "files")

    return parallel_map(entries, process, report)


def process_files(
    request: RunRequest,
    layers: LoadedLayers,
    runners: Sequence[EnvironmentRunner],
    inputs: ResultInputs | None,
    share: Sequence[FileEntry],
) -> list[tuple[FileResult, ...]]:
    """Process files in some environments without looking at others; return the results of each.

    These are the result of the file by itself, and that in each of the environments.
    """
    stage, tracer = layers.stage, layers.tracer
    own = [new_result() for _ in share]
    mended: list[list[MendedJob]] = [[] for _ in share]
    read = [_read_file(request, layers, *each) for each in zip(share, own, mended, strict=True)]
    RUN.close()
    for entry, jobs, part in zip(share, read, own, strict=True):
        # A document with an error is not a job.
        part.unrendered.extend(None for finding in part.findings if finding.severity is Severity.ERROR)
        for job in jobs:
            part.jobs.append((job.document.name, job.position, job.item))
            part.names.update(filter(None, (job.document.name, job.document.sweep)))
            found = list(stage.check_job(request, tracer, job))
            part.findings.extend(drop_repeated(job, part, found) if found else ())
        if inputs is not None:
            inputs.note_jobs(entry, jobs)
    by_environment = [_process_environment(request, layers, runner, read, mended) for runner in runners]
    RUN.close()
    results = list(zip(own, *by_environment, strict=True))
    redact_results(request.project, share, results)
    return results


def _read_file(
    request: RunRequest, layers: LoadedLayers, entry: FileEntry, part: FileResult, faulty: list[MendedJob]
) -> list[Job]:
    RUN.open(entry.path)
    try:
        return list(layers.stage.read(entry, request.project, part, faulty))
    except OverBudgetError as error:
        file = entry.build.file if entry.build else entry.path
        part.findings.append(locate(Problem(TOO_MANY_STEPS, str(error), category="meta"), file))
        return []


def _process_environment(
    request: RunRequest,
    layers: LoadedLayers,
    runner: EnvironmentRunner,
    read: Sequence[Sequence[Job]],
    mended: Sequence[Sequence[MendedJob]],
) -> list[FileResult]:
    """Return the results of files, whose jobs have been read, in one environment."""
    results = [new_result() for _ in read]
    jobs = [(job, part) for jobs, part in zip(read, results, strict=True) for job in jobs]
    rendered = [(job, part, obj) for job, part in jobs for obj in _render_in_budget(request, layers, runner, job, part)]
    if request.leaves_objects:
        for _, part, obj in rendered:
            part.objects.append(obj.object)
    kept = layers.stage.check_objects(request, runner.name, layers.tracer, rendered)
    for (_, part, obj), data in zip(rendered, kept, strict=True):
        part.made.append(obj._replace(object=data))
    for faulty, part in zip(mended, results, strict=True):
        for job in faulty:
            _check_mended(request, layers, runner, job, part)
    return results


def _check_mended(
    request: RunRequest, layers: LoadedLayers, runner: EnvironmentRunner, mended: MendedJob, part: FileResult
) -> None:
    """Add what is wrong with a job besides the errors because of which it is not rendered."""
    if runner.patches_for(mended.left_out) is None:
        return
    left_out, filled = new_result(), new_result()
    objects = _render_copy(layers, runner, mended.left_out, left_out, fill=False)
    others = _render_copy(layers, runner, mended.filled, filled, fill=True)
    if objects and others:
        layers.stage.check_objects(request, runner.name, layers.tracer, [*objects, *others])
    # What prevents that it is rendered is reported already, once for all lines that show it.
    known = {(found.fault, found.env) for found in part.findings}
    found = keep_independent(mended, left_out, filled)
    part.findings.extend(finding for finding in found if (finding.fault, finding.env) not in known)
    part.used.reads.update(left_out.used.reads, filled.used.reads)
    # It is none of the jobs whose patches are known, so its result depends on all of them.
    part.used.reads.add(ALL_PATCHES)


def _find_errors(layers: LoadedLayers, data: ValidFields) -> list[Problem]:
    """Return why a job cannot be rendered at all: a job without its faulty values may lack a required one."""
    frameworks = layers.tracer.project.frameworks
    return find_errors(data, "trainingjob", frameworks) if is_spec(data) else list(manifest_errors(data))


def _render_copy(
    layers: LoadedLayers, runner: EnvironmentRunner, job: Job, result: FileResult, *, fill: bool
) -> list[tuple[Job, FileResult, Rendered]]:
    """Render a copy of a job, without the values because of which it cannot be rendered."""
    objects = runner.render_job(job, runner.patches_for(job) or [], result.used)
    if objects is None:
        result.findings.extend(layers.tracer.findings(job, runner.name))
        problems = layers.tracer.trace(job, runner.name).problems
        mended = mend_job(job, problems, partial(_find_errors, layers))
        if mended is None:
            return []
        job = mended.filled if fill else mended.left_out
        objects = runner.render_job(job, runner.patches_for(job) or [], result.used)
    return [(job, result, obj) for obj in objects or []]


def _render_in_budget(
    request: RunRequest, layers: LoadedLayers, runner: EnvironmentRunner, job: Job, part: FileResult
) -> list[Rendered]:
    RUN.open(job.file.path, runner.name)
    try:
        return _render_job(request, layers, runner, job, part)
    except OverBudgetError as error:
        problem = Problem(TOO_MANY_STEPS, str(error), category="meta")
        part.findings.append(locate(problem, job.file.path, job.start())._replace(env=runner.name))
        part.unchecked.append(job.document.name)
        return []


def _render_job(
    request: RunRequest, layers: LoadedLayers, runner: EnvironmentRunner, job: Job, part: FileResult
) -> list[Rendered]:
    patches = runner.patches_for(job)
    if patches is None:
        return []
    part.used.patches.update(patch.name for patch in patches)
    if not (request.wanted(job.document.name) or (job.document.sweep and request.wanted(job.document.sweep))):
        return []
    objects = runner.render_job(job, patches, part.used)
    if objects is None:
        part.findings.extend(drop_repeated(job, part, layers.tracer.findings(job, runner.name)))
        part.unrendered.append(job.document.name)
        problems = layers.tracer.trace(job, runner.name).problems if layers.stage.is_lint else ()
        mended = mend_job(job, problems, partial(_find_errors, layers)) if problems else None
        if mended:
            _check_mended(request, layers, runner, mended, part)
    elif objects:
        objects, found = layers.stage.finish_job(runner, layers.tracer, job, objects)
        part.findings.extend(drop_repeated(job, part, found) if found else ())
    if not objects:
        # It has errors, or it is paused, done or expired.
        part.unchecked.append(job.document.name)
        return []
    part.used.patches.update(patch.name for patch in runner.list_runtime_patches(objects))
    return objects


def drop_repeated(job: Job, part: FileResult, findings: list[Finding]) -> list[Finding]:
    """Return the findings of a job, without those that another member of its sweep has already."""
    if not job.document.sweep:
        return findings
    known = {found.key for found in part.findings}
    return [found for found in findings if found.key not in known]
