"""Render the jobs of one environment, and record which parts of its overlays took effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from jobgen.k8s.custom_kinds import Definition, may_define_kinds
from jobgen.model.data import Location, Node, value_of
from jobgen.model.digest import blake2b
from jobgen.model.finding import Finding, Identity, Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.locate import locate
from jobgen.pipeline.trace import Job, JobRef, Tracer
from jobgen.render.build import build_objects, identity_of, is_spec, job_attributes
from jobgen.render.expand import Expander
from jobgen.repo import layout
from jobgen.repo.files import FileEntry, read_file
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import EMPTY_PATCH, Environment, JobAttributes, Overlay, Patch, PatchName, list_ancestors

if TYPE_CHECKING:
    from jobgen.check.checker import Checker
    from jobgen.check.mutated import Mutated
    from jobgen.check.policy import Policies, PolicyEvaluator
    from jobgen.k8s.device_catalog import DeviceCatalog
    from jobgen.pipeline.file_definitions import FileDefinitions

PolicySource: TypeAlias = "Callable[[], Policies]"
"""Loads the compiled policies of a repository; called only when an object has to be checked."""

Marker = tuple[str, str]
"""A deletion marker of an overlay: the name of the mapping that holds it, and its key."""


class Rendered(NamedTuple):
    """An object of one environment, and the location of its job."""

    env: str
    object: Any
    """The object as plain data, or the result of the run's `finish`."""
    identity: Identity
    location: Location
    position: int = 0
    item: int = -1
    companion: int = 0
    """0 is the object of the job itself; its companions count up from 1."""
    job_digest: str = ""
    """The digest of the data of its job, if the run needs it."""


class OverlayUse(NamedTuple):
    """Which patches and deletion markers took effect, in a form that processes can exchange."""

    patches: set[PatchName]
    hits: dict[Marker, JobRef]
    misses: list[tuple[Marker, JobRef]]
    own_misses: list[JobRef]
    days: list[str]
    """The dates that the results depend on, because a job expires."""


def new_overlay_use() -> OverlayUse:
    """A record with nothing in it."""
    return OverlayUse(set(), {}, [], [], [])


