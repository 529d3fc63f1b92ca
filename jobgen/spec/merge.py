"""Merge layers: one algorithm for specs, pod templates and manifests.

Mappings merge recursively; `null` deletes. Lists whose items Kubernetes identifies by a key merge by that key; all
other lists are replaced. `$patch: delete` deletes a list item or a mapping, `$patch: replace` replaces without merging;
an item with nothing else applies to its list. `$retainKeys` deletes all keys of a mapping but those that it lists,
`$setElementOrder/<list>` orders a list, `$deleteFromPrimitiveList/<list>` deletes values of one, as in kubectl. The
result has no such markers. Scalars are opaque, so traced and plain data merge in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobgen.model.data import Location, Node, TracedList, TracedScalar, ValidFields, location_of, override, value_of
from jobgen.model.named_tuple import NamedTuple

LIST_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "protocol"),
    "replicaSpecs": ("type",),
    "replicatedJobs": ("name",),
    "runtimePatches": ("manager",),
    "tasks": ("name",),
    "workerGroupSpecs": ("groupName",),
}
_KEY_DEFAULTS = {"protocol": "TCP"}
_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_SCALARS = frozenset((TracedScalar, str, int, float, bool))
"""The types of most leaves."""
_ORDER, _DELETE_VALUES = "$setElementOrder/", "$deleteFromPrimitiveList/"


class Deletion(NamedTuple):
    """A deletion marker, whether it deleted anything, and the reason if it is invalid."""

    asked_by: Node
    key: str
    found: bool
    fault: str = ""

    @property
    def location(self) -> Location | None:
        """The location of the marker in a traced tree."""
        return location_of(self.asked_by)


def merge(base: Any, over: Any, deletions: list[Deletion]) -> Any:
    """Merge the mapping `over` into `base`, without changing either; deletion markers are added to `deletions`."""
    if _DIRECTIVE in over:
        base, over = _apply_directive(base, over, deletions)
    merged = dict(base) if isinstance(base, dict) else {}
    if _RETAIN in over:
        retained = {value_of(key) for key in over[_RETAIN]} if isinstance(over[_RETAIN], list) else set()
        merged = {key: value for key, value in merged.items() if key in retained}
    # Directives are rare: all keys are searched at once.
    may_have_directives = "$" in "".join(over)
    for key, value in over.items():
        if may_have_directives and _is_directive(key):
            continue
        is_leaf = type(value) in _SCALARS
        if not is_leaf and isinstance(value, dict):
            if _DIRECTIVE in value and is_deletion(value):
                deletions.append(Deletion(value, key, key in merged))
                merged.pop(key, None)
            else:
                merged[key] = merge(merged.get(key), value, deletions)
        elif not is_leaf and isinstance(value, list):
            if _is_list_deletion(value, key):
                marker = next(item for item in value if is_deletion(item))
                deletions.append(Deletion(marker, key, key in merged))
                merged.pop(key, None)
            else:
                merged[key] = _merge_lists(merged.get(key), value, deletions, key)
        elif value is None or (type(value) is TracedScalar and value.value is None):
            deletions.append(Deletion(over if value is None else value, key, key in merged))
            merged.pop(key, None)
        else:
            merged[key] = override(value, merged[key]) if key in merged else value
    return _apply_list_directives(merged, over) if may_have_directives else merged


def _is_directive(key: str) -> bool:
    return key.startswith("$") and (key in (_DIRECTIVE, _RETAIN) or key.startswith((_ORDER, _DELETE_VALUES)))


def _apply_list_directives(merged: dict[str, Any], over: Any) -> dict[str, Any]:
    """Delete values of lists and order lists, as the directives for them say."""
    for key, value in over.items():
        if not isinstance(value, list):
            continue
        name = key.partition("/")[2]
        items = merged.get(name)
        if key.startswith(_DELETE_VALUES) and isinstance(items, list):
            deleted = [value_of(item) for item in value]
            merged[name] = _like_list(items, [item for item in items if value_of(item) not in deleted])
        elif key.startswith(_ORDER) and isinstance(items, list):
            merged[name] = _like_list(items, _order_items(items, value, LIST_KEYS.get(name, ())))
    return merged


def _order_items(items: list[Any], order: list[Any], keys: tuple[str, ...]) -> list[Any]:
    """The items in an order; those that it does not list keep their places."""
    ranks = {_rank(item, keys): rank for rank, item in enumerate(order)}
    places = [index for index, item in enumerate(items) if _rank(item, keys) in ranks]
    ordered = sorted((items[index] for index in places), key=lambda item: ranks[_rank(item, keys)])
    found = list(items)
    for index, item in zip(places, ordered, strict=True):
        found[index] = item
    return found


def _rank(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    identity = _identity(item, keys[:1]) if isinstance(item, dict) else (value_of(item),)
    return tuple(str(part) for part in identity)


def is_deletion(value: Node) -> bool:
    """Return True if a value is a mapping with `$patch: delete`."""
    return isinstance(value, dict) and _DIRECTIVE in value and value_of(value[_DIRECTIVE]) == "delete"


def _apply_directive(base: Any, over: Any, deletions: list[Deletion]) -> tuple[Any, Any]:
    """Apply the `$patch` of `over`; return what is left to merge."""
    asked = over[_DIRECTIVE]
    if value_of(asked) == "replace":
        base = None
    elif value_of(asked) != "merge":
        fault = f"`$patch` is `{value_of(asked)}`; it must be `delete` or `replace`"
        if value_of(asked) == "delete":
            fault = "`$patch: delete` would delete the whole object; delete entries of it"
        deletions.append(_invalid_marker(asked, over, fault))
    return base, {key: value for key, value in over.items() if key != _DIRECTIVE}


def _invalid_marker(asked: Any, holder: Any, fault: str) -> Deletion:
    return Deletion(asked if type(asked) is TracedScalar else holder, _DIRECTIVE, found=False, fault=fault)


def _merge_lists(base: Any, over: Any, deletions: list[Deletion], name: str) -> Any:
    keys = LIST_KEYS.get(name)
    if keys is None or not _all_keyed(over, keys):
        replacement = _remove_markers(over, deletions, name)
        return replacement if base is None else override(replacement, base)
    replaces = any(is_replacement(item) for item in over)
    # Items without a key cannot be merged.
    merged = list(base) if isinstance(base, list) and not replaces and _all_keyed(base, keys) else []
    # Of several items with one key, the last one is merged, and the others stay.
    at = {_identity(item, keys): index for index, item in enumerate(merged)}
    for item in over:
        if is_replacement(item) or _is_marker(item, "merge"):
            continue
        identity = _identity(item, keys)
        if is_deletion(item):
            deletions.append(Deletion(item, "/".join(map(str, identity)), identity in at))
            merged = [other for other in merged if _identity(other, keys) != identity]
            at = {_identity(other, keys): index for index, other in enumerate(merged)}
        elif identity in at:
            below = merged[at[identity]]
            merged[at[identity]] = made = merge(below, item, deletions)
            # The key keeps its origin, because `item` only refers to it.
            made.update((key, below[key]) for key in keys if key in below)
        else:
            at[identity] = len(merged)
            merged.append(merge(None, item, deletions))
    return _like_list(over, merged)


def _remove_markers(over: Any, deletions: list[Deletion], name: str) -> Any:
    """A list that replaces another, without markers, which have no meaning there; a deletion is reported as invalid."""
    if not _is_marked(over):
        return over
    if isinstance(over, list):
        kept = [item for item in over if not is_replacement(item) and not _is_invalid_deletion(item, deletions, name)]
        return _like_list(over, [_remove_markers(item, deletions, name) for item in kept])
    kept_keys = [key for key in over if not _is_directive(key) and not _is_invalid_deletion(over[key], deletions, key)]
    return {key: _remove_markers(over[key], deletions, key) for key in kept_keys}


def _is_marked(node: Node) -> bool:
    if isinstance(node, dict):
        return any(map(_is_directive, node)) or any(map(_is_marked, node.values()))
    return isinstance(node, list) and any(map(_is_marked, node))


def _is_invalid_deletion(value: Any, deletions: list[Deletion], name: str) -> bool:
    """Return True if a value is a deletion marker in a list that is replaced; if so, it is reported."""
    if not is_deletion(value):
        return False
    fault = f"nothing in `{name}` can be deleted: the list has no keys, so it is replaced; write the whole list"
    deletions.append(_invalid_marker(value[_DIRECTIVE], value, fault))
    return True


def is_replacement(item: Node) -> bool:
    """Return True if an item of a list is a marker that replaces the list."""
    return _is_marker(item, "replace")


def is_merged_by_key(items: Sequence[Node], name: str) -> bool:
    """Return True if the items of a list are merged into a list with this name, rather than replacing it."""
    keys = LIST_KEYS.get(name)
    return keys is not None and _all_keyed(items, keys) and not _is_list_deletion(items, name)


def find_directive(over: ValidFields, name: str | None, *, is_last: bool) -> str | None:
    """Return the key of a directive that changes what another layer has as `name`, or as anything; None without one.

    `is_last` is whether the field itself is meant, rather than something in it: the order of a list is no part of it.
    """
    for key, value in over.items():
        if key == _DIRECTIVE and value_of(value) == "replace":
            return key
        if key == _RETAIN and not (isinstance(value, list) and name in [value_of(each) for each in value]):
            return key
        if name is not None and (key == _DELETE_VALUES + name or (is_last and key == _ORDER + name)):
            return key
    return None


def _is_marker(item: Node, word: str) -> bool:
    """Return True if an item is only a marker for its list."""
    return isinstance(item, dict) and len(item) == 1 and value_of(item.get(_DIRECTIVE)) == word


def _is_list_deletion(items: Sequence[Node], name: str) -> bool:
    """Return True if an item deletes the whole list: a deletion without a key in a list with keys."""
    return name in LIST_KEYS and any(_is_marker(item, "delete") for item in items)


def _all_keyed(items: Sequence[Node], keys: tuple[str, ...]) -> bool:
    for item in items:
        if not isinstance(item, dict):
            return False
        is_keyed = keys[0] in item and not any(isinstance(item.get(key), (dict, list)) for key in keys)
        if not (is_keyed or _is_marker(item, "replace") or _is_marker(item, "merge")):
            return False
    return True


def _identity(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(value_of(item.get(key, _KEY_DEFAULTS.get(key))) for key in keys)


def _like_list(found: Any, items: list[Any]) -> list[Any]:
    return TracedList(items, found.location, found.layer, found.overridden) if type(found) is TracedList else items
