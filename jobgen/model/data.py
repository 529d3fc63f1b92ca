"""Data trees, with and without locations.

Jobs are processed untraced: leaves are plain scalars. A job with a problem is processed again from a traced tree, whose
keys are `TracedKey`s and whose scalars are `TracedScalar`s that know their file, line, column and layer, and what they
replaced. The functions here work on both, so every stage exists once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, TypeAlias, TypeVar, overload

from jobgen.model.named_tuple import NamedTuple

Scalar: TypeAlias = "str | int | float | bool | None"
Plain: TypeAlias = "Scalar | Sequence[Plain] | Mapping[str, Plain]"
"""Data without locations, as `json.loads` returns it."""
Node: TypeAlias = "Scalar | TracedScalar | Sequence[Node] | Mapping[str, Node]"
"""Data with or without locations. `value_of` gives the scalar of a leaf; `untraced` makes it `Plain`."""
Tree = TypeVar("Tree", Plain, Node)
"""Data that keeps its locations if it has some."""
ValidFields: TypeAlias = dict[str, Any]
"""A mapping that a schema has accepted, so its fields have known types; with or without locations."""
API_VERSION = "jobgen.dev/v1"
"""The apiVersion of jobgen's own formats."""


class Location(NamedTuple):
    """A range in a file. Lines and columns start at 1, as in editors."""

    file: str
    line: int = 1
    column: int = 1
    end_line: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class TracedScalar:
    """A scalar with its location, its layer, and the node that it replaced."""

    __slots__ = ("layer", "location", "overridden", "parts", "value", "written")

    def __init__(
        self, value: Any, location: Location, layer: str = "", overridden: Node = None, written: str = ""
    ) -> None:
        self.value = value
        self.location = location
        self.layer = layer
        self.overridden = overridden
        self.written = written
        """The text of a number or boolean in its file, if the value is shown as another text: `0755` for 493."""
        self.parts: tuple[Node, ...] = ()
        """Other nodes that are part of the value, as the words of a command line are."""

    def __repr__(self) -> str:
        return f"TracedScalar({self.value!r}, {self.location})"


class TracedKey(str):
    """A mapping key with its location. It equals the plain string."""

    __slots__ = ("layer", "location", "overridden", "written")
    layer: str
    location: Location
    overridden: TracedScalar | None
    """The key in the values of a chart that a template wrote."""
    written: str
    """The text in the file, if YAML reads it as another: `N` for `false`."""

    @classmethod
    def at(
        cls, text: str, location: Location, layer: str = "", written: str = "", overridden: TracedScalar | None = None
    ) -> TracedKey:
        """Create a key with its location."""
        key = cls(text)
        key.location = location
        key.layer = layer
        key.written = written
        key.overridden = overridden
        return key


class TracedList(list[Any]):
    """A list with its location and the list that it replaced; the readers also record where each item begins."""

    __slots__ = ("item_locations", "layer", "location", "overridden")

    def __init__(
        self,
        items: Iterable[Node],
        location: Location,
        layer: str = "",
        overridden: Node = None,
        item_locations: Iterable[Location] = (),
    ) -> None:
        super().__init__(items)
        self.location = location
        self.layer = layer
        self.overridden = overridden
        self.item_locations = list(item_locations)


class TracedMapping(dict[str, Any]):
    """An empty mapping with its location; the location of other mappings is that of their first key."""

    __slots__ = ("layer", "location")

    def __init__(self, location: Location, layer: str = "") -> None:
        super().__init__()
        self.location = location
        self.layer = layer


class EncryptedObject(dict[str, Any]):
    """An object that SOPS encrypted, with the text of its document: SOPS signs the values and their order."""

    __slots__ = ("text",)

    def __init__(self, data: Mapping[str, Any], text: str) -> None:
        super().__init__(data)
        self.text = text


_TRACED = (TracedScalar, TracedKey, TracedList, TracedMapping)


def value_of(leaf: Node) -> Any:
    """The scalar without its location; other nodes unchanged. Where no schema has, check its type."""
    return leaf.value if type(leaf) is TracedScalar else leaf


def type_of(leaf: Node) -> type:
    """The type of a scalar without its location."""
    return type(leaf.value) if type(leaf) is TracedScalar else type(leaf)


def text_of(leaf: Node) -> str:
    """The string of a scalar, or an empty string if it has another type."""
    text = leaf.value if type(leaf) is TracedScalar else leaf
    return text if isinstance(text, str) else ""


def integer_of(leaf: Node) -> int | None:
    """The integer of a scalar, or None if it has another type."""
    number = leaf.value if type(leaf) is TracedScalar else leaf
    return number if type(number) is int else None


def is_null(leaf: Node) -> bool:
    """Return True if a scalar is null."""
    return type_of(leaf) is NoneType


