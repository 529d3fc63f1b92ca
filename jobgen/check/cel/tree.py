"""CEL expressions as trees: read from and written to the bytes in which the engine serializes them.

The bytes are the protocol buffers of `cel/expr/syntax.proto` and `cel/expr/checked.proto`; only what they need is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from jobgen.model.named_tuple import NamedTuple

Parts = dict[int, list[int | bytes]]
"""The fields of a message; bytes are texts, messages, packed numbers or doubles."""

_VARINT, _FIXED, _BYTES = 0, 1, 2


def message(raw: bytes) -> Parts:
    """Decode a message: values by field number."""
    parts: Parts = {}
    for number, value in fields(raw):
        parts.setdefault(number, []).append(value)
    return parts


def one(parts: Parts, number: int) -> bytes:
    """The first value of a field, which is bytes."""
    value = parts.get(number, [b""])[0]
    return value if isinstance(value, bytes) else b""


def text_of(parts: Parts, number: int) -> str:
    """The first value of a field, which is a text."""
    return one(parts, number).decode()


def number_of(parts: Parts, number: int) -> int:
    """The first value of a field, which is a number."""
    value = parts.get(number, [0])[0]
    return value if isinstance(value, int) else 0


def fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Decode the fields of a message: number and value."""
    place = 0
    while place < len(raw):
        tag, place = _varint_at(raw, place)
        wire = tag & 7
        if wire == _VARINT:
            value, place = _varint_at(raw, place)
            yield tag >> 3, value
            continue
        length, place = (8, place) if wire == _FIXED else _varint_at(raw, place)
        yield tag >> 3, raw[place : place + length]
        place += length


def read_path(raw: bytes, *numbers: int) -> int:
    """The number at a path of field numbers, of which all but the last are messages; 0 if there is none."""
    value: int | bytes = raw
    for number in numbers:
        inner = value if isinstance(value, bytes) else b""
        value = next((found for each, found in fields(inner) if each == number), b"")
    return value if isinstance(value, int) else 0


def _varint_at(raw: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7


def varints(raw: bytes) -> Iterator[int]:
    """Decode packed numbers."""
    place = 0
    while place < len(raw):
        value, place = _varint_at(raw, place)
        yield value


def varint(value: int) -> bytes:
    """Encode a number."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def written(number: int, value: int | str | bytes) -> bytes:
    """Encode a field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | _BYTES) + varint(len(raw)) + raw


class Const(NamedTuple):
    """A literal: the number of its kind in the format, and its bytes as written there."""

    id: int
    raw: bytes

    @property
    def text(self) -> str | None:
        """The value, if it is a string."""
        kind, value = next(fields(self.raw), (0, b""))
        return value.decode() if kind == 6 and isinstance(value, bytes) else None


class Ident(NamedTuple):
    """A variable."""

    id: int
    name: str


class Select(NamedTuple):
    """`operand.field`, or `has(operand.field)`."""

    id: int
    operand: Node
    field: str
    test: bool = False


class Call(NamedTuple):
    """A function or operator; a method has a target."""

    id: int
    target: Node | None
    name: str
    args: tuple[Node, ...]


class Sequence(NamedTuple):
    """A list literal, with the indexes of optional items."""

    id: int
    items: tuple[Node, ...]
    optional: tuple[int, ...] = ()


class MapEntry(NamedTuple):
    """An entry of a mapping or message literal."""

    id: int
    field: str
    key: Node | None
    value: Node
    optional: bool


class Struct(NamedTuple):
    """A mapping literal, or a message if it has a name."""

    id: int
    name: str
    entries: tuple[MapEntry, ...]


class Fold(NamedTuple):
    """A comprehension, to which all looping macros expand."""

    id: int
    variable: str
    range: Node
    result_name: str
    start: Node
    condition: Node
    step: Node
    result: Node
    second_variable: str = ""


Node: TypeAlias = Const | Ident | Select | Call | Sequence | Struct | Fold


class Checked(NamedTuple):
    """A checked expression: its tree, and the types and positions of its nodes."""

    root: Node
    types: dict[int, str]
    places: dict[int, int]


def read_parsed(serialized: bytes) -> tuple[Node, dict[int, int]]:
    """Read the tree that the engine parsed, and the positions of its nodes."""
    body = message(one(message(serialized), 2))
    pairs = (message(pair) for pair in message(one(body, 3)).get(4, ()) if isinstance(pair, bytes))
    return _node(one(body, 2)), {number_of(pair, 1): number_of(pair, 2) for pair in pairs}


def write(checked: Checked) -> bytes:
    """Serialize the tree for the engine."""
    return wrap(serialize(checked.root))


def wrap(expression: bytes) -> bytes:
    """Make a serialized node the root of a tree for the engine."""
    return written(1, b"type.googleapis.com/cel.expr.CheckedExpr") + written(2, written(4, expression))


