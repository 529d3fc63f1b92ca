"""Read schemas for completion: the fields, types and values at a path.

The schemas of jobgen's own formats, of Kubernetes and of custom resources refer to types in different ways; here they
are the same. A repository may bring schemas of its own, so nothing about their form is certain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from jobgen.check.schema.shipped import find_shipped_schema
from jobgen.k8s.kinds import find_removal, format_release, parse_release
from jobgen.k8s.nodes import as_text
from jobgen.model.data import value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
from jobgen.repo import layout
from jobgen.repo.commit import Folder
from jobgen.schema.shipped_kinds import ShippedKind, list_shipped_kinds, name_type, rank_kind
from jobgen.schema.types_of_release import DECODED, METADATA, Types
from jobgen.spec.kinds import Kind, parse_version
from jobgen.spec.overlay import Cluster

_MAX_DEPTH = 16
"""References that are followed in a row: a schema may refer to itself."""
_ALTERNATIVES = ("anyOf", "oneOf")


class SchemaNode(NamedTuple):
    """A node of a schema, and where its references lead."""

    schema: Mapping[str, Any]
    resolve: Callable[[str], SchemaNode | None]

    def child(self, schema: Any) -> SchemaNode:
        """Return a node below this one."""
        return SchemaNode(schema if isinstance(schema, dict) else {}, self.resolve)

    @property
    def title(self) -> str:
        """The name of what the node describes; empty without one."""
        return as_text(self.schema.get("title"))


class Field(NamedTuple):
    """A field of a mapping."""

    name: str
    node: SchemaNode
    is_required: bool

    @property
    def types(self) -> tuple[str, ...]:
        """The types that its value may have, without null unless there is no other."""
        return list_types(list_forms(self.node))

    @property
    def description(self) -> str:
        """What it means; empty if its schema does not say."""
        found = (as_text(node.schema.get("description")) for node in (self.node, *list_forms(self.node)))
        return next(filter(None, found), "")


def read_pointers(schemas: Mapping[str, Any], file: str) -> Callable[[str], SchemaNode | None]:
    """Return the function that follows references such as `other.json#/$defs/name`, from one of some schemas."""

    def resolve(ref: str) -> SchemaNode | None:
        where, _, pointer = ref.partition("#")
        where = where or file
        node: Any = schemas.get(where)
        for step in pointer.split("/")[1:]:
            node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
        return SchemaNode(node, read_pointers(schemas, where)) if isinstance(node, dict) else None

    return resolve


def read_definitions(types: Mapping[str, Any]) -> Callable[[str], SchemaNode | None]:
    """Return the function that follows references to types by their names, such as `core_v1.PodSpec`."""

    def resolve(ref: str) -> SchemaNode | None:
        try:
            return SchemaNode(types[ref], resolve)
        except KeyError:
            return None

    return resolve


def list_forms(node: SchemaNode, depth: int = 0) -> tuple[SchemaNode, ...]:
    """Return the forms that a value may have: references are followed, and alternatives are listed."""
    schema = node.schema
    if depth > _MAX_DEPTH:
        return ()
    if isinstance(schema.get("$ref"), str):
        target = node.resolve(schema["$ref"])
        return list_forms(target, depth + 1) if target else ()
    for word in _ALTERNATIVES:
        options = schema.get(word)
        # Beside properties or a type, alternatives only restrict them.
        if isinstance(options, list) and not schema.keys() & {"properties", "type"}:
            return tuple(form for option in options for form in list_forms(node.child(option), depth + 1))
    return (node,)


def walk_path(
    forms: Sequence[SchemaNode],
    path: Iterable[Step],
    refine: Callable[[SchemaNode, Step, SchemaNode], Sequence[SchemaNode]] | None = None,
) -> tuple[SchemaNode, ...]:
    """Return the forms at a path. `refine` replaces the form of a child: it gets the parent, the step and the form."""
    for step in path:
        found: list[SchemaNode] = []
        for parent in forms:
            for child in _find_children(parent, step):
                found += (
                    refined
                    for form in list_forms(child)
                    for refined in (refine(parent, step, form) if refine else (form,))
                )
        forms = found
    return tuple(forms)


def _find_children(parent: SchemaNode, step: Step) -> Iterator[SchemaNode]:
    if isinstance(step, int):
        items = parent.schema.get("items")
        if isinstance(items, dict):
            yield parent.child(items)
        return
    properties, other = parent.schema.get("properties"), parent.schema.get("additionalProperties")
    if isinstance(properties, dict) and step in properties:
        yield parent.child(properties[step])
    elif isinstance(other, dict):
        yield parent.child(other)


def list_fields(forms: Iterable[SchemaNode]) -> Iterator[Field]:
    """Yield the fields of mappings, each name once."""
    known: set[str] = set()
    for form in forms:
        properties, required = form.schema.get("properties"), form.schema.get("required")
        names = required if isinstance(required, list) else ()
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            if name not in known:
                known.add(name)
                yield Field(name, form.child(schema), name in names)


def list_types(forms: Iterable[SchemaNode]) -> tuple[str, ...]:
    """Return the types of forms, without null unless there is no other."""
    found: dict[str, None] = {}
    for form in forms:
        schema, declared = form.schema, form.schema.get("type")
        names = declared if isinstance(declared, list) else [declared]
        if not declared and isinstance(schema.get("enum"), list):
            names = [_TYPES[type(value)] for value in schema["enum"] if type(value) in _TYPES]
        elif not declared and schema.keys() & {"properties", "additionalProperties"}:
            names = ["object"]
        elif not declared and "items" in schema:
            names = ["array"]
        found |= dict.fromkeys(name for name in names if isinstance(name, str))
    return tuple(name for name in found if name != "null") or tuple(found)


_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Value(NamedTuple):
    """A value of a field, as YAML writes it."""

    text: str
    detail: str = ""


def list_values(forms: Iterable[SchemaNode]) -> Iterator[Value]:
    """Yield the values that forms list, and both values of booleans, each once."""
    found: dict[str, str] = {}
    for schema in (form.schema for form in forms):
        default, listed, types = schema.get("default"), schema.get("enum"), schema.get("type")
        allowed = listed if isinstance(listed, list) else []
        for value in allowed:
            if value is None:
                found.setdefault("null", "deletes the value of a layer below")
            elif value is False and "off" in allowed:
                # YAML reads `off` without quotes as false, which is the same here.
                found.setdefault("off", "")
            elif not (value == "off" and False in allowed):
                found.setdefault(write_scalar(value), "default" if value == default else "")
        # Where texts and numbers are allowed as well, true and false are no better than others.
        if set(types if isinstance(types, list) else [types]) - {"null"} == {"boolean"} and not allowed:
            for word, flag in (("true", True), ("false", False)):
                found.setdefault(word, "default" if default is flag else "")
    yield from map(Value, found, found.values())


def write_scalar(value: Any) -> str:
    """Return a scalar as YAML writes it."""
    from jobgen.yamlio.write import to_inline_yaml

    return to_inline_yaml(value) if isinstance(value, str) else json.dumps(value)


# The fields of raw manifests, and of the objects that jobs become: from the schemas that check them.


class NamedKind(NamedTuple):
    """A kind of objects."""

    api_version: str
    name: str
    source: str = ""
    """Who defines it: Kubernetes, or the name of an operator."""
    deprecated: str = ""
    """Why not to use it in this cluster, and what to use instead."""

    @property
    def plural(self) -> str:
        """The name of its resource, as authors of kinds form it."""
        name = self.name.lower()
        if name.endswith(("s", "x", "z", "ch", "sh")):
            return name if name == "endpoints" else f"{name}es"
        is_changed = name.endswith("y") and not name.endswith(("ay", "ey", "oy", "uy"))
        return f"{name[:-1]}ies" if is_changed else f"{name}s"


def find_object_schema(root: Folder, api_version: str, kind: str, clusters: Iterable[Cluster]) -> list[SchemaNode]:
    """Return the schemas that clusters have for a kind; none if it is not known."""
    group, _, version = api_version.rpartition("/")
    own = (
        layout.read_schema(layout.own_layers(root), f"{group}/{kind.lower()}_{version}.json")
        if group and kind
        else None
    )
    if own is not None:
        return list(_read_own_schema(own.content))
    found: dict[int, SchemaNode] = {}
    for cluster in clusters:
        for node in _find_shipped(api_version, kind, cluster.kubernetes, tuple(sorted(cluster.operators.items()))):
            found[id(node.schema)] = node
    return list(found.values())


@lru_cache(maxsize=64)
def _find_shipped(
    api_version: str, kind: str, kubernetes: str, operators: tuple[tuple[str, str], ...]
) -> tuple[SchemaNode, ...]:
    """Return the shipped schema of a kind. A type of Kubernetes says here which of its fields are required."""
    own = name_type(api_version, kind)
    if own:
        types: Mapping[str, Any] = Types(format_release(parse_release(kubernetes)), in_crd=True)
        schema, metadata = types[own], {"$ref": DECODED + METADATA}
        properties = {"apiVersion": {}, "kind": {}, **schema.get("properties", {}), "metadata": metadata}
        required = sorted({"apiVersion", "kind", "metadata", *schema.get("required", ())})
        return list_forms(
            SchemaNode({**schema, "properties": properties, "required": required}, read_definitions(types))
        )
    cluster = Cluster(kubernetes=kubernetes, operators=dict(operators))
    shipped = find_shipped_schema(api_version, kind, cluster, any_release=True)
    if shipped is None or shipped.missing:
        return ()
    return list_forms(SchemaNode(shipped.schema, read_definitions(shipped.schema["$defs"])))


@lru_cache(maxsize=64)
def _read_own_schema(content: bytes) -> tuple[SchemaNode, ...]:
    """Return a schema of the repository; none if it is broken, which its own finding says."""
    try:
        schema = json.loads(content)
    except (ValueError, RecursionError):
        return ()
    return list_forms(SchemaNode(schema, read_pointers({"": schema}, ""))) if isinstance(schema, dict) else ()


def list_kinds(kinds: Sequence[Kind], clusters: Sequence[Cluster]) -> Iterator[NamedKind]:
    """Yield the kinds that a manifest can have: those with a description, then the others that jobgen knows."""
    described = {(str(value_of(kind.api_version)), kind.name): kind for kind in kinds}
    for (api_version, name), kind in described.items():
        yield NamedKind(api_version, name, kind.operator, describe_deprecation(kind, clusters))
    for known in _list_shipped():
        is_new = known.since and not known.until and not any(map(known.is_served, clusters))
        if (known.api_version, known.name) not in described and not is_new:
            yield NamedKind(known.api_version, known.name, known.source, _describe_old_version(known, clusters))


@cache
def _list_shipped() -> tuple[ShippedKind, ...]:
    return tuple(list_shipped_kinds())


@cache
def _group_versions() -> dict[tuple[str, str], list[ShippedKind]]:
    """The versions of each kind, the most stable one last."""
    versions: dict[tuple[str, str], list[ShippedKind]] = {}
    for kind in sorted(_list_shipped(), key=rank_kind):
        versions.setdefault((kind.api_version.rpartition("/")[0], kind.name), []).append(kind)
    return versions


def _describe_old_version(kind: ShippedKind, clusters: Sequence[Cluster]) -> str:
    """Say why not to use a version of a kind: the clusters do not have it, or they have a more stable one."""
    served = [
        known
        for known in _group_versions()[kind.api_version.rpartition("/")[0], kind.name]
        if all(map(known.is_served, clusters))
    ]
    better = served[-1].api_version if served and rank_kind(served[-1]) > rank_kind(kind) else ""
    use = f"; use `{better}`" if better else ""
    if kind.until and not any(map(kind.is_served, clusters)):
        source = "Kubernetes" if kind.source == "kubernetes" else kind.source
        return f"removed in {source} {kind.until}{use}"
    return f"there is a newer version{use}" if better and not kind.is_stable else ""


def describe_deprecation(kind: Kind, clusters: Iterable[Cluster]) -> str:
    """Say why not to use a kind: the operator will remove it, or the clusters have a release without it."""
    removed = str(kind.versions.until or "")
    declared = [str(version) for cluster in clusters if (version := cluster.operators.get(kind.operator))]
    if removed and all(parse_version(version) >= parse_version(removed) for version in declared):
        return f"removed in {kind.operator} {removed}"
    return f"deprecated since {kind.operator} {value_of(kind.deprecated)}" if kind.deprecated else ""


def describe_kind(api_version: str, name: str, kinds: Iterable[Kind], clusters: Sequence[Cluster]) -> str:
    """Say why not to use a kind of objects; empty if nothing is wrong with it, or if it is not known."""
    described = next((kind for kind in kinds if kind.describes(api_version, name)), None)
    if described is not None:
        return describe_deprecation(described, clusters)
    versions = _group_versions().get((api_version.rpartition("/")[0], name), ())
    shipped = next((kind for kind in versions if kind.api_version == api_version), None)
    if shipped is not None:
        return _describe_old_version(shipped, clusters)
    removal = find_removal(api_version, name)
    if removal is None:
        return ""
    release, successor = removal
    return f"removed in Kubernetes {release}" + (f"; use `{successor}`" if successor else "")


def describe_framework(name: str, kinds: Iterable[Kind], clusters: Sequence[Cluster]) -> str:
    """Say why not to use a framework: all kinds that it is rendered as are deprecated."""
    reasons = [describe_deprecation(kind, clusters) for kind in kinds if name in kind.frameworks]
    return reasons[0] if reasons and all(reasons) else ""
