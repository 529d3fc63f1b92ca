"""Expand a job: merge kind defaults, overlay defaults, the job and the patches into a JobSpec.

Layer order outranks specificity. A job's value for all roles overrides an overlay's default for one role, and a patch
for all roles overrides the job's value for one role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from jobgen.model.data import (
    Node,
    TracedKey,
    TracedScalar,
    ValidFields,
    location_of,
    untraced,
    value_of,
    with_layer,
    with_value,
)
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import ask_for, find_closest, find_key, list_alternatives, suggest_rename, takes_any_name
from jobgen.spec.filled_names import JobWords, fill_name, find_words
from jobgen.spec.kinds import ANY_ROLE, Framework, Kind, VersionRange
from jobgen.spec.merge import Deletion, is_deletion, merge
from jobgen.spec.normalize import Layer, RoleFields, normalize
from jobgen.spec.overlay import Cluster, Environment, JobAttributes, Patch

DefaultUse: TypeAlias = tuple[str, int, tuple[tuple[str, ...], ...]]
"""A block of defaults that a job has: its overlay, its place there, and the paths of what the job overrides."""


class JobDocument(NamedTuple):
    """A document of jobs/: a job spec, or a raw manifest."""

    data: ValidFields
    file: str
    sweep: str = ""
    """The name of the sweep that generated it."""

    @property
    def name(self) -> str:
        """`metadata.name` as text."""
        return str(value_of(self.metadata.get("name")) or "")

    @property
    def metadata(self) -> ValidFields:
        """The metadata, which objects of a few kinds may lack."""
        found = self.data.get("metadata")
        return found if isinstance(found, dict) else {}


class RoleSpec(NamedTuple):
    """A role with all its layers merged. Roles without fields of their own share `pod` and `templates`."""

    replica: dict[str, Any]
    pod: dict[str, Any]
    templates: tuple[ValidFields, ...]
    manifests: tuple[ValidFields, ...] = ()
    """Merged into the item of the role in the custom resource."""


class JobSpec(NamedTuple):
    """A job with its overlays applied, ready to be rendered as its kind."""

    metadata: dict[str, Any]
    framework: str
    kind: Kind
    cluster: Cluster
    fields: dict[str, Any]
    roles: dict[str, RoleSpec]
    manifests: tuple[ValidFields, ...]


# A framework that also runs with the launcher and the host file of another.
_SIMILAR_FRAMEWORKS = {"colossalai": "mpi", "deepspeed": "mpi"}
# A platform for one framework, or a few, names them.
_MAX_FRAMEWORKS = 3
_NO_COLON = lazy_pattern(r"([A-Za-z][\w./-]*)(?: +|[=:])(\S.*)\Z")


class Expander:
    """Expands the jobs of one environment. The layers below all jobs of a framework are merged once."""

    def __init__(self, environment: Environment, kinds: list[Kind], day: Callable[[], str] = lambda: "") -> None:
        self.environment = environment
        self.kinds = kinds
        self.day = day
        self._common_defaults = environment.common_defaults
        self._defaults: dict[tuple[str, str, tuple[int, ...]], _Defaults] = {}
        self._served: dict[tuple[str, str], Kind | None] = {}
        self.find_default_uses: Callable[[list[Layer], list[Layer], list[str], Kind], Sequence[DefaultUse]] = _find_none
        self.default_uses: list[DefaultUse] = []
        """Finds what jobs override of the layers below them, and what it has found."""
        self.lock_places: dict[Any, Any] = {}
        """Where locked fields can be, by field and kind."""

    def expand(
        self, job: JobDocument, patches: list[Patch], problems: list[Problem], deletions: list[Deletion]
    ) -> JobSpec | None:
        """Merge all layers of a job; None if a problem prevents that."""
        own = normalize(with_layer(job.data["spec"], "job"), self.environment.cluster.gpu_resource, problems)
        layers = [own, *(patch.merge for patch in patches if patch.merge is not None)]
        below = (*self._common_defaults, *layers)
        framework, platform = _find_last(below, "framework"), _find_last(below, "platform")
        name: Any = value_of(framework)
        if name is None:
            message = "the job has no `framework`; set it"
            problems.append(Problem("missing-field", message, job.data["spec"] or job.data))
            return None
        kind = self.select_kind(name, value_of(platform) or "")
        if kind is None:
            message = self.explain_missing_kind(name, value_of(platform) or "")
            listed = (
                [(self.environment.platforms, "the platforms of the cluster")]
                if "`cluster.platforms`" in message
                else []
            )
            nodes = [(framework, "the framework is set here"), (platform, "the platform is set here")]
            # A job's own platform is at fault, else its framework; what an overlay says is related.
            written = _find_last([own], "platform") is not None or _find_last([own], "framework") is None
            node, other = (platform, nodes[:1]) if written and platform is not None else (framework, nodes[1:])
            related = tuple(each for each in (*other, *listed) if location_of(each[0]) is not None)
            problems.append(Problem("unsupported-by-kind", message, node, related))
            return None
        defaults = self._merge_defaults(job, name, kind)
        metadata = self.add_team_labels(with_layer(job.data["metadata"], "job"), job.file)
        if "labels" in metadata or "annotations" in metadata:
            own = layers[0] = _read_metadata(own, metadata, kind, [*defaults.layers, *layers[1:]])
        fields = defaults.fields
        for layer in layers:
            if "suspend" in fields or "suspend" in layer.job:
                fields = _align_suspend(fields, layer.job)
            fields = merge(fields, layer.job, deletions)
        if not [layer for layer in layers if layer.roles]:
            layers = _spread_replicas(layers, _find_last(below, "replicas"), kind.frameworks[name])
        roles = _list_roles(layers, kind, kind.frameworks[name], problems, deletions)
        self.default_uses += self.find_default_uses(defaults.layers, layers, roles, kind)
        shared = _merge_fields(defaults.shared, [layer.common for layer in layers], deletions)
        merged = {role: _merge_role(role, defaults, layers, shared, deletions) for role in roles}
        manifests: tuple[ValidFields, ...] = ()
        for manifest in (layer.manifest for layer in (*defaults.layers, *layers) if layer.manifest is not None):
            manifests = _stack_block(manifests, manifest, "manifest", deletions)
        deletions += defaults.deletions
        if "namespace" not in metadata and value_of(self.environment.namespace) is not None:
            metadata["namespace"] = self.find_namespace(job, problems)
        fields = {key: value for key, value in fields.items() if key not in ("framework", "platform")}
        if "{" in str(value_of(fields.get("queue"))) and _is_from_overlay("queue", own, layers[1:]):
            fields["queue"] = fill_name("queue", fields["queue"], self._find_words(job), problems)
        return JobSpec(metadata, name, kind, self.environment.cluster, fields, merged, manifests)

    def attributes(self, job: JobDocument) -> JobAttributes:
        """The attributes that overlay selectors match on, before any patch."""
        metadata = job.data["metadata"]
        namespace: Any = value_of(metadata.get("namespace")) or value_of(self.find_namespace(job, [])) or ""
        framework, platform = (
            value_of(job.data["spec"].get(name)) or value_of(_find_last(self._common_defaults, name)) or ""
            for name in ("framework", "platform")
        )
        kind = self.select_kind(framework, platform)
        name, platform = (kind.name, kind.platform) if kind else ("", platform)
        labels, team = untraced(metadata.get("labels", {})), self.find_team(job.file)
        return JobAttributes(job.name, labels, framework, name, namespace, job.file, platform=platform, team=team)

    def find_namespace(self, job: JobDocument, problems: list[Problem]) -> Node:
        """Return the environment's namespace for a job without one; None if there is none."""
        namespace = self.environment.namespace
        return fill_name("namespace", namespace, self._find_words(job), problems) if namespace is not None else None

    def _find_words(self, job: JobDocument) -> JobWords:
        return find_words(job.metadata, self.find_team(job.file), self.environment.name)

    def find_team(self, file: str) -> str:
        """Return the name of the team that owns a file; empty if none does."""
        return self.environment.teams.find_name(file)

    def select_kind(self, framework: str, platform: str) -> Kind | None:
        """Return the kind of a job with a framework, and a platform or an empty string; None if there is none."""
        key = (framework, platform)
        if key not in self._served:
            found = (
                kind
                for name in self._list_platforms(platform)
                for kind in self.kinds
                if kind.platform == name and framework in kind.frameworks and self._find_unmet(kind, framework) is None
            )
            self._served[key] = next(found, None)
        return self._served[key]

    def _find_unmet(self, kind: Kind, framework: str) -> VersionRange | None:
        """The versions of an operator that serve a kind or a framework, if the declared one is not among them."""
        declared = self.environment.cluster.find_version(kind.operator)
        spans = (kind.versions, kind.frameworks[framework].versions)
        return next((span for span in spans if not span.contains(declared)), None)

    def _list_platforms(self, platform: str) -> tuple[str, ...]:
        """The platforms that a job can use: its own, if the cluster has it, or those of the cluster."""
        cluster = self.environment.cluster
        if not platform:
            return cluster.list_platforms()
        return (platform,) if not cluster.platforms or platform in cluster.platforms else ()

    def explain_missing_kind(self, framework: str, platform: str) -> str:
        """Return why a framework has no kind here, and what to write instead."""
        cluster, names = self.environment.cluster, self._list_platforms(platform)
        if not names:
            here = [each for each in cluster.platforms if self.select_kind(framework, each)]
            others = f", or use {list_alternatives(f'`platform: {each}`' for each in here)}" if here else ""
            return f"the cluster does not have platform `{platform}`; {self.suggest_platforms([platform])}{others}"
        for kind in self.kinds:
            if kind.platform in names and framework in kind.frameworks:
                declared, span = cluster.find_version(kind.operator), self._find_unmet(kind, framework)
                return f"{kind.operator} {declared} does not serve {kind.name} for `{framework}`: it {span}"
        served = self.list_serving(framework)
        here = sorted({each for kind in self.kinds if kind.platform in names for each in kind.frameworks})
        if len(names) == 1 and 0 < len(here) <= _MAX_FRAMEWORKS:
            needed = list_alternatives(f"`framework: {each}`" for each in here)
            return f"`platform: {names[0]}` needs {needed}; this job has `{framework}`"
        if _SIMILAR_FRAMEWORKS.get(framework) in here:
            shown = list_alternatives(f"`{name}`" for name in names)
            meant = _SIMILAR_FRAMEWORKS[framework]
            return f"framework `{framework}` has no kind on platform {shown}; use `framework: {meant}`"
        others = f"platform {list_alternatives(f'`{name}`' for name in served)}"
        where = f"; use {others if len(served) > 1 else f'`platform: {served[0]}`'}" if served else ""
        if served and not platform and cluster.platforms:
            where = f"; {self.suggest_platforms(served)}"
        shown = list_alternatives(f"`{name}`" for name in names)
        return f"framework `{framework}` has no kind on platform {shown}{where}"

    def list_serving(self, framework: str) -> list[str]:
        """Return the platforms that have a kind for a framework, whatever the cluster has."""
        return sorted({kind.platform for kind in self.kinds if framework in kind.frameworks})

    def suggest_platforms(self, names: Sequence[str]) -> str:
        """Return how to declare one of these platforms, and in which line."""
        cluster, location = self.environment.cluster, location_of(self.environment.platforms)
        where = f" in {location.file}:{location.line}" if location else ""
        if cluster.platforms:
            return f"add {list_alternatives(f'`{name}`' for name in names)} to `cluster.platforms`{where}"
        example = f"`platforms: [{cluster.platform}, {names[0]}]`"
        if len(names) == 1:
            return f"write {example}{where or ' in `cluster`'}"
        return f"declare {list_alternatives(f'`{name}`' for name in names)}{where}, such as {example}"

    def add_team_labels(self, metadata: ValidFields, file: str) -> dict[str, Any]:
        """Return the metadata of a job with the labels of its team; labels of its own win."""
        team = self.environment.teams.find(file)
        labels = team.spec.get("labels") if team else None
        own = metadata.get("labels")
        if not team or not labels or not isinstance(own, (dict, type(None))):
            return dict(metadata)
        added = with_layer(labels, f"labels of team {team.name}")
        return {**metadata, "labels": {**added, **(own or {})}}

    def _merge_defaults(self, job: JobDocument, framework: str, kind: Kind) -> _Defaults:
        """Merge the defaults of a job; jobs for which the same ones match share the result."""
        layers = self._common_defaults
        if len(layers) < len(self.environment.defaults):
            layers = self.environment.defaults_for(self.attributes(job))
        key = (framework, kind.platform, tuple(map(id, layers)))
        if key not in self._defaults:
            own = normalize(kind.frameworks[framework].defaults, self.environment.cluster.gpu_resource, [])
            self._defaults[key] = _Defaults(kind, [own, *layers])
        return self._defaults[key]


