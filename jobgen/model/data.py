"""Data trees, with and without locations.

Jobs are processed untraced: leaves are plain scalars. A job with a problem is processed again from a traced tree, whose
keys are `TracedKey`s and whose scalars are `TracedScalar`s that know their file, line, column and layer, and what they
replaced. The functions here work on both, so every stage exists once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Protocol, TypeAlias, TypeVar, overload

from jobgen.model.named_tuple import NamedTuple

Scalar: TypeAlias = "str | int | float | bool | None"
"""A scalar of YAML or JSON."""

Plain: TypeAlias = "Scalar | Sequence[Plain] | Mapping[str, Plain]"
"""Data without locations, as `json.loads` returns it."""

Node: TypeAlias = "Scalar | TracedScalar | Sequence[Node] | Mapping[str, Node]"
"""Data with or without locations. `value_of` gives the scalar of a leaf; `untraced` makes it `Plain`."""

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


class DocumentText(Protocol):
    """The text of a document, in which the location of a node is looked up when it is first needed."""

    def locate_key(self, path: tuple[str | int, ...]) -> Location:
        """Return the location of the key at the end of a path."""

    def locate_value(self, path: tuple[str | int, ...]) -> Any:
        """Return a node like that at a path, with its location."""


Place: TypeAlias = "tuple[DocumentText | Place, str | int]"
"""Where a node is whose location has not been looked up: the place of its parent, or its document, and its step."""


def list_steps(place: Any) -> tuple[DocumentText, tuple[str | int, ...]]:
    """The document of a place, and the path to it."""
    steps: list[str | int] = []
    while type(place) is tuple:
        place, step = place
        steps.append(step)
    return place, tuple(reversed(steps))


class TracedScalar:
    """A scalar with its location, its layer, and the node that it replaced."""

    __slots__ = ("_location", "_written", "layer", "overridden", "parts", "value")

    def __init__(
        self, value: Any, location: Location | Place, layer: str = "", overridden: Node = None, written: str = ""
    ) -> None:
        self.value = value
        self._location = location
        self.layer = layer
        self.overridden = overridden
        self._written = written
        self.parts: tuple[Node, ...] = ()
        """Other nodes that are part of the value, as the words of a command line are."""

    @property
    def location(self) -> Location:
        """Where it is written."""
        if type(self._location) is tuple:
            document, path = list_steps(self._location)
            found = document.locate_value(path)
            self._location, self._written = found.location, found.written
        return self._location  # type: ignore[return-value]

    @property
    def written(self) -> str:
        """The text of a number or boolean in its file, if the value is shown as another text: `0755` for 493."""
        return self._written if self.location else ""

    @written.setter
    def written(self, text: str) -> None:
        self._written = text

    def __repr__(self) -> str:
        return f"TracedScalar({self.value!r}, {self.location})"


class TracedKey(str):
    """A mapping key with its location. It equals the plain string."""

    __slots__ = ("_location", "layer", "written")
    layer: str
    _location: Location | Place
    written: str
    """The text in the file, if YAML reads it as another: `N` for `false`."""

    @classmethod
    def at(cls, text: str, location: Location | Place, layer: str = "", written: str = "") -> TracedKey:
        """Create a key with its location."""
        key = cls(text)
        key._location = location
        key.layer = layer
        key.written = written
        return key

    @property
    def location(self) -> Location:
        """Where it is written."""
        if type(self._location) is tuple:
            document, path = list_steps(self._location)
            self._location = document.locate_key(path)
        return self._location  # type: ignore[return-value]


class TracedList(list[Any]):
    """A list with its location and the list that it replaced; the readers also record where each item begins."""

    __slots__ = ("_item_locations", "_location", "layer", "overridden")

    def __init__(
        self, items: Iterable[Node], location: Location | Place, layer: str = "", overridden: Node = None
    ) -> None:
        super().__init__(items)
        self._location = location
        self.layer = layer
        self.overridden = overridden
        self._item_locations: list[Location] = []

    @property
    def location(self) -> Location:
        """Where it begins."""
        if type(self._location) is tuple:
            document, path = list_steps(self._location)
            found = document.locate_value(path)
            self._location, self._item_locations = found.location, found.item_locations
        return self._location  # type: ignore[return-value]

    @property
    def item_locations(self) -> list[Location]:
        """Where each item begins, if a reader has read the list."""
        return self._item_locations if self.location else []

    @item_locations.setter
    def item_locations(self, locations: list[Location]) -> None:
        self._item_locations = locations


class TracedMapping(dict[str, Any]):
    """An empty mapping with its location; the location of other mappings is that of their first key."""

    __slots__ = ("_location", "layer")

    def __init__(self, location: Location | Place, layer: str = "") -> None:
        super().__init__()
        self._location = location
        self.layer = layer

    @property
    def location(self) -> Location:
        """Where it is written."""
        if type(self._location) is tuple:
            document, path = list_steps(self._location)
            self._location = document.locate_value(path).location
        return self._location  # type: ignore[return-value]


_TRACED = (TracedScalar, TracedKey, TracedList, TracedMapping)


def place_of(node: Node) -> tuple[str | int, ...]:
    """The path of a node in its document, if its location has not been looked up yet; empty otherwise."""
    place = node._location if isinstance(node, _TRACED) else None  # noqa: SLF001 -- one rule for all traced nodes
    return list_steps(place)[1] if type(place) is tuple else ()


def value_of(leaf: Node) -> Any:
    """The scalar without its location; other nodes unchanged.

    The result is `Any` because a schema has usually checked its type; where none has, check it with `isinstance`.
    """
    return leaf.value if type(leaf) is TracedScalar else leaf


def type_of(leaf: Node) -> type:
    """The type of a scalar without its location."""
    return type(leaf.value) if type(leaf) is TracedScalar else type(leaf)


def is_null(leaf: Node) -> bool:
    """Whether a scalar is null."""
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


def override(over: _NodeT, base: Node) -> _NodeT:
    """`over` in place of `base`: a traced node records what it replaced."""
    node: Any = over
    if type(node) is TracedScalar:
        node = TracedScalar(node.value, node.location, node.layer, base)
    elif type(node) is TracedList:
        items = TracedList(node, node.location, node.layer, base)
        items.item_locations = node.item_locations
        node = items
    return node  # type: ignore[no-any-return]


@overload
def untraced(tree: Mapping[str, Node]) -> dict[str, Plain]: ...
@overload
def untraced(tree: list[Any]) -> list[Plain]: ...
@overload
def untraced(tree: Node) -> Plain: ...
def untraced(tree: Node) -> Plain:
    """A copy of the tree without locations."""
    if isinstance(tree, dict):
        return {str(key): untraced(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [untraced(value) for value in tree]
    plain: Plain = value_of(tree)
    return plain


def with_layer(tree: _NodeT, layer: str) -> _NodeT:
    """A traced tree with its layer named on every leaf and key.

    A tree without locations, or of the layer already, is returned unchanged.
    """
    node: Any = tree
    if type(node) is TracedMapping and not node:
        node = TracedMapping(node.location, layer)
    elif isinstance(node, dict):
        first = next(iter(node), None)
        if type(first) is TracedKey and first.layer == layer:
            return tree
        if first is None or type(first) is TracedKey:
            node = {
                TracedKey.at(key, key.location, layer) if type(key) is TracedKey else key: with_layer(value, layer)
                for key, value in node.items()
            }
    elif type(node) is TracedList:
        items = TracedList((with_layer(value, layer) for value in node), node.location, layer, node.overridden)
        items.item_locations = node.item_locations
        node = items
    elif type(node) is TracedScalar:
        node = TracedScalar(node.value, node.location, layer, node.overridden)
    return node  # type: ignore[no-any-return]


def location_of(node: Node) -> Location | None:
    """The location of a node: its own, or that of the first located key, item or value in it."""
    if isinstance(node, (TracedScalar, TracedKey, TracedList)) or (type(node) is TracedMapping and not node):
        return node.location
    children: Iterable[Node] = ()
    if isinstance(node, dict):
        children = [part for pair in node.items() for part in pair]
    elif isinstance(node, list):
        children = node
    return next((location for location in map(location_of, children) if location), None)


def locatable(*nodes: Node) -> Node:
    """The first of the nodes that can have a location; the last one if none can.

    A plain scalar has none, nor does an empty collection without one of its own.
    """
    return next((node for node in nodes if isinstance(node, _TRACED) or (node and isinstance(node, dict))), nodes[-1])