def with_value(leaf: Node, value: Scalar) -> Scalar | TracedScalar:
    """A scalar derived from `leaf`: it keeps the location and the history."""
    if type(leaf) is TracedScalar:
        return TracedScalar(value, leaf.location, leaf.layer, leaf.overridden)
    return value


def join_values(leaves: Sequence[Node], value: Scalar) -> Scalar | TracedScalar:
    """A scalar made of several: it has the location and the history of the first, and the others as parts."""
    joined = with_value(leaves[0], value)
    if type(joined) is TracedScalar:
        joined.parts = tuple(leaves[1:])
    return joined


def list_scalars(tree: Node) -> Iterator[Node]:
    """Yield the scalars of a tree in their order."""
    if isinstance(tree, (dict, list)):
        for child in tree.values() if isinstance(tree, dict) else tree:
            yield from list_scalars(child)
    else:
        yield tree


def with_tree(leaf: Node, tree: Node) -> Node:
    """A tree whose scalars are derived from `leaf`."""
    if isinstance(tree, dict):
        return {key: with_tree(leaf, value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [with_tree(leaf, value) for value in tree]
    return with_value(leaf, value_of(tree))


def to_key(leaf: Node) -> str:
    """A scalar as a mapping key, with its location if it has one."""
    return TracedKey.at(str(leaf.value), leaf.location, leaf.layer) if type(leaf) is TracedScalar else str(leaf)


def to_scalar(key: str) -> str | TracedScalar:
    """A mapping key as a scalar, with its location if it has one."""
    return TracedScalar(str(key), key.location, key.layer) if type(key) is TracedKey else key


_NodeT = TypeVar("_NodeT", bound=Node)
_PLAIN = frozenset((str, int, float, bool, NoneType))


def override(over: _NodeT, base: Node) -> _NodeT:
    """`over` in place of `base`: a traced node records what it replaced."""
    node: Any = over
    if type(node) is TracedScalar:
        node = TracedScalar(node.value, node.location, node.layer, base, node.written)
    elif type(node) is TracedList:
        node = TracedList(node, node.location, node.layer, base, node.item_locations)
    return node  # type: ignore[no-any-return]


@overload
def untraced(tree: Mapping[str, Node]) -> dict[str, Plain]: ...
@overload
def untraced(tree: list[Any]) -> list[Plain]: ...
@overload
def untraced(tree: Node) -> Plain: ...
def untraced(tree: Node) -> Plain:
    """A copy of the tree without locations."""
    leaf: Any = tree
    plain: Plain = leaf.value if type(leaf) is TracedScalar else leaf
    if type(plain) in _PLAIN:
        return plain
    if isinstance(tree, dict):
        return {str(key): untraced(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [untraced(value) for value in tree]
    return plain


def with_layer(tree: _NodeT, layer: str) -> _NodeT:
    """A traced tree with its layer named on every leaf and key; one without locations, or of the layer, unchanged."""
    node: Any = tree
    if type(node) is TracedMapping and not node:
        node = TracedMapping(node.location, layer)
    elif isinstance(node, dict):
        first = next(iter(node), None)
        if type(first) is TracedKey and first.layer == layer:
            return tree
        if first is None or type(first) is TracedKey:
            # Most values are scalars, and each of them would be a call.
            node = {
                TracedKey.at(key, key.location, layer, key.written, key.overridden)
                if type(key) is TracedKey
                else key: (
                    TracedScalar(value.value, value.location, layer, value.overridden, value.written)
                    if type(value) is TracedScalar
                    else with_layer(value, layer)
                )
                for key, value in node.items()
            }
    elif type(node) is TracedList:
        items = (with_layer(value, layer) for value in node)
        node = TracedList(items, node.location, layer, node.overridden, node.item_locations)
    elif type(node) is TracedScalar:
        node = TracedScalar(node.value, node.location, layer, node.overridden, node.written)
    return node  # type: ignore[no-any-return]


def location_of(node: Node) -> Location | None:
    """The location of a node: its own, or that of the first located key, item or value in it."""
    if node is None:
        return None
    if isinstance(node, (TracedScalar, TracedKey, TracedList)) or (type(node) is TracedMapping and not node):
        return node.location
    children: Iterable[Node] = ()
    if isinstance(node, dict):
        children = [part for pair in node.items() for part in pair]
    elif isinstance(node, list):
        children = node
    return next((location for location in map(location_of, children) if location), None)


def locatable(*nodes: Node) -> Node:
    """The first of the nodes that can have a location, unlike plain scalars and {}; the last one if none can."""
    return next((node for node in nodes if isinstance(node, _TRACED) or (node and isinstance(node, dict))), nodes[-1])


def count_nodes(tree: Any) -> int:
    """Count the values of a tree."""
    count, pending = 0, [tree]
    while pending:
        node = pending.pop()
        count += 1
        if isinstance(node, dict):
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return count
