"""The nouns of jobgen: frozen values, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

Scalar: TypeAlias = "str | int | float | bool | None"
"""A scalar of YAML or JSON."""

Plain: TypeAlias = "Scalar | Sequence[Plain] | Mapping[str, Plain]"
"""Data without locations, as `json.loads` returns it."""

Node: TypeAlias = "Scalar | TracedScalar | Sequence[Node] | Mapping[str, Node]"
"""Data with or without locations. `value_of` gives the scalar of a leaf; `untraced` makes it `Plain`."""

Data: TypeAlias = Any
"""Untyped data; use `Plain` or `Node`."""


API_VERSION = "jobgen.dev/v1"
"""apiVersion of our own formats."""


class Location(NamedTuple):
    """A place in a file, counted from 1 as editors do."""

    file: str
    line: int = 1
    column: int = 1
    end_line: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class TracedScalar:
    """A scalar with the place it was written, and what it replaced there."""

    __slots__ = ("layer", "location", "overridden", "value")

    def __init__(self, value: Data, location: Location, layer: str = "", under: Data = None) -> None:
        self.value = value
        self.location = location
        self.layer = layer
        self.overridden = under

    def __repr__(self) -> str:
        return f"Leaf({self.value!r}, {self.location})"


class TracedKey(str):
    """A mapping key that knows where it was written; it equals its bare text."""

    __slots__ = ("layer", "location")
    layer: str
    location: Location

    @classmethod
    def at(cls, text: str, location: Location, layer: str = "") -> TracedKey:
        """A key with its place."""
        key = cls(text)
        key.location = location
        key.layer = layer
        return key


class TracedList(list[Data]):
    """A list that knows where it was written, which list it replaced, and, as it is read, where its items begin."""

    __slots__ = ("layer", "location", "overridden", "places")

    def __init__(
        self, items: Iterator[Data] | list[Data], location: Location, layer: str = "", under: Data = None
    ) -> None:
        super().__init__(items)
        self.location = location
        self.layer = layer
        self.overridden = under
        self.places: list[Location] = []


def value_of(leaf: Data) -> Data:
    """The scalar itself, on either walk."""
    return leaf.value if type(leaf) is TracedScalar else leaf


def type_of(leaf: Data) -> type:
    """The type of a scalar, with or without a location."""
    return type(leaf.value) if type(leaf) is TracedScalar else type(leaf)


def is_null(leaf: Data) -> bool:
    """Whether a scalar is null, on either walk."""
    return type_of(leaf) is NoneType


def with_value(leaf: Data, value: Data) -> Data:
    """A value made from `leaf`, which keeps its place and its history."""
    if type(leaf) is TracedScalar:
        return TracedScalar(value, leaf.location, leaf.layer, leaf.overridden)
    return value


def to_key(leaf: Data) -> str:
    """A scalar turned into a mapping key, with its place if it has one."""
    return TracedKey.at(str(leaf.value), leaf.location, leaf.layer) if type(leaf) is TracedScalar else str(leaf)


def to_scalar(key: str) -> Data:
    """A mapping key turned into a scalar, with its place if it has one."""
    return TracedScalar(str(key), key.location, key.layer) if type(key) is TracedKey else key


def override(over: Data, base: Data) -> Data:
    """`over` in the place of `base`: a traced value remembers what it replaced."""
    if type(over) is TracedScalar:
        return TracedScalar(over.value, over.location, over.layer, base)
    if type(over) is TracedList:
        return TracedList(over, over.location, over.layer, base)
    return over


def untraced(tree: Data) -> Data:
    """The tree with bare leaves and keys."""
    if isinstance(tree, dict):
        return {str(key): untraced(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [untraced(value) for value in tree]
    return value_of(tree)


def with_layer(tree: Data, layer: str) -> Data:
    """The traced tree with the name of its layer on every leaf and key; bare trees stay as they are."""
    if isinstance(tree, dict):
        if tree and type(next(iter(tree))) is not TracedKey:
            return tree
        return {
            TracedKey.at(key, key.location, layer) if type(key) is TracedKey else key: with_layer(value, layer)
            for key, value in tree.items()
        }
    if type(tree) is TracedList:
        return TracedList((with_layer(value, layer) for value in tree), tree.location, layer, tree.overridden)
    if type(tree) is TracedScalar:
        return TracedScalar(tree.value, tree.location, layer, tree.overridden)
    return tree


def location_of(node: Data) -> Location | None:
    """Where a node of a traced tree was written: its own place, or that of the first thing in it."""
    if isinstance(node, (TracedScalar, TracedKey, TracedList)):
        return node.location
    children: Any = ()
    if isinstance(node, dict):
        children = [part for pair in node.items() for part in pair]
    elif isinstance(node, list):
        children = node
    return next((location for location in map(location_of, children) if location), None)
