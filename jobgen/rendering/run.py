"""Run all jobs of a repository in all environments: render, check if the run has checks, and report findings.

Jobs are processed without locations, in several processes if there are many. A job with a problem is processed again
with locations. Results that the store has are used again.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from jobgen.engine.store import Row
from jobgen.engine.workers import parallel_map
from jobgen.model.budget import RUN, TOO_MANY_STEPS, OverBudgetError
from jobgen.model.data import Location, ValidFields
from jobgen.model.finding import Finding, Identity, Problem, Related, Severity, sort_findings
from jobgen.model.progress import notify
from jobgen.rendering.build import is_spec, manifest_errors
from jobgen.rendering.config import find_errors
from jobgen.rendering.environment import EnvironmentRunner, Rendered
from jobgen.rendering.expand import JobDocument, find_overridden
from jobgen.rendering.file_result import Answer, FileParts, FileResult, join_parts, new_result
from jobgen.rendering.left_out import LeftOut, find_in_file
from jobgen.rendering.locate import locate
from jobgen.rendering.mended_jobs import MendedJob, keep_independent, mend_job
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact_results import redact_results, redact_shared
from jobgen.rendering.result_inputs import ResultInputs, digest_value, make_key, name_entry
from jobgen.rendering.run_state import (
    RENDERED,
    AllJobs,
    RunState,
    keep_object,
    name_finding,
    name_object,
    prepare_run,
)
from jobgen.rendering.runtimes import RUNTIME_KINDS
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.repo.files import KUSTOMIZATION_NAMES, File, FileEntry, hold_contents, read_file
from jobgen.repo.lock import digest_data
from jobgen.reports.suppress import HIDING_RULES, NO_SCHEMA_RULES

# Process files one by one: read their jobs, render them, and check their objects if the run does.

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


def process_files(run: RunState, runners: Sequence[EnvironmentRunner], share: Sequence[FileEntry]) -> list[FileParts]:
    """Process files one by one, without looking at the others."""
    own = [new_result() for _ in share]
    mended: list[list[MendedJob]] = [[] for _ in share]
    read = [_read_file(run, *each) for each in zip(share, own, mended, strict=True)]
    RUN.close()
    for entry, jobs, part in zip(share, read, own, strict=True):
        # A document with an error is not a job.
        part.unrendered.extend(None for finding in part.findings if finding.severity is Severity.ERROR)
        for job in jobs:
            part.jobs.append((job.document.name, job.position, job.item))
            part.names.update(filter(None, (job.document.name, job.document.sweep)))
            if run.checks is not None:
                part.findings.extend(drop_repeated(job, part, list(run.checks.check_job(run, run.tracer, job))))
        if run.inputs is not None:
            run.inputs.note_jobs(entry, jobs)
    by_environment = [_run_environment(run, runner, read, mended) for runner in runners]
    RUN.close()
    results = list(zip(own, *by_environment, strict=True))
    redact_results(run.project, share, results)
    return results


def _read_file(run: RunState, entry: FileEntry, part: FileResult, faulty: list[MendedJob]) -> list[Job]:
    RUN.open(entry.path)
    kinds, found = run.project.kinds, part.findings
    if not run.checked:
        read = read_jobs([entry], kinds, found, None, part.skipped)
    else:
        read = read_jobs([entry], kinds, found, part.comments, part.skipped, faulty)
    try:
        return list(read)
    except OverBudgetError as error:
        file = entry.build.file if entry.build else entry.path
        found.append(locate(Problem(TOO_MANY_STEPS, str(error), category="meta"), file))
        return []


def _run_environment(
    run: RunState,
    runner: EnvironmentRunner,
    read: Sequence[Sequence[Job]],
    mended: Sequence[Sequence[MendedJob]],
) -> list[FileResult]:
    """The results of files, whose jobs have been read, in one environment; objects are checked if the run does."""
    results = [new_result() for _ in read]
    jobs = [(job, part) for jobs, part in zip(read, results, strict=True) for job in jobs]
    every = [(job, part, made) for job, part in jobs for made in _render_in_budget(run, runner, job, part)]
    if run.checks is None:
        finished = [run.finish(made.object) for _, _, made in every]
    else:
        for _, part, made in every if run.leaves_objects else ():
            part.objects.append(made.object)
        finished = run.checks.check_objects(run, runner.name, run.tracer, every)
    for (_, part, made), kept in zip(every, finished, strict=True):
        part.made.append(made._replace(object=kept))
    for several, part in zip(mended, results, strict=True):
        for each in several:
            _check_mended(run, runner, each, part)
    return results


def _check_mended(run: RunState, runner: EnvironmentRunner, mended: MendedJob, part: FileResult) -> None:
    """Add what is wrong with a job besides the errors because of which it is not rendered."""
    if run.checks is None or runner.patches_for(mended.left_out) is None:
        return
    left_out, filled = new_result(), new_result()
    every = _render_copy(run, runner, mended.left_out, left_out, fill=False)
    others = _render_copy(run, runner, mended.filled, filled, fill=True)
    if every and others:
        run.checks.check_objects(run, runner.name, run.tracer, [*every, *others])
    # What prevents that it is rendered is reported already, once for all lines that show it.
    known = {(found.fault, found.env) for found in part.findings}
    found = keep_independent(mended, left_out, filled)
    part.findings.extend(each for each in found if (each.fault, each.env) not in known)
    part.used.days.extend(left_out.used.days)
    # It is none of the jobs whose patches are known, so its result depends on all of them.
    part.dependent.append(mended.left_out.document.name)


def _find_errors(run: RunState, data: ValidFields) -> list[Problem]:
    """Return why a job cannot be rendered at all: a job without its faulty values may lack a required one."""
    return find_errors(data, "trainingjob", run.project.frameworks) if is_spec(data) else list(manifest_errors(data))


def _render_copy(
    run: RunState, runner: EnvironmentRunner, job: Job, result: FileResult, *, fill: bool
) -> list[tuple[Job, FileResult, Rendered]]:
    """Render a copy of a job, without the values because of which it cannot be rendered."""
    made = runner.render_job(job, runner.patches_for(job) or [], result.used)
    if made is None:
        result.findings.extend(run.tracer.findings(job, runner.name))
        mended = mend_job(job, run.tracer.trace(job, runner.name).problems, partial(_find_errors, run))
        if mended is None:
            return []
        job = mended.filled if fill else mended.left_out
        made = runner.render_job(job, runner.patches_for(job) or [], result.used)
    return [(job, result, each) for each in made or []]


def _render_in_budget(run: RunState, runner: EnvironmentRunner, job: Job, part: FileResult) -> list[Rendered]:
    RUN.open(job.file.path, runner.name)
    try:
        return _render_job(run, runner, job, part)
    except OverBudgetError as error:
        problem = Problem(TOO_MANY_STEPS, str(error), category="meta")
        part.findings.append(locate(problem, job.file.path, job.start())._replace(env=runner.name))
        part.unchecked.append(job.document.name)
        return []


def _render_job(run: RunState, runner: EnvironmentRunner, job: Job, part: FileResult) -> list[Rendered]:
    patches = runner.patches_for(job)
    if patches is None:
        return []
    part.used.patches.update(patch.name for patch in patches)
    if not (run.wanted(job.document.name) or (job.document.sweep and run.wanted(job.document.sweep))):
        return []
    made = runner.render_job(job, patches, part.used)
    if made is None:
        part.findings.extend(drop_repeated(job, part, run.tracer.findings(job, runner.name)))
        part.unrendered.append(job.document.name)
        problems = run.tracer.trace(job, runner.name).problems if run.checks is not None else ()
        mended = mend_job(job, problems, partial(_find_errors, run)) if problems else None
        if mended:
            _check_mended(run, runner, mended, part)
    elif run.deployable and made and runner.find_missing_images(made[0].object):
        found = run.tracer.findings(job, runner.name, runner.find_missing_images)
        part.findings.extend(drop_repeated(job, part, found))
        made = None
    if not made:
        # It has errors, or it is paused, done or expired.
        part.unchecked.append(job.document.name)
        return []
    part.used.patches.update(patch.name for patch in runner.list_runtime_patches(made))
    if run.checks is not None and is_spec(job.document.data):
        part.findings.extend(drop_repeated(job, part, _find_overridden(runner, job, made[0].identity)))
    if run.checks is not None or not run.digested:
        return made
    # Members of a sweep have the digest of their sweep.
    digest = digest_data(job.sweep or job.document.data)
    return [each._replace(job_digest=digest) for each in made]


def _find_overridden(runner: EnvironmentRunner, job: Job, identity: Identity) -> list[Finding]:
    """Return findings about labels and annotations of a job that its own fields replace."""
    if not {"labels", "annotations"} & job.document.data["metadata"].keys():
        return []
    kinds = (each for each in runner.project.kinds if each.describes(identity.api_version, identity.kind))
    kind = next(kinds, None)
    if kind is None or not any(find_overridden(job.document.data, kind)):
        return []
    problems = find_overridden(job.traced_document().data, kind)
    return [locate(each, job.file.path)._replace(object=identity, env=runner.name) for each in problems]


def drop_repeated(job: Job, part: FileResult, findings: list[Finding]) -> list[Finding]:
    """Return the findings of a job, without those that another member of its sweep has already."""
    if not job.document.sweep:
        return findings
    known = {found.key for found in part.findings}
    return [found for found in findings if found.key not in known]


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
    from jobgen.rendering.selectors import SelectorUse, find_idle_selectors, find_unknown_roles

    # A patch, a deletion or a policy may be there for a job that could not be read or rendered, or for a team.
    is_complete = run.project.teams.is_complete and not any(part.unrendered for part in jobs.parts)
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
    read = read_jobs([entry for entry in jobs.entries if entry.path in files], tracer.project.kinds, [])
    dead = tracer.find_dead_deletions([job for job in read if (job.file.path, job.position, job.item) in relevant])
    return [finding for finding in dead if of_layers or finding.location.file in files]


def join_builds(builds: Iterable[tuple[str, Sequence[Finding]]]) -> list[Finding]:
    """Return each finding once, with the builds that have it if they are in other folders than its file.

    A build is named by the file that says how to build it.
    """
    first: dict[tuple[object, ...], Finding] = {}
    files: dict[tuple[object, ...], dict[str, None]] = {}
    for file, findings in builds:
        for finding in findings:
            first.setdefault(finding.key, finding)
            files.setdefault(finding.key, {})[file] = None
    return [_name_builds(finding, list(files[key])) for key, finding in first.items()]


def _name_builds(finding: Finding, files: Sequence[str]) -> Finding:
    split = [posixpath.split(file) for file in files]
    if any(not folder or finding.location.file.startswith(f"{folder}/") for folder, _ in split):
        return finding
    # A kustomization is named by its folder; another file may have several builds of other folders.
    names = [at[0] if at[1] in KUSTOMIZATION_NAMES else file for file, at in zip(files, split, strict=True)]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    named = ", ".join(f"`{name}`" for name in names[:3])
    related = Related(Location(files[0]), f"in the build of {named}{more}")
    return finding._replace(related=(*finding.related, related))


_RENDERED_SCOPE = f"jobs {keep_object.__name__}"

_SHARE = 500
"""How many files are processed before their results are kept, if a newer edit may end the run."""


def complete_results(run: RunState, entries: Sequence[FileEntry]) -> list[FileParts]:
    """Return the results of files: those that the store has, and those of files that are processed."""
    if run.store is None:
        return map_files(run, run.runners, entries, partial(process_files, run, run.runners))
    held = hold_contents(entries)
    describe = run.checks.describe_membership if run.checks is not None else None
    inputs = run.inputs = ResultInputs(run.project, run.store, run.runners, held, run.entries, describe)
    environments: list[str | None] = [None, *(runner.name for runner in run.runners)]
    keys = [
        [make_key(scope, env, entry) for env in environments]
        for entry, scope in zip(held, map(run.name_scope, held), strict=True)
    ]
    queries = list(map(run.choose_query, held))
    found: list[list[Row | None]] = [
        [run.store.find(query, key, inputs.holds) for key in several]
        for query, several in zip(queries, keys, strict=True)
    ]
    if run.summarize is not None:
        # Files of which enough is known need not be rendered.
        for number, entry in enumerate(held):
            parts = run.summarize(entry) if None in found[number] else None
            found[number] = [Row((), part) for part in parts] if parts is not None else found[number]
    lacking: dict[tuple[int, ...], list[int]] = {}
    for index, rows in ((index, rows) for index, rows in enumerate(found) if None in rows):
        numbers = tuple(number for number, row in enumerate(rows[1:]) if row is None)
        lacking.setdefault(numbers, []).append(index)
    size = _SHARE if run.is_cancellable else max(len(entries), 1)
    for numbers, indices in lacking.items():
        wanted = [run.runners[number] for number in numbers]
        answer = partial(_answer, run, wanted)
        for start in range(0, len(indices), size):
            share = indices[start : start + size]
            answers = map_files(run, wanted, [held[index] for index in share], answer)
            for index, new in zip(share, answers, strict=True):
                for number, (row, left) in zip((0, *(1 + each for each in numbers)), new, strict=True):
                    found[index][number] = run.store.add_row(queries[index], keys[index][number], row)
                    if left is not None:
                        key = make_key(_RENDERED_SCOPE, environments[number], held[index])
                        run.store.add_row(RENDERED, key, left)
    complete = [tuple([row for row in rows if row is not None]) for rows in found]
    every = [Answer(tuple([row.value for row in rows]), rows) for rows in complete]
    run.answers = dict(zip(map(name_entry, held), every, strict=True))
    return [answer.parts for answer in every]


def _answer(
    run: RunState, runners: Sequence[EnvironmentRunner], share: Sequence[FileEntry]
) -> list[list[tuple[Row, Row | None]]]:
    """Process files, and return the rows of each: of the file by itself, and in each environment.

    Beside each is that of a render, if the run leaves the objects. Answers that are kept are encoded here, where
    several processes work, and decoded where they are needed.
    """
    assert run.inputs is not None
    environments: list[str | None] = [None, *(runner.name for runner in runners)]
    found = []
    for entry, parts in zip(share, process_files(run, runners, share), strict=True):
        rows: list[tuple[Row, Row | None]] = []
        holds_again = not _is_cut(parts)
        for env, part in zip(environments, parts, strict=True):
            reads = run.inputs.list_reads(entry, env, part, holds_again=holds_again)
            row, left = Row(reads, part._replace(objects=[])), None
            if run.store is not None and run.store.is_kept:
                row = row.pack(run.choose_query(entry))
            # What is wrong with a file by itself, or prevents a render, a render reports again.
            if run.leaves_objects and not part.unrendered and not (env is None and part.findings):
                made = [made._replace(object=data) for made, data in zip(part.made, part.objects, strict=True)]
                bare = part._replace(made=made, findings=[], rows=[], comments=[], dependent=[], objects=[])
                left = Row(run.inputs.list_reads(entry, env, bare, holds_again=holds_again), bare)
            rows.append((row, left))
        found.append(rows)
    return found


def _is_cut(parts: FileParts) -> bool:
    """Return True if some of a file was left out because the run had no steps left, so that its results are of it."""
    if not RUN.is_used_up:
        return False
    stopped = any(finding.rule == TOO_MANY_STEPS for part in parts for finding in part.findings)
    return stopped or not all(noted.excess.is_whole for part in parts for noted in part.excesses)


class Run(RunState):
    """One run over a repository or over some files: its options, and its findings once it is iterated."""

    def __iter__(self) -> Iterator[Rendered]:
        return _process(self)


def _process(run: RunState) -> Iterator[Rendered]:
    entries = run.entries if run.entries is not None else run.jobs
    if entries is None:
        entries = list(layout.find_jobs(run.project.root))
    prepare_run(run)
    runners = run.runners
    results = complete_results(run, entries)
    environments = [runner.name for runner in runners]
    for entry, several in zip(entries, results, strict=True):
        run.not_rendered += find_in_file(entry, environments, several)
    parts = list(map(join_parts, results))
    is_dated = any(runner.expander.environment.is_dated for runner in runners)
    run.dated = is_dated or any(part.used.days for part in parts)
    seen = run.seen
    seen.clear()
    shared: list[Finding] = []
    built: list[tuple[str, Sequence[Finding]]] = []
    for entry, part in zip(entries, parts, strict=True):
        _note_result(run, entry, part)
        if entry.build is not None:
            built.append((entry.build.named_by, entry.build.select(part.findings)))
        for made in part.made:
            # Standalone files may be meant for different clusters, so they may repeat an object.
            known = len(shared)
            is_first = run.entries is not None or note_duplicate(made, seen, entries, shared)
            run.not_rendered += (
                LeftOut(entry.path, made.env, (made.identity.name,), (each,)) for each in shared[known:]
            )
            if is_first:
                yield made
    run.findings += join_builds(built)
    total = len(entries) * len(runners)
    progress = partial(run.progress, total, total)
    jobs = AllJobs(run, runners, entries, parts, run.tracer, run.entries is not None, progress)
    shared += _find_across(run, jobs)
    run.findings += shared
    if run.checks is not None:
        run.checks.finish(run, jobs, shared)
    # A set would change the order of findings that differ only in their object from run to run.
    run.findings[:] = sort_findings(dict.fromkeys(run.findings))


def _find_across(run: RunState, jobs: AllJobs) -> list[Finding]:
    """Return what only all jobs together show: an answer that reads the results of all files, and the layers."""

    def find() -> list[Finding]:
        return redact_shared(run.project, find_across_jobs(jobs))

    if run.store is None or run.checks is None or run.inputs is None:
        return find()
    versions = [(name, [row.reads for row in answer.rows]) for name, answer in run.answers.items()]
    rules = sorted(run.same.rules) if run.same.files else None
    read = (versions, run.environments, run.project.layers, run.inputs.digest_shared(), jobs.is_standalone, rules)
    return run.store.remember(run.checks.across, run.scope, digest_value(read), find)


def _note_result(run: RunState, entry: FileEntry, part: FileResult) -> None:
    """Add the result of a file to a run."""
    run.names |= part.names
    run.comments += part.comments
    run.files += (entry.finding is None and entry.build is None) - len(part.skipped)
    run.findings += part.findings if entry.build is None else ()
    run.excesses += part.excesses
    if part.lines:
        run.lines[entry.path] = part.lines
    for finding in part.findings:
        if finding.location.file != entry.path:
            run.owners.setdefault(name_finding(finding), set()).add(entry.path)
    hiding = [finding for finding in part.findings if finding.rule in HIDING_RULES]
    if part.unchecked or part.unrendered or not all(finding.rule in NO_SCHEMA_RULES for finding in hiding):
        run.unchecked.add(entry.path)
    run.without_schema.update((entry.path, finding.object) for finding in hiding)
    if any(map(run.wanted, part.names)):
        run.wanted_files.add(entry.path)
    run.left_out.update((entry.path, skipped) for skipped in part.skipped)


_FORMAT = b"jobgen.dev/v"
"""What the version of a job spec begins with."""


def note_duplicate(
    made: Rendered, seen: dict[tuple[str, ...], Rendered], entries: Sequence[FileEntry], findings: list[Finding]
) -> bool:
    """Report an object that an earlier job of the environment renders too. Return whether it is the first.

    Jobs may share a runtime, which each of them renders.
    """
    first = seen.setdefault(name_object(made.env, made.identity), made)
    if first is made:
        return True
    if first.companion and made.companion and made.identity.kind in RUNTIME_KINDS:
        return False
    # An environment may set the namespace; without it, the finding is the same in all environments.
    shown = made.identity._replace(namespace="") if made.env else made.identity
    message, note = f"`{shown}` is rendered by two jobs; rename one of them", "first rendered here"
    if (manifest := _find_only_manifest(first, made, entries)) is not None:
        message += f", or delete `{manifest.location.file}` if it is the output of `jobgen render`"
    if _is_written_output(first, made, entries):
        made, first = first, made
    if _is_written_output(made, first, entries):
        source, written = first.location.file, made.location.file
        message = f"`{shown}` in `{written}` was rendered from `{source}`, which renders it still"
        message, note = f"{message}; delete `{written}`, and change `{source}` or an overlay instead", "rendered here"
    problem = Problem("duplicate-identity", message, category="fleet")
    found = locate(problem, made.location.file, _name_location(made, entries))
    related = (Related(_name_location(first, entries), note),)
    findings.append(found._replace(related=related, object=made.identity, env=made.env))
    return False


def _find_only_manifest(first: Rendered, made: Rendered, entries: Sequence[FileEntry]) -> Rendered | None:
    """Return which of two objects is in a file without job specs, if the other one is in a file with them."""
    without = [each for each in (first, made) if _FORMAT not in _read_source(each, entries).content]
    return without[0] if len(without) == 1 else None


def _is_written_output(made: Rendered, source: Rendered, entries: Sequence[FileEntry]) -> bool:
    """Return True if the file of an object says that it was rendered from the job of another file."""
    if made.location.file == source.location.file:
        return False
    # Imported late: most objects are rendered by one job.
    from jobgen.rendering.runs import SOURCE_ANNOTATION

    content = _read_source(made, entries).content
    return f"{SOURCE_ANNOTATION}: {source.location.file}\n".encode() in content


def _read_source(made: Rendered, entries: Sequence[FileEntry]) -> File:
    return next(read_file(entry) for entry in entries if entry.path == made.location.file)


def _name_location(made: Rendered, entries: Sequence[FileEntry]) -> Location:
    """The location of the name of an object's job, which is to be changed. Its file is read again with locations."""
    file = _read_source(made, entries)
    return Job(JobDocument({}, file.path), file, made.position, made.item, made.location).name()
