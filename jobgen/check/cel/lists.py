"""Functions on lists and durations in CEL that Kubernetes adds, that differ in Go, or that must not grow too much."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import count, pairwise
from typing import Any

from jobgen.check.cel.tree import Call, Checked, Const, Fold, Ident, Node, Select, map_children, walk, written
from jobgen.check.cel.values import NO_OVERLOAD, OFFLINE, strings

_LONGEST = 100_000
_MAX_INTEGER = 2**63 - 1


def _alike(items: object) -> list[Any]:
    """The items of a list that can be compared with each other."""
    if not isinstance(items, list):
        raise TypeError(NO_OVERLOAD)
    kinds = {float if type(item) is int else type(item) for item in items}
    if len(kinds) > 1 or kinds & {dict, list, type(None)}:
        raise TypeError(NO_OVERLOAD)
    return items


def _total(items: object) -> Any:
    found = _alike(items)
    if not found:
        return 0
    if type(found[0]) not in (int, float, timedelta):
        raise TypeError(NO_OVERLOAD)
    result = sum(found[1:], found[0])
    if type(result) is int and not -_MAX_INTEGER <= result <= _MAX_INTEGER:
        raise ValueError("integer overflow")
    return result


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[object], Any]:
    def find(items: object) -> Any:
        found = _alike(items)
        if not found:
            raise ValueError(f"{choose.__name__} called on empty list")
        return choose(found)

    return find


_least, _most = _extreme(min), _extreme(max)


def _given(result: Any) -> Any:
    if type(result) in (datetime, timedelta):
        # The library passes timestamps and durations to Python but does not accept them back.
        raise ValueError(f"a time or duration out of a list {OFFLINE}")
    return result


def _to_text(value: datetime | timedelta) -> str:
    """A time or duration as text: the library does not accept it from Python."""
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        return f"{'-' if microseconds < 0 else ''}{abs(microseconds) // 10**6}.{abs(microseconds) % 10**6:06}s"
    return value.isoformat() if value.tzinfo else f"{value.isoformat()}Z"


def _index_of(items: object, item: object, start: object = None) -> int:
    """`list.indexOf(item)`, and what strings have of that name."""
    if type(items) is not str:
        return next(_places(items, item, start), -1)
    wanted, first = _read_search(item, 0 if start is None else start)
    return items.find(wanted, first) if wanted else first


def _last_index_of(items: object, item: object, end: object = None) -> int:
    """`list.lastIndexOf(item)`, and what strings have of that name."""
    if type(items) is not str:
        return max(_places(items, item, end), default=-1)
    if end is None:
        return items.rfind(strings(item)[0])
    wanted, last = _read_search(item, end)
    if not wanted:
        return last
    return items.rfind(wanted, 0, last + len(wanted)) if last < len(items) else -1


def _places(items: object, item: object, extra: object) -> Iterator[int]:
    if not isinstance(items, list) or extra is not None:
        raise TypeError(NO_OVERLOAD)
    return (index for index, found in enumerate(items) if same(found, item))


def _read_search(part: object, index: object) -> tuple[str, int]:
    """What is searched in a text, and where the search begins or ends; the index of nothing can be any."""
    (wanted,) = strings(part)
    if type(index) is not int:
        raise TypeError(NO_OVERLOAD)
    if wanted and index < 0:
        raise ValueError(f"index out of range: {index}")
    return wanted, index


def _count_up(size: object) -> list[int]:
    if type(size) is not int:
        raise TypeError(NO_OVERLOAD)
    if size > _LONGEST:
        raise ValueError(f"a list of `{size}` items costs more than the API server allows")
    return list(range(size))


def _count_milliseconds(value: object) -> int:
    """`duration.getMilliseconds()`: of the whole duration, as in Go."""
    if not isinstance(value, timedelta):
        raise TypeError(NO_OVERLOAD)
    return value // timedelta(milliseconds=1)


def _insert(mapping: object, *entry: object) -> dict[Any, Any]:
    """Add an entry, or those of another mapping, for `transformMap` and `transformMapEntry`."""
    assert isinstance(mapping, dict), "macros begin with an empty mapping"
    if len(mapping) > _LONGEST // 20:
        raise ValueError("a mapping of so many entries costs more than the API server allows")
    more = {entry[0]: entry[1]} if len(entry) == 2 else entry[0]
    if not isinstance(more, dict):
        raise TypeError(NO_OVERLOAD)
    twice = next((key for key in more if key in mapping), None)
    if twice is not None:
        raise ValueError(f"insert failed: key `{twice}` already exists")
    return {**mapping, **more}


def same(one: object, other: object) -> bool:
    """Equality of CEL: numbers of all types compare, but a boolean is not a number."""
    if type(one) is bool or type(other) is bool:
        return type(one) is type(other) and one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return one == other


Shape = dict[str, Any]

_SAME, _JOIN = "@sameShape", "@joinShape"


def _join(shape: object, one: object, other: object) -> list[Any]:
    """The union of a set and a list, or a list with keys in which another list replaces and adds items."""
    (text,) = strings(shape)
    if not isinstance(one, list) or not isinstance(other, list):
        raise TypeError(NO_OVERLOAD)
    keys = json.loads(text)["list"]
    joined = list(one)
    for item in other:
        found = next((index for index, known in enumerate(joined) if _is_same_item(keys, known, item)), None)
        if found is None:
            joined.append(item)
        elif keys != "set":
            joined[found] = item
    return joined


def _same(shape: Shape, one: Any, other: Any) -> bool:
    inner = shape.get("items", {})
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        if "list" in shape:
            return all(
                any(_is_same_item(shape["list"], known, item) and _same(inner, known, item) for known in one)
                for item in other
            )
        return all(_same(inner, *pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        fields = shape.get("fields", {})
        return one.keys() == other.keys() and all(
            _same(fields.get(key, inner), value, other[key]) for key, value in one.items()
        )
    return same(one, other)


def _is_same_item(keys: str | list[str], one: Any, other: Any) -> bool:
    if keys == "set":
        return same(one, other)
    if not isinstance(one, dict) or not isinstance(other, dict):
        raise TypeError(NO_OVERLOAD)
    return all(same(one.get(key), other.get(key)) for key in keys)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isSorted": lambda items: all(before <= after for before, after in pairwise(_alike(items))),
    "sum": lambda items: _given(_total(items)),
    "min": lambda items: _given(_least(items)),
    "max": lambda items: _given(_most(items)),
    # The same for times and durations, which the library accepts as text.
    "sum@text": lambda items: _to_text(_total(items) or timedelta()),
    "min@text": lambda items: _to_text(_least(items)),
    "max@text": lambda items: _to_text(_most(items)),
    "getMilliseconds": _count_milliseconds,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lists.range": _count_up,
    "cel.@mapInsert": _insert,
    # What a loop goes through: the keys of a mapping in order, or the items of a list.
    "@inOrder": lambda value: sorted(value, key=str) if isinstance(value, dict) else value,
    _SAME: lambda shape, one, other: _same(json.loads(strings(shape)[0]), one, other),
    _JOIN: _join,
}


def with_shapes(checked: Checked, shapes: Mapping[str, str]) -> Checked:
    """The expression with comparisons and sums that follow the shapes of its variables.

    The shape of the left operand decides, as in the API server.
    """
    ids = count(max(node.id for node in walk(checked.root)) + 100_001)

    def rewrite(node: Node, known: Mapping[str, Shape]) -> Node:
        if isinstance(node, Fold):
            shape = _find_shape(node.range, known).get("items", {})
            inner = {**known, node.variable: shape, node.second_variable: shape}
            return node._replace(
                range=rewrite(node.range, known),
                start=rewrite(node.start, known),
                condition=rewrite(node.condition, inner),
                step=rewrite(node.step, inner),
                result=rewrite(node.result, inner),
            )
        if isinstance(node, Call) and node.name in ("_==_", "_!=_", "_+_"):
            shape = _find_shape(node.args[0], known)
            args = tuple(rewrite(arg, known) for arg in node.args)
            if shape and (node.name != "_+_" or "list" in shape):
                text = Const(next(ids), written(6, json.dumps(shape)))
                name = _JOIN if node.name == "_+_" else _SAME
                call = Call(node.id if node.name != "_!=_" else next(ids), None, name, (text, *args))
                return Call(node.id, None, "!_", (call,)) if node.name == "_!=_" else call
            return node._replace(args=args)
        return map_children(node, lambda child: rewrite(child, known))

    known = {name: json.loads(text) for name, text in shapes.items()}
    return checked._replace(root=rewrite(checked.root, known))


def _find_shape(node: Node, known: Mapping[str, Shape]) -> Shape:
    """The shape of the value of a node; empty if it has no sets or lists with keys."""
    found: Shape = {}
    match node:
        case Ident():
            found = known.get(node.name, {})
        case Select() if not node.test:
            shape = _find_shape(node.operand, known)
            found = shape.get("fields", {}).get(node.field) or shape.get("items", {})
        case Call() if node.name in ("_[_]", "_[?_]"):
            found = _find_shape(node.args[0], known).get("items", {})
        case Call() if node.name == "_?._" and isinstance(node.args[1], Const):
            shape = _find_shape(node.args[0], known)
            found = shape.get("fields", {}).get(node.args[1].text) or shape.get("items", {})
        case Call() if node.name == "_+_":
            shape = _find_shape(node.args[0], known)
            found = shape if "list" in shape else {}
        case Call() if node.name == "_?_:_":
            found = _find_shape(node.args[1], known) or _find_shape(node.args[2], known)
        case Call() if node.name in ("value", "orValue", "optional.of", "dyn"):
            found = _find_shape(node.target or node.args[0], known)
    return found
