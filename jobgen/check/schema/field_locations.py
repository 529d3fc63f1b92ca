"""Where the fields of a schema live: for those who wrote one in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jobgen.model.data import Data, TracedKey
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import NO_FIX, SuggestedFix, suggest_move

_PATH = lazy_pattern(r"[A-Za-z.]+")
_LEVELS = 7
"""Deep enough for the fields of a container."""
_MOST_PLACES = 50_000
_MOST_STEPS = 64


def homes(schema: dict[str, Any]) -> dict[str, list[str]]:
    """The places of each field name in an object's spec, the shallowest first."""
    found: dict[str, list[str]] = {}
    for name, place in islice(
        _places(schema["properties"].get("spec", {}), schema.get("$defs", {}), "spec"), _MOST_PLACES
    ):
        found.setdefault(name, []).append(place)
    return found


def _places(schema: dict[str, Any], types: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Breadth first over the first few levels of a schema: each field's name and the path of what holds it."""
    level = [(schema, path)]
    for _ in range(_LEVELS):
        following: list[tuple[dict[str, Any], str]] = []
        for node, place in level:
            node, place = _resolved(node, types, place)  # noqa: PLW2901
            for name, child in node.get("properties", {}).items():
                yield name, place
                following.append((child, f"{place}.{name}"))
            extra = node.get("additionalProperties")
            if isinstance(extra, dict):
                following.append((extra, f"{place}.<role>" if place.endswith("Specs") else f"{place}.*"))
        level = following


def _resolved(node: dict[str, Any], types: dict[str, Any], place: str) -> tuple[dict[str, Any], str]:
    """Through references, options and lists to the object that a node stands for."""
    # A reference may lead back to itself.
    for _ in range(_MOST_STEPS):
        if "anyOf" in node:
            node = node["anyOf"][0]
        elif "$ref" in node:
            node = types[node["$ref"].rpartition("/")[2]]
        elif "items" in node:
            node, place = node["items"], f"{place}[]"
        else:
            return node, place
    return {}, place


def homeward(key: TracedKey, made: Data, known: Mapping[str, list[str]]) -> SuggestedFix:
    """A misplaced field of an object moved to its home, if that is no role's and no list's; safe if it has no other."""
    holder = _holder(made, key)
    places = known.get(key, [])
    if holder is None or not places or not _PATH.fullmatch(places[0]):
        return NO_FIX
    *steps, name = places[0].split(".")
    for step in steps:
        made = made.get(step) if isinstance(made, dict) else None
    # Down into what its holder has, or up to what has its holder: in another branch it might mean something else.
    if not isinstance(made, dict) or (made is not holder and _holder(made.get(name), key) is None):
        return NO_FIX
    fix_steps, safe = suggest_move(key, holder[key], holder, name, made)
    return fix_steps, safe and len(places) == 1


def _holder(tree: Data, key: TracedKey) -> Data:
    """The mapping that has this very key."""
    if isinstance(tree, dict):
        if any(own is key for own in tree):
            return tree
        tree = list(tree.values())
    for child in tree if isinstance(tree, list) else ():
        holder = _holder(child, key)
        if holder is not None:
            return holder
    return None
