"""Lint the whole workspace, again and again, in a background process: only what changed since the last time.

It runs in its own process so that a lint of ten thousand jobs never delays an answer. Requests and answers are frames:
four bytes for the length, then pickled data. Both ends are jobgen, so nothing that others wrote is unpickled.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from jobgen.api.errors import JobgenError
from jobgen.api.lint_files import LintRequest, find_sources
from jobgen.api.lint_run import finish_file, lint_sources
from jobgen.engine.inputs import edited
from jobgen.engine.store import Store
from jobgen.features.editor.index import Decisions, DecisionsAnswer, IndexBuilder, IndexChange, QueueDecider
from jobgen.model.digest import blake2b
from jobgen.model.finding import Finding, sort_findings
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.finish import OF_REPORT, Finishing, finish
from jobgen.recognize import OBJECT
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.file_result import FileResult, join_parts, new_result
from jobgen.rendering.load_layers import digest_layers
from jobgen.rendering.read_jobs import collect_suppressions, read_jobs
from jobgen.rendering.result_inputs import name_entry
from jobgen.rendering.run_values import RunResult
from jobgen.rendering.trace import Job
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.repo.layout import own_layers
from jobgen.repo.named_paths import read_first
from jobgen.reports.suppress import Suppression


class FileFindings(NamedTuple):
    """The findings that are located in one file."""

    own: tuple[Finding, ...] = ()
    """Those that the file has by itself."""
    shared: tuple[Finding, ...] = ()
    """Those that it has because of other files, or that only all files together show."""

    @property
    def all(self) -> tuple[Finding, ...]:
        """All findings, sorted by location."""
        return tuple(sort_findings((*self.own, *self.shared)))


class Snapshot(NamedTuple):
    """A workspace as the background process found it."""

    number: int = 0
    """The request that it answers."""
    findings: Mapping[str, FileFindings] = {}
    """By path from the root; files without findings are left out."""
    index_change: IndexChange = IndexChange()
    """What changed in the index of the workspace since the snapshot before."""
    keeps_decisions: bool = False
    """True if the decisions of Kueue that were sent last still hold."""
    error: str = ""
    """Why nothing else was linted: the settings have errors, or something failed."""
    others: frozenset[str] = frozenset()
    """The files that are no finished objects, so that they are not judged by themselves."""
    has_failed: bool = False
    """True if an exception ended the lint, so that nothing is known about any file."""


def group_findings(findings: Iterable[Finding], own: Mapping[str, frozenset[object]]) -> dict[str, FileFindings]:
    """Group findings by file. `own` has, for each file, the keys of the findings that it has by itself."""
    grouped: dict[str, tuple[list[Finding], list[Finding]]] = {}
    for finding in findings:
        file = finding.location.file
        lists = grouped.setdefault(file, ([], []))
        lists[finding.key not in own.get(file, frozenset())].append(finding)
    return {file: FileFindings(tuple(alone), tuple(shared)) for file, (alone, shared) in grouped.items()}


class WorkspaceLinter:
    """Lints one workspace, again and again, with one store."""

    def __init__(self, root: Path, today: str = "") -> None:
        self._request = LintRequest(root, today=today, starts_tools=False, compares_trees=False)
        self._store = Store(str(root))
        self._index = IndexBuilder()
        self._decider = QueueDecider()
        self._last = _LastLint()
        self._files = b""

    def lint(self, drafts: Mapping[str, bytes], check: Callable[[int, int], None]) -> Snapshot:
        """Lint the workspace with the contents of open documents, by real path.

        `check` is called again and again; what it raises ends the lint.
        """
        with edited(drafts):
            files = find_sources(self._request)
            try:
                linted, runs = lint_sources(self._request, self._store, files, check)
            except JobgenError as error:
                found = getattr(error, "findings", ())
                return Snapshot(findings=group_findings(found, {}), error=str(error))
            self._store.drop_unused()
            last = self._last = self._last.update(runs)
            entries = [*files.jobs, *(files.standalone or ())]
            own = {entry.path: keys for entry in entries if (keys := _list_own(last.project, last.answers, entry))}
            layers = list_layer_findings(last.project, runs[0].layers.findings)
            own |= {file: _list_keys(found) for file, found in layers.items()}
            index = self._index.update(last.list_parts(entries), last.list_runners(), last.read_jobs)
            jobs = files.jobs if files.whole else ()
            last.results.extend(last.list_parts(jobs))
            keeps = self._decider.note(last.results, last.list_runners(), last.project)
        shown = finish(linted.findings, Finishing(linted.mandatory, narrowing=linted.narrowing), OF_REPORT)
        grouped = group_findings(shown, own)
        others = frozenset(path for path, (sort, _) in linted.taken.items() if sort != OBJECT.name)
        return Snapshot(findings=grouped, index_change=index, keeps_decisions=keeps, others=others)

    @property
    def has_undecided(self) -> bool:
        """Return True if there are queues, and jobs that have not been decided about."""
        return self._decider.is_due

    def decide(self, drafts: Mapping[str, bytes], check: Callable[[], None]) -> Decisions:
        """Decide about the jobs of the last lint as Kueue does. What `check` raises ends it."""
        last = self._last
        if not last.runs:
            return {}
        with edited(drafts):
            return self._decider.decide(last.results, last.list_runners(), last.project, check)

    def has_changed_files(self) -> bool:
        """Return True if a file has been changed, added or removed since the last call, as far as its stat says."""
        files = find_sources(self._request)
        entries = (*files.jobs, *(files.standalone or ()))
        known = blake2b(digest_layers(files.layers or own_layers(self._request.directory)).encode())
        for entry in entries:
            try:
                status = os.stat(entry.full)
                state = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
            except OSError:
                state = None
            known.update(repr((entry.path, state)).encode("utf-8", "surrogatepass"))
        before, self._files = self._files, known.digest()
        return self._files != before


class _LastLint:
    """The results of the last lint. Those of an environment whose overlays have errors are as they were before."""

    def __init__(self) -> None:
        self.runs: Sequence[RunResult] = ()
        self.answers: dict[str, tuple[FileResult, ...]] = {}
        self.results: list[tuple[FileEntry, tuple[FileResult, ...]]] = []
        """The results of the files of the repository."""
        self._runners: dict[str, EnvironmentRunner] = {}
        self._parts: dict[str, dict[str, FileResult]] = {}
        """The results of files in each environment."""
        self._selected: tuple[str, ...] = ()

    @property
    def project(self) -> ProjectConfig:
        """The project of the last lint."""
        return self.runs[0].request.project

    def update(self, runs: Sequence[RunResult]) -> _LastLint:
        """Return what is known after another lint."""
        now = _LastLint()
        now.runs = runs
        by_run = [dict(zip(map(name_entry, run.request.files.entries), run.files.results, strict=True)) for run in runs]
        now.answers = {name: parts for answers in by_run for name, parts in answers.items()}
        same = {
            name for name, parts in now.answers.items() if name in self.answers and parts[0] is self.answers[name][0]
        }
        now._selected = tuple(dict.fromkeys(name for run in runs for name in run.request.environments))
        for env in now._selected:
            if env in self._runners:
                now._runners[env] = self._runners[env]
                now._parts[env] = {name: part for name, part in self._parts[env].items() if name in same}
        for run, answers in zip(runs, by_run, strict=True):
            for number, runner in enumerate(run.layers.runners, 1):
                now._runners[runner.name] = runner
                now._parts[runner.name] = {name: parts[number] for name, parts in answers.items()}
        return now

    def list_runners(self) -> list[EnvironmentRunner]:
        """Return the environments."""
        return [self._runners[name] for name in self._selected if name in self._runners]

    def list_parts(self, entries: Iterable[FileEntry]) -> Iterator[tuple[FileEntry, tuple[FileResult, ...]]]:
        """Return the results of files by themselves and in each environment, as far as they are known."""
        kept = [self._parts[runner.name] for runner in self.list_runners()]
        for entry in entries:
            name = name_entry(entry)
            if name in self.answers:
                yield entry, (self.answers[name][0], *(results.get(name, _NOTHING) for results in kept))

    def read_jobs(self, entry: FileEntry) -> list[Job]:
        """Read the jobs of a file."""
        return list(read_jobs([entry], self.project.kinds, []))


_NOTHING = new_result()
"""The result of a file that has not been processed in an environment, because its overlays have errors."""


def _list_keys(findings: Iterable[Finding]) -> frozenset[object]:
    return frozenset(finding.key for finding in findings)


def _list_own(
    project: ProjectConfig, answers: Mapping[str, tuple[FileResult, ...]], entry: FileEntry
) -> frozenset[object]:
    if entry.finding:
        return _list_keys(finish_file(project, [entry.finding], [], File(entry.path)))
    answer = answers.get(name_entry(entry))
    part = join_parts(answer) if answer is not None else None
    if part is None or not part.findings:
        return frozenset()
    return _list_keys(finish_file(project, part.findings, part.comments, read_file(entry)))


def list_layer_findings(project: ProjectConfig, prepared: Sequence[Finding]) -> dict[str, tuple[Finding, ...]]:
    """Return the findings of settings, overlays, kinds and policies, by file."""
    grouped: dict[str, list[Finding]] = {}
    for finding in prepared:
        grouped.setdefault(finding.location.file, []).append(finding)
    found: dict[str, tuple[Finding, ...]] = {}
    for path, findings in grouped.items():
        file = read_first((project.root,), path) or File(path)
        comments: list[Suppression] = []
        collect_suppressions(file, comments, [])
        found[path] = finish_file(project, findings, comments, file)
    return found


log = logging.getLogger("jobgen.lsp")
_LENGTH = struct.Struct(">I")
HEAD_BYTES = _LENGTH.size
"""The length of what comes before the data of a frame."""

_MIN_PAUSE = 1.0
"""The seconds between two searches for changed files."""
_PAUSE_FACTOR = 50
"""A search takes at most one fiftieth of a core, in repositories of any size."""

_MIN_QUIET = 0.3
"""The seconds without a request before Kueue's decisions are simulated; at least as long as the last time took."""

