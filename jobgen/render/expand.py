"""A job and its environment to a JobSpec: every layer laid on the last, each role with all its fields.

Layers count before nearness: a job's own word for all roles beats an overlay's default for one role, and a patch
for all roles beats what the job says of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from jobgen.model.data import Data, TracedKey, untraced, value_of, with_layer
from jobgen.model.finding import Problem
from jobgen.model.path import Step, dotted
from jobgen.model.suggest import did_you_mean, suggest_rename
from jobgen.spec.kinds import Framework, Kind
from jobgen.spec.merge import Deletion, is_deletion, merge
from jobgen.spec.normalize import JOB_FIELDS, Layer, RoleFields, normalize
from jobgen.spec.overlay import Cluster, Environment, JobAttributes, Patch


class JobDocument(NamedTuple):
    """A job as it was written: a spec of ours, or a raw manifest."""

    data: Data
    file: str
    sweep: str = ""
    """The name of the sweep that it is a member of."""

    @property
    def name(self) -> str:
        """The name in its metadata, as text."""
        return str(value_of(self.data["metadata"].get("name", "")))


class RoleSpec(NamedTuple):
    """A role with all its layers; roles that are told nothing of their own share their pod and templates."""

    replica: dict[str, Data]
    pod: dict[str, Data]
    templates: tuple[Data, ...]


class JobSpec(NamedTuple):
    """A job with its overlays applied, ready to be spelt as its kind spells it."""

    metadata: dict[str, Data]
    framework: str
    kind: Kind
    cluster: Cluster
    fields: dict[str, Data]
    roles: dict[str, RoleSpec]
    manifests: tuple[Data, ...]


class Expander:
    """Expands the jobs of one environment; what all jobs of a framework share is folded once."""

    def __init__(self, environment: Environment, kinds: list[Kind], day: Callable[[], str] = lambda: "") -> None:
        self.environment = environment
        self.kinds = kinds
        self.day = day
        self._bases: dict[str, _Base] = {}
        self._served: dict[str, Kind | None] = {}

    def expand(
        self, job: JobDocument, patches: list[Patch], problems: list[Problem], deletions: list[Deletion]
    ) -> JobSpec | None:
        """The job's spec with the patches that mean it, or None with the problems that stand in its way."""
        own = normalize(with_layer(job.data["spec"], "job"), self.environment.cluster.gpu_resource, problems)
        problems.extend(_locked(job.data, self.environment))
        layers = [own, *(patch.merge for patch in patches if patch.merge is not None)]
        framework = _framework((*self.environment.defaults, *layers))
        if value_of(framework) is None:
            problems.append(Problem("missing-field", "the job names no `framework`", job.data["spec"] or job.data))
            return None
        kind = self._kind(value_of(framework))
        if kind is None:
            problems.append(Problem("not-expressible", self._no_kind(value_of(framework)), framework))
            return None
        return self._fold(job, layers, value_of(framework), kind, problems, deletions)

    def attributes(self, job: JobDocument) -> JobAttributes:
        """What matches may ask about a spec, before any patch."""
        metadata = job.data["metadata"]
        namespace = value_of(metadata.get("namespace")) or value_of(self.environment.namespace) or ""
        framework = value_of(job.data["spec"].get("framework")) or value_of(_framework(self.environment.defaults)) or ""
        kind = self._kind(framework)
        labels = untraced(metadata.get("labels", {}))
        return JobAttributes(job.name, labels, framework, kind.name if kind else "", namespace, job.file)

    def _kind(self, framework: str) -> Kind | None:
        if framework not in self._served:
            self._served[framework] = self._find_kind(framework)
        return self._served[framework]

    def _find_kind(self, framework: str) -> Kind | None:
        cluster = self.environment.cluster
        for kind in self.kinds:
            declared = cluster.operators.get(kind.operator, "")
            serves = kind.platform == cluster.platform and framework in kind.frameworks
            if serves and kind.span.holds(declared) and kind.frameworks[framework].span.holds(declared):
                return kind
        return None

    def _no_kind(self, framework: str) -> str:
        cluster = self.environment.cluster
        for kind in self.kinds:
            if kind.platform == cluster.platform and framework in kind.frameworks:
                declared = cluster.operators[kind.operator]
                span = kind.span if not kind.span.holds(declared) else kind.frameworks[framework].span
                return f"{kind.operator} {declared} has no {kind.name} for `{framework}`: it {span}"
        served = sorted({kind.platform for kind in self.kinds if framework in kind.frameworks})
        where = f"; it can be on {', '.join(f'`{name}`' for name in served)}" if served else ""
        return f"`{framework}` cannot be trained on platform `{cluster.platform}`{where}"

    def _fold(
        self,
        job: JobDocument,
        layers: list[Layer],
        framework: str,
        kind: Kind,
        problems: list[Problem],
        deletions: list[Deletion],
    ) -> JobSpec:
        base = self._base(framework, kind)
        fields = base.fields
        for layer in layers:
            fields = merge(fields, layer.job, deletions)
        names = _role_names(layers, kind, kind.frameworks[framework], problems, deletions)
        shared = _fold_role(base.shared, [layer.common for layer in layers], deletions)
        roles = {name: _role(name, base, layers, shared, deletions) for name in names}
        manifests: tuple[Data, ...] = ()
        for manifest in (layer.manifest for layer in (*base.layers, *layers) if layer.manifest is not None):
            manifests = _stacked(manifests, manifest, "manifest", deletions)
        deletions += base.deletions
        return JobSpec(
            metadata=self._metadata(job),
            framework=framework,
            kind=kind,
            cluster=self.environment.cluster,
            fields={key: value for key, value in fields.items() if key != "framework"},
            roles=roles,
            manifests=manifests,
        )

    def _metadata(self, job: JobDocument) -> dict[str, Data]:
        metadata = with_layer(job.data["metadata"], "job")
        if "namespace" in metadata or value_of(self.environment.namespace) is None:
            return dict(metadata)
        return {**metadata, "namespace": self.environment.namespace}

    def _base(self, framework: str, kind: Kind) -> _Base:
        if framework not in self._bases:
            own = normalize(kind.frameworks[framework].defaults, self.environment.cluster.gpu_resource, [])
            self._bases[framework] = _Base(kind, [own, *self.environment.defaults])
        return self._bases[framework]


