"""Finds which field is meant by what a mapping contains: one of another name, or a level that was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.place import At
from jobgen.schema.right_forms import describe_missing_level

_SHORTEST, _MOST_WORDS = 4, 2
_LEAST = 2
"""Fewer fields do not show what is meant."""
_MOST = 50
_MAX_STEPS = 16


_ROLES = frozenset(("Chief", "Evaluator", "Launcher", "Master", "PS", "Worker"))
"""Roles of the operators of Kubeflow, whose jobs have them below `…ReplicaSpecs`."""


def find_missing_level(
    unknown: Sequence[str], holder: Mapping[str, Plain], properties: Mapping[str, Any], types: Mapping[str, Any]
) -> str:
    """Return the one missing field of a mapping that has all its unknown fields; empty if there is none, or more.

    `template: {parallelism: 2, completions: 2}` lacks `spec` between them.
    """
    if not 0 < len(unknown) <= _MOST:
        return ""
    if _ROLES.issuperset(unknown) and (roles := [name for name in properties if name.endswith("ReplicaSpecs")]):
        return "" if len(roles) > 1 or roles[0] in holder else roles[0]
    level = _choose(frozenset(unknown), holder, properties, types) or _choose_pod(unknown, holder, properties, types)
    # A scalar may as well be moved to where it belongs.
    is_block = level in ("spec", _POD) and isinstance(holder[unknown[0]], (dict, list))
    return level if is_block or len(unknown) >= _LEAST else ""


def join_below_metadata(
    problems: Sequence[Problem], obj: Mapping[str, Plain], properties: Mapping[str, Any], types: Mapping[str, Any]
) -> Sequence[Problem]:
    """Return the problems with one for all fields of `spec` that are in `metadata`, because `spec:` is missing."""
    metadata = obj.get("metadata")
    if "spec" not in properties or obj.get("spec") is not None or not isinstance(metadata, dict):
        return problems
    known = _list_fields(properties["spec"], types).keys()
    unknown: dict[str, Problem] = {}
    for problem in problems:
        place = problem.node
        if problem.rule == "unknown-field" and type(place) is At and place.holder is metadata:
            unknown[place.key] = problem
    keys = [key for key in metadata if key in unknown]
    if not keys or not known >= {*keys}:
        return problems
    first, *others = (unknown[key] for key in keys)
    message = describe_missing_level(keys[0], len(keys) - 1, "spec", "metadata")
    joined = first._replace(sentence=message, cause="missing level", meant="spec", fix_steps=(), evidence=None)
    return [joined if each is first else each for each in problems if not any(each is other for other in others)]


def find_longer(field: str, holder: Mapping[str, Plain], properties: Mapping[str, Any]) -> str:
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


def find_alike(
    value: Plain, holder: Mapping[str, Plain], properties: Mapping[str, Any], types: Mapping[str, Any]
) -> str:
    """Return the one missing field that has all fields of a value; empty if there is none, or more."""
    if not isinstance(value, dict) or not _LEAST <= len(value) <= _MOST:
        return ""
    return _choose(frozenset(value), holder, properties, types)


def find_holder(
    field: str, holder: Mapping[str, Plain], properties: Mapping[str, Any], types: Mapping[str, Any]
) -> str:
    """Return the one missing field below which an unknown one belongs, as `valueFrom` is for `secretKeyRef`."""
    return _choose(frozenset((field,)), holder, properties, types)


_POD = "template.spec"


def _choose_pod(
    unknown: Sequence[str], holder: Mapping[str, Plain], properties: Mapping[str, Any], types: Mapping[str, Any]
) -> str:
    """Return the two levels above the fields of a pod if both are missing."""
    if "template" not in properties or "template" in holder or "containers" not in unknown:
        return ""
    spec = _list_fields(properties["template"], types).get("spec", {})
    return _POD if _list_fields(spec, types).keys() >= {*unknown} else ""


def _choose(
    names: frozenset[str], holder: Mapping[str, Plain], properties: Mapping[str, Any], types: Mapping[str, Any]
) -> str:
    missing = (name for name in properties if name not in holder)
    found = [name for name in missing if names <= _list_fields(properties[name], types).keys()]
    return found[0] if len(found) == 1 else ""


def _list_fields(schema: Mapping[str, Any], types: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of the mapping that a node describes, through references and alternatives."""
    for _ in range(_MAX_STEPS):
        if "$ref" in schema:
            schema = types.get(schema["$ref"].rpartition("/")[2], {})
        elif "anyOf" in schema:
            schema = schema["anyOf"][0]
        else:
            break
    found: Mapping[str, Any] = schema.get("properties", {})
    return found
