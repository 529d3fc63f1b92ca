"""Kind descriptions: how each CRD spells a job. Data from schemas/<group>/<kind>_<version>.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from jobgen.model.data import Data, untraced, value_of, with_layer
from jobgen.model.finding import Problem
from jobgen.model.path import InvalidPathError, Step, parse_dotted
from jobgen.model.suggest import did_you_mean
from jobgen.spec.normalize import FIELDS
from jobgen.spec.operator_requirements import OperatorRequirements, parse_requirements

Version = tuple[int, ...]


def parse_version(text: str) -> Version:
    """`v1.8.1` as numbers that compare, so that `1.8` is `1.8.0`; what is not a number counts as zero."""
    parts = text.removeprefix("v").split("-")[0].split("+")[0].split(".")
    numbers = [int(part) if part.isdigit() else 0 for part in parts]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


class VersionRange(NamedTuple):
    """The operator versions in which something exists: from `since`, and gone at `until`."""

    since: str = ""
    until: str = ""

    def contains(self, at: str) -> bool:
        """Whether it exists in that version; an unknown version is the newest that has it."""
        if not at or not (self.since or self.until):
            return True
        return not (self.since and parse_version(at) < parse_version(self.since)) and not (
            self.until and parse_version(at) >= parse_version(self.until)
        )

    def __str__(self) -> str:
        since = f"came with {self.since}" if self.since else ""
        until = f"went with {self.until}" if self.until else ""
        return " and ".join(filter(None, (since, until)))


class FieldMapping(NamedTuple):
    """Where one of our fields goes in the custom resource, and how it is spelt there."""

    at: tuple[Step, ...]
    as_type: str = ""
    values: Mapping[str, str] | None = None
    versions: VersionRange = VersionRange()
    types: tuple[str, ...] = ()
    description: str = ""


class RoleDescription(NamedTuple):
    """A role of a kind: its spelling there, its default count and bounds."""

    name: str
    spelling: Data
    replicas: Data
    least: int | None = None
    most: int | None = None
    required: bool = False
    launches: bool = False
    omitted: int = 1
    restart_default: str = ""


class TemplateShape(NamedTuple):
    """Where the parts of a pod template go in a kind that has none, in some operator versions."""

    versions: VersionRange
    at: tuple[Step, ...]
    item: Data
    spec: tuple[Step, ...]
    metadata: tuple[Step, ...] | None
    pod_fields: frozenset[str]
    container_fields: frozenset[str]


class TemplateDescription(NamedTuple):
    """A kind without pod templates: fields of its main container, and the parts that can be overridden."""

    container: Mapping[str, tuple[Step, ...]]
    shapes: tuple[TemplateShape, ...]


class Framework(NamedTuple):
    """What a kind does for one framework."""

    roles: tuple[str, ...]
    single: str
    defaults: Data
    versions: VersionRange


class Kind(NamedTuple):
    """How a CRD spells a job."""

    api_version: Data
    kind: Data
    platform: str
    operator: str
    versions: VersionRange
    deprecated: str
    frameworks: Mapping[str, Framework]
    replicas_at: tuple[Step, ...]
    shape: str
    roles: Mapping[str, RoleDescription]
    container: Data
    fields: Mapping[str, FieldMapping]
    branches: frozenset[str]
    template: TemplateDescription | None
    aliases: tuple[str, ...] = ()
    older: tuple[VersionRange, ...] = ()
    pods: tuple[Step, ...] = ()
    success: tuple[str, ...] = ()
    restart_policies: tuple[str, ...] = ()
    restart_default: str = ""
    name_suffix: str = ""
    port: Mapping[str, Any] = MappingProxyType({})
    plural: str = ""
    requirements: OperatorRequirements = OperatorRequirements()

    @property
    def name(self) -> str:
        """The kind's bare name."""
        return str(value_of(self.kind))

    def describes(self, api_version: str, kind: str) -> bool:
        """Whether an object with this apiVersion and kind is one of these."""
        return api_version == value_of(self.api_version) and kind in (self.name, *self.aliases)


# What a kind says to which jobs are rendered, and any other does not.
_OF_JOBS = ("frameworks", "replicas", "roles", "single", "container", "nameSuffix")


def find_kind_errors(described: dict[str, Data]) -> Iterator[Problem]:
    """What a kind description of the right shape says that cannot be."""
    missing = [name for name in _OF_JOBS if name not in described]
    if "spec" in described and len(missing) == len(_OF_JOBS):
        yield from _bad_paths(described.get("pods", ""))
    elif missing:
        yield from (Problem("missing-field", f"a kind description needs `{name}`", described) for name in missing)
    else:
        yield from _contradictions_of_jobs(described)