class EnvironmentRunner:
    """Renders and checks the jobs of one environment."""

    def __init__(
        self,
        project: ProjectConfig,
        name: str,
        policies: PolicySource | None = None,
        names: dict[int, str] | None = None,
        entries: Sequence[FileEntry] | None = None,
    ) -> None:
        self.name = name
        self._entries = entries
        """The files of the run, if they are not those of the repository."""
        self._policies = policies
        self.problems: list[Problem] = []
        self.expander = Expander(project.environment(name, self.problems), list(project.kinds), self._day)
        self._commit_day: str | None = None
        self._days: list[str] = []
        self._project = project
        self._checker: Checker | None = None
        self._team_checkers: dict[str, Checker] = {}
        self._folder_checkers: dict[str, Checker] = {}
        self._catalog: DeviceCatalog | None = None
        self._definition_files: list[FileEntry] | None = None
        self._definitions: FileDefinitions | None = None
        self._has_read_others = False
        self.clean: set[bytes] = set()
        """Digests of built objects that have been checked, and with which nothing is wrong."""
        # Environments share overlays, so they share the names of their mappings.
        self._names: dict[int, str] = {} if names is None else names
        self._has_names = False

    @property
    def is_broken(self) -> bool:
        """Whether its overlays have errors that make findings about its jobs misleading."""
        return any(problem.rule != EMPTY_PATCH for problem in self.problems)

    @property
    def checker(self) -> Checker:
        """The checks of this environment's cluster."""
        if self._checker is None:
            # Imported late: a render does not need the rules.
            from jobgen.check.checker import Checker
            from jobgen.check.rules import all_rules

            project, cluster = self._project, self.expander.environment.cluster
            off = project.severities.off
            rules = [rule for rule in all_rules() if rule.name not in off]
            sources = self._read_catalog, self._find_definitions
            self._checker = Checker(project.root, project.kinds, cluster, rules, self._policy_evaluator(), *sources)
        return self._checker

    def mutate(self, obj: Mapping[str, Node]) -> Mutated:
        """An object with what mutating policies change when its cluster creates it."""
        return self.checker.mutate(obj)

    def find_checker(self, path: str) -> Checker:
        """The checks of an object from a file, with the limits of the team that owns the file."""
        environment = self.expander.environment
        team = environment.teams.find(path)
        if team is None:
            return self.checker if self._entries is None else self._find_folder_checker(path.rpartition("/")[0])
        if team.name not in self._team_checkers:
            scope = environment.teams.find_scope(team, self.name)
            self._team_checkers[team.name] = self.checker.limit_to_team(scope)
        return self._team_checkers[team.name]

    def _find_folder_checker(self, folder: str) -> Checker:
        """The checks of objects in a folder, for which the nearest definitions of their kinds count."""
        if folder not in self._folder_checkers:
            self._folder_checkers[folder] = self.checker.place_in(folder)
        return self._folder_checkers[folder]

    def _find_definitions(self, group: str) -> tuple[Definition, ...]:
        """The CustomResourceDefinitions of a group among the files of the run. A repository has schemas instead."""
        if self._entries is None:
            return ()
        self._has_read_others = True
        if self._definition_files is None:
            # The content of a build is that of files that have entries of their own, or are outside of the run.
            entries = (entry for entry in self._entries if entry.build is None)
            self._definition_files = [each for each in entries if may_define_kinds(read_file(each).content)]
        if not self._definition_files:
            return ()
        if self._definitions is None:
            # Imported late: most files define no kinds.
            from jobgen.pipeline.file_definitions import FileDefinitions

            self._definitions = FileDefinitions(self._definition_files)
        return self._definitions.find(group)

    def _read_catalog(self) -> DeviceCatalog:
        """The classes and claims for devices among the objects of the environment and its cluster."""
        if self._catalog is None:
            from jobgen.pipeline.device_catalog import complete_catalog

            cluster = self.expander.environment.cluster
            self._catalog = complete_catalog(self._render_device_objects(), self._project, cluster)
        self._has_read_others = True
        return self._catalog

    def _render_device_objects(self) -> Iterator[Mapping[str, Node]]:
        from jobgen.k8s.device_catalog import may_concern_devices
        from jobgen.k8s.device_claims import concerns_devices
        from jobgen.pipeline.read_jobs import read_jobs

        entries = layout.find_jobs(self._project.root) if self._entries is None else self._entries
        named = (entry for entry in entries if may_concern_devices(read_file(entry).content))
        for job in read_jobs(named, self._project.frameworks, []):
            patches = self.patches_for(job) if concerns_devices(job.document.data) else None
            if patches is not None:
                yield from (made.object for made in self.build_objects(job, patches, new_overlay_use()))

    def take_shared_use(self) -> bool:
        """Return True if devices or kinds that other files define have been looked up since the last call."""
        was_read, self._has_read_others = self._has_read_others, False
        return was_read

    def _policy_evaluator(self) -> PolicyEvaluator | None:
        if self._policies is None:
            return None
        from jobgen.check.policy import ClusterFacts, PolicyEvaluator

        plurals = {
            (str(value_of(kind.api_version)).partition("/")[0], kind.name): kind.plural for kind in self._project.kinds
        }
        cluster = self.expander.environment.cluster
        facts = ClusterFacts(self.name, cluster.operators, plurals, cluster.grants_permissions)
        policies, off = self._policies(), self._project.severities.off
        kept = tuple(pair for pair in policies.policies if pair[0].name not in off)
        mutating = tuple(pair for pair in policies.mutating if pair[0].policy.name not in off)
        return PolicyEvaluator(policies._replace(policies=kept, mutating=mutating), facts)

    def _day(self) -> str:
        if self._commit_day is None:
            # Reading it starts Git.
            self._commit_day = self._project.day()
        self._days.append(self._commit_day)
        return self._commit_day

    def overlay_findings(self, tracer: Tracer) -> list[Finding]:
        """Errors in the overlays of this environment."""
        problems: list[Problem] = []
        if self.problems:
            tracer.traced_project().environment(self.name, problems)
        return [locate(problem, "overlays") for problem in problems]

    def patches_for(self, job: Job) -> list[Patch] | None:
        """The patches that match a job; None if the job does not belong to this environment."""
        environment = self.expander.environment
        if not environment.jobs and not environment.patches:
            return []
        attributes = self.attributes(job)
        return environment.patches_for(attributes) if environment.matches(attributes) else None

    def list_runtime_patches(self, made: Sequence[Rendered]) -> list[Patch]:
        """The patches that were applied to the runtime of a job, if it is one of the repository."""
        environment = self.expander.environment
        if len(made) < 2 or not environment.runtimes:
            return []
        from jobgen.render.runtimes import find_runtime, list_patches

        runtime = find_runtime(made[0].object, environment.runtimes)
        return list_patches(runtime, made[-1].identity.namespace, environment) if runtime else []

    def attributes(self, job: Job) -> JobAttributes:
        """The attributes of a job that selectors match on."""
        return job_attributes(job.document, self.expander)

    def build_objects(self, job: Job, patches: list[Patch], used: OverlayUse) -> list[Rendered]:
        """Render a job: its object and the companions of it; none if it has problems or is inactive."""
        return self.render_job(job, patches, used) or []

    def render_job(self, job: Job, patches: list[Patch], used: OverlayUse) -> list[Rendered] | None:
        """Render a job; None if it has problems. An inactive job has no objects."""
        problems: list[Problem] = []
        deletions: list[Deletion] = []
        made = build_objects(job.document, self.expander, patches, problems, deletions)
        if self._days:
            used.days.extend(self._days)
            self._days.clear()
        if deletions:
            self._record_deletions(job, deletions, used)
        if problems:
            return None
        return [
            Rendered(self.name, each, identity_of(each), job.location, job.position, job.item, companion)
            for companion, each in enumerate(made)
        ]

    def find_missing_images(self, made: Mapping[str, Node]) -> list[Problem]:
        """Report containers of a job without an image. The pods of some kinds get theirs from a runtime."""
        # Imported late: a lint has a rule for this.
        from jobgen.pipeline.missing_images import find_missing_images

        return find_missing_images(made, self._project.kinds)

    def marker(self, mapping: Any, key: str) -> Marker:
        """The marker of a mapping of its overlays, by which a record says that it took effect."""
        name = self._find_name(mapping)
        assert name is not None
        return name, key

    def _find_name(self, mapping: Any) -> str | None:
        """The name of a mapping of its layers; None for others. Few layers delete something: all get names on use."""
        if not self._has_names:
            _name_mappings(_list_blocks(self._project, self.expander.environment), self._names)
            self._has_names = True
        return self._names.get(id(mapping))

    def explain_inactive(self, job: Job) -> str:
        """Why a job of this environment is not rendered although it is valid; empty if it is rendered."""
        patches = self.patches_for(job)
        if patches is None or not is_spec(job.document.data):
            return ""
        spec = self.expander.expand(job.document, patches, [], [])
        if spec is None:
            return ""
        from jobgen.render.runs import explain_inactive

        return explain_inactive(spec, self._day)

    def _record_deletions(self, job: Job, deletions: list[Deletion], used: OverlayUse) -> None:
        where = JobRef(self.name, job.file.path, job.position, job.item)
        for deletion in deletions:
            name = self._find_name(deletion.asked_by)
            if name is None:
                used.own_misses.extend([] if deletion.found else [where])
            elif deletion.found:
                used.hits.setdefault((name, str(deletion.key)), where)
            else:
                used.misses.append(((name, str(deletion.key)), where))


