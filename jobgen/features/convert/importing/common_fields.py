"""Move fields that all roles share to the job, and write resources in their short form."""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Plain
from jobgen.model.quantity import canonicalize_quantity

Fields = dict[str, Any]
"""Fields of a job or a role. Their values come from a manifest, so their types are checked where they are used."""
# Maps that merge key by key, so that a part of them can be moved to the job.
_MAPS = frozenset(("labels", "annotations", "nodeSelector", "securityContext", "volumes", "env"))
_ORDERED = frozenset(("env",))
_MISSING = object()


def extract_common(roles: dict[str, Fields], *, split_maps: bool) -> tuple[Fields, dict[str, Fields]]:
    """The fields that all roles share, and the rest of each role; with `split_maps`, also parts of maps."""
    common: Fields = {}
    own: dict[str, Fields] = {name: {} for name in roles}
    for field in dict.fromkeys(field for fields in roles.values() for field in fields):
        values = [fields.get(field, _MISSING) for fields in roles.values()]
        shared, rests = (_MISSING, values) if field == "replicas" else _split(field, values, split_maps=split_maps)
        if shared is not _MISSING:
            common[field] = shared
        for name, rest in zip(roles, rests, strict=True):
            if rest is not _MISSING:
                own[name][field] = rest
    return common, own


def _split(field: str, values: list[Any], *, split_maps: bool) -> tuple[Any, list[Any]]:
    """The shared value or part of a field, and the rest of each value."""
    first = values[0]
    is_ordered = field in _ORDERED and isinstance(first, dict)
    if all(
        with_types(value) == with_types(first) and (not is_ordered or list(value) == list(first)) for value in values
    ):
        return first, [_MISSING] * len(values)
    if not split_maps or not all(isinstance(value, dict) and value for value in values):
        return _MISSING, values
    if field in ("podTemplate", "resources"):
        return _split_nested(values)
    if field in _MAPS:
        return _split_map(values, is_ordered=is_ordered)
    return _MISSING, values


def _split_map(values: list[Fields], *, is_ordered: bool) -> tuple[Any, list[Any]]:
    """The entries that all maps share."""
    shared = {key: value for key, value in values[0].items() if all(_has(other, key, value) for other in values)}
    # The job's entries come first, and variables may refer to earlier ones.
    if not shared or (is_ordered and any(list(value)[: len(shared)] != list(shared) for value in values)):
        return _MISSING, list(values)
    rests = [{key: value for key, value in each.items() if key not in shared} for each in values]
    return shared, [rest or _MISSING for rest in rests]


def _split_nested(values: list[Fields]) -> tuple[Any, list[Any]]:
    """The entries that all maps share, and the shared entries of the maps in them."""
    shared: Fields = {}
    rests: list[Fields] = [{} for _ in values]
    for key in dict.fromkeys(key for value in values for key in value):
        found = [value.get(key, _MISSING) for value in values]
        if all(isinstance(each, dict) and each for each in found):
            common, left = _split_map(found, is_ordered=False)
        else:
            is_same = all(with_types(each) == with_types(found[0]) for each in found)
            common, left = (found[0], [_MISSING] * len(values)) if is_same else (_MISSING, found)
        if common is not _MISSING:
            shared[key] = common
        for rest, each in zip(rests, left, strict=True):
            if each is not _MISSING:
                rest[key] = each
    return (shared or _MISSING), [rest or _MISSING for rest in rests]


def _has(mapping: Fields, key: str, value: Any) -> bool:
    return key in mapping and with_types(mapping[key]) == with_types(value)


def with_types(tree: object) -> object:
    """The tree with the type of every scalar, because 1 and True are equal in Python."""
    if isinstance(tree, dict):
        return {key: with_types(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [with_types(value) for value in tree]
    return type(tree).__name__, tree


def shorten_resources(resources: Plain, gpu_resource: str) -> Plain:
    """Write amounts once that are equal in limits and requests."""
    if not isinstance(resources, dict):
        return resources
    sides: dict[str, Fields] = {side: resources[side] for side in ("limits", "requests") if side in resources}
    equal = [key for key in sides.get("limits", {}) if _is_equal_on_both_sides(sides, key)]
    short: Fields = {_short_name(key, gpu_resource): _to_number(key, sides["limits"][key]) for key in equal}
    for side, amounts in sides.items():
        rest = {
            _short_name(key, gpu_resource): _to_number(key, value) for key, value in amounts.items() if key not in equal
        }
        if rest or not amounts:
            short[side] = rest
    if "claims" in resources:
        short["claims"] = resources["claims"]
    return short


def _is_equal_on_both_sides(sides: dict[str, Fields], key: str) -> bool:
    one, other = (sides.get(side, {}).get(key) for side in ("limits", "requests"))
    return (
        other is not None
        and type(one) is type(other)
        and canonicalize_quantity(str(one)) == canonicalize_quantity(str(other))
    )


def _short_name(key: str, gpu_resource: str) -> str:
    return "gpu" if key == gpu_resource else key


def _to_number(key: str, value: Plain) -> Plain:
    """`"2"` CPUs as 2, which needs no quotes; amounts of devices keep their type, because rendering keeps it."""
    return int(value) if isinstance(value, str) and value.isdecimal() and "/" not in key else value
