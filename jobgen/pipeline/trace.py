"""Single jobs walked again with places: the same functions on the same data, whose leaves know their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from jobgen.model.data import Data, Location, location_of
from jobgen.model.finding import Finding, Problem
from jobgen.model.path import Step, format_pointer
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.locate import locate
from jobgen.render.build import build_object, identity_of, is_spec, job_attributes, split_list
from jobgen.render.expand import Expander, JobDocument, find_dead_deletions
from jobgen.repo import layout
from jobgen.spec.merge import Deletion
from jobgen.spec.sweeps import expand_member
from jobgen.yamlio.read import YamlDocument, read


class Job(NamedTuple):
    """A document of jobs/, or a part of one, with what is needed to find it again in its file."""

    document: JobDocument
    file: layout.File
    position: int
    item: int
    location: Location

    def marked(self) -> JobDocument:
        """The same document with places."""
        data = _marked(self.file)[self.position].data
        return JobDocument(select_item(data, self.item), self.file.path, self.document.sweep)

    def start(self) -> Location:
        """Where it begins; an item of a List begins on a line of its own, which only a marked read can tell."""
        if self.item < 0:
            return self.location
        data = _marked(self.file)[self.position].data
        return self.location if split_list(data)[self.item] is data else data["items"].item_locations[self.item]

    def framework(self) -> Location | None:
        """Where a spec says its framework, which is what chooses the kind."""
        spec = self.marked().data.get("spec")
        return location_of(spec.get("framework")) if isinstance(spec, dict) else None


WHOLE = -1
"""The number of a job that is a whole document; the items of a List count up from 0, the members of a sweep down."""


def member_index(index: int) -> int:
    """The number of a member of a sweep, from its place among the others."""
    return WHOLE - 1 - index


def select_item(data: Data, item: int) -> Data:
    """The job of that number in a document."""
    if item == WHOLE:
        return data
    return split_list(data)[item] if item > WHOLE else expand_member(data, WHOLE - 1 - item)


@lru_cache(maxsize=1)
def _marked(file: layout.File) -> tuple[YamlDocument, ...]:
    """The documents of a file with places; kept, for the jobs of one file are asked for one after the other."""
    return read(file.content, file.path, marked=True).documents


class JobRef(NamedTuple):
    """A job and its environment, by what is needed to find it again."""

    env: str
    path: str
    position: int
    item: int


class Traced(NamedTuple):
    """A job's object with a place on every leaf, and what came up on the way."""

    object: Data
    problems: list[Problem]
    deletions: list[Deletion]


def _path_to(node: Data, tree: Data) -> tuple[Step, ...]:
    """The way to a node of an object, found by identity; nothing if it is not there."""
    if isinstance(tree, (dict, list)):
        for key, child in tree.items() if isinstance(tree, dict) else enumerate(tree):
            if child is node or key is node:
                return (key,)
            below = _path_to(node, child)
            if below:
                return (key, *below)
    return ()


def _by_kind(finding: Finding) -> bool:
    """Whether a finding stands in the description of a kind, which nobody who has a job to mend has written."""
    return finding.location.file.startswith("schemas/")


class Tracer:
    """The catalogue and its environments with places, read when first needed."""

    def __init__(self, project: ProjectConfig) -> None:
        self.project = project
        self._marked: ProjectConfig | None = None
        self._expanders: dict[str, Expander] = {}
        self._bare: dict[str, Expander] = {}

    def traced_project(self) -> ProjectConfig:
        """The catalogue, with places."""
        if self._marked is None:
            self._marked = config.load(self.project.root, marked=True, today=self.project.today)
        return self._marked

    def expander(self, env: str) -> Expander:
        """An environment, with places."""
        if env not in self._expanders:
            marked = self.traced_project()
            self._expanders[env] = Expander(marked.environment(env, []), list(marked.kinds), marked.day)
        return self._expanders[env]

    def _layers_of(self, job: Job, env: str) -> Expander:
        """The layers of a job: with places, unless nothing of them reaches it, as with most manifests."""
        if env not in self._bare:
            project = self.project
            self._bare[env] = Expander(project.environment(env, []), list(project.kinds), project.day)
        expander = self._bare[env]
        environment = expander.environment
        untouched = not is_spec(job.document.data) and environment.namespace is None
        if untouched and not environment.patches_for(job_attributes(job.document, expander)):
            return expander
        return self.expander(env)

    def _takes(self, job: Job, env: str) -> bool:
        expander = self.expander(env)
        return expander.environment.matches(job_attributes(job.document, expander))

    def trace(self, job: Job, env: str) -> Traced:
        """The job walked again in an environment."""
        expander, document = self._layers_of(job, env), job.marked()
        traced = Traced(None, [], [])
        patches = expander.environment.patches_for(job_attributes(document, expander))
        made = build_object(document, expander, patches, traced.problems, traced.deletions)
        return traced._replace(object=made)

    def findings(self, job: Job, env: str, checker: Callable[[Data], list[Problem]] | None = None) -> list[Finding]:
        """What is wrong with a job in an environment, or with its object, each on its line."""
        traced = self.trace(job, env)
        problems = checker(traced.object) if checker else traced.problems
        identity = identity_of(traced.object) if isinstance(traced.object, dict) else None
        begins = job.start() if problems else job.location
        found = (locate(problem, job.file.path, begins) for problem in problems)
        return [
            finding._replace(
                location=(job.framework() or begins) if _by_kind(finding) else finding.location,
                object=identity,
                env=env,
                pointer=format_pointer(_path_to(problem.node, traced.object)),
            )
            for finding, problem in zip(found, problems, strict=True)
        ]

    def find_dead_deletions(self, jobs: Iterable[Job]) -> list[Finding]:
        """Markers that found nothing to delete in any of these jobs, whatever the environment."""
        environments = list(self.project.overlays) or [""]
        walks = (self.trace(job, env) for job in jobs for env in environments if self._takes(job, env))
        deletions = [deletion for walk in walks for deletion in walk.deletions]
        return [locate(problem, "overlays") for problem in find_dead_deletions(deletions)]
