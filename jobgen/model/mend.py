"""Read on behind a faulty value: an object without it, so that one fault does not hide another.

A value with an obvious meaning, as `8` where text is required, is read as that. Any other faulty value is left out of
one copy, and replaced by a placeholder of the right type in another. What is found in both copies does not depend on
the faulty value; everything else may be its consequence, and is not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jobgen.model.data import Location, Node, TracedList, TracedScalar, location_of, value_of
from jobgen.model.finding import Problem
from jobgen.model.place import At

TEXT = "a string"
UNKNOWN_TEXT = "\ue000"
"""The placeholder of an item in a list of texts, such as an argument: what reads commands takes it for unknown."""
_PLACEHOLDERS: dict[str, Any] = {
    TEXT: "placeholder",
    "a whole number": 7,
    "a number": 7,
    "a quantity": "7Gi",
    "true or false": True,
    "a mapping": {},
    "a list": [],
    "a value, not null": UNKNOWN_TEXT,
}
_LEFT_OUT = object()
# Fields of which one that is no list may be meant to have any items: words of a command, or variables.
_UNKNOWN_LISTS: dict[str, list[Any]] = {
    "args": [UNKNOWN_TEXT],
    "command": [UNKNOWN_TEXT],
    "env": [{"name": "*", "value": UNKNOWN_TEXT}],
}


def mend(tree: Mapping[str, Node], faults: Iterable[Problem], *, whole_items: bool = False) -> tuple[Any, Any] | None:
    """Return a tree twice, without its faulty values and with placeholders for them; None if it has none of them.

    With `whole_items`, a mapping in a list that has a faulty value is left out of both.
    """
    # Stages copy the nodes of a document, so these are known by their locations.
    wrong = _find_nodes(tree, faults)
    left_out, filled = (Copy(tree, wrong, fill=fill, whole_items=whole_items).tree for fill in (False, True))
    return None if left_out is tree or filled is tree else (left_out, filled)


def find_gaps(tree: Mapping[str, Node], faults: Iterable[Problem]) -> list[Problem]:
    """Return the faults for whose values there is no placeholder, so that both copies lack them."""
    return Copy(tree, _find_nodes(tree, faults), fill=True).gaps


def list_parents(tree: Node, is_faulty: Callable[[Location | None], bool]) -> Iterator[Location | None]:
    """Yield where the blocks begin that hold faulty keys and values: their own keys, and what is first in them."""
    pending: list[tuple[Any, tuple[Location | None, ...]]] = [(tree, ())]
    while pending:
        node, around = pending.pop()
        if isinstance(node, (dict, list)):
            around += (location_of(node),)
            for key, child in node.items() if isinstance(node, dict) else ((None, item) for item in node):
                own = (location_of(key),) if key is not None else ()
                if any(map(is_faulty, own)) or (not isinstance(child, dict) and is_faulty(location_of(child))):
                    yield from around
                pending.append((child, around + own))


def list_faulty_names(tree: Node, is_faulty: Callable[[Location | None], bool]) -> Iterator[str]:
    """Yield the names of faulty keys, and of those that have a faulty value."""
    if isinstance(tree, dict):
        for key, child in tree.items():
            if is_faulty(location_of(key)) or (not isinstance(child, dict) and is_faulty(location_of(child))):
                yield str(key)
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from list_faulty_names(child, is_faulty)


def _find_nodes(tree: Mapping[str, Node], faults: Iterable[Problem]) -> dict[object, Problem]:
    """Return the faults by the `id` of their nodes in a tree."""
    # A mapping has the location of its first key, which is not at fault if another one is missing.
    places = {location_of(fault.node): fault for fault in faults if not isinstance(fault.node, dict)}
    return {id(node): places[location_of(node)] for node in list_leaves(tree) if location_of(node) in places}


def list_leaves(tree: Any) -> Iterator[Node]:
    """Yield the keys and scalars of a tree with locations."""
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from list_leaves(child)
    if isinstance(tree, dict):
        yield from tree
    elif isinstance(tree, TracedScalar):
        yield tree


class Copy:
    """A copy of a tree without its faulty values, which are replaced or left out."""

    def __init__(self, tree: Any, wrong: Mapping[object, Problem], *, fill: bool, whole_items: bool = False) -> None:
        self.wrong = wrong
        self.fill = fill
        self.whole_items = whole_items
        # The containers that were copied, by the `id` of their copies, which are kept so that each stays unique.
        self.originals: dict[int, tuple[Node, Node]] = {}
        # The keys and indices of the originals by those of their copies, where they differ.
        self.keys: dict[int, Mapping[Any, Any]] = {}
        self.gaps: list[Problem] = []
        self.tree = self.copy(tree)

    def copy(self, node: Any) -> Any:
        """Return a node without its faulty values; the node itself if it has none."""
        if isinstance(node, dict):
            values = [(self.rename(node, key), self.change(node, key, child), key) for key, child in node.items()]
            copied: Any = {name: value for name, value, _ in values if value is not _LEFT_OUT}
            keys: dict[Any, Any] = {name: key for name, _, key in values if name != key}
            is_same = len(copied) == len(node) and all(copied.get(key) is node[key] for key in node)
        elif isinstance(node, list):
            items = [
                _LEFT_OUT if self.is_faulty_item(item) else self.change(node, index, item)
                for index, item in enumerate(node)
            ]
            copied, keys = _copy_list(node, items), _list_kept(items)
            is_same = all(new is old for new, old in zip(items, node, strict=True))
        else:
            return node
        if is_same:
            return node
        self.originals[id(copied)], self.keys[id(copied)] = (node, copied), keys
        return copied

    def find_fault(self, holder: Any, key: Any, value: Any) -> Problem | None:
        """Return what is wrong with the key or the value of an entry: nodes have an `id`, and places their holder's."""
        own = id(holder), key
        found = (self.wrong.get(each) for each in (id(key), id(value), (*own, True), (*own, False)))
        return next(filter(None, found), None)

    def is_faulty_item(self, item: Any) -> bool:
        """Return True if a mapping in a list is left out because of one of its values."""
        if not self.whole_items or not isinstance(item, dict):
            return False
        return any(self.find_fault(item, key, value) for key, value in item.items())

    def rename(self, holder: Any, key: str) -> str:
        """Return a key with the name that was probably meant, in the copy that is filled."""
        fault = (self.wrong.get(id(key)) or self.wrong.get((id(holder), key, True))) if self.fill else None
        return _find_name(fault) or key

    def change(self, holder: Any, key: Any, value: Any) -> Any:
        """Return the value of a key or of an item, if it is faulty, as it was meant, a placeholder, or nothing."""
        fault = self.find_fault(holder, key, value)
        if fault is None or (self.fill and _find_name(fault)):
            return self.copy(value)
        if isinstance(value, list) and (fault.item >= 0 or fault.about.endswith("]")):
            return self.copy_items(value, fault)
        is_scalar = isinstance(value_of(value), (str, int, float)) and not isinstance(value, (dict, list))
        if is_scalar and fault.expected == TEXT:
            return _as_text(value)
        expected = TEXT if TEXT in fault.expected else fault.expected
        placeholder = _PLACEHOLDERS.get(expected, _LEFT_OUT) if self.fill else _LEFT_OUT
        if self.fill and key in _UNKNOWN_LISTS:
            return _UNKNOWN_LISTS[str(key)]
        if self.fill and is_scalar:
            placeholder = next((step.value for step in fault.fix_steps if step.op == "set"), placeholder)
        if isinstance(placeholder, (dict, list)):
            return type(placeholder)()
        if placeholder is not _LEFT_OUT:
            # A placeholder in data with locations needs one, in case that it is refused, too.
            location = location_of(value) or location_of(key)
            if location:
                return TracedScalar(placeholder, location, getattr(value, "layer", ""))
            if type(fault.node) is At:
                return placeholder
        self.gaps.append(fault)
        return _LEFT_OUT

    def copy_items(self, items: list[Any], fault: Problem) -> Any:
        """Return a list of texts without its items of other types, or with placeholders for them.

        The fault is at the key of the list, because its items have no locations.
        """
        placeholder = UNKNOWN_TEXT if self.fill and fault.expected == TEXT else _LEFT_OUT
        changed = [
            placeholder if isinstance(item, (dict, list)) else self.change(items, index, item)
            for index, item in enumerate(items)
        ]
        copied = _copy_list(items, changed)
        self.originals[id(copied)], self.keys[id(copied)] = (items, copied), _list_kept(changed)
        return copied


def _find_name(fault: Problem | None) -> str:
    """Return the name that was meant by a key, if the fix of a fault is to rename it."""
    steps = fault.fix_steps if fault else ()
    return next((str(step.value) for step in steps if step.op == "rename"), "")


def _copy_list(original: Any, items: list[Any]) -> list[Any]:
    """Return a list without the items that were left out; the others keep their locations."""
    kept = [number for number, item in enumerate(items) if item is not _LEFT_OUT]
    copied = [items[number] for number in kept]
    if type(original) is not TracedList:
        return copied
    traced = TracedList(copied, original.location, original.layer, original.overridden)
    traced.item_locations = [original.item_locations[number] for number in kept if original.item_locations]
    return traced


def _list_kept(items: list[Any]) -> dict[int, int]:
    """Return where the items of a list without those that were left out stand in it."""
    return dict(enumerate(number for number, item in enumerate(items) if item is not _LEFT_OUT))


def _as_text(value: Any) -> Any:
    """A scalar as the text that was probably meant."""
    if type(value) is TracedScalar:
        return TracedScalar(value.written or _spell(value.value), value.location, value.layer, value.overridden)
    return _spell(value)


def _spell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
