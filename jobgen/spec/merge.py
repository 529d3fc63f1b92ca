"""The merge law, one for specs, pod templates and manifests.

Maps merge deep; `null` deletes; lists whose items Kubernetes tells apart merge by that key; every other list is
replaced whole. `$patch: delete` deletes a list item or a map, `$patch: replace` takes what it stands in as it is.
No marker is ever left behind. Leaves are opaque, so the same law carries bare values and traced ones.
"""

from __future__ import annotations

from typing import NamedTuple

from jobgen.model.data import Data, Location, TracedList, TracedScalar, location_of, override, value_of

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
}
_KEY_DEFAULTS = {"protocol": "TCP"}
_DIRECTIVE = "$patch"


class Deletion(NamedTuple):
    """A marker that asked for something to go, whether there was anything, and why it cannot mean that if it cannot."""

    asked_by: Data
    key: str
    found: bool
    fault: str = ""

    @property
    def location(self) -> Location | None:
        """Where the marker was written, on a traced walk."""
        return location_of(self.asked_by)


def merge(base: Data, over: dict[str, Data], deletions: list[Deletion]) -> Data:
    """`over` laid on `base`; neither is changed, and what was to be deleted is noted in `deletions`."""
    if _DIRECTIVE in over:
        base, over = _directed(base, over, deletions)
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in over.items():
        if isinstance(value, dict):
            if _DIRECTIVE in value and is_deletion(value):
                deletions.append(Deletion(value, key, key in merged))
                merged.pop(key, None)
            else:
                merged[key] = merge(merged.get(key), value, deletions)
        elif isinstance(value, list):
            merged[key] = _merge_lists(merged.get(key), value, deletions, key)
        elif value is None or (type(value) is TracedScalar and value.value is None):
            deletions.append(Deletion(over if value is None else value, key, key in merged))
            merged.pop(key, None)
        else:
            merged[key] = override(value, merged[key]) if key in merged else value
    return merged


def is_deletion(value: Data) -> bool:
    """Whether a value is a marker that asks for its own deletion."""
    return isinstance(value, dict) and _DIRECTIVE in value and value_of(value[_DIRECTIVE]) == "delete"


def _directed(base: Data, over: dict[str, Data], deletions: list[Deletion]) -> tuple[Data, dict[str, Data]]:
    """What is to be merged once the marker has been obeyed."""
    asked = over[_DIRECTIVE]
    if value_of(asked) == "replace":
        base = None
    elif value_of(asked) == "delete":
        fault = "`$patch: delete` stands for the whole, and the whole cannot be deleted"
        deletions.append(_misused(asked, over, fault))
    elif value_of(asked) != "merge":
        fault = f"`$patch` is `{value_of(asked)}`, and must be `delete` or `replace`"
        deletions.append(_misused(asked, over, fault))
    return base, _without_directive(over)


def _misused(asked: Data, holder: Data, fault: str) -> Deletion:
    return Deletion(asked if type(asked) is TracedScalar else holder, _DIRECTIVE, found=False, fault=fault)


def _without_directive(item: Data) -> Data:
    return {key: value for key, value in item.items() if key != _DIRECTIVE}


def _merge_lists(base: Data, over: list[Data], deletions: list[Deletion], name: str) -> Data:
    keys = LIST_KEYS.get(name)
    if keys is None or not _all_keyed(over, keys):
        whole = _whole(over, deletions, name)
        return whole if base is None else override(whole, base)
    replaces = any(_is_replacement(item) for item in over)
    # Items that cannot be told apart cannot be merged either.
    merged = list(base) if isinstance(base, list) and not replaces and _all_keyed(base, keys) else []
    # The last of several items with one key is the one that counts, and the others are left alone.
    at = {_identity(item, keys): index for index, item in enumerate(merged)}
    for item in over:
        if _is_replacement(item):
            continue
        identity = _identity(item, keys)
        if is_deletion(item):
            deletions.append(Deletion(item, "/".join(map(str, identity)), identity in at))
            merged = [other for other in merged if _identity(other, keys) != identity]
            at = {_identity(other, keys): index for index, other in enumerate(merged)}
        elif identity in at:
            merged[at[identity]] = _merge_items(merged[at[identity]], item, deletions, keys)
        else:
            at[identity] = len(merged)
            merged.append(merge(None, item, deletions))
    return _same_kind(over, merged)


def _merge_items(base: dict[str, Data], over: Data, deletions: list[Deletion], keys: tuple[str, ...]) -> Data:
    """Two items with one key; who only refers to an item by its key has not set that key."""
    merged = merge(base, over, deletions)
    merged.update((key, base[key]) for key in keys if key in base)
    return merged


def _whole(over: Data, deletions: list[Deletion], name: str) -> Data:
    """A list that replaces another, without its markers: they have nothing to say, and a deletion is a mistake."""
    if not _is_marked(over):
        return over
    if isinstance(over, list):
        kept = [item for item in over if not _is_replacement(item) and not _is_mistaken(item, deletions, name)]
        return _same_kind(over, [_whole(item, deletions, name) for item in kept])
    kept_keys = [key for key in over if key != _DIRECTIVE and not _is_mistaken(over[key], deletions, key)]
    return {key: _whole(over[key], deletions, key) for key in kept_keys}


def _is_marked(node: Data) -> bool:
    if isinstance(node, dict):
        return _DIRECTIVE in node or any(map(_is_marked, node.values()))
    return isinstance(node, list) and any(map(_is_marked, node))


def _is_mistaken(value: Data, deletions: list[Deletion], name: str) -> bool:
    """Whether a value asks for its own deletion in a list that is replaced whole; that is noted."""
    if not is_deletion(value):
        return False
    fault = f"nothing in `{name}` can be deleted: the list has no keys and is replaced whole; write it as it shall be"
    deletions.append(_misused(value[_DIRECTIVE], value, fault))
    return True


def _is_replacement(item: Data) -> bool:
    return isinstance(item, dict) and len(item) == 1 and value_of(item.get(_DIRECTIVE)) == "replace"


def _all_keyed(items: list[Data], keys: tuple[str, ...]) -> bool:
    return all(isinstance(item, dict) and (_has_scalars(item, keys) or _is_replacement(item)) for item in items)


def _has_scalars(item: dict[str, Data], keys: tuple[str, ...]) -> bool:
    return keys[0] in item and not any(isinstance(item.get(key), (dict, list)) for key in keys)


def _identity(item: dict[str, Data], keys: tuple[str, ...]) -> tuple[Data, ...]:
    return tuple(value_of(item.get(key, _KEY_DEFAULTS.get(key))) for key in keys)


def _same_kind(pattern: list[Data], items: list[Data]) -> list[Data]:
    return (
        TracedList(items, pattern.location, pattern.layer, pattern.overridden) if type(pattern) is TracedList else items
    )
