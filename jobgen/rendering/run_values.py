"""A run as values: what is asked of it, what its stages hand on, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from jobgen.engine.store import Query, Row, Store
from jobgen.model.finding import Finding, Identity, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, OverlayUse, Rendered
from jobgen.rendering.file_result import FileResult, SameFiles
from jobgen.rendering.left_out import LeftOut
from jobgen.rendering.mended_jobs import MendedJob
from jobgen.rendering.read_jobs import Files, read_jobs
from jobgen.rendering.result_inputs import DescribeMembership, ResultInputs, name_entry
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.repo.files import FileEntry
from jobgen.reports import Suppressed
from jobgen.reports.suppress import HIDING_RULES, NO_SCHEMA_RULES, Suppression


class Stage(Protocol):
    """What becomes of the objects of a run."""

    @property
    def query(self) -> Query[FileResult]:
        """The question that the results of files answer."""

    @property
    def facts(self) -> Query[FileResult]:
        """The same for files that are rendered, and not checked."""

    @property
    def across(self) -> Query[list[Finding]] | None:
        """The question that the results of all files together answer, if that answer is kept."""

    @property
    def describe_membership(self) -> DescribeMembership | None:
        """Returns a text that changes if environments do not select all jobs of a file, and then with what they do.

        None if it does not matter which jobs they select.
        """

    @property
    def is_lint(self) -> bool:
        """True if every layer counts, also one that concerns no environment of the run, and what is behind an error."""

    @property
    def scope(self) -> str:
        """Part of the keys of results: those of different scopes are different answers."""

    def prepare(self, request: RunRequest) -> tuple[Sequence[Finding], tuple[str, ...]]:
        """Return what is wrong with policies, and the names of those that are applied."""

    def select(self, request: RunRequest, runners: Sequence[EnvironmentRunner], *, is_all: bool) -> None:
        """Prepare for the objects of the environments that can be rendered, of which these may be all."""

    def forget_shared(self) -> None:
        """Forget what other files define; they may have changed since the last run."""

    def read(
        self, entry: FileEntry, project: ProjectConfig, part: FileResult, faulty: list[MendedJob]
    ) -> Iterator[Job]:
        """Read the jobs of a file, and add those that have errors to `faulty` if their objects matter."""

    def check_job(self, request: RunRequest, tracer: Tracer, job: Job) -> Iterable[Finding]:
        """Report what is wrong with a job, whatever the environment."""

    def finish_job(
        self, runner: EnvironmentRunner, tracer: Tracer, job: Job, objects: list[Rendered]
    ) -> tuple[list[Rendered], list[Finding]]:
        """Return the objects of a job in an environment; none if findings prevent that they are used."""

    def check_objects(
        self, request: RunRequest, env: str, tracer: Tracer, rendered: Sequence[tuple[Job, FileResult, Rendered]]
    ) -> list[Any]:
        """Add what is found in objects of an environment to their results, and return what is kept of each."""

    def find_across(self, results: FileResults, *, is_complete: bool) -> Iterable[Finding]:
        """Report what only all jobs together show."""

    def finish(self, results: FileResults, findings: list[Finding], shared: Sequence[Finding]) -> Finished:
        """Return the findings of a run, of which some are shared, as this stage shows them."""


class Task(Protocol):
    """What a run is for: a value, of which a stage is started."""

    def start(self) -> Stage:
        """Return the stage of a run."""


RENDERED: Query[FileResult] = Query("rendered")
"""The objects of a file in one environment, for comparisons in one process."""
RENDERED_STAGE = "rendered"
RENDERED_SCOPE = f"jobs {RENDERED_STAGE}"
"""The scope of the objects of jobs in a plain render."""


def select_all(_: str) -> bool:
    """Select every job."""
    return True


def ignore_progress(_: int, __: int) -> None:
    """Ignore how many objects have been processed, and how many there are."""


Summarize = Callable[[ResultInputs, Sequence[str | None], FileEntry], Sequence[FileResult] | None]
"""Returns the results of a file by itself and in environments, or None if they are not known."""


class RunRequest(NamedTuple):
    """What is asked of a run."""

    project: ProjectConfig
    environments: Sequence[str]
    files: Files
    task: Task
    wanted: Callable[[str], bool] = select_all
    """Selects jobs by their names."""
    progress: Callable[[int, int], None] = ignore_progress
    store: Store | None = None
    """The answers of earlier runs, if they may be used, and those of this one."""
    is_cancellable: bool = False
    """True if `progress` may end the run; then what was found until then is kept."""
    leaves_objects: bool = False
    """True if a lint also leaves the objects in the store, for a render of the same files."""
    same: SameFiles = SameFiles()
    """The files whose objects nothing checks, in some environments."""
    summarize: Summarize | None = None
    """Finds results of a file that are enough, so that it need not be rendered."""

    def make_scope(self, stage: Stage) -> str:
        """Return how files are processed: results of different scopes are different answers."""
        return f"{'files' if self.files.are_loose else 'jobs'} {stage.scope}"

    def make_facts_scope(self, stage: Stage, env: str) -> str:
        """Return how files are processed that are not checked in an environment."""
        rules, same = sorted(self.same.list_rules(env)), self.same
        teams = ["of", *sorted(same.teams)] if rules and same.teams is not None else []
        return " ".join((self.make_scope(stage), *rules, *teams))

    def choose_query(self, stage: Stage, entry: FileEntry, env: str | None) -> Query[FileResult]:
        """Return the question that the result of a file by itself, or in an environment, answers."""
        return stage.facts if env is not None and (entry.path, env) in self.same.pairs else stage.query


class LoadedLayers(NamedTuple):
    """The environments of a run, ready to process files, and what loading them found."""

    runners: list[EnvironmentRunner]
    stage: Stage
    tracer: Tracer
    findings: tuple[Finding, ...]
    """What is wrong with layers and policies."""
    environments: Sequence[str]
    """The names of the environments that can be rendered; if none can, of all that were selected."""
    policies: tuple[str, ...]
    complete: bool
    """True if settings, overlays, kinds and policies are valid, so that every environment is checked."""
    unchecked_rules: frozenset[str]
    """Rules and policies that cannot be evaluated."""

    @property
    def names(self) -> list[str]:
        """The names of the environments that can be rendered."""
        return [runner.name for runner in self.runners]

    @property
    def has_broken_layers(self) -> bool:
        """True if settings, kinds, teams or runtimes have errors: they may concern every job."""
        errors = (finding for finding in self.findings if finding.severity is Severity.ERROR)
        return any(not finding.location.file.startswith("overlays/") for finding in errors)


class FileResults(NamedTuple):
    """The results of all files of a run, before they are compared with each other."""

    request: RunRequest
    layers: LoadedLayers
    parts: Sequence[FileResult]
    """What was found in each file: by itself and in all environments together."""
    results: Sequence[tuple[FileResult, ...]]
    """What was found in each file by itself, and in each environment."""
    rows: Mapping[str, Sequence[Row]]
    """The same as rows of the store, by the name of the file, if there is a store: what they read stands for them."""
    inputs: ResultInputs | None
    """What the results read, if they are kept."""

    @property
    def uses(self) -> list[OverlayUse]:
        """Which parts of overlays took effect, by file."""
        return [part.used for part in self.parts]

    def list_objects(self) -> list[Rendered]:
        """Return all objects, without their data."""
        return [made for part in self.parts for made in part.made]

    def list_jobs(self) -> Iterator[Job]:
        """Return all jobs of the repository; if their outlines are known, these."""
        project, inputs = self.request.project, self.inputs
        if inputs is None:
            return read_jobs(layout.find_jobs(project.root), project.kinds, [])
        return (job for entry in self.request.files.entries for job in inputs.list_outlines(name_entry(entry)))

    def report_progress(self) -> None:
        """Report that all objects have been processed; this may end the run."""
        total = len(self.request.files.entries) * len(self.layers.runners)
        self.request.progress(total, total)


class Finished(NamedTuple):
    """The findings of a run as its stage shows them."""

    findings: list[Finding]
    hidden: Sequence[Suppressed] = ()
    """Findings that exceptions of the settings accept."""
    rendered: bool = False
    """True if it is known that nothing prevents a render: only checks of objects and environments reported errors."""
    unchecked: frozenset[str] = frozenset()
    """Files in which rules were not evaluated, because all objects together take too many steps."""


class RunResult(NamedTuple):
    """What a run found."""

    files: FileResults
    objects: Sequence[Rendered]
    """The objects: the first of those with the same identity in an environment, unless files are loose."""
    findings: Sequence[Finding]
    hidden: Sequence[Suppressed]
    """Findings that exceptions of the settings accept."""
    rendered: bool
    """True if it is known that nothing prevents a render."""
    dated: bool
    """True if the objects depend on the date."""
    not_rendered: Sequence[LeftOut]
    """Jobs and environments with errors."""
    unchecked: frozenset[str]
    """Files in which an object was not checked, or not by every check."""
    owners: Mapping[tuple[object, ...], frozenset[str]]
    """The files whose jobs a finding in a layer is about, by what the finding says."""
    seen: Mapping[tuple[str, ...], Rendered]
    """The first of each object, by environment and identity, without its version; not of loose files."""

    @property
    def request(self) -> RunRequest:
        """What was asked."""
        return self.files.request

    @property
    def layers(self) -> LoadedLayers:
        """The environments of the run."""
        return self.files.layers

    @property
    def failed(self) -> bool:
        """True if there are errors."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def names(self) -> set[str]:
        """The names of jobs."""
        return {name for part in self.files.parts for name in part.names}

    @property
    def wanted_files(self) -> set[str]:
        """The files with a job that was wanted."""
        wanted, pairs = self.request.wanted, zip(self.request.files.entries, self.files.parts, strict=True)
        return {entry.path for entry, part in pairs if any(map(wanted, part.names))}

    @property
    def comments(self) -> list[Suppression]:
        """The comments of files that suppress findings."""
        return [comment for part in self.files.parts for comment in part.comments]

    @property
    def file_count(self) -> int:
        """How many files were read."""
        entries = self.request.files.entries
        read = sum(entry.finding is None and entry.build is None for entry in entries)
        return read - sum(len(part.skipped) for part in self.files.parts)

    @property
    def skipped(self) -> dict[str, tuple[str, str]]:
        """The files that are no input: what they are, and why."""
        pairs = zip(self.request.files.entries, self.files.parts, strict=True)
        return {entry.path: skipped for entry, part in pairs for skipped in part.skipped}

    @property
    def lines(self) -> dict[str, Mapping[int, str]]:
        """The lines of each file that findings point at, without secrets, by number."""
        pairs = zip(self.request.files.entries, self.files.parts, strict=True)
        return {entry.path: part.lines for entry, part in pairs if part.lines}

    @property
    def without_schema(self) -> set[tuple[str, Identity | None]]:
        """Files with objects that were not compared with a schema; all other checks ran."""
        pairs = zip(self.request.files.entries, self.files.parts, strict=True)
        return {(entry.path, each.object) for entry, part in pairs for each in _list_hiding(part)}

    def find_files(self, finding: Finding) -> frozenset[str]:
        """Return the files of the jobs that a finding in a layer is about; none if it is not about certain jobs."""
        known = self.owners.get(name_finding(finding))
        if known or finding.object is None:
            return known or frozenset()
        first = self.seen.get(name_object(finding.env, finding.object))
        return frozenset((first.location.file,)) if first else frozenset()