def _find_none(*_: object) -> Sequence[DefaultUse]:
    """What only a lint asks for."""
    return ()


def _read_metadata(own: Layer, metadata: ValidFields, kind: Kind, others: Sequence[Layer]) -> Layer:
    """Read labels and annotations of a job as the fields that are rendered there, so that they win over defaults."""
    job = own.job
    for path, (block, key) in kind.metadata_fields.items():
        written = metadata.get(block)
        if not isinstance(written, dict) or key not in written or value_of(written[key]) is None:
            continue
        top, _, name = path.partition(".")
        if not _sets_any(others, top):
            continue
        below = job.get(top, {})
        if not name:
            job = {top: written[key], **job}
        elif isinstance(below, dict):
            job = {**job, top: {name: written[key], **below}}
    return own if job is own.job else own._replace(job=job)


def find_overridden(data: ValidFields, kind: Kind) -> Iterator[Problem]:
    """Find labels and annotations of a job beside a field of the same job that is rendered there with another value."""
    for path, (block, key) in kind.metadata_fields.items():
        written, field = data["metadata"].get(block), data["spec"]
        if not isinstance(written, dict) or key not in written:
            continue
        for name in path.split("."):
            field = field.get(name) if isinstance(field, dict) else None
        label, own = value_of(written[key]), value_of(field)
        if None not in (label, own) and str(label) != str(own):
            start = Sentence(
                "`{}: {}` of `{}` has no effect, because `{}: {}` of the job replaces it", key, label, block, path, own
            )
            related = ((field, f"`{path}` is set here"),) if location_of(field) else ()
            message = Sentence("{}; remove one of them", start)
            yield Problem("overridden-value", message, find_key(written, key), related, severity=Severity.WARNING)


