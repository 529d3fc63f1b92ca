"""Overlay documents to environments: facts of a cluster, the layers under its jobs and the patches over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple

from jobgen.model.data import Data, untraced, value_of, with_layer
from jobgen.model.finding import Problem
from jobgen.model.path import InvalidPathError, Step, parse_dotted
from jobgen.model.suggest import did_you_mean
from jobgen.spec.frameworks import Frameworks
from jobgen.spec.merge import merge
from jobgen.spec.normalize import FIELDS, Layer, normalize

DEFAULT_GPU = "nvidia.com/gpu"
DEFAULT_PLATFORM = "kubeflow"


class Cluster(NamedTuple):
    """Facts of the place where an environment runs."""

    platform: str = DEFAULT_PLATFORM
    operators: Mapping[str, str] = MappingProxyType({})
    gitops: str = ""
    gpu_resource: str = DEFAULT_GPU
    queues: Mapping[str, Data] = MappingProxyType({})
    budgets: Mapping[str, Mapping[str, Data]] = MappingProxyType({})


class JobAttributes(NamedTuple):
    """What a match can ask about a job."""

    name: str
    labels: Mapping[str, str]
    framework: str
    kind: str
    namespace: str
    path: str
    is_spec: bool = True


class JobSelector(NamedTuple):
    """Which jobs are meant; an empty match means all."""

    patterns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def matches(self, job: JobAttributes) -> bool:
        """Whether the job is meant."""
        for facet, patterns in self.patterns:
            value = getattr(job, facet)
            if not any(fnmatchcase(value, pattern) for pattern in patterns):
                return False
        return all(job.labels.get(key) == value for key, value in self.labels)


class Patch(NamedTuple):
    """A change laid over the jobs that match: before rendering, after it, or both."""

    match: JobSelector
    merge: Layer | None
    manifest: Data
    json_patch: list[Data] | None
    node: Data
    overlay: str
    place: int

    def matches(self, job: JobAttributes) -> bool:
        """Whether it has anything to say to this job; `merge` speaks to specs alone."""
        speaks = job.is_spec or self.manifest is not None or self.json_patch is not None
        return speaks and self.match.matches(job)


class FieldLock(NamedTuple):
    """A field that jobs may not set."""

    path: tuple[Step, ...]
    node: Data
    overlay: str


class Environment(NamedTuple):
    """All that the overlays of one environment say, ancestors first."""

    name: str
    cluster: Cluster = Cluster()
    namespace: Data = None
    jobs: tuple[JobSelector, ...] = ()
    defaults: tuple[Layer, ...] = ()
    patches: tuple[Patch, ...] = ()
    locks: tuple[FieldLock, ...] = ()

    @property
    def is_dated(self) -> bool:
        """Whether its layers make jobs expire, so that what they are depends on the day."""
        layers = (*self.defaults, *(patch.merge for patch in self.patches if patch.merge))
        return any("expires" in (layer.job.get("run") or ()) for layer in layers if "run" in layer.job)

    def matches(self, job: JobAttributes) -> bool:
        """Whether the job belongs to this environment."""
        return all(match.matches(job) for match in self.jobs)

    def patches_for(self, job: JobAttributes) -> list[Patch]:
        """The patches that mean this job, in their order."""
        return [patch for patch in self.patches if patch.matches(job)]


class Overlay(NamedTuple):
    """The documents of one folder under overlays/, in file order."""

    name: str
    specs: tuple[Data, ...]


def compose_environment(name: str, overlays: Mapping[str, Overlay], problems: list[Problem]) -> Environment:
    """The environment that an overlay and all it extends make together."""
    chain = _lineage(name, overlays, problems)
    facts = _cluster(chain, overlays)
    namespace: Data = None
    jobs: list[JobSelector] = []
    defaults: list[Layer] = []
    patches: list[Patch] = []
    locks: list[FieldLock] = []
    for overlay in chain:
        place = 0
        for spec in overlays[overlay].specs:
            namespace = with_layer(spec["namespace"], f"namespace of {overlay}") if "namespace" in spec else namespace
            if "jobs" in spec:
                # The nearest overlay that says which jobs it takes decides alone.
                jobs = [_match(spec["jobs"])]
            if "defaults" in spec:
                block = with_layer(spec["defaults"], f"defaults of {overlay}")
                defaults.append(normalize(block, facts.gpu_resource, problems))
            for patch in spec.get("patches", ()):
                patches.append(_patch(patch, overlay, place, facts, problems))
                place += 1
            locks += _locks(spec.get("locked", ()), overlay)
    return Environment(name, facts, namespace, tuple(jobs), tuple(defaults), tuple(patches), tuple(locks))


def list_ancestors(name: str, overlays: Mapping[str, Overlay]) -> list[str]:
    """The overlays that make an environment, weakest first; none for the nameless one."""
    return _lineage(name, overlays, []) if name else []


def _lineage(name: str, overlays: Mapping[str, Overlay], problems: list[Problem]) -> list[str]:
    """The overlay and its ancestors, weakest first, each once."""
    order: list[str] = []

    def visit(current: str, below: tuple[str, ...]) -> None:
        for spec in overlays[current].specs:
            for parent in spec.get("extends", ()):
                named = value_of(parent)
                if named in (*below, current):
                    cycle = " → ".join([*below, current, named])
                    problems.append(Problem("overlay-cycle", f"`extends` goes in a circle: {cycle}", parent))
                elif named not in overlays:
                    hint = did_you_mean(named, list(overlays))
                    problems.append(Problem("unknown-overlay", f"there is no overlay `{named}`{hint}", parent))
                elif named not in order:
                    visit(named, (*below, current))
        if current not in order:
            order.append(current)

    visit(name, ())
    return order


def _cluster(chain: Iterable[str], overlays: Mapping[str, Overlay]) -> Cluster:
    facts: Data = {}
    for overlay in chain:
        for spec in overlays[overlay].specs:
            facts = merge(facts, spec.get("cluster", {}), [])
    known: Any = untraced(facts)
    return Cluster(
        platform=known.get("platform", DEFAULT_PLATFORM),
        operators=known.get("operators", {}),
        gitops=known.get("gitops", ""),
        gpu_resource=known.get("gpuResource", DEFAULT_GPU),
        queues=known.get("queues", {}),
        budgets=known.get("budgets", {}),
    )


_FACETS = {"names": "name", "frameworks": "framework", "kinds": "kind", "namespaces": "namespace", "paths": "path"}


def _match(block: dict[str, Data]) -> JobSelector:
    known: Any = untraced(block)
    patterns = tuple((facet, tuple(known[key])) for key, facet in _FACETS.items() if key in known)
    return JobSelector(patterns, tuple(known.get("labels", {}).items()))


def _patch(block: dict[str, Data], overlay: str, place: int, facts: Cluster, problems: list[Problem]) -> Patch:
    layered = with_layer(block, f"patch of {overlay}")
    layer = normalize(layered["merge"], facts.gpu_resource, problems) if "merge" in layered else None
    if not block.keys() & {"merge", "manifest", "jsonPatch"}:
        problems.append(
            Problem("empty-patch", "the patch changes nothing; give it `merge`, `manifest` or `jsonPatch`", block)
        )
    return Patch(
        match=_match(block.get("match", {})),
        merge=layer,
        manifest=layered.get("manifest"),
        json_patch=layered.get("jsonPatch"),
        node=block,
        overlay=overlay,
        place=place,
    )


def _locks(paths: Iterable[Data], overlay: str) -> Iterator[FieldLock]:
    return (FieldLock(parse_dotted(value_of(path)), path, overlay) for path in paths)


def find_overlay_errors(document: dict[str, Data], frameworks: Frameworks) -> Iterator[Problem]:
    """What an overlay of the right form says that cannot be."""
    yield from _unknown_locks(document, FIELDS | {framework.name for framework in frameworks})
    spec = document["spec"]
    for block in (spec.get("defaults"), *(patch.get("merge") for patch in spec.get("patches", ()))):
        if isinstance(block, dict) and "matrix" in block:
            message = "`matrix` makes many jobs of one, so it stands in a job; an overlay can match its members"
            yield Problem("misplaced-matrix", message, next(key for key in block if key == "matrix"))


def _unknown_locks(document: dict[str, Data], fields: frozenset[str]) -> Iterator[Problem]:
    """Locked paths that lead to no field of a job."""
    for path in document["spec"].get("locked", ()):
        try:
            field = parse_dotted(value_of(path))[:1]
        except InvalidPathError as bad:
            yield Problem("invalid-value", str(bad), path)
            continue
        if not field or field[0] not in fields | {"namespace"}:
            hint = did_you_mean(str(field[0]), sorted(fields)) if field else ""
            yield Problem("unknown-field", f"`{value_of(path)}` is not a field of a job{hint}", path)
