"""Run all jobs of a repository in all environments: render, check if the run has checks, and report findings.

Jobs are processed without locations, in several processes if there are many. A job with a problem is processed again
with locations. Results that the store has are used again.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Iterator, Sequence

from jobgen.model.finding import Finding
from jobgen.render.across_jobs import find_across_jobs
from jobgen.render.built_findings import join_builds
from jobgen.render.environment import EnvironmentRunner, Rendered
from jobgen.render.file_result import FileParts, FileResult, join_parts
from jobgen.render.prepare_run import prepare_run
from jobgen.render.process_files import map_files, process_files
from jobgen.render.redact_results import redact_shared
from jobgen.render.result_inputs import digest_value
from jobgen.render.results import complete_results
from jobgen.render.run_state import AllJobs, RunState, discard_object
from jobgen.render.trace import Tracer
from jobgen.repo import layout
from jobgen.repo.files import FileEntry
from jobgen.report.coverage import HIDING_RULES, NO_SCHEMA_RULES

# The part of the work on a file that is left if its objects are only rendered and compared with those of other files.
_RENDER_SHARE = 0.3


class Run(RunState):
    """One run over a repository or over some files: its options, and its findings once it is iterated."""

    def __iter__(self) -> Iterator[Rendered]:
        return _process(self)


def _process(run: RunState) -> Iterator[Rendered]:
    entries = run.entries if run.entries is not None else run.jobs
    if entries is None:
        entries = list(layout.find_jobs(run.project.root))
    prepared = prepare_run(run)
    runners, tracer = prepared.runners, prepared.tracer
    entries, parts = _process_all(run, runners, tracer, entries)
    own = None if run.shard is None else {entry.path for entry in run.own}
    is_dated = any(runner.expander.environment.is_dated for runner in runners)
    run.dated = is_dated or any(part.used.days for part in parts)
    seen: dict[tuple[str, ...], Rendered] = {}
    shared: list[Finding] = []
    built: list[tuple[str, Sequence[Finding]]] = []
    for entry, part in zip(entries, parts, strict=True):
        is_own = own is None or entry.path in own
        _note_result(run, entry, part, is_own=is_own)
        if entry.build is not None and is_own:
            wanted = [finding for finding in part.findings if entry.build.reports(finding.location.file)]
            built.append((entry.build.file, wanted))
        for made in part.made:
            # Standalone files may be meant for different clusters, so they may repeat an object.
            is_new = run.entries is not None or _note_duplicate(made, seen, entries, shared)
            if is_new and is_own:
                yield made
            elif is_new:
                run.others.append(made)
    run.findings += join_builds(built)
    total = len(entries) * len(runners)
    progress = functools.partial(run.progress, total, total)
    compares_all = run.shard is None or run.shard.is_first
    is_standalone = run.entries is not None or not compares_all
    jobs = AllJobs(run, runners, entries, parts, tracer, is_standalone, progress)
    if compares_all:
        shared += _find_across(run, jobs)
        run.findings += shared
    if run.checks is not None:
        run.checks.finish(run, jobs, shared)
    # Findings that differ only in their object keep the order of the files: a set would change it from run to run.
    run.findings[:] = sorted(
        dict.fromkeys(run.findings), key=lambda found: (found.location, found.rule, found.message, found.env)
    )


def _find_across(run: RunState, jobs: AllJobs) -> list[Finding]:
    """Return what only all jobs together show: an answer that reads the results of all files, and the layers."""

    def find() -> list[Finding]:
        return redact_shared(run.project, find_across_jobs(jobs))

    if run.store is None or run.checks is None or run.inputs is None or run.shard is not None:
        # A shard keeps the results of its own files alone.
        return find()
    versions = [(name, answer.versions) for name, answer in run.answers.items()]
    read = (versions, run.environments, run.project.layers, run.inputs.digest_shared(), jobs.is_standalone)
    return run.store.remember(run.checks.across, run.scope, digest_value(read), find)


def _note_duplicate(
    made: Rendered, seen: dict[tuple[str, ...], Rendered], entries: Sequence[FileEntry], shared: list[Finding]
) -> bool:
    # Imported late: files that are named may repeat an object.
    from jobgen.render.duplicate_objects import note_duplicate

    return note_duplicate(made, seen, entries, shared)


def _process_all(
    run: RunState, runners: list[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> tuple[Sequence[FileEntry], list[FileResult]]:
    """Process the files of a run; return those that are compared with each other, and their results.

    The first shard compares all files, so it renders those of the others, too. The others report nothing about layers,
    and nothing about several files.
    """
    if run.shard is None:
        return entries, list(map(join_parts, _complete(run, runners, tracer, entries)))
    own = run.shard.select(((entry.path, _read_size(entry)) for entry in entries), _RENDER_SHARE)
    run.own = [entry for entry in entries if entry.path in own]
    mine = _complete(run, runners, tracer, run.own)
    run.unchecked.update(entry.path for entry in entries if entry.path not in own)
    if not run.shard.is_first:
        run.findings.clear()
        return run.own, list(map(join_parts, mine))
    outline = copy.copy(run)
    outline.is_outline, outline.finish, outline.store = True, discard_object, None
    others = [entry for entry in entries if entry.path not in own]
    rest = _complete(outline, runners, tracer, others)
    known = {entry.path: parts for entry, parts in zip((*run.own, *others), (*mine, *rest), strict=True)}
    return entries, [join_parts(known[entry.path]) for entry in entries]


def _complete(
    run: RunState, runners: Sequence[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> list[FileParts]:
    """Return the results of files."""
    if run.store is None:
        return map_files(run, runners, entries, functools.partial(process_files, run, runners, tracer))
    return complete_results(run, runners, tracer, entries)


def _read_size(entry: FileEntry) -> int:
    """The size of a file; 0 if it cannot be read."""
    if entry.content is not None:
        return len(entry.content)
    try:
        return os.stat(entry.full).st_size if entry.finding is None else 0
    except OSError:
        return 0


def _note_result(run: RunState, entry: FileEntry, part: FileResult, *, is_own: bool) -> None:
    """Add the result of a file to a run; of a file of another shard, only what concerns other files."""
    run.names |= part.names
    run.comments += part.comments
    if not is_own:
        return
    run.files += (entry.finding is None and entry.build is None) - len(part.skipped)
    run.findings += part.findings if entry.build is None else ()
    hiding = [finding for finding in part.findings if finding.rule in HIDING_RULES]
    if part.unchecked or not all(finding.rule in NO_SCHEMA_RULES for finding in hiding):
        run.unchecked.add(entry.path)
    run.without_schema.update((entry.path, finding.object) for finding in hiding)
    if any(map(run.wanted, part.names)):
        run.wanted_files.add(entry.path)
    run.left_out.update((entry.path, skipped) for skipped in part.skipped)
