"""Applies the patches of mutating policies: JSON patches, and configurations that the schema of a kind merges."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from jobgen.model.limits import MAX_COPIED_NODES, MAX_DEPTH, MAX_NODES, MAX_OBJECT_LENGTH, Budget, BudgetExceededError

Schema = Mapping[str, Any]

_TOO_DEEP = f"the object would be nested more than {MAX_DEPTH} levels deep"
_USE_PATCH = "use a JSON patch"
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


class PatchError(Exception):
    """A patch that the API server rejects; the text says why."""


class _FailedTest(Exception):  # noqa: N818 -- it is not an error
    """A `test` operation does not hold, so that the patch is not applied."""


def apply_json_patch(obj: Any, operations: Any) -> Any:
    """An object with the operations of a JSON patch applied in order; unchanged if one of its tests does not hold."""
    made = copy.deepcopy(obj)
    copied = Budget(MAX_COPIED_NODES)
    try:
        for operation in operations if isinstance(operations, list) else ():
            made = _apply_operation(made, operation, copied)
    except _FailedTest:
        return obj
    except RecursionError as error:
        raise PatchError(_TOO_DEEP) from error
    except BudgetExceededError as error:
        raise PatchError(f"its `copy` operations add more than {MAX_COPIED_NODES} values") from error
    return made


def _apply_operation(obj: Any, operation: Mapping[str, Any], copied: Budget) -> Any:
    kind, steps = operation.get("op"), _split(operation.get("path"))
    if kind in ("move", "copy"):
        source = _split(operation.get("from"))
        value = _get(obj, source)
        if kind == "copy":
            # Each copy may double the object.
            copied.spend(count_nodes(value, MAX_COPIED_NODES))
            return _set(obj, steps, copy.deepcopy(value), is_new=True)
        return _set(_remove(obj, source), steps, value, is_new=True)
    if kind == "test":
        if _get_or_null(obj, steps) != operation.get("value"):
            raise _FailedTest
        return obj
    if kind == "remove":
        return _remove(obj, steps)
    if kind not in ("add", "replace"):
        raise PatchError(f"`{kind}` is not an operation of a JSON patch")
    if kind == "replace":
        _get(obj, steps)
    return _set(obj, steps, copy.deepcopy(operation.get("value")), is_new=kind == "add")


def count_nodes(value: Any, most: int) -> int:
    """The number of values in a tree; counting stops beyond `most`."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        value = waiting.pop()
        count += 1
        if isinstance(value, (dict, list)):
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return count


def _get_or_null(obj: Any, steps: list[str]) -> Any:
    """The value at a path; null for a missing key of a mapping."""
    parent = _get(obj, steps[:-1])
    return parent.get(steps[-1]) if steps and isinstance(parent, dict) else _get(obj, steps)


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


def merge_configuration(
    obj: Any, configuration: Any, schema: Schema, types: Mapping[str, Schema], path: str = ""
) -> Any:
    """An object with a configuration applied to it, as a server-side apply does: lists with keys are merged by them."""
    schema = _resolve(schema, types)
    _check_type(configuration, schema, path)
    if isinstance(configuration, dict):
        if schema.get("x-kubernetes-map-type") == "atomic":
            raise PatchError(f"`{path}` is an atomic mapping, which an apply configuration cannot change; {_USE_PATCH}")
        made = dict(obj) if isinstance(obj, dict) else {}
        for name, value in configuration.items():
            child = f"{path}.{name}" if path else name
            made[name] = merge_configuration(made.get(name), value, _find_field(schema, name, child), types, child)
        return made
    if isinstance(configuration, list):
        return _merge_lists(obj if isinstance(obj, list) else [], configuration, schema, types, path)
    return configuration


def check_size(obj: Any) -> None:
    """Raise a PatchError for an object that is too large or too deep to be checked."""
    if count_nodes(obj, MAX_NODES) > MAX_NODES:
        raise PatchError(f"the object would have more than {MAX_NODES} values")
    level, length = [obj], 0
    for _ in range(MAX_DEPTH):
        length += sum(len(each) for each in level if isinstance(each, str))
        length += sum(len(name) for each in level if isinstance(each, dict) for name in each)
        if length > MAX_OBJECT_LENGTH:
            raise PatchError(f"the object would have more than {MAX_OBJECT_LENGTH} characters")
        level = [
            child
            for each in level
            if isinstance(each, (dict, list))
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise PatchError(_TOO_DEEP)


def _check_type(value: Any, schema: Schema, path: str) -> None:
    """Raise a PatchError for a value whose type the schema of its field does not have."""
    expected = schema.get("type")
    allowed = _TYPES.get(expected) if isinstance(expected, str) else None
    if allowed is None or value is None or schema.get("x-kubernetes-int-or-string"):
        return
    if not isinstance(value, allowed) or (isinstance(value, bool) and expected != "boolean"):
        raise PatchError(f"`{path}` must be of type `{expected}`")


def _find_field(schema: Schema, name: str, path: str) -> Schema:
    known = schema.get("properties", {}).get(name)
    extra = schema.get("additionalProperties")
    found = known if isinstance(known, dict) else extra
    if found is False and not schema.get("x-kubernetes-preserve-unknown-fields"):
        raise PatchError(f"there is no field `{path}`")
    return found if isinstance(found, dict) else {}


def _resolve(schema: Schema, types: Mapping[str, Schema]) -> Schema:
    while "$ref" in schema:
        schema = types[str(schema["$ref"]).rpartition("/")[2]]
    return schema


def _merge_lists(
    items: list[Any], more: list[Any], schema: Schema, types: Mapping[str, Schema], path: str
) -> list[Any]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind == "set":
        return [*items, *(item for item in more if item not in items)]
    if kind != "map":
        raise PatchError(f"`{path}` is an atomic list, which an apply configuration cannot change; {_USE_PATCH}")
    item_schema = _resolve(schema.get("items", {}), types)
    made = list(items)
    places = {_identify(item, keys, item_schema): place for place, item in reversed(list(enumerate(items)))}
    for item in more:
        identity = _identify(item, keys, item_schema)
        place = places.setdefault(identity, len(made))
        before = made[place] if place < len(made) else None
        made[place:] = [
            merge_configuration(before, item, item_schema, types, f"{path}[{place}]"),
            *made[place + 1 :],
        ]
    return made


def _identify(item: Any, keys: Any, schema: Schema) -> str:
    """The keys of an item; one that is missing has its default."""
    if not isinstance(item, dict):
        return repr(item)
    fields = schema.get("properties", {})
    return repr([item.get(key, fields.get(key, {}).get("default")) for key in keys])
