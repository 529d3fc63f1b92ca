"""Expand a matrix to its combinations: the product of all values, with `zip`, `exclude` and `include`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any, NamedTuple

from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_MATRIX_BLOCKS, MAX_MATRIX_VALUES
from jobgen.model.suggest import did_you_mean, find_closest, find_key

MAX_MEMBERS = 256
"""The number of members that a sweep may have unless it sets `limit.members`."""

RESERVED = ("zip", "include", "exclude", "limit")
_EXACT = 2**53
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class Member(NamedTuple):
    """One combination: its variables, and the names of those that distinguish it from others."""

    values: dict[str, Any]
    distinguishing: tuple[str, ...]


def canonical_text(value: Node) -> str:
    """The text of a value, the same for equal numbers: `1.0` is `1`."""
    found = value_of(value)
    is_whole = isinstance(found, float) and found.is_integer() and abs(found) < _EXACT
    return str(int(found)) if is_whole else to_text(value)


def to_text(value: Node) -> str:
    """Format a value as text."""
    found = value_of(value)
    return str(found).lower() if isinstance(found, bool) else str(found)


def find_misspelled_keys(matrix: Node) -> Iterator[Problem]:
    """Report keys that are variables by name, but have values that only `zip`, `include`, `exclude` or `limit` take."""
    for key, value in matrix.items() if isinstance(matrix, dict) else ():
        holds_more = isinstance(value, dict) or (
            isinstance(value, list) and any(isinstance(one, dict) for one in value)
        )
        close = find_closest(str(key), list(RESERVED))
        if key not in RESERVED and holds_more and close:
            yield Problem("unknown-field", f"`{key}` is not a list of values; did you mean `{close}`?", key)


def find_oversize(matrix: Node) -> Iterator[Problem]:
    """Report a matrix with more values or entries than are expanded."""
    if not isinstance(matrix, dict):
        return
    paired = matrix.get("zip")
    columns = [*_axes(matrix).values(), *(paired.values() if isinstance(paired, dict) else ())]
    values = sum(len(values) for values in columns if isinstance(values, list))
    if values > MAX_MATRIX_VALUES:
        yield Problem("too-many-members", f"the matrix has {values} values; the limit is {MAX_MATRIX_VALUES}", matrix)
    for name in ("include", "exclude"):
        blocks = matrix.get(name)
        if isinstance(blocks, list) and len(blocks) > MAX_MATRIX_BLOCKS:
            message = f"`{name}` has {len(blocks)} entries; the limit is {MAX_MATRIX_BLOCKS}"
            yield Problem("too-many-members", message, find_key(matrix, name))


def find_matrix_errors(matrix: dict[str, Any]) -> Iterator[Problem]:
    """Report the errors of a matrix that its schema cannot express."""
    errors = list(_check_variables(_axes(matrix), matrix.get("zip") or {}))
    yield from errors
    if not errors:
        yield from _check_members(matrix, _axes(matrix), matrix.get("zip") or {})


def _check_variables(axes: dict[str, Any], paired: dict[str, Any]) -> Iterator[Problem]:
    for key, values in (*axes.items(), *paired.items()):
        if not _NAME.match(key):
            message = f"`{key}` is not a valid name of a variable; use letters, digits, `-` and `_`"
            yield Problem("invalid-value", message, key)
        if not values:
            yield Problem("invalid-value", f"`{key}` has no values", key)
    for key in paired:
        if key in axes:
            yield Problem("invalid-value", f"`{key}` has its own values and is also in `zip`; remove one of them", key)
    if len({len(values) for values in paired.values()}) > 1:
        lengths = ", ".join(f"{key} {len(values)}" for key, values in paired.items())
        yield Problem("invalid-value", f"the lists of `zip` must be of equal length ({lengths})", paired)


def _check_members(matrix: dict[str, Any], axes: dict[str, Any], paired: dict[str, Any]) -> Iterator[Problem]:
    """Report errors of the combinations. They are counted first: a matrix can have more than fit in memory."""
    most = value_of((matrix.get("limit") or {}).get("members", MAX_MEMBERS))
    count = prod(len(values) for values in (*axes.values(), *list(paired.values())[:1]))
    if count > max(most, MAX_MEMBERS) * _EXCLUDED_FACTOR:
        yield Problem("too-many-members", _describe_excess(count, most), matrix)
        return
    known = [*axes, *paired]
    rows = _Rows(_combine(matrix))
    for block in matrix.get("exclude", ()):
        for key in block:
            if key not in known:
                yield Problem("unknown-variable", f"`{key}` is not a variable{did_you_mean(key, known)}", key)
        if block.keys() <= set(known) and not rows.find(block, tuple(block)):
            yield Problem("invalid-value", "this leaves out nothing: no combination has these values", block)
    found = len(expand_matrix(matrix))
    if found > most:
        yield Problem("too-many-members", _describe_excess(found, most), matrix)
    if not found:
        yield Problem("invalid-value", "the matrix has no combination left", matrix)


# Before exclusions, a matrix may have so many times more combinations.
_EXCLUDED_FACTOR = 16


def _describe_excess(count: int, most: int) -> str:
    return f"the matrix makes {count} jobs, but the limit is {most}; raise `limit.members` if that is intended"


def expand_matrix(matrix: dict[str, Any]) -> list[Member]:
    """Expand a matrix to its members, in the order of the values."""
    rows = _Rows(_combine(matrix))
    excluded = {number for block in matrix.get("exclude", ()) for number in rows.find(block, tuple(block))}
    kept = {number: row for number, row in enumerate(rows.rows) if number not in excluded}
    own = tuple(next(iter(kept.values()), ()))
    found = {number: Member(row, own) for number, row in kept.items()}
    extra: list[Member] = []
    for block in matrix.get("include", ()):
        shared = tuple(key for key in block if key in own)
        matching = [found[number] for number in rows.find(block, shared) if number in found]
        for member in matching:
            member.values.update((key, value) for key, value in block.items() if key not in own)
        if not matching:
            extra.append(Member(dict(block), tuple(block)))
    return [*found.values(), *extra]


def _axes(matrix: dict[str, Any]) -> dict[str, Any]:
    return {key: values for key, values in matrix.items() if key not in RESERVED}


def _combine(matrix: dict[str, Any]) -> list[dict[str, Any]]:
    axes, paired = _axes(matrix), matrix.get("zip") or {}
    columns = [[{key: value} for value in values] for key, values in axes.items()]
    if paired:
        columns.append([dict(zip(paired, values, strict=True)) for values in zip(*paired.values(), strict=True)])
    if not columns:
        return []
    return [{key: value for part in parts for key, value in part.items()} for parts in product(*columns)]


class _Rows:
    """The combinations of a matrix, and for the names of each block an index of their values."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self._indexes: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}

    def find(self, block: dict[str, Any], names: tuple[str, ...]) -> list[int]:
        """The numbers of the rows that have the block's values of these names."""
        if names not in self._indexes:
            index: dict[tuple[str, ...], list[int]] = {}
            for number, row in enumerate(self.rows):
                if all(name in row for name in names):
                    index.setdefault(tuple(canonical_text(row[name]) for name in names), []).append(number)
            self._indexes[names] = index
        return self._indexes[names].get(tuple(canonical_text(block[name]) for name in names), [])
