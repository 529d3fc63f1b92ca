"""RFC 6902 operations on an object, with `[name=x]` steps that find list items by a field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from jobgen.model.data import Data, TracedList, override, untraced, value_of
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.path import BadPathError, Named, Step, parse_pointer

_INDEX = lazy_pattern(r"(?:0|[1-9][0-9]{0,8})\Z", re.ASCII)


class _FailedError(Exception):
    """The operation cannot be carried out; its text says why."""


def apply_json_patch(target: Data, operations: list[Data], problems: list[Problem]) -> Data:
    """The object after all operations, or as it was if one of them fails; the failure is a problem."""
    changed = copy_containers(target)
    for operation in operations:
        try:
            _OPERATIONS[value_of(operation["op"])](changed, operation)
        except (_FailedError, BadPathError) as failed:
            problems.append(Problem("json-patch-failed", str(failed), operation["path"]))
            return target
    return changed


def copy_containers(tree: Data) -> Data:
    """A copy whose containers may be changed; leaves are shared."""
    if isinstance(tree, dict):
        return {key: copy_containers(value) for key, value in tree.items()}
    if type(tree) is TracedList:
        return TracedList([copy_containers(value) for value in tree], tree.location, tree.layer, tree.overridden)
    if isinstance(tree, list):
        return [copy_containers(value) for value in tree]
    return tree


def _add(target: Data, operation: dict[str, Data]) -> None:
    _insert(target, _path(operation), copy_containers(_value(operation)))


def _remove(target: Data, operation: dict[str, Data]) -> None:
    _take(target, _path(operation))


def _replace(target: Data, operation: dict[str, Data]) -> None:
    parent, key = _parent(target, _path(operation))
    parent[key] = override(copy_containers(_value(operation)), parent[key])


def _move(target: Data, operation: dict[str, Data]) -> None:
    source, path = _path(operation, "from"), _path(operation)
    if path[: len(source)] == source and path != source:
        raise _FailedError(f"`{_text(operation)}` lies inside what is to be moved")
    _insert(target, path, _take(target, source))


def _copy(target: Data, operation: dict[str, Data]) -> None:
    parent, key = _parent(target, _path(operation, "from"))
    _insert(target, _path(operation), copy_containers(parent[key]))


def _test(target: Data, operation: dict[str, Data]) -> None:
    parent, key = _parent(target, _path(operation))
    found, wanted = untraced(parent[key]), untraced(_value(operation))
    if not _same(found, wanted):
        raise _FailedError(f"`{_text(operation)}` is `{_shown(found)}`, not `{_shown(wanted)}`")


def _same(one: Data, other: Data) -> bool:
    """Equality as JSON has it: `1` is `1.0`, but `true` is not `1`."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


_OPERATIONS: dict[str, Callable[[Data, dict[str, Data]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _text(operation: dict[str, Data], field: str = "path") -> str:
    return str(value_of(operation[field]))


def _path(operation: dict[str, Data], field: str = "path") -> tuple[Step, ...]:
    if field not in operation:
        raise _FailedError(f"`{value_of(operation['op'])}` needs `{field}`")
    path = parse_pointer(_text(operation, field))
    if not path:
        raise _FailedError("the whole object cannot be patched; name a field")
    return path


def _value(operation: dict[str, Data]) -> Data:
    if "value" not in operation:
        raise _FailedError(f"`{value_of(operation['op'])}` needs `value`")
    return operation["value"]


def _parent(target: Data, path: tuple[Step, ...]) -> tuple[Any, Any]:
    """The container and the key of a value that is there."""
    node = _walk(target, path[:-1])
    return node, _existing(node, path[-1], path)


def _walk(target: Data, path: tuple[Step, ...]) -> Any:
    node = target
    for depth, step in enumerate(path):
        node = node[_existing(node, step, path[: depth + 1])]
    return node


def _existing(node: Any, step: Step, path: tuple[Step, ...]) -> Any:
    shown = "/" + "/".join(str(part) for part in path)
    if isinstance(node, dict):
        if str(step) in node:
            return str(step)
        raise _FailedError(f"`{shown}` is not there")
    if not isinstance(node, list):
        raise _FailedError(f"`{shown}` is not there: what holds it is a scalar")
    index = _index(node, step)
    if index is None or index >= len(node):
        raise _FailedError(f"`{shown}` is not there")
    return index


def _index(items: list[Data], step: Step) -> int | None:
    if isinstance(step, Named):
        named = [index for index, item in enumerate(items) if _is_named(item, step)]
        if len(named) > 1:
            raise _FailedError(f"`{step}` fits {len(named)} items; give the index of one")
        return named[0] if named else None
    return int(step) if _INDEX.match(str(step)) else None


def _is_named(item: Data, step: Named) -> bool:
    return isinstance(item, dict) and step.field in item and _shown(untraced(item[step.field])) == step.value


def _shown(value: Data) -> str:
    """A value as YAML people write it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _insert(target: Data, path: tuple[Step, ...], value: Data) -> None:
    node, step = _walk(target, path[:-1]), path[-1]
    if isinstance(node, dict) and not isinstance(step, Named):
        key = str(step)
        node[key] = override(value, node[key]) if key in node else value
    elif isinstance(node, list):
        _insert_item(node, step, value, path)
    else:
        raise _FailedError(f"`/{'/'.join(map(str, path))}` has no place there")


def _insert_item(items: list[Data], step: Step, value: Data, path: tuple[Step, ...]) -> None:
    at = len(items) if step == "-" else _index(items, step)
    if isinstance(step, Named) and at is not None:
        items[at] = value
    elif at is not None and at <= len(items):
        items.insert(at, value)
    else:
        raise _FailedError(f"`/{'/'.join(map(str, path))}` is not there")


def _take(target: Data, path: tuple[Step, ...]) -> Data:
    parent, key = _parent(target, path)
    return parent.pop(key)
