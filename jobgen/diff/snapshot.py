"""One side of a comparison: a jobs repository rendered, a rendered tree, or a folder of manifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from jobgen.check.checker import Checker
from jobgen.k8s.objects import Manifest
from jobgen.model.finding import Finding, Severity
from jobgen.pipeline import config
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.environment import Rendered
from jobgen.pipeline.run import Run
from jobgen.pipeline.trace import Job, Traced, Tracer, select_item
from jobgen.render.expand import JobDocument
from jobgen.repo import layout, rendered_tree
from jobgen.repo.lock import LOCK
from jobgen.spec.overlay import Cluster
from jobgen.yamlio.read import read

# A folder may well hold YAML that is no object of Kubernetes: settings, values, workflows.
_NO_OBJECT = frozenset(("missing-field", "wrong-type", "not-a-mapping"))


@dataclass
class Snapshot:
    """What one side renders to, and where each object comes from."""

    name: str
    project: ProjectConfig
    environments: Sequence[str]
    made: Sequence[Rendered]
    findings: Sequence[Finding]
    entries: dict[str, layout.FileEntry]
    is_tree: bool = False
    _judges: dict[str, Checker] = field(default_factory=dict)
    _schemas: dict[str, bytes] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether something keeps it from being rendered."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    @cached_property
    def tracer(self) -> Tracer:
        """Walks its jobs again, with places."""
        return Tracer(self.project)

    def checker(self, env: str) -> Checker:
        """Knows the kinds and the cluster of an environment."""
        if env not in self._judges:
            known = env in self.project.overlays
            cluster = self.project.environment(env, []).cluster if known else Cluster()
            self._judges[env] = Checker(self.project.root, self.project.kinds, cluster)
        return self._judges[env]

    def manifest(self, made: Rendered) -> Manifest:
        """An object as rules look at it."""
        return self.checker(made.env).manifest(made.object)

    def schema(self, made: Rendered) -> bytes:
        """The schema of an object, as its cluster has it; empty where none is known."""
        checker = self.checker(made.env)
        file = checker.schema_of(checker.manifest(made.object))
        if file not in self._schemas:
            found = layout.schema(self.project.root, file)
            self._schemas[file] = found.file.content if found else b""
        return self._schemas[file]

    def trace(self, made: Rendered) -> Traced:
        """An object with a place on every leaf."""
        return self.tracer.trace(self.job(made), "" if self.is_tree else made.env)

    def job(self, made: Rendered) -> Job:
        """The document that an object was made of."""
        file = layout.read(self.entries[made.location.file])
        data = read(file.content, file.path).documents[made.position].data
        return Job(JobDocument(select_item(data, made.item), file.path), file, made.position, made.item, made.location)


def is_repository(folder: Path) -> bool:
    """Whether a folder is a jobs repository itself, rather than a place for manifests."""
    return (folder / layout.SETTINGS).is_file() or (folder / "jobs").is_dir() or (folder / "overlays").is_dir()


def snapshot_repository(root: Path, name: str, envs: Sequence[str] = (), today: str = "") -> Snapshot:
    """A jobs repository, rendered for these environments, or for all, as it is on a day."""
    project = config.load(root, today=today)
    chosen = [env for env in envs if env in project.overlays] if envs else project.environments()
    entries = {entry.path: entry for entry in layout.jobs(root)}
    run = Run(project, chosen)
    return Snapshot(name, project, chosen, list(run), run.findings, entries)


def snapshot_tree(folder: Path, name: str, envs: Sequence[str] = (), today: str = "") -> Snapshot:
    """A rendered tree, or any folder of manifests; of an environment that a repository around it knows, the cluster."""
    project = config.load(layout.find_root(folder.resolve()) or folder, today=today)
    rendered = [env for env in rendered_tree.environments(folder) if env]
    found = (entry for entry in layout.find_manifests(folder, ".") if entry.path.rpartition("/")[2] != LOCK)
    entries = {entry.path: entry for entry in found}
    run = Run(project, [""], entries=list(entries.values()))
    made = [one._replace(env=_environment(one.location.file, rendered)) for one in run]
    wanted = [one for one in made if not envs or one.env in envs]
    findings = [finding for finding in run.findings if finding.rule not in _NO_OBJECT]
    return Snapshot(name, project, rendered or [""], wanted, findings, entries, is_tree=True)


def _environment(path: str, rendered: Sequence[str]) -> str:
    first = path.partition("/")[0]
    return first if first in rendered else ""
