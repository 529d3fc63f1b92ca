"""Where the fields of a schema live: for those who wrote one in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_LEVELS = 7
"""Deep enough for the fields of a container."""


def homes(schema: dict[str, Any]) -> dict[str, list[str]]:
    """The places of each field name in an object's spec, the shallowest first."""
    found: dict[str, list[str]] = {}
    for name, place in _places(schema["properties"].get("spec", {}), schema.get("$defs", {}), "spec"):
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
    while True:
        if "anyOf" in node:
            node = node["anyOf"][0]
        elif "$ref" in node:
            node = types[node["$ref"].rpartition("/")[2]]
        elif "items" in node:
            node, place = node["items"], f"{place}[]"
        else:
            return node, place