def _contradictions_of_jobs(described: dict[str, Data]) -> Iterator[Problem]:
    for name in described["frameworks"]:
        if name in FIELDS:
            yield Problem("invalid-value", f"`{name}` is a field of jobs; give the framework another name", name)
    roles = [str(role) for role in described["roles"]]
    named = [described["single"]]
    for framework in described["frameworks"].values():
        own = framework if isinstance(framework, dict) else {}
        named += [*own.get("roles", ()), *([own["single"]] if "single" in own else [])]
    demands = described.get("demands", {})
    named += [role for key in ("written", "boundsSince", "unchecked", "scaled") for role in demands.get(key, ())]
    for role in named:
        if value_of(role) not in roles:
            message = f"`{value_of(role)}` is not among the roles{did_you_mean(value_of(role), roles)}"
            yield Problem("invalid-value", message, role)
    shape = described["replicas"]["shape"]
    if value_of(shape) == "one" and "template" not in described:
        yield Problem("missing-field", "the shape `one` needs a `template`: where the parts of a pod go", shape)
    if value_of(shape) != "one":
        for name, role in described["roles"].items():
            if "spelling" not in role:
                yield Problem("missing-field", f"role `{name}` needs `spelling`: its name in the custom resource", name)
    fields = [value["at"] if isinstance(value, dict) else value for value in described.get("fields", {}).values()]
    yield from _bad_paths(described["replicas"]["at"], *fields, *_template_paths(described.get("template", {})))


def _bad_paths(*paths: Data) -> Iterator[Problem]:
    for path in paths:
        try:
            parse_dotted(value_of(path))
        except InvalidPathError as bad:
            yield Problem("invalid-value", str(bad), path)


def _template_paths(template: dict[str, Data]) -> Iterator[Data]:
    yield from template.get("container", {}).values()
    for shape in template.get("shapes", ()):
        yield from (shape[key] for key in ("at", "spec", "metadata") if key in shape)


def parse_kind(described: dict[str, Data]) -> Kind:
    """The Kind that a description file holds; its format and its sense have been checked."""
    raw: Any = untraced(described)
    traced: Any = with_layer(described, f"kind {raw['kind']}")
    operator = raw["operator"]
    template = raw.get("template")
    replicas = raw.get("replicas", {"at": raw.get("pods", ""), "shape": ""})
    return Kind(
        api_version=traced["apiVersion"],
        kind=traced["kind"],
        platform=raw["platform"],
        operator=operator["name"],
        versions=VersionRange(operator.get("since", ""), operator.get("removed", "")),
        deprecated=operator.get("deprecated", ""),
        frameworks={name: _framework(raw, traced, name) for name in raw.get("frameworks", ())},
        replicas_at=parse_dotted(replicas["at"]),
        shape=replicas["shape"],
        roles={name: _role(name, raw["roles"][name], traced["roles"][name]) for name in raw.get("roles", ())},
        container=traced.get("container", ""),
        fields={name: _field(value) for name, value in raw.get("fields", {}).items()},
        branches=frozenset(name.rpartition(".")[0] for name in raw.get("fields", {})),
        template=_template(template, traced["template"]) if template else None,
        aliases=tuple(raw.get("spellings", ())),
        older=tuple(VersionRange(shape.get("since", ""), shape["until"]) for shape in raw.get("specs", ())),
        pods=parse_dotted(raw.get("pods", "")),
        success=tuple(raw.get("success", ())),
        restart_policies=tuple(raw.get("restartPolicies", ())),
        restart_default=raw.get("operatorRestartPolicy", ""),
        name_suffix=raw.get("nameSuffix", ""),
        port=raw.get("port", {}),
        plural=raw.get("plural", ""),
        requirements=parse_requirements(raw.get("demands", {})),
    )


def _framework(raw: dict[str, Any], traced: dict[str, Data], name: str) -> Framework:
    own = raw["frameworks"][name] or {}
    own_traced = traced["frameworks"][name]
    defaults = own_traced.get("defaults", {}) if isinstance(own_traced, dict) else {}
    return Framework(
        roles=tuple(own.get("roles", raw["roles"])),
        single=own.get("single", raw.get("single", "")),
        defaults={**traced.get("defaults", {}), **defaults},
        versions=VersionRange(own.get("since", ""), own.get("until", "")),
    )


def _role(name: str, raw: dict[str, Any], traced: dict[str, Data]) -> RoleDescription:
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
    )


def _field(value: Any) -> FieldMapping:
    if isinstance(value, str):
        return FieldMapping(parse_dotted(value))
    types = value.get("type", ())
    return FieldMapping(
        parse_dotted(value["at"]),
        value.get("as", ""),
        value.get("values"),
        VersionRange(value.get("since", ""), value.get("until", "")),
        (types,) if isinstance(types, str) else tuple(types),
        value.get("description", ""),
    )


def _template(raw: dict[str, Any], traced: dict[str, Data]) -> TemplateDescription:
    container = {name: parse_dotted(at) for name, at in raw["container"].items()}
    shapes = zip(raw["shapes"], traced["shapes"], strict=True)
    return TemplateDescription(container, tuple(_parts(shape, traced_shape["item"]) for shape, traced_shape in shapes))


def _parts(shape: dict[str, Any], item: Data) -> TemplateShape:
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
