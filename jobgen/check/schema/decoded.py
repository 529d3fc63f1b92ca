"""Objects of Kubernetes' own kinds as Go decodes them: null in a list or a map is the zero value of its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.model.data import Plain
from jobgen.model.place import Derived, DerivedList

_ZEROS: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def decode_nulls(obj: Mapping[str, Plain], schema: Mapping[str, Any]) -> Mapping[str, Plain]:
    """Return an object with zero values in place of null items and null values of maps; a null field stays as it is.

    Data without null is not copied.
    """
    if not _has_null(obj):
        return obj
    decoded = _decode(obj, schema, schema.get("$defs", {}))
    return decoded if isinstance(decoded, dict) else obj


def _has_null(node: Plain) -> bool:
    if isinstance(node, dict):
        return any(map(_has_null, node.values()))
    return any(map(_has_null, node)) if isinstance(node, list) else node is None


def _resolve(schema: Any, types: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(schema, dict) and "$ref" in schema:
        schema = types[schema["$ref"]]
    return schema if isinstance(schema, dict) else {}


def _decode(node: Plain, schema: Any, types: Mapping[str, Any]) -> Plain:
    schema = _resolve(schema, types)
    if isinstance(node, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        changed = {
            key: new
            for key, value in node.items()
            if (new := _decode(value, fields[key], types) if key in fields else _decode_item(value, others, types))
            is not value
        }
        return Derived({key: changed.get(key, value) for key, value in node.items()}, node) if changed else node
    if not isinstance(node, list):
        return node
    items = [_decode_item(item, schema.get("items"), types) for item in node]
    if all(new is item for new, item in zip(items, node, strict=True)):
        return node
    return DerivedList(items, node)


def _decode_item(node: Plain, schema: Any, types: Mapping[str, Any]) -> Plain:
    if node is not None:
        return _decode(node, schema, types)
    resolved = _resolve(schema, types)
    kind = resolved.get("type")
    if kind == "object":
        return {}
    if resolved.get("x-jobgen-form") == "quantity":
        return "0"
    return _ZEROS.get(kind[0] if isinstance(kind, list) else str(kind))
