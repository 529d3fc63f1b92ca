"""Run all jobs of a repository in all environments: render, check, and report findings.

Jobs are processed without locations, in several processes if there are many. A job with a problem is processed again
with locations.
"""

from __future__ import annotations

import copy
import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobgen import cache
from jobgen.check.consequences import is_failed_evaluation
from jobgen.model.data import value_of
from jobgen.model.finding import Finding, Identity, Problem, Related, Severity
from jobgen.pipeline.across_jobs import AllJobs, find_across_jobs
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.cross_job import note_duplicate
from jobgen.pipeline.environment import (
    EnvironmentRunner,
    PolicySource,
    Rendered,
    overlay_errors,
    valid_environments,
)
from jobgen.pipeline.file_result import FileParts, FileResult, join_parts, new_result
from jobgen.pipeline.locate import locate
from jobgen.pipeline.memory import Prepared, RunMemory
from jobgen.pipeline.own_definitions import suggest_own_definitions
from jobgen.pipeline.ownership import find_unowned
from jobgen.pipeline.parallel import parallel_map
from jobgen.pipeline.progress import notify
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.redact_results import redact_results, redact_shared
from jobgen.pipeline.result_cache import FileSnapshot, Record, ResultCache, digest_files, open_results
from jobgen.pipeline.selectors import Membership
from jobgen.pipeline.severities import Accepted, apply_severities, depends_on_date
from jobgen.pipeline.trace import Job, JobRef, Tracer
from jobgen.repo import layout
from jobgen.repo.commit import CommitPath
from jobgen.repo.files import File, FileEntry
from jobgen.repo.lock import digest_data
from jobgen.report.coverage import HIDING_RULES, NO_SCHEMA_RULES
from jobgen.report.suppress import Suppression

if TYPE_CHECKING:
    from jobgen.model.shard import Shard
    from jobgen.pipeline.load_policies import PolicyFiles

# Jobs per batch. Each step runs for a whole batch, which keeps its code and data in the CPU caches.
_BATCH = 50

# The part of the work on a file that is left if its objects are only rendered and compared with those of other files.
_RENDER_SHARE = 0.3


def _keep_object(made: Any) -> Any:
    return made


def discard_object(_: Any) -> None:
    """Drop an object that has been checked, to save memory."""


