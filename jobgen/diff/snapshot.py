"""One side of a comparison: a rendered jobs repository, a rendered tree, or a folder of manifests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

from jobgen.check.checker import Checker
from jobgen.engine.store import Store
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import ResourceTotals
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.device_catalog import complete_catalog
from jobgen.pipeline.lint_checks import CHECKED, CHECKED_SCOPE
from jobgen.pipeline.object_summary import ObjectSummary, list_groups, sum_object
from jobgen.render import config
from jobgen.render.config import ProjectConfig
from jobgen.render.environment import Rendered
from jobgen.render.expand import JobDocument
from jobgen.render.file_result import FileParts
from jobgen.render.prepare_run import digest_layers, load_project, make_tracer
from jobgen.render.result_inputs import concerns_others, digest_entry, make_key
from jobgen.render.run import Run
from jobgen.render.run_state import RunState
from jobgen.render.trace import Job, Traced, Tracer, select_item
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


def open_side(root: Folder, name: str, envs: Sequence[str], today: str, store: Store) -> Side:
    """Load the layers of a side; those of a revision with equal layers are used again."""
    project = load_project(store, root, today)
    return Side(name, project, make_tracer(store, project), envs)


def _choose_environments(project: ProjectConfig, envs: Sequence[str]) -> Sequence[str]:
    return [env for env in envs if not env or env in project.overlays] if envs else project.environments()


def find_equal_files(one: Folder, other: Folder) -> frozenset[str]:
    """Return the files of jobs that are the same in two revisions with equal layers; none if layers differ."""
    if digest_layers(one) != digest_layers(other):
        return frozenset()
    sides = ({entry.path: entry for entry in layout.find_jobs(root)} for root in (one, other))
    old, new = ({path: digest_entry(entry) for path, entry in side.items()} for side in sides)
    return frozenset(path for path, digest in old.items() if new.get(path) == digest)


def snapshot_repository(
    root: Folder,
    name: str,
    envs: Sequence[str] = (),
    today: str = "",
    store: Store | None = None,
    summarized: frozenset[str] = frozenset(),
) -> Snapshot:
    """Render a jobs repository for these environments, or for all of them, as of a date.

    Objects that the store has of equal files and layers are used again. Of `summarized` files, which must be equal in
    all of these snapshots, the summaries of objects suffice if a lint stored them.
    """
    store = store or Store()
    project = load_project(store, root, today)
    jobs = {entry.path: entry for entry in layout.find_jobs(root)}
    chosen = _choose_environments(project, envs)
    run = Run(project, chosen, jobs=list(jobs.values()), store=store)
    if summarized:
        run.summarize = partial(_find_summaries, run, summarized)
    snapshot = Snapshot(name, project, chosen, list(run), run.findings, jobs, root)
    snapshot.tracer = make_tracer(store, project)
    return snapshot


def _find_summaries(run: RunState, wanted: frozenset[str], entry: FileEntry) -> FileParts | None:
    """Return what a lint stored of a file: summaries of its objects instead of objects; None if that is not enough.

    It is not if something prevents a render, or if the objects depend on other files.
    """
    if run.store is None or run.inputs is None or entry.path not in wanted or concerns_others(read_file(entry).content):
        return None
    environments: list[str | None] = [None, *(runner.name for runner in run.runners)]
    keys = [make_key(CHECKED_SCOPE, env, entry) for env in environments]
    rows = [run.store.find(CHECKED, key, run.inputs.holds) for key in keys]
    parts = tuple(row.value for row in rows if row is not None)
    if len(parts) < len(rows) or any("" in part.unchecked or part.dependent for part in parts):
        return None
    if any(each.object is None or each.companion for part in parts for each in part.made):
        return None
    return tuple(part._replace(findings=[], comments=[], rows=[]) for part in parts)


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
