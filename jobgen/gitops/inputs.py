"""The kinds as GitOps engines know them: by group and name, whatever the version; and where their fields are."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from jobgen.model.data import value_of
from jobgen.model.path import Step
from jobgen.spec.kinds import Kind

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
QUEUE_MANAGER = "kueue.x-k8s.io/manager"
# What Kueue writes into the pod templates of a job when it lets it in.
INJECTED = ("nodeSelector", "schedulingGates", "tolerations")


class EngineKind(NamedTuple):
    """A kind in all its versions; the operators that serve them take turns in a cluster."""

    group: str
    name: str
    versions: tuple[Kind, ...]

    @property
    def key(self) -> str:
        """How Argo CD spells it in the names of its settings."""
        return f"{self.group}_{self.name}"

    @property
    def api_version(self) -> str:
        """One of its versions; engines look at the group alone."""
        return str(value_of(self.versions[0].api_version))

    @property
    def trains(self) -> bool:
        """Whether it is a job, rather than what jobs are made from."""
        return any(kind.roles for kind in self.versions)

    @property
    def suspend(self) -> tuple[str, ...]:
        """The field that holds a job back; none if it has no such field."""
        return _plain(next((kind.fields["suspend"].at for kind in self.versions if "suspend" in kind.fields), ()))

    @property
    def queued(self) -> bool:
        """Whether Kueue may hold its jobs."""
        return any(QUEUE_LABEL in kind.fields["queue"].at for kind in self.versions if "queue" in kind.fields)

    @property
    def pods(self) -> tuple[tuple[str, ...], ...]:
        """The specs of its pods, each list on the way a `*`; none for a kind that has parts of them only."""
        return tuple(sorted({path for kind in self.versions for path in _pods(kind)}))

    @property
    def patches(self) -> tuple[tuple[str, bool], ...]:
        """Where a kind without pod templates keeps patches for them, and whether each says who manages it."""
        shapes = [shape for kind in self.versions if kind.template for shape in kind.template.shapes]
        return tuple(sorted({(".".join(_plain(shape.at)), "manager" in shape.item) for shape in shapes}))

    def container(self, field: str) -> str:
        """Where a kind without pod templates keeps a field of its main container, or nothing."""
        templates = [kind.template for kind in self.versions if kind.template]
        return next((".".join(_plain(each.container[field])) for each in templates if field in each.container), "")


def group_kinds(kinds: Iterable[Kind]) -> tuple[EngineKind, ...]:
    """All kinds, by group and name."""
    ordered = sorted(kinds, key=lambda kind: (*_identity(kind), str(value_of(kind.api_version))))
    return tuple(EngineKind(*identity, tuple(versions)) for identity, versions in groupby(ordered, _identity))


def _identity(kind: Kind) -> tuple[str, str]:
    return str(value_of(kind.api_version)).partition("/")[0], kind.name


def _pods(kind: Kind) -> list[tuple[str, ...]]:
    match kind.shape:
        case "map":
            return [
                (*_plain(kind.replicas_at), str(value_of(role.spelling)), "template", "spec")
                for role in kind.roles.values()
            ]
        case "list":
            return [(*_plain(kind.replicas_at), "*", "template", "spec")]
        case _:
            return [(*_plain(kind.pods), "spec")] if kind.pods else []


def _plain(path: tuple[Step, ...]) -> tuple[str, ...]:
    return tuple(map(str, path))


class GitSource(NamedTuple):
    """A Git repository with a tree that `jobgen render -o rendered` wrote."""

    repo: str
    revision: str
    prefix: tuple[str, ...] = ()
    """The folders between the top of the Git repository and the jobs repository."""

    @property
    def tree(self) -> tuple[str, ...]:
        """The folder of all environments, from the top."""
        return (*self.prefix, "rendered")

    def rendered(self, env: str) -> str:
        """The folder of an environment; the nameless one is the tree itself."""
        return "/".join((*self.tree, env) if env else self.tree)

    def sources(self, lineage: tuple[str, ...]) -> tuple[str, ...]:
        """All that decides what an environment's jobs look like, as absolute paths in the Git repository."""
        names = ["jobgen.yaml", "jobs", *(f"overlays/{name}" for name in lineage), "policies", "schemas"]
        return tuple("/".join(("", *self.prefix, name)) for name in names)


def resource_name(env: str) -> str:
    """The name of what an engine keeps about an environment."""
    return f"jobs-{env}" if env else "jobs"
