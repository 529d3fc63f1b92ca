"""Read fields of plain objects; one that is missing or has the wrong type reads as empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.features.convert.operators.created import RANDOM, Fields


def as_fields(node: Any) -> Fields:
    """Return the node if it is a mapping, else an empty mapping."""
    return node if isinstance(node, dict) else {}


def as_items(node: Any) -> list[Any]:
    """Return the node if it is a list, else an empty list."""
    return node if isinstance(node, list) else []


def as_string(node: Any, default: str = "") -> str:
    """Return the node if it is a string that is not empty, else the default."""
    return node if isinstance(node, str) and node else default


def as_count(node: Any, default: int) -> int:
    """Return the node if it is an integer, but not less than zero; the default if it is not an integer."""
    return max(node, 0) if type(node) is int else default


def get_fields(node: Any, *steps: str) -> Fields:
    """Return the mapping at a path of keys; empty if there is none."""
    for step in steps:
        node = as_fields(node).get(step)
    return as_fields(node)


def get_name(obj: Fields) -> str:
    """Return the name of an object; a generated name ends with a placeholder."""
    metadata = as_fields(obj.get("metadata"))
    generated = as_string(metadata.get("generateName"))
    return as_string(metadata.get("name"), generated and generated + RANDOM)


def read_texts(node: Any) -> Mapping[str, str]:
    """Return the labels or annotations at a node."""
    return {str(key): value for key, value in as_fields(node).items() if isinstance(value, str)}
