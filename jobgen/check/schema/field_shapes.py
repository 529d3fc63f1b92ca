"""Finds which field is meant by what a mapping contains: one of another name, or a level that was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.model.data import Node
from jobgen.model.finding import Problem
from jobgen.schema.right_forms import describe_missing_level

_SHORTEST, _MOST_WORDS = 4, 2
_LEAST = 2
"""Fewer fields do not show what is meant."""
_MOST = 50
_MAX_STEPS = 16


def find_missing_level(
    unknown: Sequence[str], holder: Mapping[str, Node], properties: Mapping[str, Any], types: Mapping[str, Any]
) -> str:
    """Return the one missing field of a mapping that has all its unknown fields; empty if there is none, or more.

    `template: {parallelism: 2, completions: 2}` lacks `spec` between them.
    """
    if not 0 < len(unknown) <= _MOST:
        return ""
    level = _choose(frozenset(unknown), holder, properties, types)
    # A scalar may as well be moved to where it belongs.
    is_block = level == "spec" and isinstance(holder[unknown[0]], (dict, list))
    return level if is_block or len(unknown) >= _LEAST else ""


def join_below_metadata(
    problems: Sequence[Problem], obj: Mapping[str, Node], properties: Mapping[str, Any], types: Mapping[str, Any]
) -> Sequence[Problem]:
    """Return the problems with one for all fields of `spec` that are in `metadata`, because `spec:` is missing."""
    metadata = obj.get("metadata")
    if "spec" not in properties or obj.get("spec") is not None or not isinstance(metadata, dict):
        return problems
    known = frozenset(_list_fields(properties["spec"], types))
    unknown = {id(each.node): each for each in problems if each.rule == "unknown-field"}
    keys = [key for key in metadata if id(key) in unknown]
    if not keys or not known.issuperset(keys):
        return problems
    others = {id(key) for key in keys[1:]}
    first = unknown[id(keys[0])]
    message = describe_missing_level(keys[0], len(keys) - 1, "spec", "metadata")
    joined = first._replace(message=message, cause="missing level", meant="spec", fix_steps=(), evidence=None)
    return [joined if each is first else each for each in problems if id(each.node) not in others]


def find_longer(field: str, holder: Mapping[str, Node], properties: Mapping[str, Any]) -> str:
    """Return the one missing field whose name begins or ends with the words of another, as `claimName` of `name`."""
    word = _capitalize(field)
    found = [
        name
        for name in properties
        if name not in holder and (name.endswith(word) or _begins(name, field) or field.endswith(_capitalize(name)))
    ]
    if len(found) != 1 or min(len(field), len(found[0])) < _SHORTEST:
        return ""
    return found[0] if abs(_count_words(field) - _count_words(found[0])) <= _MOST_WORDS else ""


def _capitalize(name: str) -> str:
    return name[:1].upper() + name[1:]


def _begins(name: str, field: str) -> bool:
    return name.startswith(field) and name[len(field) :][:1].isupper()


def _count_words(name: str) -> int:
    return 1 + sum(map(str.isupper, name))


def find_alike(value: Node, holder: Mapping[str, Node], properties: Mapping[str, Any], types: Mapping[str, Any]) -> str:
    """Return the one missing field that has all fields of a value; empty if there is none, or more."""
    if not isinstance(value, dict) or not _LEAST <= len(value) <= _MOST:
        return ""
    return _choose(frozenset(value), holder, properties, types)


def find_holder(field: str, holder: Mapping[str, Node], properties: Mapping[str, Any], types: Mapping[str, Any]) -> str:
    """Return the one missing field below which an unknown one belongs, as `valueFrom` is for `secretKeyRef`."""
    return _choose(frozenset((field,)), holder, properties, types)


def _choose(
    names: frozenset[str], holder: Mapping[str, Node], properties: Mapping[str, Any], types: Mapping[str, Any]
) -> str:
    missing = (name for name in properties if name not in holder)
    found = [name for name in missing if names <= frozenset(_list_fields(properties[name], types))]
    return found[0] if len(found) == 1 else ""


def _list_fields(schema: Mapping[str, Any], types: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of the mapping that a node describes, through references and alternatives."""
    for _ in range(_MAX_STEPS):
        if "$ref" in schema:
            schema = types.get(schema["$ref"].rpartition("/")[2], {})
        elif "anyOf" in schema:
            schema = schema["anyOf"][0]
        else:
            break
    yield from schema.get("properties", ())
