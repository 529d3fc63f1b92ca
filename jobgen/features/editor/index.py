"""The index of a workspace: its jobs, their objects, the patches that touch them, and what Kueue decides about them."""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.engine.workers import run_cancellable
from jobgen.features.kueue.answers import ADMITTED, DECISIONS, NEVER, UNMANAGED, WAITS, Answer
from jobgen.features.kueue.cluster_objects import DECIDING_KINDS
from jobgen.features.kueue.queues.report import (
    NO_FINAL_STATE,
    collect_environment,
    decide_environment,
    explain,
)
from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.k8s.kueue_integrations import INTEGRATIONS
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location, text_of, value_of
from jobgen.model.finding import Finding, Identity, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, new_overlay_use
from jobgen.rendering.file_result import FileResult, are_same
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.trace import Job
from jobgen.repo.files import FileEntry
from jobgen.repo.root import folder_exists
from jobgen.repo.shipped import read_data
from jobgen.spec.overlay import PatchName

ObjectKey = tuple[str, str, str]
"""The kind, namespace and name of the object of a job."""

_WORDS = {ADMITTED: "fits", NEVER: "never admitted"}
"""Words for a decision where that of `jobgen queue` says too little by itself."""
_MAX_REASON = 60


class JobDecision(NamedTuple):
    """What becomes of a job."""

    decision: str
    """As `jobgen queue` names it."""
    short: str
    """Why, in a few words; empty for a job that is admitted."""
    reason: str
    """Why, and what to change if it is never admitted."""

    @property
    def word(self) -> str:
        """The decision in a text for an editor."""
        return _WORDS.get(self.decision, self.decision)


FileResults = Sequence[tuple[FileEntry, tuple[FileResult, ...]]]
Decisions = Mapping[str, Mapping[ObjectKey, JobDecision]]
"""By environment and object."""
NO_DECISIONS: Decisions = {}


class DecisionsAnswer(NamedTuple):
    """The decisions about a workspace. They replace all earlier ones."""

    number: int = -1
    """The newest request with a workspace that they hold for; -1 if they are obsolete."""
    decisions: Decisions = NO_DECISIONS
    error: str = ""
    """Why there are none: something failed."""


def find_decision(decisions: Decisions, environment: str, objects: Iterable[Identity]) -> JobDecision | None:
    """Return the decision about the first of some objects that has one."""
    known = decisions.get(environment, {})
    keys = ((each.kind, each.namespace or "default", each.name) for each in objects)
    return next((known[key] for key in keys if key in known), None)


def describe_decisions(found: Iterable[JobDecision]) -> str:
    """Return a short text about a job, or about all jobs of a sweep; empty without decisions."""
    several = list(found)
    words = Counter(each.word for each in sorted(several, key=lambda each: DECISIONS.index(each.decision)))
    if len(words) > 1:
        return ", ".join(f"{word}: {count}" for word, count in words.items())
    shorts = {each.short for each in several}
    short = shorts.pop() if len(shorts) == 1 else ""
    return "".join(words) + (f": {short}" if short else "")


def _shorten(answer: Answer) -> str:
    if answer.decision not in (WAITS, NEVER, UNMANAGED):
        return ""
    reason = answer.reason.partition(", and ")[0].partition(";")[0].replace("`", "").removeprefix("it ")
    return reason if len(reason) <= _MAX_REASON else reason[: _MAX_REASON - 1].rstrip() + "…"


_QUEUE = "ClusterQueue"
_KINDS = DECIDING_KINDS | {kind for _, kind in INTEGRATIONS}


