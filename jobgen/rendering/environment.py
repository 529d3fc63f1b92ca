"""Render the jobs of one environment, and record which parts of its overlays took effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.model.data import Location, Node
from jobgen.model.digest import blake2b
from jobgen.model.finding import Finding, Identity, Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.rendering.build import build_objects, identity_of, is_spec, job_attributes
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.expand import DefaultUse, Expander
from jobgen.rendering.locate import locate
from jobgen.rendering.trace import Job, JobRef, Tracer
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import EMPTY_PATCH, Environment, JobAttributes, Overlay, Patch, PatchName, list_ancestors

Marker = tuple[str, str]
"""A deletion marker of an overlay: the name of the mapping that holds it, and its key."""


class Rendered(NamedTuple):
    """An object of one environment, and the location of its job."""

    env: str
    object: Any
    """The object as plain data, or what the run keeps of it."""
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
    defaults: list[DefaultUse]
    """The blocks of defaults that jobs have, and what these override."""
    reads: set[str]
    """What else the results read, besides files and patches: names of `rendering/result_inputs.py`."""


DAY = "day"
"""The read of a job that expires, or has a deadline."""


def new_overlay_use() -> OverlayUse:
    """A record with nothing in it."""
    return OverlayUse(set(), {}, [], [], [], set())


class EnvironmentRunner:
    """Renders the jobs of one environment."""

    def __init__(self, project: ProjectConfig, name: str, names: dict[int, str] | None = None) -> None:
        self.project = project
        self.name = name
        self.problems: list[Problem] = []
        self.expander = Expander(project.environment(name, self.problems), list(project.kinds), self._day)
        self._commit_day: str | None = None
        self._has_read_day = False
        # Environments share overlays, so they share the names of their mappings.
        self._names: dict[int, str] = {} if names is None else names
        self._has_names = False

    @property
    def is_broken(self) -> bool:
        """Return True if its overlays have errors that make findings about its jobs misleading."""
        return any(each.rule != EMPTY_PATCH and each.severity is Severity.ERROR for each in self.problems)

    def _day(self) -> str:
        if self._commit_day is None:
            # Reading it starts Git.
            self._commit_day = self.project.day()
        self._has_read_day = True
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
        from jobgen.rendering.runtimes import find_runtime, list_patches

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
        if self._has_read_day:
            used.reads.add(DAY)
            self._has_read_day = False
        if self.expander.default_uses:
            used.defaults.extend([] if problems else self.expander.default_uses)
            self.expander.default_uses.clear()
        where = JobRef(self.name, job.file.path, job.position, job.item)
        for deletion in deletions:
            name = self._find_name(deletion.asked_by)
            if name is None:
                used.own_misses.extend([] if deletion.found else [where])
            elif deletion.found:
                used.hits.setdefault((name, str(deletion.key)), where)
            else:
                used.misses.append(((name, str(deletion.key)), where))
        if problems:
            return None
        return [
            Rendered(self.name, each, identity_of(each), job.location, job.position, job.item, companion)
            for companion, each in enumerate(made)
        ]

    def find_missing_images(self, made: Mapping[str, Node]) -> list[Problem]:
        """Report containers of a job without an image. The pods of some kinds get theirs from a runtime."""
        # Imported late: a lint has a rule for this.
        from jobgen.rendering.patch_objects import find_missing_images

        return find_missing_images(made, self.project.kinds)

    def marker(self, mapping: Any, key: str) -> Marker:
        """The marker of a mapping of its overlays, by which a record says that it took effect."""
        name = self._find_name(mapping)
        assert name is not None
        return name, key

    def _find_name(self, mapping: Any) -> str | None:
        """The name of a mapping of its layers; None for others. Few layers delete something: all get names on use."""
        if not self._has_names:
            _name_mappings(self.project, self.expander.environment, self._names)
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
        from jobgen.rendering.runs import explain_inactive

        return explain_inactive(spec, self._day)


def _name_mappings(project: ProjectConfig, environment: Environment, names: dict[int, str]) -> None:
    """Name the `id` of each mapping that may have deletion markers.

    The name comes from the owner and the content of its block, so that it stays if other blocks change.
    """
    blocks: list[tuple[str, Any]] = [
        *((each.overlay or f"team {each.team}", (each.layer, each.match)) for each in environment.defaults),
        *((patch.overlay, patch._replace(place=0)) for patch in environment.patches),
        *((change.overlay, change._replace(place=0)) for change in environment.images),
        *((f"kind {kind.api_version}", (kind.name, *kind.list_layers())) for kind in project.kinds),
    ]
    repeated: Counter[tuple[str, str]] = Counter()
    for owner, block in blocks:
        digest = blake2b(repr(block).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        # Equal blocks of one overlay are different ones.
        repeated[owner, digest] += 1
        start = f"{owner} {digest} {repeated[owner, digest]}"
        for number, mapping in enumerate(_list_mappings(block)):
            names.setdefault(id(mapping), f"{start} {number}")


def _list_mappings(tree: Any) -> Iterator[Any]:
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
        overlay = name_overlay(finding)
        if environments is None or not overlay or overlay in own:
            yield finding


def valid_environments(
    findings: Sequence[Finding], runners: Sequence[EnvironmentRunner], overlays: Mapping[str, Overlay]
) -> list[EnvironmentRunner]:
    """The environments whose overlays have no errors. Findings about jobs of the others would be misleading.

    A kind, a policy or a file that has errors is left out, and hides nothing else.
    """
    errors = (finding for finding in findings if finding.severity is Severity.ERROR and finding.rule != EMPTY_PATCH)
    wrong = {name_overlay(finding) for finding in errors}
    return [
        runner for runner in runners if not runner.is_broken and wrong.isdisjoint(list_ancestors(runner.name, overlays))
    ]


def name_overlay(finding: Finding) -> str:
    """Return the overlay of a finding; empty if it concerns all environments."""
    top, *folders = finding.location.file.split("/")
    return folders[0] if top == "overlays" and len(folders) > 1 else ""
