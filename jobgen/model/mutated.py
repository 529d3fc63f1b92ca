"""Objects as mutating policies change them: the rendered object, with the values that the policies set.

A policy sees an object as the API server fills it in. What it changes there is carried over to the object as it was
rendered, so that values keep the locations where they were written. A value that a policy sets has the location of the
policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from jobgen.model.data import Location, Node, Plain, TracedKey, TracedList, TracedMapping, TracedScalar
from jobgen.model.finding import Problem
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step

POLICY_LAYER = "policy "
"""How the layer of a value that a policy sets begins; the name of the policy follows."""
_NAMED = "name "
_Path: TypeAlias = "tuple[Step, ...]"


class Source(NamedTuple):
    """A mutation: the policy that it belongs to, and where it is written."""

    policy: str
    location: Location | None

    @property
    def layer(self) -> str:
        """The layer of the values that it sets."""
        return f"{POLICY_LAYER}{self.policy}"


class Change(NamedTuple):
    """What one mutation made of an object, or why it failed."""

    source: Source
    before: Mapping[str, Plain]
    after: Mapping[str, Plain]
    error: str = ""


class Removal(NamedTuple):
    """A value that a mutation removed."""

    path: _Path
    node: Node
    source: Source


class Mutated(NamedTuple):
    """An object with the changes of mutating policies."""

    object: Any
    failures: tuple[Problem, ...] = ()
    """Mutations that could not be applied, for which the API server refuses the object."""
    changes: tuple[Change, ...] = ()
    """The mutations that changed the object as the API server sees it, or failed, in their order."""
    removals: tuple[Removal, ...] = ()


def carry_over(obj: Node, change: Change, removals: list[Removal], *, is_traced: bool) -> Any:
    """Return a rendered object with a change to the object as the server sees it; `removals` gets what it removes."""
    location = (change.source.location or Location("policies")) if is_traced else None
    return _Carrier(change.source, location, removals).carry(obj, change.before, change.after, ())


class _Carrier(NamedTuple):
    source: Source
    location: Location | None
    removals: list[Removal]

    def carry(self, node: Node, before: Plain, after: Plain, path: _Path) -> Node:
        """The node for a value that the change may have replaced."""
        if isinstance(before, dict) and isinstance(after, dict) and isinstance(node, dict):
            return self._carry_mapping(node, before, after, path)
        if isinstance(before, list) and isinstance(after, list) and isinstance(node, list):
            if is_same(before, after):
                return node
            if len(node) == len(before):
                return self._carry_list(node, before, after, path)
        return node if is_same(before, after) else self._mark(after, node)

    def _carry_mapping(
        self, node: Mapping[str, Node], before: Mapping[str, Plain], after: Mapping[str, Plain], path: _Path
    ) -> Node:
        made: dict[str, Node] = {}
        for key, child in node.items():
            name = str(key)
            if name in after:
                # What is null in the rendered object is not in the object that a policy sees.
                found = self.carry(child, before.get(name), after[name], (*path, name))
                # If a mapping or list took the place of another value, the policy wrote its key, too.
                is_replaced = isinstance(found, (dict, list)) and child is not found and type(child) is not type(found)
                made[self._mark_key(name) if is_replaced else key] = found
            elif name in before:
                self.removals.append(Removal((*path, name), child, self.source))
            else:
                made[key] = child
        for name, value in after.items():
            default = before.get(name)
            if name in node or (name in before and is_same(default, value)):
                continue
            # The rendered object does not have the value; of a default, only what the change replaced is marked.
            if isinstance(default, dict) and isinstance(value, dict):
                made[self._mark_key(name)] = self._carry_mapping({}, default, value, (*path, name))
            else:
                made[self._mark_key(name)] = self._mark(value)
        return made

    def _carry_list(self, node: list[Any], before: list[Any], after: list[Any], path: _Path) -> Node:
        origins = _pair_items(before, after)
        kept = {origin for origin in origins if origin is not None}
        self.removals.extend(
            Removal((*path, index), child, self.source) for index, child in enumerate(node) if index not in kept
        )
        items = [
            self._mark(item) if origin is None else self.carry(node[origin], before[origin], item, (*path, origin))
            for item, origin in zip(after, origins, strict=True)
        ]
        if isinstance(node, TracedList):
            return TracedList(items, node.location, node.layer, node.overridden)
        return items

    def _mark(self, value: Plain, overridden: Node = None) -> Node:
        """A value that the change set, with its location if the tree has locations."""
        if self.location is None:
            return value
        if isinstance(value, dict):
            if not value:
                return TracedMapping(self.location, self.source.layer)
            return {self._mark_key(name): self._mark(child) for name, child in value.items()}
        if isinstance(value, list):
            return TracedList(map(self._mark, value), self.location, self.source.layer, overridden)
        return TracedScalar(value, self.location, self.source.layer, overridden)

    def _mark_key(self, name: str) -> str:
        return name if self.location is None else TracedKey.at(name, self.location, self.source.layer)


def is_same(before: Plain, after: Plain) -> bool:
    """Return True if two values are the same; `true` and `1` are not, nor are `1` and `1.0`."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(is_same(child, after[name]) for name, child in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(is_same, before, after))
    return type(before) is type(after) and before == after


def list_changed_paths(before: Plain, after: Plain, path: str = "") -> Iterator[tuple[str, str]]:
    """The JSON pointers of the values that a change `adds`, `changes` or `removes`, each with this word."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            pointer = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
            if name in before and name in after:
                yield from list_changed_paths(before[name], after[name], pointer)
            else:
                yield pointer, "removes" if name in before else "adds"
    elif isinstance(before, list) and isinstance(after, list):
        origins = _pair_items(before, after)
        for index, (item, origin) in enumerate(zip(after, origins, strict=True)):
            if origin is None:
                yield f"{path}/{index}", "adds"
            else:
                yield from list_changed_paths(before[origin], item, f"{path}/{index}")
        yield from ((f"{path}/{index}", "removes") for index in range(len(before)) if index not in origins)
    elif not is_same(before, after):
        yield path, "changes"


def _pair_items(before: list[Any], after: list[Any]) -> list[int | None]:
    """For each item of a list that was changed, the place that it had before; None if it is new."""
    free: dict[str, list[int]] = {}
    for index, item in enumerate(before):
        free.setdefault(_identify(item), []).append(index)
    found: list[int | None] = []
    for item in after:
        places = free.get(_identify(item))
        found.append(places.pop(0) if places else None)
    # Items without names that differ are the same item if they stay in their places.
    left = {place for key, places in free.items() if not key.startswith(_NAMED) for place in places}
    if len(before) == len(after):
        return [index if place is None and index in left else place for index, place in enumerate(found)]
    return found


def _identify(item: Any) -> str:
    """The name of an item; one without a name is its value."""
    name = item.get("name") if isinstance(item, dict) else None
    return f"{_NAMED}{name}" if isinstance(name, str) else repr(item)