_GC_THRESHOLD = 50_000
"""A lint creates many objects that reference counts remove."""


class Request(NamedTuple):
    """A request to lint a workspace with the contents of open documents."""

    number: int
    drafts: Mapping[str, bytes]
    """By real path."""
    watches: bool = False
    """True to look for changed files when there is nothing else to do."""


class SupersededError(Exception):
    """A newer request has arrived, so the result of this one is not wanted any more."""


def encode_frame(value: object) -> bytes:
    """Return a value as one frame."""
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(content)) + content


def decode_length(head: bytes) -> int:
    """Return the length of the frame that follows its first four bytes."""
    length: int = _LENGTH.unpack(head)[0]
    return length


def read_frame(stream: BinaryIO) -> Any:
    """Read one frame; None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return pickle.loads(stream.read(decode_length(head)))  # noqa: S301 -- written by the other end, which is jobgen


class _Inbox:
    """The newest request. Older ones that have not been answered are dropped."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._newest: Request | None = None
        self.is_closed = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while (request := read_frame(self._stream)) is not None:
                with self._changed:
                    self._newest = request
                    self._changed.notify()
        except Exception as error:  # noqa: BLE001 -- pickle raises any; no other frame can be found
            log.warning("a request of the server could not be read: %r", error)
        with self._changed:
            self.is_closed = True
            self._changed.notify()

    def take(self, timeout: float | None = None) -> Request | None:
        """Wait for a request; None if there is none in time, or at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self.is_closed, timeout)
            request, self._newest = self._newest, None
            return request if not self.is_closed else None

    def check(self, *_: object) -> None:
        """Raise a SupersededError if there is a newer request, or if the server or this process has ended."""
        is_orphan = os.getpid() != self._pid and os.getppid() != self._pid
        if self._newest is not None or self.is_closed or is_orphan:
            raise SupersededError


def serve(root: Path, reading: BinaryIO, writing: BinaryIO) -> None:
    """Answer requests until the stream ends."""
    # The command line disables it, because its other commands end soon.
    gc.enable()
    gc.set_threshold(_GC_THRESHOLD)
    inbox = _Inbox(reading)
    linter = WorkspaceLinter(root)
    last: Request | None = None
    pause, quiet = _MIN_PAUSE, _MIN_QUIET
    while not inbox.is_closed:
        is_undecided = last is not None and linter.has_undecided
        request = inbox.take(quiet if is_undecided else pause if last and last.watches else None)
        if request is None and last is not None and is_undecided:
            began = time.monotonic()
            _answer(linter, last, inbox, writing, is_decision=True)
            quiet = max(_MIN_QUIET, time.monotonic() - began)
            continue
        if request is None:
            began = time.process_time()
            is_changed = not inbox.is_closed and linter.has_changed_files()
            pause = max(_MIN_PAUSE, (time.process_time() - began) * _PAUSE_FACTOR)
            request = last if is_changed else None
        if request is not None:
            is_first = last is None
            last = request
            _answer(linter, request, inbox, writing)
            if is_first:
                # The results of all files stay, so a search for garbage need not look at them again and again.
                gc.freeze()


def _answer(
    linter: WorkspaceLinter, request: Request, inbox: _Inbox, writing: BinaryIO, *, is_decision: bool = False
) -> None:
    answer: Snapshot | DecisionsAnswer
    try:
        if is_decision:
            answer = DecisionsAnswer(request.number, linter.decide(request.drafts, inbox.check))
        else:
            answer = linter.lint(request.drafts, inbox.check)._replace(number=request.number)
    except SupersededError:
        return
    except Exception as error:  # noqa: BLE001 -- the server must live, and say what failed
        reason = f"`{type(error).__name__}`: {error}; please report this bug in jobgen"
        failed = Snapshot(request.number, error=reason, has_failed=True)
        answer = DecisionsAnswer(error=reason) if is_decision else failed
    # If the server has ended, the next request says so.
    with suppress(BrokenPipeError):
        writing.write(encode_frame(answer))
        writing.flush()
