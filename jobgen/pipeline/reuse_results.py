"""Process the files of a run, except those whose results are known: from shards, from the cache, or from a commit."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jobgen import cache
from jobgen.pipeline.environment import EnvironmentRunner
from jobgen.pipeline.file_result import FileParts
from jobgen.pipeline.parallel import parallel_map
from jobgen.pipeline.process_files import discard_object, process_files
from jobgen.pipeline.result_cache import (
    FileSnapshot,
    Record,
    ResultCache,
    digest_content,
    digest_files,
    open_results,
)
from jobgen.pipeline.trace import Tracer
from jobgen.repo import layout
from jobgen.repo.commit import CommitPath, Folder
from jobgen.repo.files import FileEntry, read_file

if TYPE_CHECKING:
    from jobgen.pipeline.run_state import RunState


def process_entries(
    run: RunState, tracer: Tracer, runners: Sequence[EnvironmentRunner], entries: Sequence[FileEntry]
) -> list[FileParts]:
    """Return the results of files: those that are known, and those of the files that are processed."""
    if run.known is not None:
        unknown = [entry for entry in entries if entry.path not in run.known]
        done = parallel_map(unknown, lambda share: process_files(run, runners, tracer, share, len(unknown)))
        found = {**run.known, **{entry.path: parts for entry, parts in zip(unknown, done, strict=True)}}
        return [found[entry.path] for entry in entries]
    if run.summarized and run.memory and _can_reuse(run, runners):
        return _process_unsummarized(run, runners, tracer, entries)
    can_cache = _can_cache(run, runners)
    if can_cache and run.memory and run.memory.home and isinstance(run.project.root, CommitPath):
        return _process_committed(run, runners, tracer, entries)
    # What is in memory is newer than what is on disk.
    if can_cache and (run.memory is None or run.memory.is_empty):
        return _process_changed(run, runners, tracer, entries)
    return parallel_map(entries, lambda share: process_files(run, runners, tracer, share, len(entries)))


def _can_cache(run: RunState, runners: Sequence[EnvironmentRunner]) -> bool:
    """Whether results of this run can be cached: a render needs the objects, and a date changes results."""
    return run.checked and run.finish is discard_object and _can_reuse(run, runners)


def _can_reuse(run: RunState, runners: Sequence[EnvironmentRunner]) -> bool:
    """Whether results of files depend on their content and on the layers alone, and there is a cache."""
    is_dated = any(runner.expander.environment.is_dated for runner in runners)
    has_key = bool(runners) and bool(run.layers) and cache.is_enabled()
    return has_key and not is_dated and not reads_unnamed_state(run, runners)


def reads_unnamed_state(run: RunState, runners: Sequence[EnvironmentRunner]) -> bool:
    """Whether the key of the cache does not depend on exported state, because the text of no layer names its folder."""
    folders = (runner.expander.environment.cluster.state for runner in runners)
    return bool(layout.find_unnamed_state(run.project.root, folders))


def _process_changed(
    run: RunState, runners: Sequence[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> list[FileParts]:
    """Process the files that changed since the last lint; take the results of the others from the cache."""
    if run.entries is None:
        results = open_results(run.project.root, run.environments, run.layers)
    else:
        results = ResultCache(str(run.project.root), "files", ",".join(run.environments), run.layers, run.context)
    if run.memory:
        run.memory.note_linted(run.layers, results)
    # The files that a runner reads devices and kinds from.
    sources = run.entries if run.entries is not None else layout.find_jobs(run.project.root)
    shared_digest = functools.cache(lambda: results.digest_shared_files(sources))
    known = [results.find(entry, shared_digest) for entry in entries]
    numbers = [number for number, parts in enumerate(known) if parts is None]

    changed = [entries[number] for number in numbers]
    process = functools.partial(_process_to_records, run, runners, tracer, shared_digest, len(changed))
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
    run: RunState, runners: Sequence[EnvironmentRunner], tracer: Tracer, entries: Sequence[FileEntry]
) -> list[FileParts]:
    """Process files without checks; of those that a lint has rendered, the summaries of objects may be enough."""
    assert run.memory is not None
    home = run.memory.home or run.project.root
    results = open_results(home, run.environments, run.layers)
    is_whole = [runner.name for runner in runners] == list(run.environments)
    wanted = run.summarized if is_whole else frozenset()
    known = [_find_summaries(results, home, entry) if entry.path in wanted else None for entry in entries]
    others = [entry for entry, parts in zip(entries, known, strict=True) if parts is None]
    found = iter(parallel_map(others, lambda share: process_files(run, runners, tracer, share, len(others))))
    return [next(found) if parts is None else parts for parts in known]


def _process_committed(
    run: RunState,
    runners: Sequence[EnvironmentRunner],
    tracer: Tracer,
    entries: Sequence[FileEntry],
) -> list[FileParts]:
    """Process files of a commit in some environments; take the results that a lint of equal files on disk stored."""
    assert run.memory is not None
    assert run.memory.home is not None
    home = run.memory.home
    # The lint of the files on disk may have replaced what was stored before it.
    results = run.memory.find_linted(run.layers) or open_results(home, run.environments, run.layers)
    shared_digest = functools.cache(lambda: results.digest_shared_files(list(layout.find_jobs(run.project.root))))
    known = [_find_committed(results, home, entry, shared_digest) for entry in entries]
    changed = [entry for entry, parts in zip(entries, known, strict=True) if parts is None]
    found = iter(parallel_map(changed, lambda share: process_files(run, runners, tracer, share, len(entries))))
    wanted = [0, *(1 + list(run.environments).index(runner.name) for runner in runners)]
    return [next(found) if parts is None else tuple(parts[each] for each in wanted) for parts in known]


def _find_committed(
    results: ResultCache, home: Folder, entry: FileEntry, shared_digest: Callable[[], str]
) -> FileParts | None:
    """The stored results of a file of a commit; None if it must be processed."""
    if entry.content is None or entry.finding is not None:
        return None
    return results.find_content(_place_on_disk(home, entry), digest_content(entry.content), shared_digest)


def _find_summaries(results: ResultCache, home: Folder, entry: FileEntry) -> FileParts | None:
    """The stored results of a file with the summaries of its objects; None if they are not known, or do not suffice."""
    file = read_file(entry)
    return None if file.finding else results.find_summarized(_place_on_disk(home, entry), digest_content(file.content))


def _place_on_disk(home: Folder, entry: FileEntry) -> FileEntry:
    """The file on disk at the same path, under which results are stored."""
    return entry._replace(full=os.path.join(str(home), entry.path), content=None)


def _process_to_records(
    run: RunState,
    runners: Sequence[EnvironmentRunner],
    tracer: Tracer,
    shared_digest: Callable[[], str],
    total: int,
    share: Sequence[FileEntry],
) -> list[Record | FileParts]:
    """Process files; return a record for each whose results can be cached."""
    files = [FileSnapshot(entry) for entry in share]
    found = process_files(run, runners, tracer, [file.entry for file in files], total)
    return [file.record(parts, shared_digest) for file, parts in zip(files, found, strict=True)]
