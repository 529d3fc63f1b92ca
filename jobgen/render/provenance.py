"""Explain a value: the assignments of all layers, from the last one down to the default of the kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from jobgen.model.data import Location, Node, TracedKey, TracedList, TracedScalar, location_of, untraced
from jobgen.model.path import NamedItem, Step
from jobgen.yamlio.write import sort_key


@dataclass(frozen=True, slots=True)
class Assignment:
    """The value that one layer assigns; without a location, the renderer assigns it."""

    value: Node
    layer: str
    location: Location | None
    others: tuple[Location, ...] = ()
    """The locations of other values that are part of this one, as the words of a command line are."""
    is_removed: bool = False
    """Whether the layer removes the value."""


@dataclass(frozen=True, slots=True)
class ExplainedValue:
    """A leaf of the rendered object and its assignments, the last first."""

    path: tuple[Step, ...]
    assignments: tuple[Assignment, ...]


class NoSuchFieldError(LookupError):
    """The object has no such field; `known` lists the fields at the last existing step."""

    def __init__(self, step: str, known: list[str]) -> None:
        super().__init__(step)
        self.step = step
        self.known = known


def explain_path(traced: Node, path: tuple[Step, ...]) -> Iterator[ExplainedValue]:
    """Explain every leaf at or below a path of a traced object."""
    node, steps = traced, list[Step]()
    replaced: Node = None
    key: Node = None
    for step in path:
        replaced = node.overridden if type(node) is TracedList else None
        found, name, node = _follow(node, step)
        key = name if type(name) is TracedKey else key
        steps.append(found)
    yield from _explain_leaves(node, tuple(steps), key, replaced)


def _follow(node: Node, step: Step) -> tuple[Step, Node, Node]:
    """Follow one step: its canonical form, its key, and the node."""
    if isinstance(node, dict):
        for key, child in node.items():
            if key == str(step):
                return str(key), key, child
        raise NoSuchFieldError(str(step), [str(key) for key in node])
    if isinstance(node, list):
        for index, item in enumerate(node):
            if str(step) == str(index) or (isinstance(step, NamedItem) and _is_named(item, step)):
                return index, None, item
        raise NoSuchFieldError(str(step), [str(index) for index in range(len(node))])
    raise NoSuchFieldError(str(step), [])


def _is_named(item: Node, step: NamedItem) -> bool:
    if not isinstance(item, dict) or step.field not in item:
        return False
    value = untraced(item[step.field])
    return (value if isinstance(value, str) else json.dumps(value)) == step.value


def _explain_leaves(node: Node, path: tuple[Step, ...], key: Node, replaced: Node) -> Iterator[ExplainedValue]:
    """Explain the leaves below a node. A list that overrides another counts for each of its items."""
    if isinstance(node, dict) and node:
        for name, child in sorted(node.items(), key=lambda pair: sort_key(pair[0])):
            yield from _explain_leaves(child, (*path, str(name)), name if type(name) is TracedKey else key, None)
    elif isinstance(node, list) and node:
        overridden = node.overridden if type(node) is TracedList else None
        for index, child in enumerate(node):
            yield from _explain_leaves(child, (*path, index), key, overridden)
    elif type(key) is TracedKey and isinstance(node, (dict, list)) and not isinstance(node, TracedList):
        # An empty mapping or list has no location; that of the nearest key is used.
        yield ExplainedValue(path, (Assignment(untraced(node), key.layer, key.location),))
    else:
        yield ExplainedValue(path, tuple(list_assignments(node, replaced)))


def list_assignments(node: Node, replaced: Node = None) -> Iterator[Assignment]:
    """Yield the assignments of a leaf, the last first; `replaced` is the list that the list around it overrides."""
    while isinstance(node, (TracedScalar, TracedList)):
        parts = map(location_of, node.parts) if type(node) is TracedScalar else ()
        yield Assignment(untraced(node), node.layer, node.location, tuple(filter(None, parts)))
        node, replaced = (node.overridden, replaced) if node.overridden is not None else (replaced, None)
    if node is not None:
        yield Assignment(untraced(node), _layer_of(node), location_of(node))


def _layer_of(node: Node) -> str:
    """The first layer found in a node."""
    if isinstance(node, (TracedScalar, TracedKey, TracedList)):
        return node.layer
    children = [part for pair in node.items() for part in pair] if isinstance(node, dict) else ()
    return next(filter(None, map(_layer_of, children)), "")
