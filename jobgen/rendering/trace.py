"""Process single jobs again with locations: the same functions on data whose leaves carry their locations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, cast

from jobgen.model.data import Location, Node, TracedScalar, ValidFields, location_of
from jobgen.model.finding import Finding, Problem, Related, add_failures
from jobgen.model.mutated import Mutated
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step, find_path, format_pointer, name_items
from jobgen.rendering import config
from jobgen.rendering.build import build_objects, identity_of, is_spec, is_split, job_attributes, name_layer
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.expand import Expander, JobDocument, find_dead_deletions
from jobgen.rendering.locate import locate
from jobgen.repo.commit import CommitPath
from jobgen.repo.files import BuiltObject, File, FileEntry, read_file
from jobgen.repo.shipped import BUILT_IN
from jobgen.spec.merge import Deletion
from jobgen.spec.overlay import Patch
from jobgen.spec.sweeps import expand_member


class Job(NamedTuple):
    """A document of jobs/, or a part of one, and its position in its file."""

    document: JobDocument
    file: File
    position: int
    item: int
    location: Location
    sweep: ValidFields | None = None
    """The document of the sweep that it is a member of."""
    built: BuiltObject | None = None
    """The object that a tool builds from several files, if it is one."""
    mended: ValidFields | None = None
    """Its data with locations, if it had errors and was mended."""

    def traced_document(self) -> JobDocument:
        """The same document with locations."""
        if self.built:
            return JobDocument(self.built.traced, self.file.path)
        if self.mended is not None:
            return self.document._replace(data=self.mended)
        data = config.read_traced(self.file)[self.position].data
        return JobDocument(select_item(data, self.item), self.file.path, self.document.sweep)

    def start(self) -> Location:
        """The location of its first line. For an item of a List the file is read again with locations."""
        if self.built:
            return self.built.location
        if self.item < 0:
            return self.location
        data = config.read_traced(self.file)[self.position].data
        return data["items"].item_locations[self.item] if is_split(data) else self.location

    def name(self) -> Location:
        """The location of its name as it is written; of its first line if it has none."""
        metadata = self.traced_document().data.get("metadata")
        return (location_of(metadata.get("name")) if isinstance(metadata, dict) else None) or self.start()

    def find_choice(self, name: str = "framework") -> Location | None:
        """The location of `framework` or `platform` in a spec, which select the kind; the first if it has no other."""
        spec = self.traced_document().data.get("spec")
        return location_of(spec.get(name, spec.get("framework"))) if isinstance(spec, dict) else None

    def find_written(self, location: Location, path: Sequence[Step]) -> Location:
        """Return the line of a value that the job's author can change: for one of a kind description, what chose it."""
        if not location.file.removeprefix(BUILT_IN).startswith("schemas/"):
            return location
        return self.find_choice("platform" if path[:1] == ("apiVersion",) else "framework") or self.start()


WHOLE = -1
"""The item number of a whole document. Items of a List count up from 0, members of a sweep count down from -2."""


def member_index(index: int) -> int:
    """The item number of a member of a sweep."""
    return WHOLE - 1 - index


def select_item(data: ValidFields, item: int) -> ValidFields:
    """The job with an item number in a document."""
    if item == WHOLE:
        return data
    if item > WHOLE:
        return cast(ValidFields, data["items"][item]) if is_split(data) else data
    return cast(ValidFields, expand_member(data, WHOLE - 1 - item))


class JobRef(NamedTuple):
    """A reference to a job in an environment."""

    env: str
    path: str
    position: int
    item: int
    companion: int = 0

    @property
    def place(self) -> tuple[str, int, int]:
        """The job in its file."""
        return self.path, self.position, self.item


class Traced(NamedTuple):
    """A job's objects with locations, and the problems and deletions of building them."""

    objects: tuple[Mapping[str, Node], ...]
    problems: list[Problem]
    deletions: list[Deletion]

    @property
    def object(self) -> Mapping[str, Node] | None:
        """The object of the job itself."""
        return self.select(0)

    def select(self, companion: int) -> Mapping[str, Node] | None:
        """Return an object by its number; None if the job has no such object."""
        return self.objects[companion] if companion < len(self.objects) else None


def name_removals(finding: Finding, path: tuple[Step, ...], mutated: Mutated) -> Iterator[Related]:
    """The policies that remove a field beside a value, if the finding is about the field."""
    for removal in mutated.removals:
        *parent, name = removal.path
        if removal.source.location and tuple(parent) in (path, path[:-1]) and name in finding.values:
            text = f"policy `{removal.source.policy}` removes `{name}` when the object is created"
            yield Related(removal.source.location, text)


def format_place(job: Job, path: Iterable[Step], tree: Node) -> str:
    """The place of a finding that stays the same if list items or members of a sweep are added before it."""
    return f"{job.document.sweep or job.document.name}{format_pointer(name_items(path, tree))}"


def _list_patches(document: JobDocument, expander: Expander) -> list[Patch]:
    """The patches that match a job. Without any patches its attributes are not needed."""
    environment = expander.environment
    return environment.patches_for(job_attributes(document, expander)) if environment.patches else []