def _sets_any(layers: Iterable[Layer], field: str) -> bool:
    return any(field in layer.job for layer in layers)


def _align_suspend(fields: ValidFields, over: ValidFields) -> ValidFields:
    """Spell `suspend` as a layer over the fields does: it is one field with `runPolicy.suspend`."""
    policy, own = fields.get("runPolicy"), over.get("runPolicy")
    if value_of(over.get("suspend")) is not None and isinstance(policy, dict) and "suspend" in policy:
        rest = {key: value for key, value in policy.items() if key != "suspend"}
        return {**fields, "runPolicy": rest, "suspend": policy["suspend"]}
    if "suspend" in fields and isinstance(own, dict) and value_of(own.get("suspend")) is not None:
        known = {"suspend": fields["suspend"], **(policy or {})}
        return {**{key: value for key, value in fields.items() if key != "suspend"}, "runPolicy": known}
    return fields


def _is_from_overlay(field: str, own: Layer, patches: list[Layer]) -> bool:
    """Return True if the value of a job's field is that of an overlay."""
    return field not in own.job or any(field in patch.job for patch in patches)


class _Defaults:
    """The defaults of the kind and of the overlays, merged for the job and for each role."""

    def __init__(self, kind: Kind, layers: list[Layer]) -> None:
        self.kind = kind
        self.layers = layers
        self.deletions: list[Deletion] = []
        self.fields: dict[str, Any] = {}
        for layer in layers:
            if "suspend" in self.fields or "suspend" in layer.job:
                self.fields = _align_suspend(self.fields, layer.job)
            self.fields = merge(self.fields, layer.job, self.deletions)
        self.shared = _merge_fields(RoleSpec({}, {}, ()), [layer.common for layer in layers], self.deletions)
        self._roles: dict[str, RoleSpec] = {}

    def role(self, name: str) -> RoleSpec:
        """The defaults of one role."""
        if name not in self._roles:
            start = RoleSpec(_default_replica(self.kind, name), {}, ())
            self._roles[name] = _merge_fields(start, _fields_for(name, self.layers), self.deletions)
        return self._roles[name]


