"""Read nodes of any type: a field that is missing or has the wrong type reads as empty. They may be plain or traced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.model.data import Plain, Tree, text_of
from jobgen.model.path import NamedItem, Step
from jobgen.model.place import At, Place


# Every rule reads nodes, so these functions ask first what is cheap and common: a plain type, or nothing.
def as_mapping(node: Tree) -> Mapping[str, Tree]:
    """Return the node if it is a mapping, else an empty mapping."""
    if type(node) is dict:
        return node
    return {} if node is None or not isinstance(node, dict) else node


def as_list(node: Tree) -> Sequence[Tree]:
    """Return the node if it is a list, else an empty list."""
    if type(node) is list:
        return node
    return [] if node is None or not isinstance(node, list) else node


def list_mappings(node: Tree) -> list[dict[str, Tree]]:
    """Return the mappings among the items of a list."""
    return [item for item in as_list(node) if type(item) is dict or isinstance(item, dict)] if node else []


def as_text(node: Plain) -> str:
    """Return the string of a scalar, or an empty string if it has another type."""
    if type(node) is str:
        return node
    return node if isinstance(node, str) else ""


def as_integer(node: Plain) -> int | None:
    """Return the integer of a scalar, or None if it has another type."""
    return node if type(node) is int else None


def get_path(node: Tree, *steps: str) -> Tree:
    """Return the node at a path of keys, or None."""
    for step in steps:
        if (type(node) is not dict and not isinstance(node, dict)) or step not in node:
            return None
        node = node[step]
    return node


def find_nodes(node: Tree, steps: Sequence[Step]) -> Iterator[Tree]:
    """Yield the nodes at a path; `*` is every item of a list or mapping, `[name=x]` every item with that field."""
    if not steps:
        yield node
        return
    step, rest = steps[0], steps[1:]
    if isinstance(step, NamedItem):
        found = [item for item in as_list(node) if text_of(as_mapping(item).get(step.field)) == step.value]
    elif step == "*":
        found = list(node.values()) if isinstance(node, dict) else list(as_list(node))
    elif isinstance(step, int):
        found = list(as_list(node)[step : step + 1])
    else:
        found = [node[step]] if isinstance(node, dict) and step in node else []
    for child in found:
        yield from find_nodes(child, rest)


def find_places(node: Plain, steps: Sequence[Step]) -> Iterator[Place]:
    """Yield the places of what `find_nodes` yields; without steps, the node itself."""
    if not steps:
        yield node
        return
    step, rest = steps[0], steps[1:]
    keys: Iterable[Any] = range(len(as_list(node)))
    if isinstance(node, dict):
        keys = node if step == "*" else (step,) if step in node and not isinstance(step, NamedItem) else ()
    elif isinstance(step, NamedItem):
        keys = [key for key in keys if as_text(as_mapping(as_list(node)[key]).get(step.field)) == step.value]
    elif step != "*":
        keys = [key for key in keys if key == step]
    for place in (At(node, key) for key in keys):
        if rest:
            yield from find_places(place.node, rest)
        else:
            yield place
