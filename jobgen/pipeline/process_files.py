"""Process files one by one: read their jobs, render them, and check their objects."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jobgen.check.checker import NO_CHECKS
from jobgen.k8s.builtin_groups import BUILTIN_GROUPS
from jobgen.model.digest import blake2b
from jobgen.model.finding import Finding, Problem, Severity
from jobgen.pipeline.environment import EnvironmentRunner, Rendered
from jobgen.pipeline.file_result import FileParts, FileResult, new_result
from jobgen.pipeline.locate import locate
from jobgen.pipeline.ownership import find_unowned
from jobgen.pipeline.progress import notify
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.redact_results import redact_results
from jobgen.pipeline.trace import Job, JobRef, Tracer
from jobgen.repo.files import FileEntry
from jobgen.repo.lock import digest_data

if TYPE_CHECKING:
    from jobgen.k8s.objects import Manifest
    from jobgen.pipeline.run_state import RunState

# Jobs per batch. Each step runs for a whole batch, which keeps its code and data in the CPU caches.
_BATCH = 50


def discard_object(_: Any) -> None:
    """Drop an object that has been checked, to save memory."""


def process_files(
    run: RunState, runners: Sequence[EnvironmentRunner], tracer: Tracer, share: Sequence[FileEntry], total: int
) -> list[FileParts]:
    """Process files one by one, without looking at the others."""
    found: list[FileParts] = []
    frameworks = run.project.frameworks
    for start in range(0, len(share), _BATCH):
        run.progress(start * len(runners) * total // len(share), total * len(runners))
        batch = share[start : start + _BATCH]
        own = [new_result() for _ in batch]
        read = [
            list(read_jobs([entry], frameworks, part.findings, part.comments if run.checked else None, part.skipped))
            for entry, part in zip(batch, own, strict=True)
        ]
        for jobs, part in zip(read, own, strict=True):
            _note_jobs(run, tracer, jobs, part)
        by_environment = []
        for runner in runners:
            notify(start * total // len(share), total, f"files, {runner.name}" if runner.name else "files")
            by_environment.append(_run_environment(run, runner, tracer, read))
        results = list(zip(own, *by_environment, strict=True))
        redact_results(run.project, batch, results)
        found += results
    notify(total, total, "files")
    return found


def _note_jobs(run: RunState, tracer: Tracer, jobs: Sequence[Job], part: FileResult) -> None:
    """Note the jobs of a file, and what is wrong with the file by itself."""
    # A document with an error is not a job.
    part.unchecked.extend("" for finding in part.findings if finding.severity is Severity.ERROR)
    for job in jobs:
        part.jobs.append((job.document.name, job.position, job.item))
        part.names.update(filter(None, (job.document.name, job.document.sweep)))
        if run.membership:
            part.findings.extend(_drop_repeated(job, part, run.membership.findings(job, tracer)))
        if run.checked and run.entries is None:
            part.findings.extend(_drop_repeated(job, part, list(find_unowned(job, run.project.teams))))


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
    if not run.checked:
        return [_finish_objects(run, job, several) for (job, _), several in zip(jobs, found, strict=True)]
    pairs = zip(jobs, found, strict=True)
    every = [(job, part, made) for (job, part), several in pairs for made in several]
    finished = iter(_check_objects(run, runner, tracer, every))
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
        part.findings.extend(_drop_repeated(job, part, tracer.findings(job, runner.name)))
        part.unchecked.append("")
    elif run.deployable and made and runner.find_missing_images(made[0].object):
        part.findings.extend(_drop_repeated(job, part, tracer.findings(job, runner.name, runner.find_missing_images)))
        made = None
    if made:
        part.used.patches.update(patch.name for patch in runner.list_runtime_patches(made))
    else:
        # It has errors, or it is paused, done or expired.
        part.unchecked.append(job.document.name)
    return made or []


def _check_objects(
    run: RunState, runner: EnvironmentRunner, tracer: Tracer, made: Sequence[tuple[Job, FileResult, Rendered]]
) -> list[Any]:
    """What is wrong with objects: checked without locations first, and those with a problem again with locations.

    Returns what is kept of each object: its summary, if only its results are kept.
    """
    checkers = [runner.find_checker(job.file.path) for job, _, _ in made]
    mutated = [checker.mutate(rendered.object) for checker, (_, _, rendered) in zip(checkers, made, strict=True)]
    manifests = [checker.manifest(each.object) for checker, each in zip(checkers, mutated, strict=True)]
    alone = zip(checkers, manifests, mutated, made, strict=True) if not run.is_outline else ()
    for checker, manifest, each, (job, part, rendered) in alone:
        key = _digest_built(job, manifest)
        reporting = checker.find_reporting(manifest) if not key or key not in runner.clean else NO_CHECKS
        if each.failures or reporting.is_any:
            check = functools.partial(checker, reporting=reporting)
            found = tracer.findings(job, runner.name, check, rendered.companion, checker.mutate)
            part.findings.extend(_drop_repeated(job, part, found))
        elif key:
            runner.clean.add(key)
        if runner.take_shared_use():
            part.dependent.append(job.document.name)
    if run.entries is not None:
        # Standalone files are not one environment, so rules over all its objects do not apply.
        if not run.is_outline:
            _check_files(runner, tracer, made)
        return [run.finish(rendered.object) for _, _, rendered in made]
    from jobgen.pipeline.object_summary import summarize_object

    kept: list[Any] = []
    for checker, manifest, (job, part, rendered) in zip(checkers, manifests, made, strict=True):
        where = JobRef(runner.name, job.file.path, job.position, job.item, rendered.companion)
        problems: list[Problem] = []
        part.rows.extend((rule, row._replace(job=where)) for rule, row in checker.collect_facts(manifest, problems))
        part.findings.extend(locate(problem, job.file.path, job.location) for problem in problems)
        if run.finish is discard_object:
            is_same = manifest.object is rendered.object
            summarized = manifest if is_same else checker.manifest(rendered.object)
            kept.append(summarize_object(checker, rendered.object, summarized))
        else:
            kept.append(run.finish(rendered.object))
        if runner.take_shared_use():
            part.dependent.append(job.document.name)
    return kept


def _digest_built(job: Job, manifest: Manifest) -> bytes:
    """Return a digest of an object that several builds may share, and that depends on no other file; else nothing."""
    if job.built is None or manifest.group not in BUILTIN_GROUPS:
        return b""
    return blake2b(json.dumps(job.built.data, sort_keys=True, default=str).encode(), digest_size=16).digest()


def _check_files(runner: EnvironmentRunner, tracer: Tracer, made: Sequence[tuple[Job, FileResult, Rendered]]) -> None:
    """Report what only the objects of a file together show."""
    for _, several in groupby(made, key=lambda each: each[0].file.path):
        objects = list(several)
        if any(rendered.identity.kind == "Service" for _, _, rendered in objects):
            # Imported late: most files have no such objects.
            from jobgen.pipeline.standalone_objects import find_file_problems

            pairs = [(job, rendered) for job, _, rendered in objects]
            for number, finding in find_file_problems(pairs, tracer, runner.name):
                objects[number][1].findings.append(finding)


def _drop_repeated(job: Job, part: FileResult, findings: list[Finding]) -> list[Finding]:
    """The findings of a job, without those that another member of its sweep has already."""
    if not job.document.sweep:
        return findings
    known = {(found.location, found.rule, found.message, found.env) for found in part.findings}
    return [found for found in findings if (found.location, found.rule, found.message, found.env) not in known]