def _merge_role(
    name: str, defaults: _Defaults, layers: list[Layer], shared: RoleSpec, deletions: list[Deletion]
) -> RoleSpec:
    own = [fields for layer in layers if (fields := layer.roles.get(name))]
    described = defaults.kind.find_role(name)
    if described and described.ignores:
        return _merge_apart(name, described.ignores, defaults, layers, deletions)
    # A role with fields for its own pods or its own item shares neither with other roles.
    is_apart = any(each.pod or each.template is not None or each.manifest is not None for each in own)
    if is_apart or any(layer.roles.get(name) for layer in defaults.layers):
        return _merge_fields(defaults.role(name), _fields_for(name, layers), deletions)
    replica = {**_default_replica(defaults.kind, name), **defaults.shared.replica}
    for fields in _fields_for(name, layers):
        replica = merge(replica, fields.replica, deletions) if fields.replica else replica
    return shared._replace(replica=replica)


def _default_replica(kind: Kind, name: str) -> dict[str, Any]:
    described = kind.find_role(name)
    return {"replicas": described.replicas} if described else {}


def _merge_apart(
    name: str, ignored: frozenset[str], defaults: _Defaults, layers: list[Layer], deletions: list[Deletion]
) -> RoleSpec:
    """Merge a role to which some fields of all roles do not apply: the head of a Ray cluster does not train."""
    merged = RoleSpec(_default_replica(defaults.kind, name), {}, ())
    for layer in (*defaults.layers, *layers):
        common = layer.common
        pod = {key: value for key, value in common.pod.items() if key not in ignored}
        replica = {key: value for key, value in common.replica.items() if key not in ignored}
        own = layer.roles.get(name)
        merged = _merge_fields(merged, [common._replace(pod=pod, replica=replica), *([own] if own else ())], deletions)
    return merged


