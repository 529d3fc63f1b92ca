"""Documents as they are written: where in a text each key and each scalar stands, and what holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobgen.model.data import Data, Location, TracedKey, TracedScalar, value_of
from jobgen.model.finding import TextEdit
from jobgen.yamlio.read import read

Holders = tuple[tuple[Data, "str | int"], ...]


class EditRefusedError(Exception):
    """A text cannot be changed so; the error says why."""


class Place(NamedTuple):
    """Where a node is: the mapping or list that holds it, the step that leads to it, and the holders above."""

    holder: Data
    step: str | int
    above: Holders


def documents(content: bytes, file: str) -> list[Data]:
    """The documents of a text, whose leaves and keys know their places."""
    source = read(content, file, marked=True)
    if source.findings:
        raise EditRefusedError("the file cannot be read")
    return [document.data for document in source.documents]


def place_of(edit: TextEdit, trees: Sequence[Data]) -> Place:
    """The one entry whose key, or whose scalar, a change is about."""
    places = [place for tree in trees for place in _places(tree, edit.location)]
    if not places:
        raise EditRefusedError("there is nothing at that place any more")
    if len(places) > 1:
        raise EditRefusedError("the value is used in several places, by an alias")
    place = places[0]
    key, value = _key(place), place.holder[place.step]
    node = key if _stands(key, edit.location) else value
    if (edit.op in ("set", "quote") and not isinstance(node, TracedScalar)) or (
        edit.op == "rename" and node is not key
    ):
        raise EditRefusedError("what stands there is something else")
    if edit.op == "remove" and edit.key and key != edit.key:
        raise EditRefusedError(f"`{edit.key}` was made of `{key}`, which stands there")
    # A number may have become a text on its way, and be the same.
    if edit.was is not None and str(edit.was) != str(value_of(node)):
        raise EditRefusedError(f"`{edit.was}` was made of `{value_of(node)}`, which stands there")
    return place


def _key(place: Place) -> Data:
    return next(key for key in place.holder if key == place.step) if isinstance(place.holder, dict) else None


def _places(tree: Data, location: Location, above: Holders = ()) -> Iterator[Place]:
    if isinstance(tree, (dict, list)):
        for step, child in tree.items() if isinstance(tree, dict) else enumerate(tree):
            if _stands(step, location) or _stands(child, location):
                yield Place(tree, step, above)
            yield from _places(child, location, (*above, (tree, step)))


def _stands(node: Data, location: Location) -> bool:
    return isinstance(node, (TracedKey, TracedScalar)) and (node.location.line, node.location.column) == (
        location.line,
        location.column,
    )


def scalars(tree: Data) -> Iterator[Location]:
    """The places of all keys and scalars of a tree."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from scalars(key)
            yield from scalars(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from scalars(value)
    elif isinstance(tree, (TracedScalar, TracedKey)):
        yield tree.location
