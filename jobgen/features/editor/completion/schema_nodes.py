"""Read schemas for completion: the fields, types and values at a path.

The schemas of jobgen's own formats, of Kubernetes and of custom resources refer to types in different ways; here they
are the same. A repository may bring schemas of its own, so nothing about their form is certain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.features.editor.completion.items import Rank
from jobgen.model.path import Step

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
        return _as_text(self.schema.get("title"))


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
        found = (_as_text(node.schema.get("description")) for node in (self.node, *list_forms(self.node)))
        return next(filter(None, found), "")

    @property
    def rank(self) -> Rank:
        """Its place among the other fields."""
        return Rank.REQUIRED if self.is_required else Rank.COMMON


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
        declared = form.schema.get("type")
        names = declared if isinstance(declared, list) else [declared]
        found |= dict.fromkeys(name for name in names if isinstance(name, str))
        if not declared:
            found |= dict.fromkeys(_guess_types(form.schema))
    return tuple(name for name in found if name != "null") or tuple(found)


def _guess_types(schema: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(schema.get("enum"), list):
        yield from dict.fromkeys(_TYPES[type(value)] for value in schema["enum"] if type(value) in _TYPES)
    elif "properties" in schema or "additionalProperties" in schema:
        yield "object"
    elif "items" in schema:
        yield "array"


_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Value(NamedTuple):
    """A value of a field, as YAML writes it."""

    text: str
    detail: str = ""


def list_values(forms: Iterable[SchemaNode]) -> Iterator[Value]:
    """Yield the values that forms list, and both values of booleans, each once."""
    known: set[str] = set()
    for form in forms:
        for value in _list_values(form.schema):
            if value.text not in known:
                known.add(value.text)
                yield value


def _list_values(schema: Mapping[str, Any]) -> Iterator[Value]:
    default, listed = schema.get("default"), schema.get("enum")
    allowed = listed if isinstance(listed, list) else []
    for value in allowed:
        if value is None:
            yield Value("null", "deletes the value of a layer below")
        elif value is False and "off" in allowed:
            # YAML reads `off` without quotes as false, which is the same here.
            yield Value("off")
        elif not (value == "off" and False in allowed):
            yield Value(write_scalar(value), "default" if value == default else "")
    types = schema.get("type")
    # Where texts and numbers are allowed as well, true and false are no better than others.
    if set(types if isinstance(types, list) else [types]) - {"null"} == {"boolean"} and not allowed:
        for word, value in (("true", True), ("false", False)):
            yield Value(word, "default" if default is value else "")


def write_scalar(value: Any) -> str:
    """Return a scalar as YAML writes it."""
    from jobgen.yamlio.write import to_inline_yaml

    return to_inline_yaml(value) if isinstance(value, str) else json.dumps(value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
