"""One environment at work: it takes jobs, makes their objects, and remembers what its overlays did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from jobgen.model.data import Data, Location, value_of
from jobgen.model.finding import Finding, Identity, Problem
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.locate import locate
from jobgen.pipeline.trace import Job, JobRef, Tracer
from jobgen.render.build import build_object, identity_of, job_attributes
from jobgen.render.expand import Expander
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import Patch

if TYPE_CHECKING:
    from jobgen.check.checker import Checker
    from jobgen.check.policy import Policies, PolicyEvaluator

PolicySource: TypeAlias = "Callable[[], Policies]"
"""Loads the compiled policies of a repository; called only when an object has to be checked."""

Marker = tuple[int, str]
"""A deletion marker of an overlay: the number of the mapping that holds it, and its key."""


class Rendered(NamedTuple):
    """An object of one environment, or what was made of it, and where its job stands."""

    env: str
    object: Data
    identity: Identity
    location: Location
    position: int = 0
    item: int = -1


_NO_IDENTITY = Identity("", "", "", "")

PatchName = tuple[str, int]
"""A patch, by its overlay and its place there."""


class OverlayUse(NamedTuple):
    """What the overlays did while jobs went by, in words that any process with the same overlays understands."""

    patches: set[PatchName]
    hits: dict[Marker, JobRef]
    misses: list[tuple[Marker, JobRef]]
    own_misses: list[JobRef]
    days: list[str]
    """The days that somebody asked for: what comes of a job that expires depends on them."""


def new_overlay_use() -> OverlayUse:
    """Overlays of which nothing is known yet."""
    return OverlayUse(set(), {}, [], [], [])


class EnvironmentRunner:
    """One environment, ready to take jobs."""

    def __init__(
        self,
        project: ProjectConfig,
        name: str,
        policies: PolicySource | None = None,
        numbers: dict[int, int] | None = None,
    ) -> None:
        self.name = name
        self._policies = policies
        self.problems: list[Problem] = []
        self.expander = Expander(project.environment(name, self.problems), list(project.kinds), self._day)
        self._days: list[str] = []
        environment = self.expander.environment
        self._shelf = project
        self._judge: Checker | None = None
        # Environments share overlays, and so their numbers; the same overlays always get the same ones.
        self._numbers: dict[int, int] = {} if numbers is None else numbers
        for found in _containers([environment.defaults, environment.patches, project.kinds]):
            self._numbers.setdefault(found, len(self._numbers))

    @property
    def checker(self) -> Checker:
        """Says what the cluster of this environment will say of an object."""
        if self._judge is None:
            # Whoever only renders need not wait for the rules to be imported.
            from jobgen.check.checker import Checker
            from jobgen.check.rules import all_rules

            project, cluster = self._shelf, self.expander.environment.cluster
            rules = [rule for rule in all_rules() if rule.name not in project.severities.off]
            self._judge = Checker(project.root, project.kinds, cluster, rules, self._policy_evaluator())
        return self._judge

    def _policy_evaluator(self) -> PolicyEvaluator | None:
        if self._policies is None:
            return None
        from jobgen.check.policy import Facts, PolicyEvaluator

        plurals = {
            (str(value_of(kind.api_version)).partition("/")[0], kind.name): kind.plural for kind in self._shelf.kinds
        }
        facts = Facts(self.name, self.expander.environment.cluster.operators, plurals)
        policies, off = self._policies(), self._shelf.severities.off
        kept = tuple(pair for pair in policies.policies if pair[0].name not in off)
        return PolicyEvaluator(policies._replace(policies=kept), facts)

    def _day(self) -> str:
        self._days.append(self._shelf.day())
        return self._days[-1]

    def overlay_findings(self, tracer: Tracer) -> list[Finding]:
        """What is wrong with the overlays that make this environment."""
        problems: list[Problem] = []
        if self.problems:
            tracer.traced_project().environment(self.name, problems)
        return [locate(problem, "overlays") for problem in problems]

    def patches_for(self, job: Job) -> list[Patch] | None:
        """The patches that mean a job; None if the job belongs elsewhere."""
        environment = self.expander.environment
        if not environment.jobs and not environment.patches:
            # Nobody asks anything about the job.
            return []
        facets = job_attributes(job.document, self.expander)
        return environment.patches_for(facets) if environment.matches(facets) else None

    def build_object(self, job: Job, patches: list[Patch], used: OverlayUse) -> Rendered | None:
        """The job's object, or None if it has problems or is at rest."""
        made = self.render_job(job, patches, used)
        return made if made and made.object is not None else None

    def render_job(self, job: Job, patches: list[Patch], used: OverlayUse) -> Rendered | None:
        """The job's object, or None if it has problems; of a job at rest there is no object, and nothing wrong."""
        problems: list[Problem] = []
        deletions: list[Deletion] = []
        made = build_object(job.document, self.expander, patches, problems, deletions)
        if self._days:
            used.days.extend(self._days)
            self._days.clear()
        if deletions:
            self._remember(job, deletions, used)
        if problems:
            return None
        identity = identity_of(made) if made is not None else _NO_IDENTITY
        return Rendered(self.name, made, identity, job.location, job.position, job.item)

    def _remember(self, job: Job, deletions: list[Deletion], used: OverlayUse) -> None:
        where = JobRef(self.name, job.file.path, job.position, job.item)
        for deletion in deletions:
            number = self._numbers.get(id(deletion.asked_by))
            if number is None:
                used.own_misses.extend([] if deletion.found else [where])
            elif deletion.found:
                used.hits.setdefault((number, str(deletion.key)), where)
            else:
                used.misses.append(((number, str(deletion.key)), where))


def _containers(tree: Data) -> Iterator[int]:
    """The identities of all mappings below a tree of the catalogue."""
    if isinstance(tree, dict):
        yield id(tree)
        for child in tree.values():
            yield from _containers(child)
    elif isinstance(tree, (list, tuple)):
        for child in tree:
            yield from _containers(child)
