"""What the API server counts for each call while it evaluates an expression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jobgen.check.cel.values import tag_of

LIST, MAP, MESSAGE = 10, 30, 40
"""What the creation of a value costs."""
_TRAVERSAL, _PATTERN = 0.1, 0.25
_ONCE = frozenset(
    """startsWith endsWith bytes string strings.quote format url lowerAscii upperAscii substring trim cidr isIP isCIDR
    ip quantity isQuantity semver isSemver jsonpatch.escapeKey reverse""".split()
)
_TWICE = frozenset(("replace", "split", "ip.isCanonical"))
_LISTS = frozenset("isSorted sum max min indexOf lastIndexOf includes".split())
_COMPARISONS = frozenset(("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"))
_FIXED = {"_&&_": 0, "_||_": 0, "_?_:_": 0, "check": 350_000}
"""What each call of a function costs, whatever its arguments are; a check of a permission asks others."""
_SELECTORS = frozenset(("fieldSelector", "labelSelector"))
_READERS = _SELECTORS | {"matches", "find", "findAll", "contains"}
_REQUIREMENT = LIST + MESSAGE
_CHARACTERS_PER_REQUIREMENT = 2
_LONGEST_PATTERN = 200
"""About the length of the patterns of named formats."""


def count_call(name: str, args: Sequence[Any], result: Any) -> int:
    """The cost of a call, given its arguments and its result."""
    if name in _FIXED:
        return _FIXED[name]
    sizes = [measure(arg) for arg in args]
    if name in _COMPARISONS and len(sizes) == 2:
        return 1 if tag_of(args[0]) else _traverse(min(sizes))
    if name == "_+_" and len(sizes) == 2 and isinstance(args[0], (str, bytes)):
        return _traverse(sum(sizes))
    if name == "@in" and isinstance(args[-1], list):
        return sizes[-1]
    if name in _READERS and len(sizes) >= 2:
        return _count_reading(name, sizes)
    if name == "validate":
        return _traverse(1 + sizes[-1]) * math.ceil(_LONGEST_PATTERN * _PATTERN)
    if name == "join":
        return _traverse(2 * measure(result))
    if name in _LISTS and sizes:
        return sum(map(_traverse_item, args[0])) if isinstance(args[0], list) else _traverse(sizes[0])
    if sizes and name in _ONCE and isinstance(args[0], (str, bytes)):
        return _traverse(sizes[0])
    return _traverse(2 * sizes[0]) if sizes and name in _TWICE else 1


def _count_reading(name: str, sizes: list[int]) -> int:
    """The cost of a search, or of the parsing of a selector."""
    if name in _SELECTORS:
        return LIST + _traverse(sizes[1]) + math.ceil(sizes[1] / _CHARACTERS_PER_REQUIREMENT) * _REQUIREMENT
    if name == "contains":
        return _traverse(sizes[0]) * _traverse(sizes[1])
    return _traverse(1 + sizes[0]) * math.ceil(sizes[1] * _PATTERN)


def measure(value: Any) -> int:
    """The size of a value: its length, or 1."""
    return len(value) if isinstance(value, (str, list, dict)) or (type(value) is bytes and not tag_of(value)) else 1


def _traverse(size: int) -> int:
    return math.ceil(size * _TRAVERSAL)


def _traverse_item(item: Any) -> int:
    return _traverse(len(item)) if isinstance(item, (str, bytes)) else 1
