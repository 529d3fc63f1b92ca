"""What must be merged into an object to make it another: the merge law, read backwards."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.convert.importing.verify import is_equivalent
from jobgen.model.data import Data, value_of
from jobgen.spec.merge import LIST_KEYS, merge

_REPLACE = {"$patch": "replace"}


def create_patch(base: Data, wanted: dict[str, Data], name: str = "", holder: str = "") -> dict[str, Data]:
    """The smallest map of changes that makes `base` mean what `wanted` means; nulls delete."""
    known = base if isinstance(base, dict) else {}
    patch: dict[str, Data] = {key: None for key in known if key not in wanted}
    for key, value in wanted.items():
        if key in known and is_equivalent(known[key], value, key, name):
            continue
        below = known.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            patch[key] = create_patch(below, value, key, name)
        elif isinstance(value, list):
            patch[key] = _list_patch(below, value, key)
        else:
            patch[key] = value
    return patch


def _list_patch(base: Data, wanted: list[Data], name: str) -> list[Data]:
    """Items by their keys where Kubernetes has keys for them; else, or if that does not do, the list as it shall be."""
    keys = LIST_KEYS.get(name)
    tried = _keyed_patch(base, wanted, name, keys) if keys and isinstance(base, list) and _alike(base, keys) else None
    if tried is not None and is_equivalent(merge({name: base}, {name: tried}, [])[name], wanted, name):
        return tried
    # Lists without keys are replaced whole anyway.
    return [_REPLACE, *wanted] if keys and base and _are_keyed(wanted, keys) else wanted


def _keyed_patch(base: list[Data], wanted: list[Data], name: str, keys: tuple[str, ...]) -> list[Data] | None:
    if not _alike(wanted, keys):
        return None
    below = {_identity(item, keys): item for item in base}
    above = {_identity(item, keys): item for item in wanted}
    patch: list[Data] = [
        {**_keys_of(item, keys), "$patch": "delete"} for found, item in below.items() if found not in above
    ]
    for found, item in above.items():
        if found not in below:
            patch.append(item)
        elif not is_equivalent(below[found], item, "", name):
            patch.append({**_keys_of(item, keys), **create_patch(below[found], item, "", name)})
    return patch


def _alike(items: list[Data], keys: tuple[str, ...]) -> bool:
    """Whether items can be told apart by their keys."""
    return _are_keyed(items, keys) and len({_identity(item, keys) for item in items}) == len(items)


def _are_keyed(items: list[Data], keys: tuple[str, ...]) -> bool:
    """Whether a list is merged by keys, rather than replaced whole."""
    return all(isinstance(item, dict) and keys[0] in item and not _are_maps(item, keys) for item in items)


def _are_maps(item: dict[str, Data], keys: tuple[str, ...]) -> bool:
    return any(isinstance(item.get(key), (dict, list)) for key in keys)


def find_duplicate_items(tree: Data, name: str = "") -> Iterator[tuple[Data, str]]:
    """Items that have the key of another item of their list, with the name of the list; no patch tells them apart."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from find_duplicate_items(value, str(key))
    elif isinstance(tree, list):
        keys = LIST_KEYS.get(name)
        seen: set[tuple[str, ...]] = set()
        for item in tree:
            if keys and isinstance(item, dict) and keys[0] in item:
                found = _identity({key: value_of(item[key]) for key in keys if key in item}, keys)
                if found in seen:
                    yield item[keys[0]], name
                seen.add(found)
            yield from find_duplicate_items(item)


def _identity(item: dict[str, Data], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(repr(item.get(key, "TCP" if key == "protocol" else None)) for key in keys)


def _keys_of(item: dict[str, Data], keys: tuple[str, ...]) -> dict[str, Data]:
    return {key: item[key] for key in keys if key in item}
