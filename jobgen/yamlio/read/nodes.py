"""What a document is made of while it is built: open collections, anchored scalars, what JSON cannot carry."""

from __future__ import annotations

from typing import Any, NamedTuple

from jobgen.model.data import Data, Location, TracedScalar
from jobgen.model.finding import Finding


class Open:
    """A mapping or sequence whose end has not come yet."""

    __slots__ = ("event", "flow", "items", "key", "key_event", "kind", "nodes", "places", "seen")

    def __init__(self, kind: str, event: Any) -> None:
        self.kind = kind
        self.event = event
        self.flow = event.flow_style
        self.items: Any = {} if kind == "map" else []
        self.key: Any = None
        self.key_event: Any = None
        self.nodes = 1
        self.seen: dict[str, Any] = {}
        self.places: list[Location] = []


class Unfit:
    """Stands for a key or number that JSON cannot carry: the document is refused if it is still there in the end."""

    __slots__ = ("finding",)

    def __init__(self, finding: Finding) -> None:
        self.finding = finding


class Scalar(NamedTuple):
    """An anchored scalar before JSON: an alias may make it a key or a value."""

    value: Any
    event: Any


def first_unfit(root: Data) -> Unfit | None:
    """The first thing in a tree that JSON cannot carry."""
    nodes, seen = [root], set()
    while nodes:
        node = nodes.pop()
        node = node.value if type(node) is TracedScalar else node
        if isinstance(node, Unfit):
            return node
        # An alias brings the same collection again.
        if isinstance(node, (dict, list)) and id(node) not in seen:
            seen.add(id(node))
            parts = [part for pair in node.items() for part in pair] if isinstance(node, dict) else node
            nodes += reversed(parts)
    return None


def wants_key(stack: list[Open]) -> bool:
    """Whether what comes next is a key of the innermost mapping."""
    return bool(stack) and stack[-1].kind == "map" and stack[-1].key_event is None