class Tracer:
    """Processes jobs with locations. Configuration and environments are loaded on first use."""

    def __init__(self, project: ProjectConfig, same_layers: Tracer | None = None) -> None:
        """Start with a project; `same_layers` has one whose layers are equal, such as that of another revision."""
        self.project = project
        self._same_layers = same_layers
        self._marked: ProjectConfig | None = None
        self._expanders: dict[str, Expander] = {}
        self._untraced: dict[str, Expander] = {}

    def traced_project(self) -> ProjectConfig:
        """The configuration, with locations."""
        if self._marked is None:
            project = self.project
            if self._same_layers:
                marked = self._same_layers.traced_project()
            else:
                marked = config.load(project.layers, traced=True, today=project.today, mended=project.mended)
            same = ("layers", "today", "date", "as_written", "versions")
            self._marked = marked._replace(**{name: getattr(project, name) for name in same})
        return self._marked

    def expander(self, env: str) -> Expander:
        """The expander of an environment, with locations."""
        if env not in self._expanders:
            project = self.traced_project()
            self._expanders[env] = Expander(project.environment(env, []), list(project.kinds), project.day)
        return self._expanders[env]

    def _select_expander(self, job: Job, env: str) -> Expander:
        """The expander of a job: with locations, unless no overlay touches the job, as with most raw manifests."""
        if env not in self._untraced:
            project = self.project
            self._untraced[env] = Expander(project.environment(env, []), list(project.kinds), project.day)
        expander = self._untraced[env]
        environment = expander.environment
        is_unchanged = not is_spec(job.document.data) and environment.namespace is None and not environment.images
        is_unchanged = is_unchanged and not environment.locks and environment.teams.find(job.file.path) is None
        if is_unchanged and not _list_patches(job.document, expander):
            return expander
        return self.expander(env)

    def trace(self, job: Job, env: str) -> Traced:
        """Build the objects of a job again, with locations."""
        expander = self._select_expander(job, env)
        if expander is self._untraced[env]:
            document = job.traced_document()
            return self._trace(document if job.built else name_layer(document), expander)
        # Problems of the job itself have nodes of its document. These must not be nodes of the object, too: a place in
        # the object is no part of the fingerprint of such a problem.
        return self._trace(job.traced_document(), expander)

    def trace_each(self, job: Job, envs: Iterable[str]) -> Iterator[Traced]:
        """Build the objects of a job in several environments, which share the nodes of its document."""
        document = name_layer(job.traced_document())
        for env in envs:
            yield self._trace(document, self._select_expander(job, env))

    def _trace(self, document: JobDocument, expander: Expander) -> Traced:
        traced = Traced((), [], [])
        patches = _list_patches(document, expander)
        made = build_objects(document, expander, patches, traced.problems, traced.deletions)
        return traced._replace(objects=made)

    def findings(
        self,
        job: Job,
        env: str,
        checker: Callable[[Any], list[Problem]] | None = None,
        companion: int = 0,
        mutate: Callable[[Any], Mutated] = Mutated,
    ) -> list[Finding]:
        """The findings of a job in an environment, or those of a checker for one of its objects.

        The checker gets the object that `mutate` returns.
        """
        traced = self.trace(job, env)
        mutated = mutate(traced.select(companion))
        made = mutated.object
        problems = add_failures(mutated.failures, checker(made)) if checker else traced.problems
        identity = identity_of(made) if isinstance(made, dict) else None
        # Before the locations: nodes know their paths until they are located.
        paths = [find_path(problem.node, made) for problem in problems]
        found: list[Finding] = []
        for problem, path in zip(problems, paths, strict=True):
            problem = self.look_inside(problem, job.file)  # noqa: PLW2901
            finding = locate(problem, job.file.path, None if problem.location else job.start())
            location = job.find_written(finding.location, path)
            related = (*finding.related, *name_removals(finding, path, mutated))
            finding = finding._replace(related=related, location=location, object=identity, env=env)
            found.append(finding._replace(pointer=format_pointer(path), place=format_place(job, path, made)))
        return found

    def look_inside(self, problem: Problem, own: File) -> Problem:
        """The problem at its place in the text of a file, if it has one."""
        text = problem.at if problem.at is not None else problem.node
        if problem.inside is None or type(text) is not TracedScalar:
            return problem
        # Imported late: most findings are about a value.
        from jobgen.yamlio.inner_text import find_in_text

        path = text.location.file
        # In a commit, only the place in the job identifies a finding.
        is_read = path == own.path or isinstance(self.project.root, CommitPath)
        file = own if is_read else read_file(FileEntry(path, str(self.project.root / path)))
        lines = file.content.decode("utf-8", "replace").split("\n") if file.path == path else []
        location = find_in_text(text, problem.inside, lines)
        return problem._replace(at=TracedScalar(text.value, location, text.layer))

    def find_dead_deletions(self, jobs: Iterable[Job]) -> list[Finding]:
        """Deletion markers that delete nothing in any of these jobs in any environment."""
        deletions: list[Deletion] = []
        for job, env in product(jobs, self.project.overlays or [""]):
            expander = self.expander(env)
            if expander.environment.matches(job_attributes(job.document, expander)):
                deletions += self.trace(job, env).deletions
        return [locate(problem, "overlays") for problem in find_dead_deletions(deletions)]