class QueueDecider:
    """Decides about the jobs of one workspace, and remembers their objects."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[tuple[FileResult, ...], bytes]] = {}
        """The results of each file, and its objects: environment, identity and data, compressed.

        If the results are other objects, the file or a layer has changed. A large repository has tens of thousands.
        """
        self._environments: tuple[str, ...] = ()
        self._is_decided = False
        self.is_due = False
        """True if there are queues, and jobs that have not been decided about."""

    def note(self, results: FileResults, runners: Sequence[EnvironmentRunner], project: ProjectConfig) -> bool:
        """Note the results of a lint, and return whether the last decisions still hold."""
        made = (each for _, parts in results for part in parts for each in part.made)
        filled = {each.env for each in made if each.identity.kind == _QUEUE}
        states = {each.name: each.expander.environment.cluster.state for each in runners}
        filled |= {name for name, state in states.items() if state and folder_exists(project.root, state)}
        environments = tuple(name for name in states if name in filled)
        known = {entry.path: parts for entry, parts in results}
        is_same = known.keys() == self._files.keys() and all(
            are_same(self._files[path][0], parts) for path, parts in known.items()
        )
        self._is_decided = self._is_decided and is_same and environments == self._environments
        if environments != self._environments:
            self._environments, self._files = environments, {}
        self.is_due = bool(environments) and not self._is_decided
        return self._is_decided

    def decide(
        self,
        results: FileResults,
        runners: Sequence[EnvironmentRunner],
        project: ProjectConfig,
        check: Callable[[], None],
    ) -> Decisions:
        """Decide about the jobs of environments that have queues. What `check` raises ends it."""
        # What fails once is not tried again until a file changes.
        self.is_due = False
        queued = [runner for runner in runners if runner.name in self._environments]
        known, self._files = self._files, {}
        for entry, parts in results:
            before = known.get(entry.path)
            self._files[entry.path] = before if before and are_same(before[0], parts) else (parts, b"")
        for entry, parts in results:
            if not self._files[entry.path][1]:
                check()
                self._files[entry.path] = (parts, _pack(entry, parts, queued, project))

        def decide_all() -> Decisions:
            return {runner.name: self._decide_environment(runner, project) for runner in queued}

        found: Decisions = run_cancellable(decide_all, len(self._files), check)
        self._is_decided = True
        return found

    def _decide_environment(self, runner: EnvironmentRunner, project: ProjectConfig) -> Mapping[ObjectKey, JobDecision]:
        """Return the decision about each job that Kueue manages; of several workloads of a job, the worst."""
        objects: dict[Identity, Any] = {}
        for _, packed in self._files.values():
            for env, identity, data in pickle.loads(zlib.decompress(packed)):  # noqa: S301 -- see `_pack`
                if env == runner.name:
                    objects.setdefault(identity, data)
        findings: list[Finding] = []
        cluster = runner.expander.environment.cluster
        queued = collect_environment(runner.name, list(objects.values()), project, cluster, findings)
        if not queued.context.queues or any(finding.severity is Severity.ERROR for finding in findings):
            return {}
        decision = decide_environment(runner.name, queued, lambda _: False).decision
        note = "" if decision.settles else f"; {NO_FINAL_STATE}"
        found: dict[ObjectKey, JobDecision] = {}
        # A simulation that was stopped says of jobs that it did not reach that they wait, so it decides nothing.
        for answer in decision.answers if decision.is_complete else ():
            key = answer.job.kind, answer.job.namespace, answer.job.name
            known = found.get(key)
            is_worse = known is None or DECISIONS.index(answer.decision) > DECISIONS.index(known.decision)
            if is_worse and (answer.decision != UNMANAGED or answer.job.queue):
                found[key] = JobDecision(answer.decision, _shorten(answer), explain(answer) + note)
        return found


def _pack(
    entry: FileEntry, parts: tuple[FileResult, ...], runners: Sequence[EnvironmentRunner], project: ProjectConfig
) -> bytes:
    """Render the jobs of a file, and return the objects that take part in decisions."""
    names = {made.env for part in parts for made in part.made if made.identity.kind in _KINDS}
    wanted = [runner for runner in runners if runner.name in names]
    found: list[tuple[str, Identity, Any]] = []
    for job in read_jobs([entry], project.kinds, []) if wanted else ():
        for runner in wanted:
            patches = runner.patches_for(job)
            made = runner.render_job(job, patches, new_overlay_use()) if patches is not None else None
            found += [(each.env, each.identity, each.object) for each in made or () if each.identity.kind in _KINDS]
    return zlib.compress(pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL), 1)


USED_KINDS: Mapping[str, str] = read_data("fields.yaml")["used"]
"""Fields that name an object, and the kind of it."""
REFERRED_KINDS: Mapping[str, str] = read_data("fields.yaml")["referred"]
"""Fields with a mapping, or a list of them, whose `name` is that of an object."""
KEYED_KINDS = {"configs": "ConfigMap", "secrets": "Secret"}
"""Fields of jobs with a mapping whose keys are names of objects."""
LABEL = "label:"
"""Before the key of a label, in place of a kind: the names are its values."""


class RenderedJob(NamedTuple):
    """A job in one environment."""

    environment: str
    objects: tuple[Identity, ...]
    """The object of the job, then its companions; none if it has errors or is inactive."""
    patches: tuple[PatchName, ...]


class IndexedJob(NamedTuple):
    """A job spec or a manifest."""

    name: str
    kind: str
    """`TrainingJob`, or the kind of a manifest."""
    framework: str
    sweep: str
    location: Location
    position: int
    item: int
    environments: tuple[RenderedJob, ...]


class FileIndex(NamedTuple):
    """The jobs of a file, and the names of objects in it, by kind."""

    jobs: tuple[IndexedJob, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    """Kind and name of each object that the file defines or uses."""


def list_jobs(index: Mapping[str, FileIndex]) -> Iterator[IndexedJob]:
    """Yield the jobs of all files of an index."""
    return (job for file in index.values() for job in file.jobs)


class IndexChange(NamedTuple):
    """What changed in an index."""

    changed: Mapping[str, FileIndex] = {}
    removed: tuple[str, ...] = ()
    is_whole: bool = False
    """True if it is the first change, so that what was known before is obsolete."""


class IndexBuilder:
    """Builds the index of a workspace again and again. A file whose results are the same objects has not changed."""

    def __init__(self) -> None:
        self._results: dict[str, tuple[FileResult, ...]] = {}
        self._is_first = True

    def update(
        self,
        results: Iterable[tuple[FileEntry, tuple[FileResult, ...]]],
        runners: Sequence[EnvironmentRunner],
        read: Callable[[FileEntry], Sequence[Job]],
    ) -> IndexChange:
        """Return what changed since the last update. `read` reads the jobs of a file."""
        current = {entry.path: (entry, parts) for entry, parts in results}
        changed: dict[str, FileIndex] = {}
        for path, (entry, parts) in current.items():
            if are_same(self._results.get(path, ()), parts):
                continue
            jobs = read(entry)
            made: dict[tuple[int, int, str], list[Identity]] = {}
            for each in (each for part in parts for each in part.made):
                made.setdefault((each.position, each.item, each.env), []).append(each.identity)
            names = {name for job in jobs for name in list_names(job.document.data)}
            places = zip(jobs, locate_jobs(jobs), strict=True)
            indexed = tuple(_index_job(job, place, made, runners) for job, place in places)
            changed[path] = FileIndex(indexed, tuple(sorted(names)))
        removed = tuple(path for path in self._results if path not in current)
        self._results = {path: parts for path, (_, parts) in current.items()}
        is_first, self._is_first = self._is_first, False
        return IndexChange(changed, removed, is_first)


def _index_job(
    job: Job,
    location: Location,
    made: Mapping[tuple[int, int, str], list[Identity]],
    runners: Sequence[EnvironmentRunner],
) -> IndexedJob:
    environments: list[RenderedJob] = []
    for runner in runners:
        patches = runner.patches_for(job)
        if patches is not None:
            objects = tuple(made.get((job.position, job.item, runner.name), ()))
            used = tuple(dict.fromkeys(patch.name for patch in patches))
            environments.append(RenderedJob(runner.name, objects, used))
    document, data = job.document, job.document.data
    kind, framework = str(value_of(data.get("kind"))), text_of(as_mapping(data.get("spec")).get("framework"))
    place = (location, job.position, job.item)
    return IndexedJob(document.name, kind, framework, document.sweep, *place, tuple(environments))


def locate_jobs(jobs: Sequence[Job]) -> list[Location]:
    """Return where each job of a file begins. Items of a List are found by reading the file with locations."""
    lists = {job.position for job in jobs if job.item > 0}
    return [job.start() if job.position in lists else job.location for job in jobs]


def list_names(data: Any) -> Iterator[tuple[str, str]]:
    """Return kind and name of the objects that a document defines or uses."""
    kind, name = data.get("kind"), as_mapping(data.get("metadata")).get("name")
    if isinstance(kind, str) and kind != "TrainingJob" and isinstance(name, str):
        yield kind, name
    pending: list[Any] = [data]
    while pending:
        tree = pending.pop()
        if isinstance(tree, dict):
            for key, child in tree.items():
                yield from _list_named(key, child)
            pending += tree.values()
        elif isinstance(tree, list):
            pending += tree


def _list_named(key: Any, child: Any) -> Iterator[tuple[str, str]]:
    if _is_name(child):
        if key in USED_KINDS:
            yield USED_KINDS[key], child
    elif key in REFERRED_KINDS:
        for each in child if isinstance(child, list) else [child]:
            name = each.get("name") if isinstance(each, dict) else each
            if isinstance(name, str) and _is_name(name):
                yield REFERRED_KINDS[key], name
    elif key == "labels" and isinstance(child, dict):
        yield from ((f"{LABEL}{label}", value) for label, value in child.items() if _is_name(value))
        queue = child.get(QUEUE_LABEL)
        if isinstance(queue, str) and _is_name(queue):
            yield "LocalQueue", queue
    elif key in KEYED_KINDS and isinstance(child, dict):
        yield from ((KEYED_KINDS[key], name) for name in child if _is_name(name))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "{{" not in value
