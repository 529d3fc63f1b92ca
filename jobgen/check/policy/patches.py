"""Applies the patches of mutating policies: JSON patches, and configurations that the schema of a kind merges."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


class PatchError(Exception):
    """A patch that the API server rejects; the text says why."""


def apply_json_patch(obj: Any, operations: Any) -> Any:
    """An object with the operations of a JSON patch applied in order."""
    made = copy.deepcopy(obj)
    for operation in operations if isinstance(operations, list) else ():
        made = _apply_operation(made, operation)
    return made


def _apply_operation(obj: Any, operation: Mapping[str, Any]) -> Any:
    kind, steps = operation.get("op"), _split(operation.get("path"))
    if kind in ("move", "copy"):
        source = _split(operation.get("from"))
        value = copy.deepcopy(_get(obj, source))
        return _set(_remove(obj, source) if kind == "move" else obj, steps, value, is_new=True)
    if kind == "test":
        if _get(obj, steps) != operation.get("value"):
            raise PatchError(f"the test of `{operation.get('path')}` fails")
        return obj
    if kind == "remove":
        return _remove(obj, steps)
    if kind not in ("add", "replace"):
        raise PatchError(f"`{kind}` is not an operation of a JSON patch")
    if kind == "replace":
        _get(obj, steps)
    return _set(obj, steps, copy.deepcopy(operation.get("value")), is_new=kind == "add")


def _split(path: Any) -> list[str]:
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise PatchError(f"`{path}` is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _get(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, list):
            value = value[_to_index(value, step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            raise PatchError(f"there is no `{'/'.join(['', *steps])}`")
    return value


def _to_index(items: list[Any], step: str, *, is_new: bool = False) -> int:
    if is_new and step == "-":
        return len(items)
    if not step.isascii() or not step.isdigit() or int(step) >= len(items) + is_new:
        raise PatchError(f"there is no item `{step}`")
    return int(step)


def _set(obj: Any, steps: list[str], value: Any, *, is_new: bool) -> Any:
    if not steps:
        return value
    parent = _get(obj, steps[:-1])
    if isinstance(parent, list):
        index = _to_index(parent, steps[-1], is_new=is_new)
        parent[index : index if is_new else index + 1] = [value]
    elif isinstance(parent, dict):
        parent[steps[-1]] = value
    else:
        raise PatchError(f"`{'/'.join(['', *steps[:-1]])}` is neither a mapping nor a list")
    return obj


def _remove(obj: Any, steps: list[str]) -> Any:
    _get(obj, steps)
    parent = _get(obj, steps[:-1])
    del parent[_to_index(parent, steps[-1]) if isinstance(parent, list) else steps[-1]]
    return obj


def merge_configuration(obj: Any, configuration: Any, schema: Schema, types: Mapping[str, Schema]) -> Any:
    """An object with a configuration applied to it, as a server-side apply does: lists with keys are merged by them."""
    schema = _resolve(schema, types)
    if isinstance(obj, dict) and isinstance(configuration, dict):
        if schema.get("x-kubernetes-map-type") == "atomic":
            raise PatchError("a mapping that is atomic cannot be changed by an apply configuration; use a JSON patch")
        made = dict(obj)
        for name, value in configuration.items():
            known = _find_field(schema, name)
            made[name] = merge_configuration(made[name], value, known, types) if name in made else value
        return made
    if isinstance(configuration, list):
        return _merge_lists(obj if isinstance(obj, list) else [], configuration, schema, types)
    return configuration


def _find_field(schema: Schema, name: str) -> Schema:
    known = schema.get("properties", {}).get(name)
    extra = schema.get("additionalProperties")
    return known if isinstance(known, dict) else extra if isinstance(extra, dict) else {}


def _resolve(schema: Schema, types: Mapping[str, Schema]) -> Schema:
    while "$ref" in schema:
        schema = types[str(schema["$ref"]).rpartition("/")[2]]
    return schema


def _merge_lists(items: list[Any], more: list[Any], schema: Schema, types: Mapping[str, Schema]) -> list[Any]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind == "set":
        return [*items, *(item for item in more if item not in items)]
    if kind != "map":
        raise PatchError("a list that is atomic cannot be changed by an apply configuration; use a JSON patch")
    item_schema = _resolve(schema.get("items", {}), types)
    made = list(items)
    for item in more:
        identity = _identify(item, keys, item_schema)
        place = next((n for n, each in enumerate(made) if _identify(each, keys, item_schema) == identity), None)
        if place is None:
            made.append(item)
        else:
            made[place] = merge_configuration(made[place], item, item_schema, types)
    return made


def _identify(item: Any, keys: Any, schema: Schema) -> tuple[Any, ...]:
    """The keys of an item; one that is missing has its default."""
    if not isinstance(item, dict):
        return (repr(item),)
    fields = schema.get("properties", {})
    return tuple(item.get(key, fields.get(key, {}).get("default")) for key in keys)
