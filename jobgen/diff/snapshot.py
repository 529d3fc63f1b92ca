"""One side of a comparison: a rendered jobs repository, a rendered tree, or a folder of manifests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

from jobgen.check.checker import Checker
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import ResourceTotals
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.device_catalog import complete_catalog
from jobgen.pipeline.environment import Rendered
from jobgen.pipeline.memory import RunMemory
from jobgen.pipeline.object_summary import ObjectSummary, list_groups, sum_object
from jobgen.pipeline.result_cache import digest_files
from jobgen.pipeline.run import Run
from jobgen.pipeline.trace import Job, Traced, Tracer, select_item
from jobgen.render.expand import JobDocument
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.repo.files import FileEntry, read_file
from jobgen.repo.lock import LOCK
from jobgen.repo.named_paths import find_manifests
from jobgen.repo.root import find_root, has_settings
from jobgen.repo.tree_files import find_environments
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

# A folder may hold YAML files that are not Kubernetes objects: settings, Helm values, workflows.
_NOT_AN_OBJECT = frozenset(("missing-field", "wrong-type", "not-a-mapping"))


class SummaryError(Exception):
    """A comparison needs an object of which only the summary is known."""


@dataclass
class Snapshot:
    """The objects of one side, and where each of them comes from."""

    name: str
    project: ProjectConfig
    environments: Sequence[str]
    objects: Sequence[Rendered]
    findings: Sequence[Finding]
    files: dict[str, FileEntry]
    folder: Folder
    """What the paths of files are relative to."""
    is_tree: bool = False
    """Whether the objects were read from manifests; otherwise they were rendered from jobs."""
    _checkers: dict[str, Checker] = field(default_factory=dict)
    _schemas: dict[tuple[str, str, str], bytes] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether an error prevents the snapshot from being rendered."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    @cached_property
    def tracer(self) -> Tracer:
        """Renders jobs a second time, with the location of every value."""
        return Tracer(self.project)

    def checker(self, env: str) -> Checker:
        """The checker for the kinds and the cluster of an environment."""
        if env not in self._checkers:
            is_known = not env or env in self.project.overlays
            cluster = self.project.environment(env, []).cluster if is_known else Cluster()
            # A file that defines devices is never summarized.
            made = (one.object for one in self.objects if one.env == env)
            objects = [each for each in made if not isinstance(each, ObjectSummary)]
            self._checkers[env] = Checker(
                self.project.root,
                self.project.kinds,
                cluster,
                read_catalog=cache(lambda: complete_catalog(objects, self.project, cluster)),
            )
        return self._checkers[env]

    def manifest(self, rendered: Rendered) -> Manifest:
        """The typed view of an object.

        Raises:
            SummaryError: Only the summary of the object is known.

        """
        if isinstance(rendered.object, ObjectSummary):
            raise SummaryError
        return self.checker(rendered.env).manifest(rendered.object)

    def list_groups(self, rendered: Rendered) -> tuple[str, str, str]:
        """The namespace, the team and the queue of an object."""
        summary = rendered.object
        return summary.groups if isinstance(summary, ObjectSummary) else list_groups(self.manifest(rendered))

    def sum_resources(self, rendered: Rendered, manifest: Manifest | None = None) -> ResourceTotals:
        """The resources of all pods of an object; those of an AppWrapper are the pods of the objects in it."""
        return sum_object(self.checker(rendered.env), rendered.object, manifest or self.manifest(rendered))

    def schema(self, rendered: Rendered) -> bytes:
        """The JSON Schema of an object in its cluster; empty if there is none."""
        checker = self.checker(rendered.env)
        key = (rendered.env, str(rendered.object.get("apiVersion")), str(rendered.object.get("kind")))
        if key not in self._schemas:
            self._schemas[key] = checker.read_json_schema(checker.manifest(rendered.object))
        return self._schemas[key]

    def trace(self, rendered: Rendered) -> Traced:
        """The object with a location on every value."""
        return self.tracer.trace(self.job(rendered), "" if self.is_tree else rendered.env)

    def job(self, rendered: Rendered) -> Job:
        """The job that an object was rendered from."""
        file = read_file(self.files[rendered.location.file])
        data = read(file.content, file.path).documents[rendered.position].data
        document = JobDocument(select_item(data, rendered.item), file.path)
        return Job(document, file, rendered.position, rendered.item, rendered.location)


def is_repository(folder: Folder) -> bool:
    """Whether a folder is the root of a jobs repository."""
    return has_settings(folder) or (folder / "jobs").is_dir() or (folder / "overlays").is_dir()


def snapshot_files(side: Side, wanted: Collection[str]) -> Snapshot:
    """Render some files of a jobs repository, of which it is known that all of it can be rendered."""
    chosen = _choose_environments(side.project, side.environments)
    files = {entry.path: entry for entry in layout.find_jobs(side.project.root) if entry.path in wanted}
    run = Run(side.project, chosen, entries=list(files.values()))
    snapshot = Snapshot(side.name, side.project, chosen, list(run), (), files, side.project.root)
    snapshot.tracer = side.tracer
    return snapshot


class Side(NamedTuple):
    """A side of a comparison, before it is rendered."""

    name: str
    project: ProjectConfig
    tracer: Tracer
    environments: Sequence[str]
    """The names of those that are compared; empty for all."""


def open_side(root: Folder, name: str, envs: Sequence[str], today: str, memory: RunMemory | None = None) -> Side:
    """Load the layers of a side. A memory has them, because a revision with equal layers was run with it."""
    if memory is not None:
        project = memory.move_project(root, today)
        return Side(name, project, memory.make_tracer(project), envs)
    project = config.load(root, today=today)
    return Side(name, project, Tracer(project), envs)


def _choose_environments(project: ProjectConfig, envs: Sequence[str]) -> Sequence[str]:
    return [env for env in envs if not env or env in project.overlays] if envs else project.environments()


class RepositoryFiles(NamedTuple):
    """The files of jobs of a repository, by path, and the digest of its layers."""

    layers: bytes
    jobs: dict[str, FileEntry]


def find_files(root: Folder) -> RepositoryFiles:
    """Find the files of a jobs repository."""
    return RepositoryFiles(
        digest_files(layout.read_inputs(root)), {entry.path: entry for entry in layout.find_jobs(root)}
    )


def find_equal_files(one: RepositoryFiles, other: RepositoryFiles) -> frozenset[str]:
    """Return the files of jobs that are the same in two revisions with equal layers; none if layers differ."""
    if one.layers != other.layers:
        return frozenset()
    return frozenset(
        path for path in one.jobs.keys() & other.jobs.keys() if read_file(one.jobs[path]) == read_file(other.jobs[path])
    )


def snapshot_repository(
    root: Folder,
    name: str,
    envs: Sequence[str] = (),
    today: str = "",
    memory: RunMemory | None = None,
    files: RepositoryFiles | None = None,
    summarized: frozenset[str] = frozenset(),
) -> Snapshot:
    """Render a jobs repository for these environments, or for all of them, as of a date.

    Objects that another snapshot with the same memory has from equal files and layers are used again. Of `summarized`
    files, which must be equal in all of these snapshots, the summaries of objects suffice if they are in the cache.
    """
    layers, jobs = files or find_files(root)
    memory = memory or RunMemory()
    project = memory.load_project(layers, root, today, partial(config.load, root, today=today))
    chosen = _choose_environments(project, envs)
    run = Run(project, chosen, jobs=list(jobs.values()), layers=layers, memory=memory, summarized=summarized)
    snapshot = Snapshot(name, project, chosen, list(run), run.findings, jobs, root)
    snapshot.tracer = memory.make_tracer(project)
    return snapshot


def snapshot_tree(folder: Folder, name: str, envs: Sequence[str] = (), today: str = "") -> Snapshot:
    """Read a rendered tree, or any folder of manifests.

    Cluster facts come from the jobs repository that contains the folder, if there is one.
    """
    project = config.load(find_root(folder.resolve()) or folder, today=today)
    rendered = [env for env in find_environments(folder) if env]
    entries = (entry for entry in find_manifests(folder, ".") if entry.path.rpartition("/")[2] != LOCK)
    files = {entry.path: entry for entry in entries}
    run = Run(project, [""], entries=list(files.values()))
    objects = [one._replace(env=_environment_of(one.location.file, rendered)) for one in run]
    wanted = [one for one in objects if not envs or one.env in envs]
    findings = [finding for finding in run.findings if finding.rule not in _NOT_AN_OBJECT]
    return Snapshot(name, project, rendered or [""], wanted, findings, files, folder, is_tree=True)


def _environment_of(path: str, environments: Sequence[str]) -> str:
    first = path.partition("/")[0]
    return first if first in environments else ""
