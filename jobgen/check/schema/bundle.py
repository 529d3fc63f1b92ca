"""Bundles a schema with all types that it uses, as JSON Schema for other tools such as kubeconform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.schema.types_of_release import DECODED

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_CHILDREN = ("items", "additionalProperties", "not")
_LISTS = ("allOf", "anyOf", "oneOf")


def bundle_schema(schema: Mapping[str, Any]) -> Schema:
    """Return a JSON Schema that refers to nothing outside of it."""
    types = schema["$defs"]
    names: dict[str, str] = {}
    waiting = [{word: value for word, value in schema.items() if word != "$defs"}]
    root = waiting[0]
    for node in waiting:
        for name in _find_references(node):
            if name not in names:
                names[name] = _shorten(name, set(names.values()))
                waiting.append(types[name])
    found = {short: _convert(types[name], names) for name, short in sorted(names.items(), key=lambda item: item[1])}
    return {"$schema": DIALECT, **_convert(root, names), "$defs": found}


def _find_references(node: Any) -> Iterator[str]:
    if "$ref" in node:
        yield node["$ref"]
    for child in _list_children(node):
        yield from _find_references(child)


def _list_children(node: Schema) -> Iterator[Schema]:
    yield from node.get("properties", {}).values()
    yield from (node[word] for word in _CHILDREN if isinstance(node.get(word), dict))
    yield from (child for word in _LISTS for child in node.get(word, ()))


def _shorten(name: str, taken: set[str]) -> str:
    """The last part of a name, or all of it if another type has that."""
    short = name.removeprefix(DECODED).rpartition(".")[2]
    return short if short not in taken else name.replace(":", ".")


def _convert(node: Schema, names: Mapping[str, str]) -> Schema:
    """A node with references to its own bundle, and with null where Kubernetes drops or keeps it."""
    if "$ref" in node:
        kept = {word: value for word, value in node.items() if word != "nullable"}
        kept["$ref"] = f"#/$defs/{names[node['$ref']]}"
        return allow_null(kept) if node.get("nullable") else kept
    kept = {word: value for word, value in node.items() if not word.startswith("x-jobgen-")}
    required = node.get("required", ())
    if "properties" in node:
        fields = {name: _convert(child, names) for name, child in node["properties"].items()}
        kept["properties"] = {name: child if name in required else allow_null(child) for name, child in fields.items()}
    for word in _CHILDREN:
        if isinstance(node.get(word), dict):
            kept[word] = _convert(node[word], names)
    if isinstance(node.get("additionalProperties"), dict):
        kept["additionalProperties"] = allow_null(kept["additionalProperties"])
    kept |= {word: [_convert(child, names) for child in node[word]] for word in _LISTS if word in node}
    return allow_null(kept) if node.get("nullable") else kept


def allow_null(schema: Schema) -> Schema:
    """A schema that also accepts null."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if schema.get("enum"):
        return schema if None in schema["enum"] else {**schema, "enum": [*schema["enum"], None]}
    if "type" not in schema:
        return schema
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema if "null" in kinds else {**schema, "type": [*kinds, "null"]}
