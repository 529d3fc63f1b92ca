"""Sets and lists with keys in CEL: their equality ignores the order of items, and `+` merges them.

A shape says where in a value such lists are, as JSON: `{"list": "set"}`, `{"list": ["name"]}` for a list whose items
have the key `name`, `{"items": shape}` for the items of a list or the values of a mapping, `{"fields": {"a": shape}}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jobgen.check.cel import lists
from jobgen.check.cel.protobuf import written
from jobgen.check.cel.tree import Call, Checked, Const, Fold, Ident, Node, Select, map_children, walk
from jobgen.check.cel.values import NO_OVERLOAD, strings

Shape = dict[str, Any]

SAME, JOIN = "@sameShape", "@joinShape"


def same(shape: object, one: object, other: object) -> bool:
    """Whether a value with a shape is equal to another value."""
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
    return lists.same(one, other)


def _is_equal_item(shape: Shape, one: Any, other: Any) -> bool:
    return _is_same_item(shape["list"], one, other) and _same(shape.get("items", {}), one, other)


def _is_same_item(keys: str | list[str], one: Any, other: Any) -> bool:
    """Whether two items of a list are the same to Kubernetes."""
    if keys == "set":
        return lists.same(one, other)
    if not isinstance(one, dict) or not isinstance(other, dict):
        raise TypeError(NO_OVERLOAD)
    return all(lists.same(one.get(key), other.get(key)) for key in keys)


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