class _Base:
    """The kind's defaults and the overlays' defaults, folded for the job and for each role."""

    def __init__(self, kind: Kind, layers: list[Layer]) -> None:
        self.kind = kind
        self.layers = layers
        self.deletions: list[Deletion] = []
        self.fields: dict[str, Data] = {}
        for layer in layers:
            self.fields = merge(self.fields, layer.job, self.deletions)
        self.shared = _fold_role(RoleSpec({}, {}, ()), [layer.common for layer in layers], self.deletions)
        self._roles: dict[str, RoleSpec] = {}

    def role(self, name: str) -> RoleSpec:
        """All that is said of a role before the job speaks."""
        if name not in self._roles:
            start = RoleSpec({"replicas": self.kind.roles[name].replicas}, {}, ())
            self._roles[name] = _fold_role(start, _words_for(name, self.layers), self.deletions)
        return self._roles[name]

    def singles_out(self, name: str) -> bool:
        """Whether some default speaks of this role alone."""
        return any(layer.roles.get(name) for layer in self.layers)


def _role(name: str, base: _Base, layers: list[Layer], shared: RoleSpec, deletions: list[Deletion]) -> RoleSpec:
    own = [words for layer in layers if (words := layer.roles.get(name))]
    if base.singles_out(name) or any(words.pod or words.template is not None for words in own):
        return _fold_role(base.role(name), _words_for(name, layers), deletions)
    replica = {"replicas": base.kind.roles[name].replicas, **base.shared.replica}
    for words in _words_for(name, layers):
        replica = merge(replica, words.replica, deletions) if words.replica else replica
    return shared._replace(replica=replica)


def _words_for(name: str, layers: Sequence[Layer]) -> Iterator[RoleFields]:
    """What the layers say of a role: each first of all roles, then of this one; a deleted role starts anew."""
    deleted = [index for index, layer in enumerate(layers) if layer.roles.get(name, True) is None]
    first = deleted[-1] if deleted else 0
    for index, layer in enumerate(layers):
        yield layer.common
        own = layer.roles.get(name)
        if own is not None and index >= first:
            yield own


