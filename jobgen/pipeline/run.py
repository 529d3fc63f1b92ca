"""Run all jobs of a repository in all environments: render, check, and report findings.

Jobs are processed without locations, in several processes if there are many. A job with a problem is processed again
with locations.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Iterable, Iterator, Sequence

from jobgen.check.consequences import is_failed_evaluation
from jobgen.model.finding import Finding, Related, Severity
from jobgen.pipeline.across_jobs import AllJobs, find_across_jobs
from jobgen.pipeline.built_findings import join_builds
from jobgen.pipeline.environment import EnvironmentRunner, Rendered
from jobgen.pipeline.file_result import FileResult, join_parts
from jobgen.pipeline.memory import Prepared
from jobgen.pipeline.parallel import parallel_map
from jobgen.pipeline.prepare_run import prepare_run
from jobgen.pipeline.process_files import discard_object, process_files
from jobgen.pipeline.redact_results import redact_shared
from jobgen.pipeline.reuse_results import process_entries, reads_unnamed_state
from jobgen.pipeline.run_state import RunState
from jobgen.pipeline.severities import apply_severities, depends_on_date
from jobgen.pipeline.trace import Tracer
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
    runners, tracer = _prepare(run, entries)
    entries, parts = _process_all(run, runners, tracer, entries)
    own = None if run.shard is None else {entry.path for entry, _ in run.results}
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
    jobs = AllJobs(run.project, runners, entries, parts, tracer, run.memory, run.checked, is_standalone, progress)
    if compares_all:
        shared += redact_shared(run.project, find_across_jobs(jobs, run.policy_files))
        run.findings += shared
    if run.checked:
        _finish_checks(run, jobs, shared)
    # Findings that differ only in their object keep the order of the files: a set would change it from run to run.
    run.findings[:] = sorted(
        dict.fromkeys(run.findings), key=lambda found: (found.location, found.rule, found.message, found.env)
    )


def _note_duplicate(
    made: Rendered, seen: dict[tuple[str, ...], Rendered], entries: Sequence[FileEntry], shared: list[Finding]
) -> bool:
    # Imported late: files that are named may repeat an object.
    from jobgen.pipeline.cross_job import note_duplicate

    return note_duplicate(made, seen, entries, shared)


def _finish_checks(run: RunState, jobs: AllJobs, shared: Sequence[Finding]) -> None:
    """Give findings the severities that they have in this repository, and note what they depend on."""
    run.rendered = run.complete and not any("" in part.unchecked for part in jobs.parts) and not _has_errors(shared)
    if any(finding.rule in NO_SCHEMA_RULES for finding in run.findings):
        run.findings[:] = _name_definitions(run, jobs)
    if run.project.findings:
        from jobgen.pipeline.broken_kinds import name_broken_kinds

        run.findings[:] = name_broken_kinds(run.findings, run.project)
    _name_failed_policies(run)
    is_part = run.shard is not None and run.shard.is_part
    covers_all = run.complete and not is_part and set(run.environments) >= set(run.project.environments())
    run.findings[:], run.accepted = apply_severities(jobs, run.findings, covers_all=covers_all)
    is_lasting = not reads_unnamed_state(run, jobs.runners) and not depends_on_date(run.project)
    run.lasting = run.lasting and is_lasting


def _name_definitions(run: RunState, jobs: AllJobs) -> list[Finding]:
    """Return the findings, with what the files of the run say about kinds without a schema."""
    # Imported late: most objects have a schema.
    if run.entries is None:
        from jobgen.pipeline.own_definitions import suggest_own_definitions

        return suggest_own_definitions(run.findings, jobs.list_made(), jobs.entries)
    from jobgen.pipeline.standalone_objects import report_broken_definitions

    return report_broken_definitions(run.findings)


def _process_all(
    run: RunState, runners: list[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> tuple[Sequence[FileEntry], list[FileResult]]:
    """Process the files of a run; return those that are compared with each other, and their results."""
    if run.shard:
        return _process_shard(run, runners, tracer, entries)
    process = functools.partial(process_entries, run, tracer)
    if run.memory:
        return entries, run.memory.complete(entries, process)
    return entries, list(map(join_parts, process(runners, entries)))


def _process_shard(
    run: RunState, runners: Sequence[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> tuple[Sequence[FileEntry], list[FileResult]]:
    """Process the files of a shard; return all files and their results that are to be compared with each other.

    The first shard compares all files, so it renders those of the others, too. The others report nothing about layers,
    and nothing about several files.
    """
    assert run.shard is not None
    own = run.shard.select(((entry.path, _read_size(entry)) for entry in entries), _RENDER_SHARE)
    mine = [entry for entry in entries if entry.path in own]
    run.results = list(zip(mine, process_entries(run, tracer, runners, mine), strict=True))
    run.unchecked.update(entry.path for entry in entries if entry.path not in own)
    if not run.shard.is_first:
        run.findings.clear()
        return mine, [join_parts(parts) for _, parts in run.results]
    outline = copy.copy(run)
    outline.is_outline, outline.finish = True, discard_object
    others = [entry for entry in entries if entry.path not in own]
    rest = parallel_map(others, lambda share: process_files(outline, runners, tracer, share, len(others)))
    known = {entry.path: parts for entry, parts in (*run.results, *zip(others, rest, strict=True))}
    return entries, [join_parts(known[entry.path]) for entry in entries]


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


def _has_errors(findings: Iterable[Finding]) -> bool:
    """Whether there are errors in findings about several jobs, besides those of rules about objects."""
    from jobgen.check.rules import all_rules

    rules = {rule.name for rule in all_rules()}
    return any(finding.severity is Severity.ERROR and finding.rule not in rules for finding in findings)


def _prepare(run: RunState, entries: Sequence[FileEntry]) -> tuple[list[EnvironmentRunner], Tracer]:
    """Prepare the environments, or take them from the last run."""
    make = functools.partial(prepare_run, run)
    prepared = run.memory.prepare(entries, run.environments, make) if run.memory else make()
    run.findings[:] = prepared.findings
    run.environments = prepared.environments
    run.policies, run.policy_files = prepared.policies, prepared.policy_files
    run.membership, run.complete = prepared.membership, prepared.complete
    run.unchecked_rules = prepared.unchecked_rules
    return prepared.runners, prepared.tracer


def process_file(run: RunState, prepared: Prepared, entry: FileEntry) -> FileResult:
    """Process one file with environments that a run has prepared."""
    return join_parts(process_files(run, prepared.runners, prepared.tracer, [entry], 1)[0])


def _name_failed_policies(run: RunState) -> None:
    """Give each finding about a policy that could not be evaluated the location of the policy."""
    failed = [finding for finding in run.findings if is_failed_evaluation(finding)]
    if not failed:
        return
    from jobgen.pipeline.load_policies import locate_policies

    places = locate_policies(layout.read_own_policies(run.project.root))
    for number, finding in enumerate(run.findings):
        if is_failed_evaluation(finding) and finding.rule in places:
            related = (*finding.related, Related(places[finding.rule], f"policy `{finding.rule}`"))
            run.findings[number] = finding._replace(related=related)