def _fields_for(name: str, layers: Sequence[Layer]) -> Iterator[RoleFields]:
    """The fields of a role, layer by layer: for all roles, then its own. A deletion drops its own fields below."""
    deleted = [index for index, layer in enumerate(layers) if layer.roles.get(name, True) is None]
    first = deleted[-1] if deleted else 0
    for index, layer in enumerate(layers):
        yield layer.common
        own = layer.roles.get(name)
        if own is not None and index >= first:
            yield own


def _merge_fields(role: RoleSpec, layers: Iterable[RoleFields], deletions: list[Deletion]) -> RoleSpec:
    replica, pod, templates, manifests = role
    for fields in layers:
        replica = merge(replica, fields.replica, deletions) if fields.replica else replica
        pod = merge(pod, fields.pod, deletions) if fields.pod else pod
        if fields.template is not None:
            templates = _stack_block(templates, fields.template, "podTemplate", deletions)
        if fields.manifest is not None:
            manifests = _stack_block(manifests, fields.manifest, "manifest", deletions)
    return RoleSpec(replica, pod, templates, manifests)


def _stack_block(
    below: tuple[ValidFields, ...], block: ValidFields, name: str, deletions: list[Deletion]
) -> tuple[ValidFields, ...]:
    """Add a block that is merged into the rendered object; a deletion drops all blocks below it."""
    if not is_deletion(block):
        return (*below, block)
    deletions.append(Deletion(block, name, bool(below)))
    return ()


def _find_last(layers: Sequence[Layer], name: str) -> Node:
    """A field of the job, from the last layer that sets it."""
    # Every job asks for a few of them: a loop calls nothing.
    for layer in reversed(layers):
        if name in layer.job:
            found: Node = layer.job[name]
            return found
    return None


def _spread_replicas(layers: list[Layer], total: Node, framework: Framework) -> list[Layer]:
    """The layers of a job that only says how many pods it has, with its roles; without them if they are not obvious.

    They add up to the total: a master is one of the pods. A launcher is none that trains, so it must be written.
    Each layer that sets the total sets the roles, so that it is known which number overrides which.
    """
    count = value_of(total)
    if not isinstance(count, int) or count < 2:
        return layers
    totals = [layer.job.get("replicas") for layer in layers]
    if all(each is None for each in totals):
        totals[0] = total
    return [
        layer._replace(roles=spread_total(each, framework)) if isinstance(value_of(each), int) else layer
        for layer, each in zip(layers, totals, strict=True)
    ]