def _fold_role(role: RoleSpec, layers: Iterable[RoleFields], deletions: list[Deletion]) -> RoleSpec:
    replica, pod, templates = role
    for words in layers:
        replica = merge(replica, words.replica, deletions) if words.replica else replica
        pod = merge(pod, words.pod, deletions) if words.pod else pod
        templates = (
            templates if words.template is None else _stacked(templates, words.template, "podTemplate", deletions)
        )
    return RoleSpec(replica, pod, templates)


def _stacked(below: tuple[Data, ...], block: Data, name: str, deletions: list[Deletion]) -> tuple[Data, ...]:
    """Blocks that are merged in later, the last on top; a deletion takes all below it away."""
    if not is_deletion(block):
        return (*below, block)
    deletions.append(Deletion(block, name, bool(below)))
    return ()


def _framework(layers: Sequence[Layer]) -> Data:
    """The strongest layer's word for the framework."""
    return next((layer.job["framework"] for layer in reversed(layers) if "framework" in layer.job), None)


def _role_names(
    layers: list[Layer], kind: Kind, framework: Framework, problems: list[Problem], deletions: list[Deletion]
) -> list[str]:
    """The roles of a job in its kind's order: those that it or a patch names, and those that the kind must have."""
    named: dict[str, Data] = {}
    for layer in layers:
        for name, role in layer.roles.items():
            if role is not None:
                named.setdefault(name, name)
            else:
                asked_by = name if type(name) is TracedKey else layer.roles
                deletions.append(Deletion(asked_by, name, named.pop(name, None) is not None))
    for name, node in named.items():
        if name not in framework.roles:
            hint = (
                did_you_mean(name, list(framework.roles))
                or f"; it has {', '.join(f'`{role}`' for role in framework.roles)}"
            )
            fix_steps, safe = suggest_rename(node, list(framework.roles), named)
            message = f"{kind.name} has no role `{name}`{hint}"
            problems.append(Problem("unknown-role", message, node, fix_steps=fix_steps, safe=safe))
    if not named:
        named[framework.single] = None
    return [name for name in framework.roles if name in named or kind.roles[name].required]


def _locked(job: Data, environment: Environment) -> Iterator[Problem]:
    for lock in environment.locks:
        for holder, path in _holders(job, lock.path):
            node = _find_key(holder, path)
            if node is not None:
                message = f"`{dotted(lock.path)}` is locked by overlay `{lock.overlay}`; a job may not set it"
                yield Problem("locked-field", message, node, ((lock.node, "locked here"),))


def _holders(job: Data, path: tuple[Step, ...]) -> Iterator[tuple[Data, tuple[Step, ...]]]:
    """Where a job could set a field: in its spec, in each role, or for its namespace in its metadata."""
    spec = job["spec"]
    yield (job["metadata"] if path == ("namespace",) else spec), path
    if path and path[0] not in JOB_FIELDS and path[0] != "roles":
        for role in (spec.get("roles") or {}).values():
            yield role, path


def _find_key(node: Data, path: tuple[Step, ...]) -> Data:
    """The key at the end of a path, if the path is there."""
    for depth, step in enumerate(path):
        if not isinstance(node, dict):
            return None
        key = next((key for key in node if key == step), None)
        if key is None:
            return None
        if depth == len(path) - 1:
            return key
        node = node[key]
    return None


def find_dead_deletions(deletions: list[Deletion]) -> Iterator[Problem]:
    """Markers that deleted nothing anywhere; told apart by their place, so the walk must be traced."""
    hit = {deletion.location for deletion in deletions if deletion.found}
    seen = set(hit)
    for deletion in deletions:
        if deletion.location not in seen:
            seen.add(deletion.location)
            message = deletion.fault or f"`{deletion.key}` is to be deleted, but there is nothing to delete"
            yield Problem("invalid-patch" if deletion.fault else "deletes-nothing", message, deletion.asked_by)
