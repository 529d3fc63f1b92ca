"""What changes in the captured state of a cluster: which amounts grow or shrink, and which objects come or go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.check.cluster.exported import read_located
from jobgen.check.cluster.state import Name, name_object
from jobgen.model.data import Location, Node, location_of, untraced, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import list_item_names
from jobgen.model.quantity import to_milli
from jobgen.repo import layout
from jobgen.repo.captures import INDEX
from jobgen.repo.layout import Layers

_MAX_SHOWN = 3
_LIMITS = frozenset("hard nominalQuota borrowingLimit lendingLimit max allocatable capacity".split())
"""Fields with amounts of which less allows less."""
_LIMITING_KINDS = frozenset(("LimitRange", "ResourceQuota"))
"""Kinds that only limit, so that one more allows nothing."""


class StateChange(NamedTuple):
    """How one state differs from another."""

    more: list[str]
    less: list[str]
    added: list[str]
    removed: list[str]
    changed: list[str]
    is_weaker: bool
    location: Location

    def describe(self) -> str:
        """Return the change in one line."""
        lists = {"more": self.more, "less": self.less, "added": self.added, "removed": self.removed}
        parts: list[str] = []
        for name, texts in (lists | {"changed": self.changed}).items():
            left = f" and {len(texts) - _MAX_SHOWN} more" if len(texts) > _MAX_SHOWN else ""
            parts += [f"{name}: {', '.join(texts[:_MAX_SHOWN])}{left}"] if texts else []
        return "; ".join(parts)


def compare_states(old: Layers, old_folder: str, new: Layers, new_folder: str) -> StateChange | None:
    """Compare two states; None if they limit jobs in the same way."""
    sides = ((old, old_folder), (new, new_folder))
    contents = [{file.path: file.content for file in layout.read_state(*side)} for side in sides]
    if contents[0] == contents[1]:
        return None
    before, after = (_read(*side) for side in sides)
    differing = [name for name in sorted(before.keys() & after.keys()) if before[name].plain != after[name].plain]
    files = sorted(path for path, content in contents[1].items() if contents[0].get(path) != content)
    added, removed = (sorted(one.keys() - other.keys()) for one, other in ((after, before), (before, after)))
    more, less, changed, places = list[str](), list[str](), set[str](), list[Location]()
    for name in differing:
        leaves = [dict(_list_leaves(side[name].data)) for side in (before, after)]
        for path in sorted(leaves[0].keys() | leaves[1].keys()):
            first, second = (side.get(path) for side in leaves)
            if value_of(first) == value_of(second):
                continue
            amounts = to_milli(first), to_milli(second)
            if amounts[0] is None or amounts[1] is None or not _LIMITS & {*path}:
                changed.add(_show(name))
                continue
            text = f"{_show(name)} `{_name_amount(path)}` {value_of(first)} → {value_of(second)}"
            (more if amounts[1] > amounts[0] else less).append(text)
            places += filter(None, [location_of(second)])
    if not (more or less or added or removed or changed):
        return None
    is_weaker = bool(more or removed or changed) or any(kind not in _LIMITING_KINDS for kind, *_ in added)
    place = min(places, default=Location(files[0] if files else new_folder, 1, 1))
    return StateChange(more, less, [*map(_show, added)], [*map(_show, removed)], sorted(changed), is_weaker, place)


def _name_amount(path: tuple[str, ...]) -> str:
    """Return the resource of an amount, and the field of a list of resources."""
    *_, resource, field = ("", *path)
    return f"{resource.removeprefix('[name=').removesuffix(']')} {field}" if field in _LIMITS else field


class _Object(NamedTuple):
    data: Mapping[str, Node]
    plain: Any


def _read(layers: Layers, folder: str) -> dict[Name, _Object]:
    found: dict[Name, _Object] = {}
    for obj in read_located(layers, folder, []):
        metadata = obj.get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        name = name_object(untraced(obj))
        if name[2] != INDEX:
            # Other metadata, such as versions and dates, decides nothing.
            kept = {**{key: value for key, value in obj.items() if key != "metadata"}, "labels": labels}
            found.setdefault(name, _Object(kept, untraced(kept)))
    return found


def _show(name: Name) -> str:
    kind, namespace, own = name
    return f"{kind} {namespace}/{own}" if namespace else f"{kind} {own}"


def _list_leaves(tree: Any) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield the path and value of every leaf."""
    pending: list[tuple[tuple[str, ...], Any]] = [((), tree)]
    while pending:
        path, node = pending.pop()
        if isinstance(node, dict) and node:
            pending += (((*path, str(key)), child) for key, child in node.items())
        elif isinstance(node, list) and node:
            steps = (step if step != "*" else at for at, step in enumerate(list_item_names(node)))
            pending += (((*path, str(step)), child) for step, child in zip(steps, node, strict=True))
        else:
            yield path, node
