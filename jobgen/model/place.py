"""Places in an object: an entry of a mapping or list that a check names, and the path to it.

A check that sees plain data says in which mapping a value stands, and under which key: a plain scalar does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from jobgen.model.data import Node
from jobgen.model.named_tuple import NamedTuple

Steps: TypeAlias = "tuple[str | int, ...]"


class At(NamedTuple):
    """The value of an entry of a mapping or list, or its key."""

    holder: Any
    key: Any
    is_key: bool = False

    @property
    def node(self) -> Any:
        """The value, or the key as it stands in the mapping."""
        if self.is_key:
            return next((key for key in self.holder if key == self.key), None)
        return self.holder.get(self.key) if isinstance(self.holder, dict) else self.holder[self.key]


Place: TypeAlias = "Node | At"
"""What a check reports: a mapping or list itself, or an entry of one."""
Entry: TypeAlias = "tuple[Any, Any, Entry] | None"
"""Where a value stands: its holder, its key or index, and where the holder stands. None is for an object itself.

A check of good values makes no calls for it.
"""


def at_value(value: Node, entry: Entry) -> Place:
    """Return the place of a value at an entry."""
    return At(entry[0], entry[1]) if entry else value


def at_key(value: Node, entry: Entry) -> Place:
    """Return the place of the key that leads to a value, through lists; the value itself without a key."""
    while entry and isinstance(entry[0], list):
        entry = entry[2]
    return At(entry[0], entry[1], is_key=True) if entry else value


def at_scalar(value: Node, entry: Entry) -> Place:
    """Return the place of a scalar, or that of the key of a mapping or list."""
    return at_key(value, entry) if isinstance(value, (dict, list)) else at_value(value, entry)


def at_item(value: Node, entry: Entry) -> Place:
    """Return the place of a mapping or list that is an item of a list, which has no key; None for all others."""
    return At(entry[0], entry[1]) if entry and isinstance(entry[0], list) and isinstance(value, (dict, list)) else None


def find_at(holder: Node, *steps: Any, is_key: bool = False) -> At | None:
    """Return the place of the entry at a path of keys, or of its key; None if there is none."""
    *before, last = steps
    for step in before:
        if not isinstance(holder, dict) or step not in holder:
            return None
        holder = holder[step]
    return At(holder, last, is_key) if isinstance(holder, dict) and last in holder else None


class Derived(dict[str, Any]):
    """A mapping that a check derived from one of the object; entries that it kept have their places there."""

    __slots__ = ("original",)

    def __init__(self, entries: Mapping[str, Any], original: Mapping[str, Any]) -> None:
        super().__init__(entries)
        self.original = original


class Gathered(dict[str, Any]):
    """A mapping that a check gathered from entries at other places of an object."""

    __slots__ = ("places",)

    def __init__(self, entries: Mapping[str, Any], places: Mapping[str, At]) -> None:
        super().__init__(entries)
        self.places = places


class DerivedList(list[Any]):
    """A list that a check derived from one of the object; its items have their places there."""

    __slots__ = ("original",)

    def __init__(self, items: Iterable[Any], original: Sequence[Any]) -> None:
        super().__init__(items)
        self.original = original


def identify(place: Place) -> object:
    """Return what two places have in common if they are the same."""
    place = find_gathered(place)
    if type(place) is At:
        value = None if place.is_key else place.node
        # The reader has one empty mapping for all.
        if value and isinstance(value, (dict, list)):
            return id(find_original(value))
        return id(find_original(place.holder)), place.key, place.is_key
    return id(find_original(place))


def find_gathered(place: Place) -> Place:
    """Return the place in its object of an entry of a gathered mapping, or of the first one; others as they are."""
    if type(place) is At:
        return place.holder.places.get(place.key, place) if type(place.holder) is Gathered else place
    return next(iter(place.places.values()), place) if type(place) is Gathered else place


def is_same(place: Place, other: Place) -> bool:
    """Return True for two places that are one, or for none."""
    return place is other or (place is not None and other is not None and identify(place) == identify(other))


def find_original(holder: Any) -> Any:
    """Return what of an object a mapping or list was derived from; what was not derived is returned as it is."""
    while type(holder) is Derived or type(holder) is DerivedList:
        holder = holder.original
    return holder


def node_at(place: Place) -> Any:
    """Return the node at a place."""
    return place.node if type(place) is At else find_original(place)


class PathTo(NamedTuple):
    """The path to a value, or to a key, in an object."""

    steps: Steps
    is_key: bool = False

    def follow(self, tree: Any) -> Any:
        """Return the node of a tree at the path, or the last one on the way: a policy may have set the rest."""
        for number, step in enumerate(self.steps, 1):
            is_there = step in tree if isinstance(tree, dict) else isinstance(tree, list) and type(step) is int
            if not is_there:
                break
            if self.is_key and number == len(self.steps):
                return At(tree, step, is_key=True).node
            tree = tree[step]
        return tree


_ROOT: Steps = ()


class Places:
    """The paths to the mappings and lists of an object; those that stand at two of them have the first."""

    def __init__(self, tree: Mapping[str, Node]) -> None:
        self._paths = {id(tree): _ROOT}
        self._found: list[tuple[Any, Steps]] = [(tree, ())]
        self._pending = iter(self._found)

    def _find_holder(self, wanted: int) -> Steps | None:
        """Return the path to a mapping or list, whose parts are looked at only as far as it takes to find it."""
        paths, found = self._paths, self._found
        if wanted in paths:
            return paths[wanted]
        for holder, path in self._pending:
            for key, child in holder.items() if type(holder) is dict else enumerate(holder):
                # Plain data has no other types.
                if (type(child) is dict or type(child) is list) and (known := id(child)) not in paths:
                    paths[known] = own = (*path, key)
                    found.append((child, own))
            if wanted in paths:
                return paths[wanted]
        return None

    def find(self, node: Any) -> PathTo | None:
        """Return the path to what a check named; None if it is no part of the object, or a scalar by itself."""
        if type(node) is not At or type(node.holder) is Gathered:
            node = find_gathered(node)
        holder = find_original(node.holder if type(node) is At else node)
        if not isinstance(holder, (dict, list)):
            return None
        path = self._find_holder(id(holder))
        if path is None or type(node) is not At:
            return None if path is None else PathTo(path)
        is_there = node.key in holder if isinstance(holder, dict) else type(node.key) is int and not node.is_key
        return PathTo((*path, node.key), node.is_key) if is_there else None
