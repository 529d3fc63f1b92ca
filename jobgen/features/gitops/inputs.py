"""What the documents for Argo CD and Flux are built from: the kinds, and the Git repository of the rendered tree."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from jobgen.features.gitops.status_rules import ENGINE_WORKLOADS, EngineWorkload, find_engine_workload
from jobgen.k8s.kueue import QUEUE_LABEL, is_managed_kind
from jobgen.k8s.pod_sets import list_template_paths
from jobgen.k8s.workloads import find_workload
from jobgen.model.data import value_of
from jobgen.model.path import NamedItem, Step
from jobgen.repo.lock import TREE
from jobgen.spec.kinds import Kind

QUEUE_MANAGER = "kueue.x-k8s.io/manager"
# Fields that Kueue writes to the pod templates of a job when it admits it.
INJECTED_FIELDS = ("nodeSelector", "schedulingGates", "tolerations")


class EngineKind(NamedTuple):
    """A kind with all its versions, because GitOps engines identify kinds by group and name."""

    group: str
    name: str
    versions: tuple[Kind, ...] = ()
    """Its descriptions; none for a kind that is only in the table of workloads."""

    @property
    def workload(self) -> EngineWorkload | None:
        """What the table of workloads says about it."""
        return find_engine_workload(self.group, self.name)

    @property
    def key(self) -> str:
        """The name of the kind in the settings of Argo CD."""
        return f"{self.group}_{self.name}"

    @property
    def api_version(self) -> str:
        """The first version; engines read only its group."""
        if self.workload:
            return f"{self.group}/{self.workload.version}"
        return str(value_of(self.versions[0].api_version))

    @property
    def is_job(self) -> bool:
        """Whether it is a job; runtimes are not."""
        return self.workload is not None or any(kind.roles for kind in self.versions)

    @property
    def has_health(self) -> bool:
        """Whether it needs a health check."""
        return self.workload.has_health if self.workload else self.is_job

    @property
    def is_builtin(self) -> bool:
        """Whether Kubernetes has this kind, so that engines know its types."""
        return self.group == "batch"

    @property
    def is_queued(self) -> bool:
        """Whether Kueue can manage its jobs, and writes to their objects; it holds back the pods of other kinds."""
        if self.workload:
            return is_managed_kind(self.group, self.name) and bool(self.suspend_path)
        return any(QUEUE_LABEL in kind.fields["queue"].at for kind in self.versions if "queue" in kind.fields)

    @property
    def suspend_path(self) -> tuple[str, ...]:
        """The path of the field that suspends a job; empty if there is none."""
        if workload := find_workload(self.group, self.name):
            return workload.suspend
        paths = (kind.fields["suspend"].at for kind in self.versions if "suspend" in kind.fields)
        return _to_keys(next(paths, ()))

    @property
    def pod_paths(self) -> tuple[tuple[str, ...], ...]:
        """The paths of its pod specs, with `*` for any list item; empty for a kind without pod templates."""
        if self.workload:
            templates = list_template_paths(self.group, self.name)
            return tuple(sorted({(*_to_keys(_every_item(path)), "spec") for path in templates}))
        return tuple(sorted({path for kind in self.versions for path in _pod_paths(kind)}))

    @property
    def patch_paths(self) -> tuple[tuple[str, bool], ...]:
        """The paths of pod template patches in a kind without templates, and whether each patch has a `manager`."""
        shapes = [shape for kind in self.versions if kind.template for shape in kind.template.shapes]
        return tuple(sorted({(".".join(_to_keys(shape.at)), "manager" in shape.item) for shape in shapes}))

    def container_path(self, field: str) -> str:
        """The path of a field of the main container in a kind without pod templates; empty if there is none."""
        templates = [kind.template for kind in self.versions if kind.template]
        paths = (".".join(_to_keys(each.container[field])) for each in templates if field in each.container)
        return next(paths, "")


def group_kinds(kinds: Iterable[Kind]) -> tuple[EngineKind, ...]:
    """Group the versions of each kind, sorted by API group and name."""
    ordered = sorted(kinds, key=lambda kind: (*_group_and_name(kind), str(value_of(kind.api_version))))
    return tuple(EngineKind(*identity, tuple(versions)) for identity, versions in groupby(ordered, _group_and_name))


def list_engine_kinds(kinds: Iterable[Kind]) -> tuple[EngineKind, ...]:
    """The kinds that are described, and those of the table of workloads, sorted by API group and name."""
    described = {(kind.group, kind.name): kind for kind in group_kinds(kinds)}
    others = {identity: EngineKind(*identity) for identity in ENGINE_WORKLOADS if identity not in described}
    return tuple(kind for _, kind in sorted((described | others).items()))


def _every_item(path: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple("*" if isinstance(step, NamedItem) else step for step in path)


def _group_and_name(kind: Kind) -> tuple[str, str]:
    return str(value_of(kind.api_version)).partition("/")[0], kind.name


def _pod_paths(kind: Kind) -> list[tuple[str, ...]]:
    return [*_role_pod_paths(kind), *((*_to_keys(path), "spec") for path in kind.pods)]


def _role_pod_paths(kind: Kind) -> list[tuple[str, ...]]:
    at, template = _to_keys(kind.replicas_at), (*_to_keys(kind.replicas.template), "spec")
    apart = [(*_to_keys(role.at), *template) for role in kind.roles.values() if role.at]
    match kind.shape:
        case "map":
            return [*apart, *((*at, str(value_of(role.spelling)), *template) for role in kind.roles.values())]
        case "list":
            return [*apart, (*at, "*", *template)]
        case "item":
            return [*apart, (*at, *template)]
        case _:
            return []


def _to_keys(path: tuple[Step, ...]) -> tuple[str, ...]:
    return tuple(map(str, path))


class GitSource(NamedTuple):
    """A Git repository with the tree that `jobgen render -o rendered` writes."""

    url: str
    revision: str
    prefix: tuple[str, ...] = ()
    """The folders between the root of the Git repository and the jobs repository."""
    has_runtimes: bool = False
    """Whether the jobs repository has runtimes of TrainJobs."""
    has_teams: bool = False

    @property
    def tree(self) -> tuple[str, ...]:
        """The folder of all environments, relative to the root."""
        return (*self.prefix, TREE)

    def environment_path(self, env: str) -> str:
        """The folder of an environment; for the unnamed environment, the tree itself."""
        return "/".join((*self.tree, env) if env else self.tree)

    def input_paths(self, overlays: tuple[str, ...]) -> tuple[str, ...]:
        """All files and folders that an environment is rendered from, as absolute paths in the Git repository."""
        runtimes = ["runtimes"] if self.has_runtimes else []
        teams = ["teams"] if self.has_teams else []
        layers = (*(f"overlays/{name}" for name in overlays), "policies", *runtimes, "schemas", *teams)
        names = ["jobgen.yaml", "jobs", *layers]
        return tuple("/".join(("", *self.prefix, name)) for name in names)


def resource_name(env: str) -> str:
    """The name of an environment's Application or Kustomization."""
    return f"jobs-{env}" if env else "jobs"
