"""What all roles of a job share, said once of the job; the short form of resources, which comes last."""

from __future__ import annotations

from jobgen.model.data import Data
from jobgen.model.quantity import canonicalize_quantity

Fields = dict[str, Data]
# Maps that merge key by key, so that a part of them can be said of the job.
_MAPS = frozenset(("labels", "annotations", "nodeSelector", "securityContext", "volumes", "env"))
_ORDERED = frozenset(("env",))


def extract_common(roles: dict[str, Fields], *, parts: bool) -> tuple[Fields, dict[str, Fields]]:
    """The words that hold for all roles, and what is left of each; with `parts`, maps are split."""
    common: Fields = {}
    own: dict[str, Fields] = {name: {} for name in roles}
    for field in dict.fromkeys(field for words in roles.values() for field in words):
        values = [words.get(field, _NOTHING) for words in roles.values()]
        shared, rests = (_NOTHING, values) if field == "replicas" else _split(field, values, parts=parts)
        if shared is not _NOTHING:
            common[field] = shared
        for name, rest in zip(roles, rests, strict=True):
            if rest is not _NOTHING:
                own[name][field] = rest
    return common, own


_NOTHING = object()


def _split(field: str, values: list[Data], *, parts: bool) -> tuple[Data, list[Data]]:
    first = values[0]
    ordered = field in _ORDERED and isinstance(first, dict)
    if all(with_types(value) == with_types(first) and (not ordered or list(value) == list(first)) for value in values):
        return first, [_NOTHING] * len(values)
    if not parts or not all(isinstance(value, dict) and value for value in values):
        return _NOTHING, values
    if field in ("podTemplate", "resources"):
        return _deep(values)
    if field in _MAPS:
        return _shallow(values, ordered=ordered)
    return _NOTHING, values


def _shallow(values: list[Fields], *, ordered: bool) -> tuple[Data, list[Data]]:
    """The entries that all maps have."""
    shared = {key: value for key, value in values[0].items() if all(_has(other, key, value) for other in values)}
    # What is said of the job comes first, and variables may refer to those before them.
    if not shared or (ordered and any(list(value)[: len(shared)] != list(shared) for value in values)):
        return _NOTHING, list(values)
    rests = [{key: value for key, value in each.items() if key not in shared} for each in values]
    return shared, [rest or _NOTHING for rest in rests]


def _deep(values: list[Fields]) -> tuple[Data, list[Data]]:
    """The entries that all maps have, and those of the maps inside them."""
    shared: Fields = {}
    rests: list[Fields] = [{} for _ in values]
    for key in dict.fromkeys(key for value in values for key in value):
        found = [value.get(key, _NOTHING) for value in values]
        if all(isinstance(each, dict) and each for each in found):
            same, left = _shallow(found, ordered=False)
        else:
            alike = all(with_types(each) == with_types(found[0]) for each in found)
            same, left = (found[0], [_NOTHING] * len(values)) if alike else (_NOTHING, found)
        if same is not _NOTHING:
            shared[key] = same
        for rest, each in zip(rests, left, strict=True):
            if each is not _NOTHING:
                rest[key] = each
    return (shared or _NOTHING), [rest or _NOTHING for rest in rests]


def _has(mapping: Fields, key: str, value: Data) -> bool:
    return key in mapping and bool(with_types(mapping[key]) == with_types(value))


def with_types(tree: Data) -> Data:
    """The tree with the type of every scalar, for Python takes 1 and True for the same."""
    if isinstance(tree, dict):
        return {key: with_types(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [with_types(value) for value in tree]
    return type(tree).__name__, tree


def shorten_resources(resources: Data, gpu_resource: str) -> Data:
    """Amounts that are requested and limited alike are written once."""
    if not isinstance(resources, dict):
        return resources
    sides = {side: resources[side] for side in ("limits", "requests") if side in resources}
    alike = [key for key in sides.get("limits", {}) if _alike(sides, key)]
    short: Fields = {_word(key, gpu_resource): _number(key, sides["limits"][key]) for key in alike}
    for side, amounts in sides.items():
        rest = {_word(key, gpu_resource): _number(key, value) for key, value in amounts.items() if key not in alike}
        if rest or not amounts:
            short[side] = rest
    if "claims" in resources:
        short["claims"] = resources["claims"]
    return short


def _alike(sides: dict[str, Fields], key: str) -> bool:
    one, other = (sides.get(side, {}).get(key) for side in ("limits", "requests"))
    return (
        other is not None
        and type(one) is type(other)
        and canonicalize_quantity(str(one)) == canonicalize_quantity(str(other))
    )


def _word(key: str, gpu_resource: str) -> str:
    return "gpu" if key == gpu_resource else key


def _number(key: str, value: Data) -> Data:
    """`"2"` of a cpu as 2: rendering prints a quantity, and a number needs no quotes. Devices keep their type."""
    return int(value) if isinstance(value, str) and value.isdecimal() and "/" not in key else value
