"""What Kueue decides about jobs, as `jobgen queue` does: sent from the background process to the server."""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.engine.workers import run_cancellable
from jobgen.features.kueue.answers import ADMITTED, DECISIONS, NEVER, UNMANAGED, WAITS, Answer
from jobgen.features.kueue.cluster_objects import DECIDING_KINDS
from jobgen.features.kueue.queues.report import (
    NO_FINAL_STATE,
    collect_environment,
    decide_environment,
    explain,
)
from jobgen.k8s.kueue_integrations import INTEGRATIONS
from jobgen.model.finding import Finding, Identity, Severity
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, new_overlay_use
from jobgen.rendering.file_result import FileParts, are_same
from jobgen.rendering.read_jobs import read_jobs
from jobgen.repo.files import FileEntry
from jobgen.repo.root import folder_exists

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


FileResults = Sequence[tuple[FileEntry, FileParts]]
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
        self._files: dict[str, tuple[FileParts, bytes]] = {}
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


def _pack(entry: FileEntry, parts: FileParts, runners: Sequence[EnvironmentRunner], project: ProjectConfig) -> bytes:
    """Render the jobs of a file, and return the objects that take part in decisions."""
    names = {made.env for part in parts for made in part.made if made.identity.kind in _KINDS}
    wanted = [runner for runner in runners if runner.name in names]
    found: list[tuple[str, Identity, Any]] = []
    for job in read_jobs([entry], project.frameworks, []) if wanted else ():
        for runner in wanted:
            patches = runner.patches_for(job)
            made = runner.render_job(job, patches, new_overlay_use()) if patches is not None else None
            found += [(each.env, each.identity, each.object) for each in made or () if each.identity.kind in _KINDS]
    return zlib.compress(pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL), 1)
