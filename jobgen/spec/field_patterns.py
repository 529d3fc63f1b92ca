"""Find where a tree sets a field: a field of a whole object, or of a block that is merged into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.model.data import Node, is_null, locatable, value_of
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem
from jobgen.spec.merge import LIST_KEYS, find_directive, is_deletion, is_merged_by_key, is_replacement


class AnyStep(NamedTuple):
    """A step to every entry of a mapping or list, but some names."""

    but: tuple[str, ...] = ()
    is_whole: bool = False
    """True if a list that a block replaces counts as set, whatever its items are."""


class MainContainer(NamedTuple):
    """A step to the containers with one of these names; without any names, to all.

    In a whole object the first container is the main one if none has such a name.
    """

    names: tuple[str, ...]


class Valued(NamedTuple):
    """A step to an entry that has this value."""

    key: str
    value: Any


PatternStep = str | int | NamedItem | AnyStep | MainContainer | Valued
Pattern = tuple[PatternStep, ...]

ANY = AnyStep()


class Place(NamedTuple):
    """A place where a field can be: the path to a part of an object, and paths in it that mean the same field."""

    prefix: Pattern
    fields: tuple[Pattern, ...]


class Setting(NamedTuple):
    """A field that a tree sets: its path, the key or item that sets it, and the length of the path to its part."""

    path: tuple[str | int, ...]
    node: Node
    depth: int = 0


def find_settings(tree: Node, places: Iterable[Place], *, merged: bool) -> Iterator[Setting]:
    """Yield where a tree sets a field, once for each part of an object that has it.

    A block that is merged also sets a field if it deletes or replaces what is around it. To delete a part as a whole,
    such as a role, is to set none of its fields.
    """
    for prefix, fields in places:
        for part in _find_parts(tree, prefix, Setting((), tree), None, merged=merged):
            first = next(_find_in_part(part, fields, merged=merged), part.replaced_by)
            if first is not None:
                yield first


def find_every_setting(tree: Node, places: Iterable[Place]) -> Iterator[Setting]:
    """Yield all entries of a whole object that a field has there."""
    for prefix, fields in places:
        for part in _find_parts(tree, prefix, Setting((), tree), None, merged=False):
            yield from _find_in_part(part, fields, merged=False)


def find_first(tree: Node, patterns: Iterable[Pattern], *, merged: bool) -> Setting | None:
    """Return where a tree sets one of several fields that mean the same; None if it does not."""
    part = _Part(tree, Setting((), tree), None)
    return next(_find_in_part(part, patterns, merged=merged), None)


class _Part(NamedTuple):
    tree: Node
    setting: Setting
    replaced_by: Setting | None


def _find_in_part(part: _Part, fields: Iterable[Pattern], *, merged: bool) -> Iterator[Setting]:
    depth = len(part.setting.path)
    for pattern in fields:
        for found in _find(part.tree, pattern, part.setting, merged=merged):
            yield found._replace(depth=depth)


def _find_parts(
    tree: Node, prefix: Pattern, at: Setting, replaced_by: Setting | None, *, merged: bool
) -> Iterator[_Part]:
    """Yield the parts of a tree at a path. A part may be inside something that a block replaces."""
    if merged and isinstance(tree, dict) and value_of(tree.get("$patch")) == "replace":
        marker = next(key for key in tree if key == "$patch")
        replaced_by = Setting((*at.path, "$patch"), marker, len(at.path))
    if not prefix:
        yield _Part(tree, at, replaced_by)
        return
    if isinstance(tree, list) and merged and _is_replaced(tree, prefix[0], at):
        replaced_by = at
        if not tree:
            yield _Part(None, at, replaced_by)
    for step, node, child in _list_children(tree, prefix[0], merged=merged):
        if not is_null(child) and not is_deletion(child):
            yield from _find_parts(child, prefix[1:], Setting((*at.path, step), node), replaced_by, merged=merged)


def _is_replaced(items: list[Any], step: PatternStep, at: Setting) -> bool:
    """Return True if a block replaces a list as a whole, with what other layers have in it."""
    name = str(at.path[-1]) if at.path else ""
    # Sidecars are written as a list, and merged by name like other containers.
    if is_merged_by_key(items, "containers" if name == "sidecars" else name):
        return any(is_replacement(item) for item in items)
    return step.is_whole if isinstance(step, AnyStep) else True


def _find(tree: Node, pattern: Pattern, at: Setting, *, merged: bool) -> Iterator[Setting]:
    if not pattern:
        yield at
        return
    step, rest = pattern[0], pattern[1:]
    count = 0
    for key, node, child in _list_children(tree, step, merged=merged):
        here = Setting((*at.path, key), node)
        is_deleted = merged and (is_null(child) or is_deletion(child))
        found = [here] if not rest or is_deleted else _find(child, rest, here, merged=merged)
        for setting in found if rest or merged or not is_null(child) else ():
            count += 1
            yield setting
    if count or not merged:
        return
    if isinstance(tree, dict):
        name = step if isinstance(step, str) else None
        marker = find_directive(tree, name, is_last=not rest)
        if marker is not None:
            yield Setting((*at.path, marker), marker)
    elif isinstance(tree, list):
        if _is_replaced(tree, step, at):
            yield at
    elif isinstance(value_of(tree), str) and at.path:
        # `serviceAccount: x` is short for a mapping, and replaces what is in it.
        yield at


def _list_children(tree: Node, step: PatternStep, *, merged: bool) -> Iterator[tuple[str | int, Node, Node]]:
    """Yield the entries of a mapping or the items of a list that a step leads to: key, node and value of each."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if _leads_to(step, key, value):
                yield key, key, value
    elif isinstance(tree, list):
        for index in _select_items(tree, step, merged=merged):
            item = tree[index]
            names = [item.get(each) for each in ("name", *_KEYS)] if isinstance(item, dict) else []
            yield index, locatable(*(name for name in names if name is not None), item), item


_KEYS = tuple(dict.fromkeys(key for keys in LIST_KEYS.values() for key in keys))


def _leads_to(step: PatternStep, key: str, value: Node) -> bool:
    match step:
        case AnyStep():
            return key not in step.but and not key.startswith("$")
        case Valued():
            return key == step.key and value_of(value) == step.value
        case str() | int():
            return key == str(step)
        case _:
            return False


def _select_items(items: list[Any], step: PatternStep, *, merged: bool) -> Iterator[int]:
    match step:
        case AnyStep():
            yield from range(len(items))
        case NamedItem():
            yield from (index for index, item in enumerate(items) if _is_named(item, step.field, (step.value,)))
        case MainContainer():
            named = [index for index, item in enumerate(items) if _is_named(item, "name", step.names)]
            if merged and not step.names:
                named = list(range(len(items)))
            yield from named or ([0] if items and not merged else [])


def _is_named(item: Node, field: str, names: tuple[str, ...]) -> bool:
    return isinstance(item, dict) and str(value_of(item.get(field))) in names
