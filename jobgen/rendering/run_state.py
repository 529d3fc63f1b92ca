"""The options of a run over a repository or over some files, and what it has found so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from jobgen.engine.inputs import digest_bytes
from jobgen.engine.store import Query, Store
from jobgen.model.budget import RUN
from jobgen.model.finding import Finding, Identity, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering import config
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import EnvironmentRunner, OverlayUse, Rendered, overlay_errors, valid_environments
from jobgen.rendering.file_result import Answer, FileResult, NotedExcess, SameFiles
from jobgen.rendering.left_out import LeftOut, find_environments
from jobgen.rendering.read_jobs import read_jobs
from jobgen.rendering.redact_results import redact_shared
from jobgen.rendering.result_inputs import ResultInputs, name_entry
from jobgen.rendering.trace import Job, Tracer
from jobgen.repo import layout
from jobgen.repo.commit import CommitPath, Folder, read_date
from jobgen.repo.files import FileEntry
from jobgen.reports import Suppressed
from jobgen.reports.suppress import HIDING_RULES, Suppression


def keep_object(made: Any) -> Any:
    """Keep an object as it is rendered."""
    return made


def discard_object(_: Any) -> None:
    """Drop an object that has been checked, to save memory."""


class Checks(Protocol):
    """What a lint does beside rendering. It is handed to a run, so that a render knows nothing of it."""

    query: Query[FileResult]
    """The question that the results of files answer."""
    facts: Query[FileResult]
    """The same for files that are rendered, and not checked."""
    across: Query[list[Finding]]
    """The question that the results of all files together answer."""

    def prepare(self, run: RunState) -> None:
        """Load the policies, and add what is wrong with them to the findings."""

    def select(self, run: RunState, runners: Sequence[EnvironmentRunner], *, is_all: bool) -> None:
        """Prepare to check the objects of the environments that can be rendered, of which these may be all."""

    def list_defects(self) -> set[str]:
        """Return the names of the known defects of the declared versions."""

    def forget_shared(self) -> None:
        """Forget what other files define; they may have changed since the last run."""

    def describe_membership(self, jobs: Callable[[], Sequence[Job]]) -> str:
        """Return a text that changes if environments do not select all jobs of a file, and then with what they do."""

    def check_job(self, run: RunState, tracer: Tracer, job: Job) -> Iterator[Finding]:
        """Report what is wrong with a job, whatever the environment."""

    def check_objects(
        self, run: RunState, env: str, tracer: Tracer, made: Sequence[tuple[Job, FileResult, Rendered]]
    ) -> list[Any]:
        """Check objects of an environment, add what is found to their results, and return what is kept of each."""

    def find_across(self, jobs: AllJobs, *, is_complete: bool) -> Iterator[Finding]:
        """Report what only all jobs together show."""

    def finish(self, run: RunState, jobs: AllJobs, shared: Sequence[Finding]) -> None:
        """Give findings the severities that they have in this repository, and note what was checked."""


RENDERED: Query[FileResult] = Query("rendered")
"""The objects of a file in one environment, for comparisons in one process."""


class RunState:
    """The options of a run, and what it has found so far."""

    rendered = False
    """True if nothing prevents a render: only checks of objects and of environments reported errors."""
    complete = False
    """True if settings, overlays, kinds and policies are valid, so that every environment was checked."""
    dated = False
    """True if the objects depend on the date."""
    files = 0
    policies: tuple[str, ...] = ()
    unchecked_rules: frozenset[str] = frozenset()
    """Rules and policies that could not be evaluated."""
    prepared_findings: tuple[Finding, ...] = ()
    """What is wrong with layers and policies."""
    hidden: Sequence[Suppressed] = ()
    """Findings that exceptions of the settings accept."""
    leaves_objects = False
    """True if a run with checks also leaves the objects in the store, for a render of the same files."""
    same = SameFiles()
    """The files whose objects nothing checks."""
    results: Query[FileResult] | None = None
    """Where the results of a run without checks are kept; by default in memory."""

    def __init__(
        self,
        project: ProjectConfig,
        environments: Sequence[str],
        wanted: Callable[[str], bool] = lambda _: True,
        finish: Callable[[Any], Any] = keep_object,
        progress: Callable[[int, int], None] = lambda _, __: None,
        *,
        checks: Checks | None = None,
        deployable: bool = False,
        digested: bool = False,
        jobs: Sequence[FileEntry] | None = None,
        entries: Sequence[FileEntry] | None = None,
        store: Store | None = None,
        is_cancellable: bool = False,
    ) -> None:
        self.project = project
        self.environments = self.selected = environments
        """Those that can be rendered, once the run is prepared, and those that were selected."""
        self.wanted = wanted
        self.finish = finish
        self.progress = progress
        self.checks = checks
        """What objects are checked by, if they are."""
        self.deployable, self.digested = deployable, digested
        """True if an object that no operator accepts, because a container has no image, is an error; and whether each
        object needs the digest of its job."""
        self.jobs, self.entries = jobs, entries
        self.store = store
        """The answers of earlier runs, if they may be used, and those of this one."""
        self.is_cancellable = is_cancellable
        """True if `progress` may end the run; then what was found until then is kept."""
        self.summarize: Callable[[FileEntry], tuple[FileResult, ...] | None] | None = None
        """Finds the results of a file of which something is known that is enough, so that it need not be rendered."""
        self.inputs: ResultInputs | None = None
        """What the results of files read, if they are kept."""
        self.answers: Mapping[str, Answer] = {}
        """The results of files, by name, if they are kept."""
        self.runners: list[EnvironmentRunner] = []
        self.tracer = Tracer(project)
        self.findings: list[Finding] = []
        self.excesses: list[NotedExcess] = []
        """What objects took of the steps of the run."""
        self.names, self.wanted_files, self.comments = set[str](), set[str](), list[Suppression]()
        """The names of jobs, files with a job that is wanted, and comments that suppress findings."""
        self.left_out: dict[str, tuple[str, str]] = {}
        """The files that were found in a folder and are no input: what they are, and why."""
        self.not_rendered: list[LeftOut] = []
        """Jobs and environments with errors, once the run is done."""
        self.lines: dict[str, Mapping[int, str]] = {}
        """The lines of each file that findings point at, without secrets, by number."""
        self.seen: dict[tuple[str, ...], Rendered] = {}
        """The first of each object, by environment and identity, without its version; not of standalone files."""
        self.owners: dict[tuple[object, ...], set[str]] = {}
        """The files whose jobs a finding in a layer is about, by what the finding says."""
        self.unchecked: set[str] = set()
        """Files in which an object was not checked, or not by every check."""
        self.without_schema: set[tuple[str, Identity | None]] = set()
        """Files with objects that were not compared with a schema; all other checks ran."""

    @property
    def checked(self) -> bool:
        """Return True if objects are checked."""
        return self.checks is not None

    @property
    def scope(self) -> str:
        """How files are processed: results of different scopes are different answers."""
        names = ("deployable", "digested")
        options = [name for name in names if getattr(self, name)]
        return " ".join(("jobs" if self.entries is None else "files", self.finish.__name__, *options))

    def choose_query(self, entry: FileEntry) -> Query[FileResult]:
        """Return the question that the results of a file answer."""
        if self.checks is None:
            return self.results or RENDERED
        return self.checks.facts if entry.path in self.same.files else self.checks.query

    def name_scope(self, entry: FileEntry) -> str:
        """Return how a file is processed: results of different scopes are different answers."""
        if entry.path not in self.same.files:
            return self.scope
        return " ".join((self.scope, *sorted(self.same.rules)))

    @property
    def failed(self) -> bool:
        """Return True if there are errors."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def find_files(self, finding: Finding) -> set[str]:
        """Return the files of the jobs that a finding in a layer is about; none if it is not about certain jobs."""
        known = self.owners.get(name_finding(finding))
        if known or finding.object is None:
            return known or set()
        made = self.seen.get(name_object(finding.env, finding.object))
        return {made.location.file} if made else set()

    @property
    def has_broken_layers(self) -> bool:
        """Return True if settings, kinds, teams or runtimes have errors: they may concern every job."""
        errors = (finding for finding in self.prepared_findings if finding.severity is Severity.ERROR)
        return any(not finding.location.file.startswith("overlays/") for finding in errors)


