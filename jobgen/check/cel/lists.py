"""Functions on lists and durations in CEL that Kubernetes adds, that differ in Go, or that must not grow too much."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from jobgen.check.cel.tree import Call, Checked, Const, Fold, Ident, Node, Select, map_children, walk, written
from jobgen.check.cel.values import NO_OVERLOAD, OFFLINE, strings

_LONGEST = 100_000
_LARGEST = 2**63 - 1


def is_sorted(items: object) -> bool:
    """`list.isSorted()`."""
    found = _alike(items)
    return all(before <= after for before, after in pairwise(found))


def in_order(value: object) -> object:
    """What a loop goes through: the keys of a mapping in order, or the items of a list."""
    return sorted(value, key=str) if isinstance(value, dict) else value


def total(items: object) -> Any:
    """`list.sum()`."""
    return _given(_total(items))


def total_as_text(items: object) -> str:
    """The sum of durations."""
    return _to_text(_total(items) or timedelta())


def _total(items: object) -> Any:
    found = _alike(items)
    if not found:
        return 0
    if type(found[0]) not in (int, float, timedelta):
        raise TypeError(NO_OVERLOAD)
    result = sum(found[1:], found[0])
    if type(result) is int and abs(result) > _LARGEST:
        raise ValueError("integer overflow")
    return result


def least(items: object) -> Any:
    """`list.min()`."""
    return _given(min(_filled(items, "min")))


def least_as_text(items: object) -> str:
    """The first of times or durations."""
    return _to_text(min(_filled(items, "min")))


def most(items: object) -> Any:
    """`list.max()`."""
    return _given(max(_filled(items, "max")))


def most_as_text(items: object) -> str:
    """The last of times or durations."""
    return _to_text(max(_filled(items, "max")))


def _filled(items: object, name: str) -> list[Any]:
    found = _alike(items)
    if not found:
        raise ValueError(f"{name} called on empty list")
    return found


def _to_text(value: datetime | timedelta) -> str:
    """A time or duration as text: the library does not accept it from Python."""
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        return f"{'-' if microseconds < 0 else ''}{abs(microseconds) // 10**6}.{abs(microseconds) % 10**6:06}s"
    return value.isoformat() if value.tzinfo else f"{value.isoformat()}Z"


def index_of(items: object, item: object, start: object = None) -> int:
    """`list.indexOf(item)`, and what strings have of that name."""
    if type(items) is str:
        return _found(items, item, 0 if start is None else start)
    return next(_places(items, item, start), -1)


def last_index_of(items: object, item: object, end: object = None) -> int:
    """`list.lastIndexOf(item)`, and what strings have of that name."""
    if type(items) is str:
        return items.rfind(strings(item)[0]) if end is None else _found_last(items, item, end)
    return max(_places(items, item, end), default=-1)


def count_up(size: object) -> list[int]:
    """`lists.range(int)`."""
    if type(size) is not int:
        raise TypeError(NO_OVERLOAD)
    if size > _LONGEST:
        raise ValueError(f"a list of `{size}` items costs more than the API server allows")
    return list(range(size))


def count_milliseconds(value: object) -> int:
    """`duration.getMilliseconds()`: of the whole duration, as in Go."""
    if not isinstance(value, timedelta):
        raise TypeError(NO_OVERLOAD)
    return value // timedelta(milliseconds=1)


def insert(mapping: object, *entry: object) -> dict[Any, Any]:
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


def _given(result: Any) -> Any:
    if isinstance(result, (datetime, timedelta)):
        # The library passes timestamps and durations to Python but does not accept them back.
        raise ValueError(f"a time or duration out of a list {OFFLINE}")  # noqa: TRY004
    return result


def _alike(items: object) -> list[Any]:
    """The items of a list that can be compared with each other."""
    if not isinstance(items, list):
        raise TypeError(NO_OVERLOAD)
    kinds = {float if type(item) is int else type(item) for item in items}
    if len(kinds) > 1 or kinds & {dict, list, type(None)}:
        raise TypeError(NO_OVERLOAD)
    return items


def _places(items: object, item: object, extra: object) -> Iterator[int]:
    if not isinstance(items, list) or extra is not None:
        raise TypeError(NO_OVERLOAD)
    return (index for index, found in enumerate(items) if same(found, item))


def _found(text: str, part: object, start: object) -> int:
    (wanted,) = strings(part)
    if type(start) is not int:
        raise TypeError(NO_OVERLOAD)
    if not wanted:
        return start
    if start < 0:
        raise ValueError(f"index out of range: {start}")
    return text.find(wanted, start)


def _found_last(text: str, part: object, end: object) -> int:
    (wanted,) = strings(part)
    if type(end) is not int:
        raise TypeError(NO_OVERLOAD)
    if not wanted:
        return end
    if end < 0:
        raise ValueError(f"index out of range: {end}")
    return text.rfind(wanted, 0, end + len(wanted)) if end < len(text) else -1


Shape = dict[str, Any]

SAME, JOIN = "@sameShape", "@joinShape"


def same_shape(shape: object, one: object, other: object) -> bool:
    """Return True if a value with a shape is equal to another value."""
    (text,) = strings(shape)
    return _same(json.loads(text), one, other)


def join(shape: object, one: object, other: object) -> list[Any]:
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
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        if "list" in shape:
            return all(any(_is_equal_item(shape, known, item) for known in one) for item in other)
        inner = shape.get("items", {})
        return all(_same(inner, *pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        fields, inner = shape.get("fields", {}), shape.get("items", {})
        return one.keys() == other.keys() and all(
            _same(fields.get(key, inner), value, other[key]) for key, value in one.items()
        )
    return same(one, other)


def _is_equal_item(shape: Shape, one: Any, other: Any) -> bool:
    return _is_same_item(shape["list"], one, other) and _same(shape.get("items", {}), one, other)


def _is_same_item(keys: str | list[str], one: Any, other: Any) -> bool:
    """Return True if two items of a list are the same to Kubernetes."""
    if keys == "set":
        return same(one, other)
    if not isinstance(one, dict) or not isinstance(other, dict):
        raise TypeError(NO_OVERLOAD)
    return all(same(one.get(key), other.get(key)) for key in keys)


def with_shapes(checked: Checked, shapes: Mapping[str, str]) -> Checked:
    """The expression with comparisons and sums that follow the shapes of its variables."""
    known = {name: json.loads(text) for name, text in shapes.items()}
    return checked._replace(root=_ShapeRewriter(checked).rewrite(checked.root, known))


class _ShapeRewriter:
    """Rewrites a tree; the shape of the left operand decides, as in the API server."""

    def __init__(self, checked: Checked) -> None:
        self.last = max(node.id for node in walk(checked.root)) + 100_000

    def rewrite(self, node: Node, known: Mapping[str, Shape]) -> Node:
        if isinstance(node, Fold):
            shape = _find_shape(node.range, known).get("items", {})
            inner = {**known, node.variable: shape, node.second_variable: shape}
            return node._replace(
                range=self.rewrite(node.range, known),
                start=self.rewrite(node.start, known),
                condition=self.rewrite(node.condition, inner),
                step=self.rewrite(node.step, inner),
                result=self.rewrite(node.result, inner),
            )
        if isinstance(node, Call) and node.name in ("_==_", "_!=_", "_+_"):
            shape = _find_shape(node.args[0], known)
            args = tuple(self.rewrite(arg, known) for arg in node.args)
            if shape and (node.name != "_+_" or "list" in shape):
                return self._call(node, shape, args)
            return node._replace(args=args)
        return map_children(node, lambda child: self.rewrite(child, known))

    def _call(self, node: Call, shape: Shape, args: tuple[Node, ...]) -> Node:
        self.last += 2
        text = Const(self.last, written(6, json.dumps(shape)))
        name = JOIN if node.name == "_+_" else SAME
        call = Call(node.id if node.name != "_!=_" else self.last - 1, None, name, (text, *args))
        return Call(node.id, None, "!_", (call,)) if node.name == "_!=_" else call


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
