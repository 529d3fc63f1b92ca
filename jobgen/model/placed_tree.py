"""Data whose nodes know their place in a document, and get their locations when they are shown.

A check that runs again with locations reads a few parts of an object. So a mapping gets its keys and values when one of
them is first read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobgen.model.data import TracedKey, TracedList, TracedMapping, TracedScalar


def add_places(tree: Any, place: Any, layer: str) -> Any:
    """The tree at a place of a document, as a layer, with nodes that know their own place."""
    if type(tree) is dict:
        return _UnreadMapping(tree, place, layer) if tree else TracedMapping(place, layer)
    if type(tree) is list:
        return TracedList([add_places(item, (place, index), layer) for index, item in enumerate(tree)], place, layer)
    return TracedScalar(tree, place, layer)


class _PlacedMapping(dict[str, Any]):
    """A mapping with the keys and values that are to be read."""

    __slots__ = ("unread",)
    unread: tuple[dict[str, Any], Any, str]


class _ReadMapping(_PlacedMapping):
    """A mapping that has been read. Its methods are those of `dict`, with their speed."""

    __slots__ = ()


class _UnreadMapping(_PlacedMapping):
    """A mapping that becomes a `_ReadMapping` when a key or a value is read.

    Until then it has the plain keys, so that its length and what it contains are known.
    """

    __slots__ = ()

    def __init__(self, tree: dict[str, Any], place: Any, layer: str) -> None:
        super().__init__(tree)
        self.unread = (tree, place, layer)


def _read_first(name: str) -> Callable[..., Any]:
    """A method of a mapping that reads its keys and values first."""

    def method(self: _PlacedMapping, *args: Any, **options: Any) -> Any:
        if type(self) is _UnreadMapping:
            _read(self)
        return getattr(dict, name)(self, *args, **options)

    return method


def _read(mapping: _PlacedMapping) -> None:
    tree, place, layer = mapping.unread
    mapping.__class__ = _ReadMapping
    mapping.clear()
    for key, child in tree.items():
        at = (place, key)
        # Most values are scalars.
        is_scalar = type(child) not in _COLLECTIONS
        mapping[TracedKey.at(key, at, layer)] = (
            TracedScalar(child, at, layer) if is_scalar else add_places(child, at, layer)
        )


_COLLECTIONS = frozenset((dict, list))
# What a mapping has in any case. All other methods read it first, so that none gives a key without its place.
_UNREAD_METHODS = (
    "__class_getitem__",
    "__contains__",
    "__getattribute__",
    "__init__",
    "__len__",
    "__new__",
    "fromkeys",
)
_ATTRIBUTES = ("__doc__", "__hash__", "__sizeof__")
for _name in vars(dict).keys() - {*_UNREAD_METHODS, *_ATTRIBUTES}:
    setattr(_UnreadMapping, _name, _read_first(_name))