def read_root(serialized: bytes) -> Node:
    """Read the nodes of a tree without their types and positions, which takes less time."""
    body = next(bytes(value) for number, value in fields(serialized) if number == 2 and isinstance(value, bytes))
    return _node(next(bytes(value) for number, value in fields(body) if number == 4 and isinstance(value, bytes)))


def children(node: Node) -> Iterator[Node]:
    """The direct children of a node."""
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case Sequence():
            yield from node.items
        case Struct():
            for entry in node.entries:
                if entry.key is not None:
                    yield entry.key
                yield entry.value
        case Fold():
            yield from (node.range, node.start, node.condition, node.step, node.result)


def map_children(node: Node, convert: Callable[[Node], Node]) -> Node:
    """A node with each direct child converted."""
    match node:
        case Select():
            return node._replace(operand=convert(node.operand))
        case Call():
            target = None if node.target is None else convert(node.target)
            return node._replace(target=target, args=tuple(map(convert, node.args)))
        case Sequence():
            return node._replace(items=tuple(map(convert, node.items)))
        case Struct():
            return node._replace(
                entries=tuple(
                    entry._replace(key=None if entry.key is None else convert(entry.key), value=convert(entry.value))
                    for entry in node.entries
                )
            )
        case Fold():
            return node._replace(
                range=convert(node.range),
                start=convert(node.start),
                condition=convert(node.condition),
                step=convert(node.step),
                result=convert(node.result),
            )
        case _:
            return node


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def _node(raw: bytes) -> Node:
    parts = message(raw)
    number = number_of(parts, 2)
    if 3 in parts:
        return Const(number, one(parts, 3))
    if 4 in parts:
        return Ident(number, text_of(message(one(parts, 4)), 1))
    if 5 in parts:
        inner = message(one(parts, 5))
        return Select(number, _node(one(inner, 1)), text_of(inner, 2), bool(number_of(inner, 3)))
    if 6 in parts:
        inner = message(one(parts, 6))
        target = _node(one(inner, 1)) if 1 in inner else None
        return Call(number, target, text_of(inner, 2), _nodes(inner, 3))
    if 7 in parts:
        inner = message(one(parts, 7))
        places = tuple(varints(b"".join(part for part in inner.get(2, ()) if isinstance(part, bytes))))
        return Sequence(number, _nodes(inner, 1), places)
    if 8 in parts:
        inner = message(one(parts, 8))
        entries = tuple(_entry(part) for part in inner.get(2, ()) if isinstance(part, bytes))
        return Struct(number, text_of(inner, 1), entries)
    inner = message(one(parts, 9))
    start, condition, step, result = (_node(one(inner, field)) for field in (4, 5, 6, 7))
    names = (text_of(inner, field) for field in (1, 3, 8))
    variable, result_name, second = names
    return Fold(number, variable, _node(one(inner, 2)), result_name, start, condition, step, result, second)


def _entry(raw: bytes) -> MapEntry:
    parts = message(raw)
    key = _node(one(parts, 3)) if 3 in parts else None
    return MapEntry(number_of(parts, 1), text_of(parts, 2), key, _node(one(parts, 4)), bool(number_of(parts, 5)))


def serialize(node: Node) -> bytes:
    """A node as bytes, without the message around the tree."""
    head = written(2, node.id)
    match node:
        case Const():
            return head + written(3, node.raw)
        case Ident():
            return head + written(4, written(1, node.name))
        case Select():
            inner = written(1, serialize(node.operand)) + written(2, node.field)
            return head + written(5, inner + (written(3, 1) if node.test else b""))
        case Call():
            target = b"" if node.target is None else written(1, serialize(node.target))
            return head + written(6, target + written(2, node.name) + _serialize_all(3, node.args))
        case Sequence():
            places = b"".join(varint(place) for place in node.optional)
            return head + written(7, _serialize_all(1, node.items) + (written(2, places) if places else b""))
        case Struct():
            name = written(1, node.name) if node.name else b""
            return head + written(8, name + b"".join(written(2, _serialize_entry(entry)) for entry in node.entries))
        case Fold():
            parts = (node.variable, node.range, node.result_name, node.start, node.condition, node.step, node.result)
            inner = b"".join(
                written(number, part if isinstance(part, str) else serialize(part))
                for number, part in enumerate(parts, 1)
            )
            second = written(8, node.second_variable) if node.second_variable else b""
            return head + written(9, inner + second)


def _serialize_entry(entry: MapEntry) -> bytes:
    key = written(2, entry.field) if entry.key is None else written(3, serialize(entry.key))
    optional = written(5, 1) if entry.optional else b""
    return written(1, entry.id) + key + written(4, serialize(entry.value)) + optional


def _serialize_all(number: int, nodes: tuple[Node, ...]) -> bytes:
    return b"".join(written(number, serialize(node)) for node in nodes)


def _nodes(parts: Parts, number: int) -> tuple[Node, ...]:
    return tuple(_node(part) for part in parts.get(number, ()) if isinstance(part, bytes))