def find_owners(files: FileResults) -> dict[tuple[object, ...], frozenset[str]]:
    """Return the files whose jobs a finding in a layer is about, by what the finding says."""
    owners: dict[tuple[object, ...], frozenset[str]] = {}
    for entry, part in zip(files.request.files.entries, files.parts, strict=True):
        for finding in part.findings:
            if finding.location.file != entry.path:
                name = name_finding(finding)
                owners[name] = owners.get(name, frozenset()) | {entry.path}
    return owners


def find_unchecked(files: FileResults) -> frozenset[str]:
    """Return the files in which an object was not checked, or not by every check."""
    return frozenset(
        entry.path
        for entry, part in zip(files.request.files.entries, files.parts, strict=True)
        if part.unchecked or part.unrendered or not all(each.rule in NO_SCHEMA_RULES for each in _list_hiding(part))
    )


def _list_hiding(part: FileResult) -> list[Finding]:
    """Return the findings behind which others may be hidden."""
    return [finding for finding in part.findings if finding.rule in HIDING_RULES]


def name_finding(finding: Finding) -> tuple[object, ...]:
    """Return what a finding says, whatever its severity."""
    return finding.key, finding.object


def name_object(env: str, identity: Identity) -> tuple[str, ...]:
    """Return what identifies an object in an environment, in any version of its kind."""
    api_version, *rest = identity
    return (env, api_version.rpartition("/")[0], *rest)
