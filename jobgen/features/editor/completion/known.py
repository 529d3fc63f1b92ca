"""What a repository knows: its kinds, clusters, names and rules, for completion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from jobgen.check.rule_docs import RuleDoc, all_docs, policy_docs
from jobgen.features.editor.completion.names import KnownNames, list_index_names, list_layer_names, merge_names
from jobgen.features.editor.snapshot import Snapshot
from jobgen.features.editor.workspace import Ready, Workspace, load_ready
from jobgen.model.named_tuple import NamedTuple
from jobgen.render import config
from jobgen.render.config import ProjectConfig
from jobgen.repo.commit import Folder
from jobgen.spec.frameworks import Frameworks
from jobgen.spec.kinds import Kind
from jobgen.spec.overlay import Cluster


class Known(NamedTuple):
    """What a repository knows."""

    root: Folder
    kinds: tuple[Kind, ...]
    frameworks: Frameworks
    clusters: tuple[Cluster, ...]
    """Those of its environments; the newest releases if it has none."""
    names: KnownNames = KnownNames()
    read_docs: Callable[[], dict[str, RuleDoc]] = dict
    """Reads the documentation of all rules and policies."""
    read_policies: Callable[[], dict[str, RuleDoc]] = dict
    """Reads that of all policies."""

    def list_job_kinds(self, framework: str) -> list[Kind]:
        """Return the kinds that a job of a framework, or of any if it is empty, becomes in some environment."""
        platforms = {platform for cluster in self.clusters for platform in cluster.list_platforms()}
        return [
            kind
            for kind in sorted(self.kinds, key=lambda kind: kind.name)
            if kind.platform in platforms and (framework in kind.frameworks if framework else kind.frameworks)
        ]


class KnownCache:
    """What a workspace knows, collected again when its layers or its index have changed."""

    def __init__(self) -> None:
        self._project: ProjectConfig | None = None
        self._snapshot: Snapshot | None = None
        self._known: Known | None = None

    def find(self, workspace: Workspace) -> Known:
        """Return what a workspace knows now. While its settings have errors, what it knew before stays."""
        with workspace.reading():
            ready = load_ready(workspace)
            is_same = ready is None or ready.run.project is self._project
            if self._known is None or not is_same or self._snapshot is not workspace.snapshot:
                project, clusters = self._select(workspace, ready)
                self._known = _collect(workspace, project, clusters)
                self._project, self._snapshot = project, workspace.snapshot
        return self._known

    def _select(self, workspace: Workspace, ready: Ready | None) -> tuple[ProjectConfig, tuple[Cluster, ...]]:
        """Return the layers, and the clusters of the environments; the newest releases if none are known."""
        if ready is None:
            known = self._known.clusters if self._known else (Cluster(),)
            return self._project or config.load(workspace.root), known
        return ready.run.project, ready.clusters


def _collect(workspace: Workspace, project: ProjectConfig, clusters: Sequence[Cluster]) -> Known:
    states = sorted({cluster.state for cluster in clusters if cluster.state})
    names = merge_names(list_index_names(workspace.index), list_layer_names(project, states))
    home = workspace.root if workspace.is_repository else None
    docs, policies = cache(partial(all_docs, home)), cache(partial(policy_docs, home))
    return Known(Path(workspace.root), project.kinds, project.frameworks, tuple(clusters), names, docs, policies)
