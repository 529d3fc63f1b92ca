"""Compare a value of an object with what a test expects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from jobgen.model.data import Plain
from jobgen.model.quantity import to_milli

ABSENT: Any = object()
"""In place of a value that the object does not have."""


def find_mismatch(value: Any, expected: Plain) -> str:
    """Return how a value differs from what is expected; empty if it does not."""
    if not isinstance(expected, dict):
        return "" if _equals(value, expected) else f"expected {show(expected)}"
    for name, wanted in expected.items():
        is_missing = name != "present" and value is ABSENT
        if is_missing or not _CONDITIONS[name](value, wanted):
            return f"expected {_WORDS[name]}{show(wanted)}"
    return ""


def find_unknown_conditions(expected: Mapping[str, Any]) -> Iterator[str]:
    """Yield names in a mapping of conditions that are none."""
    return (name for name in expected if str(name) not in _CONDITIONS)


def list_conditions() -> list[str]:
    """Return the names of all conditions."""
    return list(_CONDITIONS)


def show(value: Any) -> str:
    """Return a value as a short text."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return f"`{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}`"


_SHOWN = 200


def _equals(value: Any, wanted: Any) -> bool:
    # In JSON, true is not 1.
    return value is not ABSENT and type(value) is type(wanted) and value == wanted


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(key in value and _equals(value[key], each) for key, each in wanted.items())
    return isinstance(value, list) and any(_equals(item, wanted) or _contains_fields(item, wanted) for item in value)


def _contains_fields(item: Any, wanted: Any) -> bool:
    return isinstance(item, dict) and isinstance(wanted, dict) and _contains(item, wanted)


def _compare(value: Any, wanted: Any, holds: Callable[[int, int], bool]) -> bool:
    one, other = to_milli(value), to_milli(wanted)
    return one is not None and other is not None and holds(one, other)


_CONDITIONS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": _equals,
    "present": lambda value, wanted: (value is not ABSENT) is wanted,
    "matches": lambda value, wanted: isinstance(value, str) and fnmatchcase(value, str(wanted)),
    "contains": _contains,
    "oneOf": lambda value, wanted: isinstance(wanted, list) and any(_equals(value, each) for each in wanted),
    "min": lambda value, wanted: _compare(value, wanted, lambda one, other: one >= other),
    "max": lambda value, wanted: _compare(value, wanted, lambda one, other: one <= other),
}
_WORDS = {
    "equals": "",
    "present": "presence ",
    "matches": "a text like ",
    "contains": "something that contains ",
    "oneOf": "one of ",
    "min": "at least ",
    "max": "at most ",
}
