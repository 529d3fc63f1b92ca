"""Create the patch that turns one object into another: the inverse of `spec.merge`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.convert.importing.verify import is_equivalent
from jobgen.model.data import Node, Plain, value_of
from jobgen.spec.merge import LIST_KEYS, merge

_REPLACE = {"$patch": "replace"}


def create_patch(base: Plain, wanted: Mapping[str, Plain], name: str = "") -> dict[str, Plain]:
    """The smallest patch that makes `base` equivalent to `wanted`; nulls delete. `name` is the key of both."""
    old = base if isinstance(base, dict) else {}
    patch: dict[str, Plain] = {key: None for key in old if key not in wanted}
    for key, value in wanted.items():
        if key in old and is_equivalent(old[key], value, key, name):
            continue
        below = old.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            patch[key] = create_patch(below, value, key)
        elif isinstance(value, list):
            patch[key] = _create_list_patch(below, value, key)
        else:
            patch[key] = value
    return patch


def _create_list_patch(base: Any, wanted: list[Any], name: str) -> list[Any]:
    """A patch by item keys where Kubernetes has them; the whole list otherwise, or if that patch does not suffice."""
    keys = LIST_KEYS.get(name)
    if keys and isinstance(base, list) and _have_unique_keys(base, keys) and _have_unique_keys(wanted, keys):
        patch = _create_item_patches(base, wanted, name, keys)
        if is_equivalent(merge({name: base}, {name: patch}, [])[name], wanted, name):
            return patch
    # A list without keys is replaced as a whole anyway.
    return [_REPLACE, *wanted] if keys and base and _are_keyed(wanted, keys) else wanted


def _create_item_patches(base: list[Any], wanted: list[Any], name: str, keys: tuple[str, ...]) -> list[Any]:
    old_items = {_identity(item, keys): item for item in base}
    new_items = {_identity(item, keys): item for item in wanted}
    patch: list[Any] = [
        {**_select_keys(item, keys), "$patch": "delete"} for key, item in old_items.items() if key not in new_items
    ]
    for key, item in new_items.items():
        if key not in old_items:
            patch.append(item)
        elif not is_equivalent(old_items[key], item, "", name):
            patch.append({**_select_keys(item, keys), **create_patch(old_items[key], item)})
    return patch


def _have_unique_keys(items: list[Any], keys: tuple[str, ...]) -> bool:
    return _are_keyed(items, keys) and len({_identity(item, keys) for item in items}) == len(items)


def _are_keyed(items: list[Any], keys: tuple[str, ...]) -> bool:
    """Whether `merge` merges a list by keys; otherwise it replaces the list."""
    return all(isinstance(item, dict) and keys[0] in item and not _has_nested_key(item, keys) for item in items)


def _has_nested_key(item: dict[str, Any], keys: tuple[str, ...]) -> bool:
    return any(isinstance(item.get(key), (dict, list)) for key in keys)


def find_duplicate_items(tree: Node, name: str = "") -> Iterator[tuple[Node, str]]:
    """List items with the same key as another item, and the name of their list; no patch can distinguish them."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from find_duplicate_items(value, str(key))
    elif isinstance(tree, list):
        keys = LIST_KEYS.get(name)
        seen: set[tuple[str, ...]] = set()
        for item in tree:
            if keys and isinstance(item, dict) and keys[0] in item:
                identity = _identity({key: value_of(item[key]) for key in keys if key in item}, keys)
                if identity in seen:
                    yield item[keys[0]], name
                seen.add(identity)
            yield from find_duplicate_items(item)


def _identity(item: dict[str, Any], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(repr(item.get(key, "TCP" if key == "protocol" else None)) for key in keys)


def _select_keys(item: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: item[key] for key in keys if key in item}