def spread_total(total: Node, framework: Framework) -> dict[str, RoleFields | None]:
    """Return the roles of a job that says only how many pods it has; none if they are not obvious."""
    single = framework.single
    if single in ("worker", "node"):
        return {single: RoleFields({"replicas": total}, {}, None)}
    if single == "master" and "worker" in framework.roles:
        rest = with_value(total, value_of(total) - 1)
        if type(rest) is TracedScalar:
            rest.written = str(value_of(total))
        return {single: RoleFields({}, {}, None), "worker": RoleFields({"replicas": rest}, {}, None)}
    return {}


def _list_roles(
    layers: list[Layer], kind: Kind, framework: Framework, problems: list[Problem], deletions: list[Deletion]
) -> list[str]:
    """The roles of a job, in the order of its kind: those that a layer names, and those that the kind requires."""
    named: dict[str, Any] = {}
    for layer in layers:
        for name, role in layer.roles.items():
            if role is not None:
                named.setdefault(name, name)
            else:
                asked_by = name if type(name) is TracedKey else layer.roles
                deletions.append(Deletion(asked_by, name, named.pop(name, None) is not None))
    for name in list(named):
        own = [role for layer in layers if (role := layer.roles.get(name))]
        platforms = next((role.replica["platforms"] for role in reversed(own) if "platforms" in role.replica), None)
        if isinstance(platforms, list) and kind.platform not in map(value_of, platforms):
            del named[name]
    takes_any = ANY_ROLE in framework.roles
    for name, node in named.items():
        if name not in framework.roles and not takes_any:
            known = ", ".join(f"`{role}`" for role in framework.roles)
            meant = find_closest(name, list(framework.roles))
            fix_steps, safe = suggest_rename(node, list(framework.roles), named, takes_any_name)
            message = Sentence("{} has no role `{}`{}", kind.name, name, ask_for(meant) or f"; it has {known}")
            problems.append(Problem("unknown-role", message, node, fix_steps=fix_steps, safe=safe, meant=meant))
    required = [name for name in framework.roles if name != ANY_ROLE and kind.roles[name].required]
    if not named:
        named[framework.single] = None
    # A name that is written has its location.
    listed = [named.get(name) or name for name in framework.roles if name in named or name in required]
    return listed + [name for name in named if takes_any and name not in framework.roles]


def find_dead_deletions(deletions: list[Deletion]) -> Iterator[Problem]:
    """Report deletion markers that deleted nothing anywhere. They are identified by location, so the walk is traced."""
    hit = {deletion.location for deletion in deletions if deletion.found}
    seen = set(hit)
    for deletion in deletions:
        if deletion.location not in seen:
            seen.add(deletion.location)
            is_marked = is_deletion(deletion.asked_by)
            marker = f"`$patch: delete` of `{deletion.key}`" if is_marked else f"`{deletion.key}: null`"
            advice = f"{marker} deletes nothing; remove it"
            if type(deletion.asked_by) is TracedKey and deletion.asked_by.layer == "job":
                # Roles are asked by their keys. A job has none that it could delete.
                advice = f"role `{deletion.key}` has no value; write `{deletion.key}: {{}}`, or remove the line"
            if deletion.location and deletion.location[1:3] == deletion.location[3:]:
                # Variables, whose names are in capitals, can be empty; most fields cannot.
                example = f', such as `{deletion.key}: ""`,' if str(deletion.key).isupper() else ""
                advice = f"`{deletion.key}` has no value; write one{example or ','} or remove the line"
                if entry := _NO_COLON.match(deletion.key):
                    missing = "no space after its colon" if ":" in deletion.key else "no colon"
                    advice = f"`{deletion.key}` has {missing}; write `{entry[1]}: {entry[2]}`"
            message = deletion.fault or advice
            rule = "invalid-patch" if deletion.fault else "deletes-nothing"
            yield Problem(rule, message, deletion.asked_by)