def _list_blocks(project: ProjectConfig, environment: Environment) -> Iterator[tuple[str, Any]]:
    """The blocks of layers that may have deletion markers, each with its owner."""
    yield from ((each.overlay or f"team {each.team}", (each.layer, each.match)) for each in environment.defaults)
    yield from ((patch.overlay, patch._replace(place=0)) for patch in environment.patches)
    yield from ((change.overlay, change._replace(place=0)) for change in environment.images)
    yield from ((f"kind {kind.api_version}", (kind.name, *kind.list_layers())) for kind in project.kinds)


def _name_mappings(blocks: Iterable[tuple[str, Any]], names: dict[int, str]) -> None:
    """Name the `id` of each mapping by the content of its block, so that its name stays if other blocks change."""
    repeated: Counter[tuple[str, str]] = Counter()
    for owner, block in blocks:
        digest = blake2b(repr(block).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        # Equal blocks of one overlay are different ones.
        repeated[owner, digest] += 1
        start = f"{owner} {digest} {repeated[owner, digest]}"
        for number, mapping in enumerate(_list_mappings(block)):
            names.setdefault(id(mapping), f"{start} {number}")


def _list_mappings(tree: Any) -> Iterator[Any]:
    """Return the mappings in a tree, in a fixed order."""
    children = tree
    if isinstance(tree, dict):
        yield tree
        children = tree.values()
    for child in children:
        if isinstance(child, (dict, list, tuple)):
            yield from _list_mappings(child)


def overlay_errors(project: ProjectConfig, tracer: Tracer, environments: Sequence[str] | None) -> Iterator[Finding]:
    """Errors in kinds, overlays and settings; with `environments`, only those that affect one of them."""
    own = {overlay for name in environments or () for overlay in list_ancestors(name, project.overlays)}
    for finding in tracer.traced_project().findings if project.findings else ():
        overlay = _overlay_of(finding)
        if environments is None or not overlay or overlay in own:
            yield finding


def valid_environments(
    findings: Sequence[Finding], runners: Sequence[EnvironmentRunner], overlays: Mapping[str, Overlay]
) -> list[EnvironmentRunner]:
    """The environments whose overlays have no errors. Findings about jobs of the others would be misleading.

    A kind, a policy or a file that has errors is left out, and hides nothing else.
    """
    errors = (finding for finding in findings if finding.severity is Severity.ERROR and finding.rule != EMPTY_PATCH)
    wrong = {_overlay_of(finding) for finding in errors}
    return [
        runner for runner in runners if not runner.is_broken and wrong.isdisjoint(list_ancestors(runner.name, overlays))
    ]


def _overlay_of(finding: Finding) -> str:
    """The overlay of a finding; empty if it concerns all environments."""
    top, *folders = finding.location.file.split("/")
    return folders[0] if top == "overlays" and len(folders) > 1 else ""
