"""The types that the CEL rules of a CRD see: those of the schema, with times, sets, and lists with keys."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jobgen.check.cel.fields import ObjectTypes, find_names
from jobgen.check.schema.cel_values import FIELD_NAMES_AS_WRITTEN, escape_name
from jobgen.check.schema.object_meta import OBJECT_META

_SCALARS = {"boolean": "bool", "integer": "int", "number": "double"}
_STRINGS = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_STRING: dict[str, Any] = {"type": "string"}
_METADATA: dict[str, Any] = {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}}
_MAX_DEPTH = 100


def declare_types(
    schema: dict[str, Any], root: dict[str, Any], texts: Iterable[str], optional: tuple[str, ...] = ()
) -> ObjectTypes | None:
    """The types of `self` and `oldSelf` for rules of a schema node, as far as the texts can name fields."""
    names: frozenset[str] = frozenset().union(*map(find_names, texts))
    compiler = _TypeCompiler(root, frozenset(name[1:] for name in names if name.startswith(".")))
    kind = compiler.type_of(schema, "object", is_root=schema is root or is_embedded(schema))
    if kind is None:
        return None
    shape = compiler.shape_of(schema)
    variables = [(name, f"optional_type<{kind}>" if name in optional else kind) for name in ("self", "oldSelf")]
    return ObjectTypes(
        tuple(variables),
        tuple(sorted(compiler.fields)),
        tuple(sorted(names)),
        tuple((name, json.dumps(shape)) for name in ("self", "oldSelf")) if shape else (),
    )


def declare_object(
    schema: dict[str, Any], texts: Iterable[str], name: str
) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """The type of the objects of a kind and its fields, for policies; the name is the start of those of all types."""
    names: frozenset[str] = frozenset().union(*map(find_names, texts))
    head = {"apiVersion": _STRING, "kind": _STRING, "metadata": OBJECT_META}
    root = {**schema, "properties": {**schema.get("properties", {}), **head}}
    compiler = _TypeCompiler(root, frozenset(each[1:] for each in names if each.startswith(".")), name)
    return compiler.type_of(root, name, is_root=True) or "dyn", tuple(sorted(compiler.fields))


def needs_types(types: ObjectTypes) -> bool:
    """Whether rules must be evaluated with types: they can read times, sets, or lists with keys."""
    kinds = [kind for _, kind in types.variables] + [kind for _, _, kind in types.fields]
    return bool(types.shapes) or any("timestamp" in kind or "duration" in kind for kind in kinds)


def is_embedded(schema: dict[str, Any]) -> bool:
    """Whether a schema is that of an object in another object."""
    return bool(schema.get("x-kubernetes-embedded-resource"))


class _TypeCompiler:
    """Collects the fields of the objects in a schema that have one of some names."""

    def __init__(self, root: dict[str, Any], names: frozenset[str], prefix: str = "object") -> None:
        self.root = root
        self.prefix = prefix
        self.names = names
        self.fields: set[tuple[str, str, str]] = set()
        self._known: dict[str, str | None] = {}
        self._depth = 0

    def type_of(self, schema: dict[str, Any], path: str, *, is_root: bool) -> str | None:
        """The type of a schema node; None if rules cannot see its values."""
        schema, path = self._resolve(schema, path)
        if schema.get("x-kubernetes-int-or-string"):
            return "dyn"
        kind = next((kind for kind in _list_types(schema) if kind != "null"), "")
        if kind == "array":
            item = self._type_of_child(schema.get("items"), f"{path}.items")
            return item and f"list<{item}>"
        if kind == "object" or is_root:
            return self._object(schema, path, is_root=is_root)
        return _STRINGS.get(schema.get("format", ""), "string") if kind == "string" else _SCALARS.get(kind)

    def shape_of(self, schema: dict[str, Any], depth: int = 0) -> dict[str, Any]:
        """The sets and the lists with keys in values that the texts can name; see `cel/shapes.py`."""
        schema, _ = self._resolve(schema, "")
        shape: dict[str, Any] = {}
        if depth > _MAX_DEPTH:
            return shape
        if schema.get("x-kubernetes-list-type") == "set":
            shape["list"] = "set"
        elif keys := schema.get("x-kubernetes-list-map-keys"):
            shape["list"] = [escape_name(key) or key for key in keys]
        inner = schema.get("items", schema.get("additionalProperties"))
        if isinstance(inner, dict) and (found := self.shape_of(inner, depth + 1)):
            shape["items"] = found
        fields = {}
        for name, child in self._list_fields(schema):
            if found := self.shape_of(child, depth + 1):
                fields[name] = found
        return {**shape, "fields": fields} if fields else shape

    def _object(self, schema: dict[str, Any], path: str, *, is_root: bool) -> str | None:
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            value = self._type_of_child(extra, f"{path}.values")
            return value and f"map<string, {value}>"
        if path in self._known:
            return path
        self._known[path] = path
        properties = dict(self._list_fields(schema))
        if is_root and not _has_metadata(schema):
            own = {"apiVersion": _STRING, "kind": _STRING, "metadata": _METADATA}
            properties |= {name: child for name, child in own.items() if name in self.names}
        for name, child in properties.items():
            found = self._type_of_child(child, f"{path}.{name}")
            if found:
                self.fields.add((path, name, found))
        return path

    def _type_of_child(self, schema: Any, path: str) -> str | None:
        if not isinstance(schema, dict) or path.count(".") > _MAX_DEPTH:
            return None
        return self.type_of(schema, path, is_root=is_embedded(schema))

    def _list_fields(self, schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The fields that the texts can name, by the names that they have in rules."""
        found = []
        for name, child in (schema.get("properties") or {}).items():
            names = [escape_name(name), *([name] if name in FIELD_NAMES_AS_WRITTEN else [])]
            found += [(known, child) for known in names if known in self.names and isinstance(child, dict)]
        return found

    def _resolve(self, schema: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
        """The schema that a reference names; a type that refers to itself gets one name."""
        if "anyOf" in schema and schema["anyOf"][-1:] == [{"type": "null"}]:
            return self._resolve(schema["anyOf"][0], path)
        if "$ref" not in schema:
            return schema, path
        name = schema["$ref"].rpartition("/")[2]
        return self._resolve(self.root["$defs"][name], f"{self.prefix}.{name}")


def _list_types(schema: dict[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return kinds if isinstance(kinds, list) else [kinds]


def _has_metadata(schema: dict[str, Any]) -> bool:
    """Whether the schema of an object describes all the metadata that rules can see."""
    properties = schema.get("properties") or {}
    metadata = (properties.get("metadata") or {}).get("properties") or {}
    described = (
        properties.get("apiVersion"),
        properties.get("kind"),
        metadata.get("name"),
        metadata.get("generateName"),
    )
    return all(isinstance(child, dict) and "string" in _list_types(child) for child in described)
