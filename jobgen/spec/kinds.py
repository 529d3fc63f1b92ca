"""Kind descriptions, from schemas/<group>/<kind>_<version>.yaml: how a job is expressed in each CRD."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from jobgen.model.data import TracedKey, untraced, value_of, with_layer
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import InvalidPathError, Step, parse_dotted
from jobgen.model.quantity import parse_digits
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import ask_for, find_closest
from jobgen.spec.normalize import FIELDS
from jobgen.spec.replicas import ReplicaItem, ReplicaLayout, RoleDescription, list_items, parse_layout

# The requirements of an operator beyond its CRD: `requirements` of a kind description.

_NONE: Mapping[str, Any] = MappingProxyType({})


class Choice(NamedTuple):
    """A field that takes any string in the CRD: the values that the operator knows, and what it does with others."""

    values: tuple[str, ...]
    otherwise: str = ""
    since: str = ""
    warning: bool = False


class Bounds(NamedTuple):
    """The range of a numeric field."""

    minimum: int | None = None
    maximum: int | None = None


class Runtime(NamedTuple):
    """A runtime that is shipped with the operator: its policy, its longest name suffix, whether it initializes data."""

    policy: str
    name_suffix: str = ""
    initializes: bool = False


Fields = Mapping[tuple[str, ...], Mapping[str, Any]]
"""Requirements by the path of the mapping, then by the name of the field in it."""


class OperatorRequirements(NamedTuple):
    """The requirements of one operator; an empty field means no requirement, or an unknown one."""

    known: bool = False
    webhook: str = ""
    from_documentation: bool = False
    conflicts_with: str = ""
    names: str = ""
    container: bool = False
    ports: bool = False
    unknown_roles: str = ""
    written: Mapping[str, str] = _NONE
    bounds_since: Mapping[str, str] = _NONE
    unchecked: tuple[str, ...] = ()
    scaled: tuple[str, ...] = ()
    backoff_counts: tuple[str, ...] = ()
    overwrites_restart_policy: bool = False
    choices: Fields = MappingProxyType({})
    bounds: Fields = MappingProxyType({})
    reserved: Mapping[str, tuple[str, ...]] = _NONE
    runtimes: Mapping[str, Runtime] = _NONE


def parse_requirements(raw: Mapping[str, Any]) -> OperatorRequirements:
    """Parse `requirements` of a valid kind description; `unseen` and `rival` are former names."""
    return OperatorRequirements(
        # That a kind is known from documentation requires nothing.
        known=bool(raw.keys() - {"fromDocumentation"}),
        webhook=raw.get("webhook", ""),
        from_documentation=raw.get("fromDocumentation", raw.get("unseen", False)),
        conflicts_with=raw.get("conflictsWith", raw.get("rival", "")),
        names=raw.get("names", ""),
        container=raw.get("container", False),
        ports=raw.get("ports", False),
        unknown_roles=raw.get("unknownRoles", ""),
        written=raw.get("written", _NONE),
        bounds_since=raw.get("boundsSince", _NONE),
        unchecked=tuple(raw.get("unchecked", ())),
        scaled=tuple(raw.get("scaled", ())),
        backoff_counts=tuple(raw.get("backoffCounts", ())),
        overwrites_restart_policy=raw.get("overwritesRestartPolicy", False),
        choices=_group_by_mapping(
            raw.get("choices", _NONE),
            lambda field: Choice(
                tuple(field["values"]), field.get("otherwise", ""), field.get("since", ""), field.get("warning", False)
            ),
        ),
        bounds=_group_by_mapping(raw.get("bounds", _NONE), lambda field: Bounds(field.get("min"), field.get("max"))),
        reserved={policy: tuple(names) for policy, names in raw.get("reserved", _NONE).items()},
        runtimes={
            name: Runtime(field["policy"], field.get("nameSuffix", ""), field.get("initializes", False))
            for name, field in raw.get("runtimes", _NONE).items()
        },
    )


def _group_by_mapping(fields: Mapping[str, Any], parse: Callable[[Any], Any]) -> Fields:
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for at, field in fields.items():
        *mapping, name = at.split(".")
        found.setdefault(tuple(mapping), {})[name] = parse(field)
    return found


ANY_ROLE = "*"
"""The name that describes roles with any name."""


@lru_cache(1000)
def parse_version(text: str) -> tuple[int, ...]:
    """Parse `v1.8.1` to numbers that compare: `1.8` equals `1.8.0`, and what is not a number counts as zero."""
    parts = text.removeprefix("v").split("-")[0].split("+")[0].split(".")
    numbers = [parse_digits(part) or 0 for part in parts]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


class VersionRange(NamedTuple):
    """A range of operator versions: from `since` on, and before `until`."""

    since: str = ""
    until: str = ""

    def contains(self, at: str) -> bool:
        """Return True if the range contains a version; an unknown version is always contained."""
        if not at or not (self.since or self.until):
            return True
        return not (self.since and parse_version(at) < parse_version(self.since)) and not (
            self.until and parse_version(at) >= parse_version(self.until)
        )

    def __str__(self) -> str:
        since = f"added in {self.since}" if self.since else ""
        until = f"removed in {self.until}" if self.until else ""
        return f"was {' and '.join(filter(None, (since, until)))}" if since or until else ""


class FieldMapping(NamedTuple):
    """Where a field of the job spec goes in the custom resource, and how its value is converted."""

    at: tuple[Step, ...]
    as_type: str = ""
    values: Mapping[str, str] | None = None
    versions: VersionRange = VersionRange()
    types: tuple[str, ...] = ()
    description: str = ""
    example: Any = None
    default: Any = None


class TemplateShape(NamedTuple):
    """Where the parts of a pod template go in a kind without one, in a range of operator versions."""

    versions: VersionRange
    at: tuple[Step, ...]
    item: Any
    spec: tuple[Step, ...]
    metadata: tuple[Step, ...] | None
    pod_fields: frozenset[str]
    container_fields: frozenset[str]


class TemplateDescription(NamedTuple):
    """A kind without pod templates: the fields of its main container, and where other parts of a pod go."""

    container: Mapping[str, tuple[Step, ...]]
    shapes: tuple[TemplateShape, ...]


class Framework(NamedTuple):
    """How a kind runs one framework: its roles, its default role and its default values."""

    roles: tuple[str, ...]
    single: str
    defaults: dict[str, Any]
    versions: VersionRange


class Network(NamedTuple):
    """How the pods of a kind find each other; `{job}`, `{role}` and `{index}` stand for the parts of a name."""

    host: str
    """The DNS name of a pod."""
    index_field: str = ""
    """The path of the field of a pod that has its index, for `fieldRef`."""
    index_text: str = ""
    """The text that the operator replaces by the index of a pod."""
    has_service: bool = False
    """True if jobgen renders a headless Service for the pods, because the operator creates none."""
    subdomain: tuple[Step, ...] = ()
    """The path of the field of the object that replaces the part of the DNS name after the first dot."""
    when: tuple[tuple[tuple[Step, ...], Any], ...] = ()
    """Paths and values that the item of a role must have; otherwise its pods have no DNS names."""
    provided: Mapping[tuple[Step, ...], frozenset[str]] = MappingProxyType({})
    """Variables that the operator sets, if the object has a field: its path, and their names."""


class FieldTypes:
    """The types that kind descriptions declare for fields of jobs; one may leave out what another declares."""

    def __init__(self, descriptions: Sequence[Any]) -> None:
        self._descriptions = descriptions

    @cached_property
    def declared(self) -> Mapping[str, Mapping[str, Any]]:
        """The first description of each field that has a type."""
        found: dict[str, Mapping[str, Any]] = {}
        for described in self._descriptions:
            for path, value in described.get("fields", {}).items():
                if isinstance(value, dict) and value.get("type"):
                    found.setdefault(str(path), untraced(value))
        return found


class Kind:
    """A kind description: how a job is expressed in a CRD. Most runs read few kinds, so parts are parsed when read."""

    def __init__(self, described: Any, types: FieldTypes) -> None:
        """Take a valid description, and the types that all of them declare."""
        is_traced = type(next(iter(described))) is TracedKey
        raw: Any = untraced(described) if is_traced else described
        traced: Any = with_layer(described, f"kind {raw['kind']}")
        operator = raw["operator"]
        self._raw, self._traced, self._types = raw, traced, types
        self.api_version: Any = traced["apiVersion"]
        self.kind: Any = traced["kind"]
        self.name: str = raw["kind"]
        self.platform: str = raw["platform"]
        self.operator: str = operator["name"]
        self.versions = VersionRange(operator.get("since", ""), operator.get("removed", ""))
        self.deprecated: str = operator.get("deprecated", "")
        self.container: Any = traced.get("container", "")
        self.aliases: tuple[str, ...] = tuple(raw.get("spellings", ()))
        self.completed_by: str = raw.get("completedBy", "")
        self.success: tuple[str, ...] = tuple(raw.get("success", ()))
        self.restart_policies: tuple[str, ...] = tuple(raw.get("restartPolicies", ()))
        self.restart_default: str = raw.get("operatorRestartPolicy", "")
        self.name_suffix: str = raw.get("nameSuffix", "")
        self.port: Mapping[str, Any] = raw.get("port", {})
        self.plural: str = raw.get("plural", "")
        self.single: str = raw.get("single", "")
        """The default role of a job."""
        self.code: str = raw.get("code", "")
        """The function of `jobgen/rendering/by_kind.py` for what depends on several fields."""
        self.unsupported: Mapping[str, str] = raw.get("unsupported", {})
        """What to do instead of setting fields of a job that the kind does not support."""
        self.is_added = False
        """True if only the repository has the description, and not the revision that judges it."""

    @cached_property
    def frameworks(self) -> Mapping[str, Framework]:
        """How the kind runs each framework."""
        return {name: _parse_framework(self._raw, self._traced, name) for name in self._raw.get("frameworks", ())}

    @cached_property
    def replicas(self) -> ReplicaLayout:
        """Where the items of roles are."""
        raw = self._raw
        return parse_layout(raw["replicas"], self._traced["replicas"]) if "replicas" in raw else ReplicaLayout()

    @cached_property
    def roles(self) -> Mapping[str, RoleDescription]:
        """The roles, by their names in jobgen."""
        traced = self._traced.get("roles", {})
        return {name: _parse_role(name, role, traced[name]) for name, role in self._raw.get("roles", {}).items()}

    @cached_property
    def fields(self) -> Mapping[str, FieldMapping]:
        """Where the fields of a job go, by their paths."""
        declared = self._types.declared
        return {name: _parse_field(value, declared.get(name)) for name, value in self._raw.get("fields", {}).items()}

    @cached_property
    def metadata_fields(self) -> Mapping[str, tuple[str, str]]:
        """The fields of a job that are labels or annotations of the object: the block and the key of each."""
        places = {name: field.at for name, field in self.fields.items() if field.at[0] == "metadata"}
        return {name: (str(at[1]), str(at[2])) for name, at in places.items()}

    @cached_property
    def branches(self) -> frozenset[str]:
        """The paths of mappings in a job that have such fields."""
        names = (*self._raw.get("fields", ()), *self._raw.get("unsupported", ()))
        return frozenset(name.rpartition(".")[0] for name in names)

    @cached_property
    def template(self) -> TemplateDescription | None:
        """Where the parts of a pod go, if the kind has no pod template."""
        template = self._raw.get("template")
        if not template:
            return None
        container = {name: parse_dotted(at) for name, at in template["container"].items()}
        shapes = zip(template["shapes"], self._traced["template"]["shapes"], strict=True)
        return TemplateDescription(container, tuple(_parse_shape(shape, traced["item"]) for shape, traced in shapes))

    @cached_property
    def older(self) -> tuple[VersionRange, ...]:
        """The versions of the operator that have another schema."""
        return tuple(VersionRange(shape.get("since", ""), shape["until"]) for shape in self._raw.get("specs", ()))

    @cached_property
    def pods(self) -> tuple[tuple[Step, ...], ...]:
        """The paths of pod templates beside those of roles."""
        return tuple(map(parse_dotted, _paths(self._raw, "pods")))

    @cached_property
    def added_volumes(self) -> tuple[tuple[Step, ...], ...]:
        """The paths of the names of volumes that the operator adds to pods."""
        return tuple(map(parse_dotted, _paths(self._raw, "addedVolumes")))

    @cached_property
    def requirements(self) -> OperatorRequirements:
        """What the operator requires beyond its CRD."""
        return parse_requirements(self._raw.get("requirements", self._raw.get("demands", {})))

    @cached_property
    def code_paths(self) -> Mapping[str, tuple[tuple[Step, ...], ...]]:
        """Where `code` puts fields of a job."""
        coded = self._raw.get("codePaths", {})
        return {name: tuple(map(parse_dotted, _paths(coded, name))) for name in coded}

    @cached_property
    def network(self) -> Network | None:
        """How the pods find each other."""
        raw = self._raw.get("network")
        if raw is None:
            return None
        return Network(
            raw["host"],
            raw.get("index", ""),
            raw.get("indexText", ""),
            has_service=raw.get("service", False),
            subdomain=parse_dotted(raw.get("subdomain", "")),
            when=tuple((parse_dotted(path), value) for path, value in raw.get("when", {}).items()),
            provided={parse_dotted(path): frozenset(names) for path, names in raw.get("provided", {}).items()},
        )

    @cached_property
    def former_shapes(self) -> Mapping[tuple[Step, ...], str]:
        """Fields of former shapes of the kind, and what is wrong with an object that has them."""
        return {parse_dotted(path): reason for path, reason in self._raw.get("formerShapes", {}).items()}

    def list_layers(self) -> list[Any]:
        """Return the mappings of the description that jobs are merged with."""
        return [self._traced, *(framework.defaults for framework in self.frameworks.values())]

    def with_parts(self, **parts: Any) -> Kind:
        """Return a kind that has some other parts."""
        other = copy(self)
        vars(other).update(parts)
        return other

    @property
    def is_job_kind(self) -> bool:
        """Return True if jobs become objects of this kind."""
        return bool(self._raw.get("frameworks"))

    @property
    def replicas_at(self) -> tuple[Step, ...]:
        """The path of the replicas."""
        return self.replicas.at

    @property
    def shape(self) -> str:
        """The shape of the replicas."""
        return self.replicas.shape

    def list_items(self, obj: Mapping[str, Any]) -> Iterator[ReplicaItem]:
        """Yield the items of the roles of an object."""
        return list_items(obj, self.replicas, self.roles, self.single)

    @property
    def any_role(self) -> RoleDescription | None:
        """The description of roles with any name, if the kind takes them."""
        return self.roles.get(ANY_ROLE)

    def find_role(self, name: str) -> RoleDescription | None:
        """Return the description of a role by its name in jobgen."""
        return self.roles.get(name) or (self.any_role._replace(name=name, spelling=name) if self.any_role else None)

    def name_container(self, role: str) -> Any:
        """Return the name of the main container of a role; `{job}` stands for the name of the job."""
        described = self.roles.get(role)
        return self.container if described is None or not described.container else described.container

    def describes(self, api_version: str, kind: str) -> bool:
        """Return True if an object with this apiVersion and kind is of this kind."""
        return api_version == value_of(self.api_version) and kind in (self.name, *self.aliases)


# The fields that a kind needs if jobs are rendered to it; other kinds have none of them.
_JOB_KIND_FIELDS = ("frameworks", "replicas", "roles", "single", "container", "nameSuffix")


def find_kind_errors(described: Any) -> Iterator[Problem]:
    """Report the errors of a kind description that its schema cannot express."""
    missing = [name for name in _JOB_KIND_FIELDS if name not in described]
    if ("spec" in described or "pods" in described) and len(missing) == len(_JOB_KIND_FIELDS):
        yield from _check_paths(*_paths(described, "pods"), *_paths(described, "addedVolumes"))
    elif missing:
        yield from (
            Problem("missing-field", Sentence("a kind description needs `{}`", name), described) for name in missing
        )
    else:
        yield from _check_job_kind(described)


def _check_job_kind(described: Any) -> Iterator[Problem]:
    for name in described["frameworks"]:
        if name in FIELDS:
            yield Problem(
                "invalid-value", Sentence("`{}` is a field of jobs; give the framework another name", name), name
            )
    roles = [str(role) for role in described["roles"]]
    named = [described["single"]]
    for framework in described["frameworks"].values():
        own = framework if isinstance(framework, dict) else {}
        named += [*own.get("roles", ()), *([own["single"]] if "single" in own else [])]
    requirements = described.get("requirements", described.get("demands", {}))
    named += [role for key in ("written", "boundsSince", "unchecked", "scaled") for role in requirements.get(key, ())]
    for role in named:
        if value_of(role) not in roles:
            meant = find_closest(value_of(role), roles)
            message = Sentence("`{}` is not among the roles{}", value_of(role), ask_for(meant))
            yield Problem("invalid-value", message, role, meant=meant)
    shape = described["replicas"]["shape"]
    if value_of(shape) == "one" and "template" not in described:
        yield Problem("missing-field", "the shape `one` needs a `template`: where the parts of a pod go", shape)
    if value_of(shape) != "one":
        for name, role in described["roles"].items():
            if "spelling" not in role and name != ANY_ROLE:
                yield Problem(
                    "missing-field", Sentence("role `{}` needs `spelling`: its name in the custom resource", name), name
                )
    fields = [value["at"] if isinstance(value, dict) else value for value in described.get("fields", {}).values()]
    coded = described.get("codePaths", {})
    template = described.get("template", {})
    shapes = (shape[key] for shape in template.get("shapes", ()) for key in ("at", "spec", "metadata") if key in shape)
    templates = (*_paths(described, "pods"), *_paths(described, "addedVolumes"))
    yield from _check_paths(*(path for name in coded for path in _paths(coded, name)), is_set=True)
    yield from _check_paths(*templates, *template.get("container", {}).values(), *shapes)
    yield from _check_paths(described["replicas"]["at"], *fields, is_set=True)


def _paths(described: Any, key: str) -> list[Any]:
    """The paths of a field that has one path or a list."""
    paths = described.get(key, [])
    return paths if isinstance(paths, list) else [paths]


def _check_paths(*paths: Any, is_set: bool = False) -> Iterator[Problem]:
    """Report malformed paths. One that a render sets starts with the name of a field and has no index."""
    for path in paths:
        try:
            steps = parse_dotted(value_of(path))
        except InvalidPathError as error:
            yield Problem("invalid-value", str(error), path)
            continue
        if is_set and not steps:
            yield Problem("invalid-value", "the path is empty; write the path of a field, such as `spec.queue`", path)
        elif is_set and not isinstance(steps[0], str):
            message = Sentence("the path `{}` starts with a list item; write the name of a field first", value_of(path))
            yield Problem("invalid-value", message, path)
        elif is_set and any(isinstance(step, int) for step in steps):
            message = Sentence("the path `{}` has an index; name the item instead, such as `[name=x]`", value_of(path))
            yield Problem("invalid-value", message, path)


def parse_kinds(descriptions: Sequence[Any]) -> list[Kind]:
    """Parse valid kind descriptions."""
    types = FieldTypes(descriptions)
    return [Kind(described, types) for described in descriptions]


def _parse_framework(raw: dict[str, Any], traced: Any, name: str) -> Framework:
    own = raw["frameworks"][name] or {}
    own_traced = traced["frameworks"][name]
    defaults = own_traced.get("defaults", {}) if isinstance(own_traced, dict) else {}
    return Framework(
        roles=tuple(own.get("roles", raw["roles"])),
        single=own.get("single", raw.get("single", "")),
        defaults={**traced.get("defaults", {}), **defaults},
        versions=VersionRange(own.get("since", ""), own.get("until", "")),
    )


def _parse_role(name: str, raw: dict[str, Any], traced: Any) -> RoleDescription:
    return RoleDescription(
        name=name,
        spelling=traced.get("spelling", name),
        replicas=traced["replicas"],
        least=raw.get("min"),
        most=raw.get("max"),
        required=raw.get("required", False),
        launches=raw.get("launches", False),
        omitted=raw.get("omitted", 1),
        restart_default=raw.get("operatorRestartPolicy", ""),
        at=parse_dotted(raw.get("at", "")),
        ignores=frozenset(raw.get("ignores", ())),
        joins=raw.get("joins", ""),
        container=traced.get("container", ""),
        completed=raw.get("completed", False),
    )


def _parse_field(value: Any, declared: Mapping[str, Any] | None) -> FieldMapping:
    """A field with its type, and with that of another kind for the same field of a job if it has none."""
    own: Mapping[str, Any] = {"at": value} if isinstance(value, str) else value
    other: Mapping[str, Any] = declared if declared and not own.get("type") else {}
    types = own.get("type") or other.get("type", ())
    return FieldMapping(
        parse_dotted(own["at"]),
        own.get("as", ""),
        own.get("values"),
        VersionRange(own.get("since", ""), own.get("until", "")),
        (types,) if isinstance(types, str) else tuple(types),
        own.get("description", "") or other.get("description", ""),
        other.get("example") if own.get("example") is None else own["example"],
        own.get("default"),
    )


def _parse_shape(shape: dict[str, Any], item: Any) -> TemplateShape:
    metadata = shape.get("metadata")
    return TemplateShape(
        versions=VersionRange(shape.get("since", ""), shape.get("until", "")),
        at=parse_dotted(shape["at"]),
        item=item,
        spec=parse_dotted(shape.get("spec", "")),
        metadata=None if metadata is None else parse_dotted(metadata),
        pod_fields=frozenset(shape["podFields"]),
        container_fields=frozenset(shape["containerFields"]),
    )