class Run:
    """One run over a repository or over some files: its options, and its findings once it is iterated."""

    rendered = False
    """Whether nothing prevents a render: only checks of objects and of environments reported errors."""
    is_outline = False
    """Whether objects are rendered to compare them with others, and not checked by themselves."""

    def __init__(
        self,
        project: ProjectConfig,
        environments: Sequence[str],
        wanted: Callable[[str], bool] = lambda _: True,
        finish: Callable[[Any], Any] = _keep_object,
        progress: Callable[[int, int], None] = lambda _, __: None,
        *,
        checked: bool = False,
        deployable: bool = False,
        digested: bool = False,
        layers: bytes = b"",
        jobs: Sequence[FileEntry] | None = None,
        entries: Sequence[FileEntry] | None = None,
        memory: RunMemory | None = None,
        shard: Shard | None = None,
        known: Mapping[str, FileParts] | None = None,
        summarized: frozenset[str] = frozenset(),
    ) -> None:
        self.project = project
        self.environments = environments
        self.wanted = wanted
        self.finish = finish
        self.progress = progress
        self.checked = checked
        self.deployable, self.digested = deployable, digested
        """Whether an object that no operator accepts, because a container has no image, is an error; and whether each
        object needs the digest of its job."""
        self.layers = layers
        """The digest of all inputs besides jobs, taken before they were read; empty if results are not cached."""
        self.jobs, self.entries = jobs, entries
        self.memory = memory
        """The results of the last run in this process, if they are kept."""
        self.shard = shard
        """The share of the files whose results are returned; None for all. The first shard also compares all files."""
        self.known = known
        """The results of files that shards have processed, by path."""
        self.results: list[tuple[FileEntry, FileParts]] = []
        """The results of the files of the shard."""
        self.others: list[Rendered] = []
        """Objects of the other shards, without their data, if this is the first shard."""
        # Files whose objects are not needed if their summaries are in the cache.
        self.summarized = summarized
        self.findings: list[Finding] = []
        self.names: set[str] = set()
        self.wanted_files: set[str] = set()
        """Files with a job that is wanted."""
        self.comments: list[Suppression] = []
        self.policies: tuple[str, ...] = ()
        self.policy_files: PolicyFiles | None = None
        """The policies, unless the cache says that nothing is wrong with them."""
        self.files = 0
        """How many files were read."""
        self.skipped: Counter[str] = Counter()
        """How many files were found in a folder and not read, by reason."""
        self.membership: Membership | None = None
        """Decides which jobs belong to no environment; None if an overlay has errors."""
        self.complete = False
        """Whether settings, overlays, kinds and policies are valid, so that every environment was checked."""
        self.unchecked: set[str] = set()
        """Files in which an object was not checked, or not by every check."""
        self.without_schema: set[tuple[str, Identity | None]] = set()
        """Files with objects that were not compared with a schema; all other checks ran."""
        self.unchecked_rules: frozenset[str] = frozenset()
        """Rules and policies that could not be evaluated."""
        self.accepted: Sequence[Accepted] = ()
        """Findings that exceptions of the settings accept."""
        self.lasting = False
        """Whether the findings depend on files alone, and not on the date."""
        self.dated = False
        """Whether the objects depend on the date."""

    def __iter__(self) -> Iterator[Rendered]:
        return _process(self)

    @property
    def failed(self) -> bool:
        """Whether there are errors."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def _process(run: Run) -> Iterator[Rendered]:
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
    for entry, part in zip(entries, parts, strict=True):
        is_own = own is None or entry.path in own
        _note_result(run, entry, part, is_own=is_own)
        for made in part.made:
            # Standalone files may be meant for different clusters, so they may repeat an object.
            is_new = run.entries is not None or note_duplicate(made, seen, entries, shared)
            if is_new and is_own:
                yield made
            elif is_new:
                run.others.append(made)
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


def _finish_checks(run: Run, jobs: AllJobs, shared: Sequence[Finding]) -> None:
    """Give findings the severities that they have in this repository, and note what they depend on."""
    run.rendered = run.complete and not any("" in part.unchecked for part in jobs.parts) and not _has_errors(shared)
    run.findings[:] = suggest_own_definitions(run.findings, jobs.list_made(), jobs.entries)
    _name_failed_policies(run)
    is_part = run.shard is not None and run.shard.is_part
    covers_all = run.complete and not is_part and set(run.environments) >= set(run.project.environments())
    run.findings[:], run.accepted = apply_severities(jobs, run.findings, covers_all=covers_all)
    is_lasting = not _reads_unnamed_state(run, jobs.runners) and not depends_on_date(run.project)
    run.lasting = run.lasting and is_lasting


def _process_all(
    run: Run, runners: list[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> tuple[Sequence[FileEntry], list[FileResult]]:
    """Process the files of a run; return those that are compared with each other, and their results."""
    if run.shard:
        return _process_shard(run, runners, tracer, entries)
    process = functools.partial(_process_entries, run, tracer)
    if run.memory:
        return entries, run.memory.complete(entries, process)
    return entries, list(map(join_parts, process(runners, entries)))


def _process_shard(
    run: Run, runners: Sequence[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> tuple[Sequence[FileEntry], list[FileResult]]:
    """Process the files of a shard; return all files and their results that are to be compared with each other.

    The first shard compares all files, so it renders those of the others, too. The others report nothing about layers,
    and nothing about several files.
    """
    assert run.shard is not None
    own = run.shard.select(((entry.path, _read_size(entry)) for entry in entries), _RENDER_SHARE)
    mine = [entry for entry in entries if entry.path in own]
    run.results = list(zip(mine, _process_entries(run, tracer, runners, mine), strict=True))
    run.unchecked.update(entry.path for entry in entries if entry.path not in own)
    if not run.shard.is_first:
        run.findings.clear()
        return mine, [join_parts(parts) for _, parts in run.results]
    outline = copy.copy(run)
    outline.is_outline, outline.finish = True, discard_object
    others = [entry for entry in entries if entry.path not in own]
    rest = parallel_map(others, lambda share: _process_files(outline, runners, tracer, share, len(others)))
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


def _note_result(run: Run, entry: FileEntry, part: FileResult, *, is_own: bool) -> None:
    """Add the result of a file to a run; of a file of another shard, only what concerns other files."""
    run.names |= part.names
    run.comments += part.comments
    if not is_own:
        return
    run.files += (entry.finding is None) - len(part.skipped)
    run.findings += part.findings
    hiding = [finding for finding in part.findings if finding.rule in HIDING_RULES]
    if part.unchecked or not all(finding.rule in NO_SCHEMA_RULES for finding in hiding):
        run.unchecked.add(entry.path)
    run.without_schema.update((entry.path, finding.object) for finding in hiding)
    if any(map(run.wanted, part.names)):
        run.wanted_files.add(entry.path)
    run.skipped.update(part.skipped)


def _has_errors(findings: Iterable[Finding]) -> bool:
    """Whether there are errors in findings about several jobs, besides those of rules about objects."""
    from jobgen.check.rules import all_rules

    rules = {rule.name for rule in all_rules()}
    return any(finding.severity is Severity.ERROR and finding.rule not in rules for finding in findings)


def _reads_unnamed_state(run: Run, runners: Sequence[EnvironmentRunner]) -> bool:
    """Whether the key of the cache does not depend on exported state, because the text of no layer names its folder."""
    folders = (runner.expander.environment.cluster.state for runner in runners)
    return bool(layout.find_unnamed_state(run.project.root, folders))


def _prepare(run: Run, entries: Sequence[FileEntry]) -> tuple[list[EnvironmentRunner], Tracer]:
    """Prepare the environments, or take them from the last run."""
    make = functools.partial(prepare_run, run)
    prepared = run.memory.prepare(entries, run.environments, make) if run.memory else make()
    run.findings[:] = prepared.findings
    run.environments = prepared.environments
    run.policies, run.policy_files = prepared.policies, prepared.policy_files
    run.membership, run.complete = prepared.membership, prepared.complete
    run.unchecked_rules = prepared.unchecked_rules
    return prepared.runners, prepared.tracer


def prepare_run(run: Run) -> Prepared:
    """Prepare the environments of a run."""
    tracer = run.memory.make_tracer(run.project) if run.memory else Tracer(run.project)
    runners = _prepare_environments(run, tracer)
    found = tuple(redact_shared(run.project, run.findings)) if run.findings else ()
    layers = (run.policies, run.policy_files, run.membership, run.complete, run.unchecked_rules)
    return Prepared(runners, tracer, found, run.environments, *layers)


def _process_entries(
    run: Run, tracer: Tracer, runners: Sequence[EnvironmentRunner], entries: Sequence[FileEntry]
) -> list[FileParts]:
    if run.known is not None:
        unknown = [entry for entry in entries if entry.path not in run.known]
        done = parallel_map(unknown, lambda share: _process_files(run, runners, tracer, share, len(unknown)))
        found = {**run.known, **{entry.path: parts for entry, parts in zip(unknown, done, strict=True)}}
        return [found[entry.path] for entry in entries]
    if run.summarized and run.memory and _can_reuse(run, runners):
        return _process_unsummarized(run, runners, tracer, entries)
    can_cache = _can_cache(run, runners)
    # What is in memory is newer than what is on disk.
    if can_cache and (run.memory is None or run.memory.is_empty):
        return _process_changed(run, runners, tracer, entries)
    if can_cache and run.memory and run.memory.home and isinstance(run.project.root, CommitPath):
        return _process_committed(run, runners, tracer, entries)
    return parallel_map(entries, lambda share: _process_files(run, runners, tracer, share, len(entries)))


def process_file(run: Run, prepared: Prepared, entry: FileEntry) -> FileResult:
    """Process one file with environments that a run has prepared."""
    return join_parts(_process_files(run, prepared.runners, prepared.tracer, [entry], 1)[0])


def _prepare_environments(run: Run, tracer: Tracer) -> list[EnvironmentRunner]:
    """The environments that can be rendered; errors in layers and policies are added to the findings."""
    run.findings += overlay_errors(run.project, tracer, None if run.checked else run.environments)
    policies = _load_policies(run) if run.checked else None
    names: dict[int, str] = {}
    runners = [EnvironmentRunner(run.project, name, policies, names, run.entries) for name in run.environments]
    run.findings += (finding for runner in runners for finding in runner.overlay_findings(tracer))
    valid = valid_environments(run.findings, runners, run.project.overlays)
    run.complete = len(valid) == len(runners) and not run.failed
    if any(finding.rule in HIDING_RULES for finding in run.findings):
        run.unchecked_rules = frozenset(run.policies)
    if run.checked and run.entries is None and len(valid) == len(runners):
        run.membership = Membership(run.project, valid)
    if valid:
        run.environments = [runner.name for runner in valid]
    return valid


def _load_policies(run: Run) -> PolicySource:
    """The policies of the repository; their errors are added to the findings."""
    files = tuple(layout.read_shipped_policies(run.project.root)), tuple(layout.read_own_policies(run.project.root))
    resources = tuple(
        (*str(value_of(kind.api_version)).split("/", 1), kind.plural) for kind in run.project.kinds if kind.plural
    )
    key = cache.make_key("policies", *map(digest_files, files), repr(resources))
    known = cache.get(key)
    if known is not None:
        # They are valid, so they are compiled only if an object has to be checked.
        run.policies = tuple(known.decode().split("\n"))
        return lambda: _compile_policies(*files).policies
    found = _compile_policies(*files, resources)
    run.findings += (*found.findings, *found.unused)
    run.policies = tuple(found.files)
    run.policy_files = found
    if not (found.findings or found.unused or found.unmatched):
        cache.put(key, "\n".join(run.policies).encode())
    return lambda: found.policies


def _compile_policies(shipped: tuple[File, ...], own: tuple[File, ...], resources: tuple[Any, ...] = ()) -> PolicyFiles:
    # Imported late: a render, and a lint of cached results, do not need CEL.
    from jobgen.pipeline.load_policies import compile_policy_files

    return compile_policy_files(shipped, own, resources)


def _name_failed_policies(run: Run) -> None:
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


def _can_cache(run: Run, runners: Sequence[EnvironmentRunner]) -> bool:
    """Whether results of this run can be cached: a render needs the objects, and a date changes results."""
    return run.checked and run.finish is discard_object and _can_reuse(run, runners)


def _can_reuse(run: Run, runners: Sequence[EnvironmentRunner]) -> bool:
    """Whether results of files depend on their content and on the layers alone, and there is a cache."""
    is_dated = any(runner.expander.environment.is_dated for runner in runners)
    has_key = bool(runners) and bool(run.layers) and cache.is_enabled()
    return has_key and not is_dated and not _reads_unnamed_state(run, runners)


def _process_changed(
    run: Run, runners: Sequence[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> list[FileParts]:
    """Process the files that changed since the last lint; take the results of the others from the cache."""
    if run.entries is None:
        results = open_results(run.project.root, run.environments, run.layers)
    else:
        results = ResultCache(str(run.project.root), "files", ",".join(run.environments), run.layers)
    if run.memory:
        run.memory.note_linted(run.layers, results)
    # The files that a runner reads the catalog of devices from.
    sources = run.entries if run.entries is not None else layout.find_jobs(run.project.root)
    device_digest = functools.cache(lambda: results.digest_device_files(sources))
    known = [results.find(entry, device_digest) for entry in entries]
    numbers = [number for number, parts in enumerate(known) if parts is None]

    changed = [entries[number] for number in numbers]
    process = functools.partial(_process_to_records, run, runners, tracer, device_digest, len(changed))
    found = parallel_map(changed, process)
    for number, record in zip(numbers, found, strict=True):
        if isinstance(record, Record):
            known[number] = record.decode(entries[number].path)
            results.note(entries[number], record)
        else:
            known[number] = record
    # If an input changed during the run, no key describes these results.
    if digest_files(layout.read_inputs(run.project.root)) == run.layers:
        results.save()
        run.lasting = all(isinstance(record, Record) for record in found)
    return [parts for parts in known if parts is not None]


def _process_unsummarized(
    run: Run, runners: Sequence[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> list[FileParts]:
    """Process files without checks; of those that a lint has rendered, the summaries of objects may be enough."""
    from jobgen.pipeline.commit_results import CommitResults

    assert run.memory is not None
    home = run.memory.home or run.project.root
    results = CommitResults(home, run.environments, run.layers, None)
    is_whole = [runner.name for runner in runners] == list(run.environments)
    wanted = run.summarized if is_whole else frozenset()
    known = [results.find_summaries(entry) if entry.path in wanted else None for entry in entries]
    others = [entry for entry, parts in zip(entries, known, strict=True) if parts is None]
    found = iter(parallel_map(others, lambda share: _process_files(run, runners, tracer, share, len(others))))
    return [next(found) if parts is None else parts for parts in known]


def _process_committed(
    run: Run,
    runners: Sequence[EnvironmentRunner],
    tracer: Tracer,
    entries: Sequence[FileEntry],
) -> list[FileParts]:
    """Process files of a commit in some environments; take those results from the cache that are known there."""
    from jobgen.pipeline.commit_results import CommitResults

    assert run.memory is not None
    assert run.memory.home is not None
    results = CommitResults(run.memory.home, run.environments, run.layers, run.memory.find_linted(run.layers))
    device_digest = functools.cache(lambda: results.digest_device_files(list(layout.find_jobs(run.project.root))))
    known = [results.find(entry, device_digest) for entry in entries]
    numbers = [number for number, parts in enumerate(known) if parts is None]
    changed = [entries[number] for number in numbers]
    found = parallel_map(changed, lambda share: _process_files(run, runners, tracer, share, len(entries)))
    is_whole = [runner.name for runner in runners] == list(run.environments)
    for entry, parts in zip(changed, found, strict=True) if is_whole else ():
        results.note(entry, parts, device_digest)
    results.save()
    wanted = [0, *(1 + list(run.environments).index(runner.name) for runner in runners)]
    processed = iter(found)
    return [next(processed) if parts is None else tuple(parts[each] for each in wanted) for parts in known]


def _process_to_records(
    run: Run,
    runners: Sequence[EnvironmentRunner],
    tracer: Tracer,
    device_digest: Callable[[], str],
    total: int,
    share: Sequence[FileEntry],
) -> list[Record | FileParts]:
    """Process files; return a record for each whose results can be cached."""
    files = [FileSnapshot(entry) for entry in share]
    found = _process_files(run, runners, tracer, [file.entry for file in files], total)
    return [file.record(parts, device_digest) for file, parts in zip(files, found, strict=True)]


def _process_files(
    run: Run, runners: Sequence[EnvironmentRunner], tracer: Tracer, share: Sequence[FileEntry], total: int
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
    return found


def _note_jobs(run: Run, tracer: Tracer, jobs: Sequence[Job], part: FileResult) -> None:
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
    run: Run, runner: EnvironmentRunner, tracer: Tracer, read: Sequence[Sequence[Job]]
) -> list[FileResult]:
    """The results of files, whose jobs have been read, in one environment."""
    results = [new_result() for _ in read]
    pairs = [(job, part) for jobs, part in zip(read, results, strict=True) for job in jobs]
    for (_, part), made in zip(pairs, _render_jobs(run, runner, tracer, pairs), strict=True):
        part.made.extend(made)
    return results


def _render_jobs(
    run: Run, runner: EnvironmentRunner, tracer: Tracer, jobs: Sequence[tuple[Job, FileResult]]
) -> list[list[Rendered]]:
    """Render jobs in one environment and check their objects if the run does; the objects of each job."""
    found = [_render_job(run, runner, tracer, job, part) for job, part in jobs]
    if not run.checked:
        return [_finish_objects(run, job, several) for (job, _), several in zip(jobs, found, strict=True)]
    pairs = zip(jobs, found, strict=True)
    every = [(job, part, made) for (job, part), several in pairs for made in several]
    finished = iter(_check_objects(run, runner, tracer, every))
    return [[made._replace(object=next(finished)) for made in several] for several in found]


def _finish_objects(run: Run, job: Job, several: Sequence[Rendered]) -> list[Rendered]:
    # Members of a sweep have the digest of their sweep.
    digest = digest_data(job.sweep or job.document.data) if run.digested and several else ""
    return [made._replace(object=run.finish(made.object), job_digest=digest) for made in several]


def _render_job(run: Run, runner: EnvironmentRunner, tracer: Tracer, job: Job, part: FileResult) -> list[Rendered]:
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
    run: Run, runner: EnvironmentRunner, tracer: Tracer, made: Sequence[tuple[Job, FileResult, Rendered]]
) -> list[Any]:
    """What is wrong with objects: checked without locations first, and those with a problem again with locations.

    Returns what is kept of each object: its summary, if only its results are kept.
    """
    checkers = [runner.find_checker(job.file.path) for job, _, _ in made]
    mutated = [checker.mutate(rendered.object) for checker, (_, _, rendered) in zip(checkers, made, strict=True)]
    manifests = [checker.manifest(each.object) for checker, each in zip(checkers, mutated, strict=True)]
    alone = zip(checkers, manifests, mutated, made, strict=True) if not run.is_outline else ()
    for checker, manifest, each, (job, part, rendered) in alone:
        reporting = checker.find_reporting(manifest)
        if each.failures or reporting.is_any:
            check = functools.partial(checker, reporting=reporting)
            found = tracer.findings(job, runner.name, check, rendered.companion, checker.mutate)
            part.findings.extend(_drop_repeated(job, part, found))
        if runner.take_catalog_use():
            part.dependent.append(job.document.name)
    if run.entries is not None:
        # Standalone files are not one environment, so rules over all its objects do not apply.
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
        if runner.take_catalog_use():
            part.dependent.append(job.document.name)
    return kept


def _drop_repeated(job: Job, part: FileResult, findings: list[Finding]) -> list[Finding]:
    """The findings of a job, without those that another member of its sweep has already."""
    if not job.document.sweep:
        return findings
    known = {(found.location, found.rule, found.message, found.env) for found in part.findings}
    return [found for found in findings if (found.location, found.rule, found.message, found.env) not in known]