def name_finding(finding: Finding) -> tuple[object, ...]:
    """Return what a finding says, whatever its severity."""
    return finding.key, finding.object


def name_object(env: str, identity: Identity) -> tuple[str, ...]:
    """Return what identifies an object in an environment, in any version of its kind."""
    api_version, *rest = identity
    return (env, api_version.rpartition("/")[0], *rest)


class AllJobs(NamedTuple):
    """The results of all files of a run."""

    run: RunState
    runners: list[EnvironmentRunner]
    entries: Sequence[FileEntry]
    parts: Sequence[FileResult]
    tracer: Tracer
    is_standalone: bool
    """True if the files are checked by themselves, and are no environment together."""
    progress: Callable[[], None]

    @property
    def uses(self) -> list[OverlayUse]:
        """Which parts of overlays took effect, by file."""
        return [part.used for part in self.parts]

    def list_made(self) -> list[Rendered]:
        """Return all objects, without their data."""
        return [made for part in self.parts for made in part.made]

    def list_jobs(self) -> Iterator[Job]:
        """Return all jobs of the repository; if their outlines are known, these."""
        project, inputs = self.run.project, self.run.inputs
        if inputs is None:
            return read_jobs(layout.find_jobs(project.root), project.kinds, [])
        return (job for entry in self.entries for job in inputs.list_outlines(name_entry(entry)))


class Prepared(NamedTuple):
    """The environments of a run, ready to process jobs, and what preparing them found."""

    runners: list[EnvironmentRunner]
    checks: Checks | None
    tracer: Tracer
    findings: tuple[Finding, ...]
    environments: Sequence[str]
    policies: tuple[str, ...]
    complete: bool
    unchecked_rules: frozenset[str]


_PROJECT: Query[ProjectConfig] = Query("project")
_TRACER: Query[Tracer] = Query("tracer")
_PREPARED: Query[Prepared] = Query("prepared")


def digest_layers(root: Folder) -> str:
    """Return the digest of everything but jobs that a run depends on."""
    digests = ((file.path, repr(file.finding), digest_bytes(file.content)) for file in layout.read_inputs(root))
    return digest_bytes(repr(list(digests)).encode("utf-8", "surrogatepass"))


def load_project(store: Store | None, root: Folder, today: str = "", mended: str = "") -> ProjectConfig:
    """Load the layers of a repository, or take those of a revision or a run with the same content."""
    if store is None:
        return config.load(root, today=today, mended=mended)
    layers = f"{digest_layers(root)} {mended}".rstrip()

    def load() -> ProjectConfig:
        return config.load(root, today=today, mended=mended)._replace(layers=layers)

    project = store.remember(_PROJECT, _name_reader(root), layers, load)
    if project.root == root and project.today == today:
        return project
    date = (today or read_date(root)) if project.date else ""
    return project._replace(root=root, today=today, date=date)


def _name_reader(root: Folder) -> str:
    """Return how a folder is read: what is an error in its settings depends on it, though the layers are equal."""
    return repr((isinstance(root, CommitPath), layout.find_judge(root) is not None))


def make_tracer(store: Store | None, project: ProjectConfig) -> Tracer:
    """Return a tracer. Those of revisions with the same layers read these once."""
    if store is None or not project.layers:
        return Tracer(project)
    same = store.remember(_TRACER, _name_reader(project.root), project.layers, lambda: Tracer(project))
    return same if same.project is project else Tracer(project, same)


def prepare_run(run: RunState) -> Prepared:
    """Prepare the environments of a run, or take those of a run with the same layers."""
    project, store = run.project, run.store
    if store is None or not project.layers or run.entries is not None:
        prepared = _prepare(run)
    else:
        where = str(project.root), _name_reader(project.root)
        key = repr((where, project.today, project.date, project.as_written, run.environments, run.checked))
        prepared = store.remember(_PREPARED, key, project.layers, lambda: _prepare(run))
    RUN.reset()
    if prepared.checks is not None:
        prepared.checks.forget_shared()
    run.checks, run.runners, run.tracer = prepared.checks, prepared.runners, prepared.tracer
    run.findings[:] = run.prepared_findings = prepared.findings
    run.environments, run.policies = prepared.environments, prepared.policies
    run.complete, run.unchecked_rules = prepared.complete, prepared.unchecked_rules
    valid = [runner.name for runner in run.runners]
    run.not_rendered[:] = find_environments(run.selected, valid, run.findings, project.overlays)
    return prepared


def _prepare(run: RunState) -> Prepared:
    """Prepare the environments that can be rendered; errors in layers and policies become findings."""
    tracer = make_tracer(run.store, run.project)
    run.findings += overlay_errors(run.project, tracer, None if run.checked else run.environments)
    names: dict[int, str] = {}
    runners = [EnvironmentRunner(run.project, name, names) for name in run.environments]
    if run.checks is not None:
        run.checks.prepare(run)
    run.findings += (finding for runner in runners for finding in runner.overlay_findings(tracer))
    valid = valid_environments(run.findings, runners, run.project.overlays)
    if run.checks is not None:
        run.checks.select(run, valid, is_all=len(valid) == len(runners))
    complete = len(valid) == len(runners) and not run.failed
    is_hidden = any(finding.rule in HIDING_RULES for finding in run.findings)
    unchecked = frozenset(run.policies) if is_hidden else frozenset[str]()
    findings = tuple(redact_shared(run.project, run.findings)) if run.findings else ()
    environments = [runner.name for runner in valid] or run.environments
    return Prepared(valid, run.checks, tracer, findings, environments, run.policies, complete, unchecked)
