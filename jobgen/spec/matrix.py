"""A matrix to its combinations: every value with every other, some paired, some left out, some put in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import NamedTuple

from jobgen.model.data import Data, value_of
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import did_you_mean, find_closest

MOST = 256
"""How many members a sweep may have where it says nothing else."""

RESERVED = ("zip", "include", "exclude", "limit")
_EXACT = 2**53
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class Member(NamedTuple):
    """One combination: its variables, and those of them that tell it from the others."""

    values: dict[str, Data]
    distinguishing: tuple[str, ...]


def canonical_text(value: Data) -> str:
    """The one text of a value, however it was spelt: `1.0` is `1`."""
    found = value_of(value)
    is_whole = isinstance(found, float) and found.is_integer() and abs(found) < _EXACT
    return str(int(found)) if is_whole else to_text(value)


def to_text(value: Data) -> str:
    """A value as text."""
    found = value_of(value)
    return str(found).lower() if isinstance(found, bool) else str(found)


def find_misspelled_keys(matrix: Data) -> Iterator[Problem]:
    """Keys that look like variables, but hold what only one of our own words can."""
    for key, value in matrix.items() if isinstance(matrix, dict) else ():
        holds_more = isinstance(value, dict) or (
            isinstance(value, list) and any(isinstance(one, dict) for one in value)
        )
        close = find_closest(str(key), list(RESERVED))
        if key not in RESERVED and holds_more and close:
            yield Problem("unknown-field", f"`{key}` is not a list of values; did you mean `{close}`?", key)


def find_matrix_errors(matrix: dict[str, Data]) -> Iterator[Problem]:
    """What a matrix of the right form says that cannot be."""
    wrong = list(_wrong_variables(_axes(matrix), matrix.get("zip") or {}))
    yield from wrong
    if not wrong:
        yield from _wrong_members(matrix, _axes(matrix), matrix.get("zip") or {})


def _wrong_variables(axes: dict[str, Data], paired: dict[str, Data]) -> Iterator[Problem]:
    for key, values in (*axes.items(), *paired.items()):
        if not _NAME.match(key):
            message = f"`{key}` cannot be the name of a variable; letters, digits, `-` and `_` can"
            yield Problem("invalid-value", message, key)
        if not values:
            yield Problem("invalid-value", f"`{key}` has no values", key)
    for key in paired:
        if key in axes:
            yield Problem("invalid-value", f"`{key}` has values of its own and stands in `zip` too", key)
    if len({len(values) for values in paired.values()}) > 1:
        lengths = ", ".join(f"{key} {len(values)}" for key, values in paired.items())
        yield Problem("invalid-value", f"the lists of `zip` must be of equal length ({lengths})", paired)


def _wrong_members(matrix: dict[str, Data], axes: dict[str, Data], paired: dict[str, Data]) -> Iterator[Problem]:
    """Counted before anything is made: a matrix can ask for more than any memory holds."""
    most = value_of((matrix.get("limit") or {}).get("members", MOST))
    count = prod(len(values) for values in (*axes.values(), *list(paired.values())[:1]))
    if count > max(most, MOST) * _PRUNED:
        yield Problem("too-many-members", _many(count, most), matrix)
        return
    known = [*axes, *paired]
    for block in matrix.get("exclude", ()):
        for key in block:
            if key not in known:
                yield Problem("unknown-variable", f"`{key}` is not a variable{did_you_mean(key, known)}", key)
        if block.keys() <= set(known) and not any(_fits(row, block) for row in _rows(matrix)):
            yield Problem("invalid-value", "this leaves out nothing: no combination has these values", block)
    found = len(expand_matrix(matrix))
    if found > most:
        yield Problem("too-many-members", _many(found, most), matrix)
    if not found:
        yield Problem("invalid-value", "the matrix has no combination left", matrix)


# Whoever leaves out most of a matrix may write a larger one.
_PRUNED = 16


def _many(count: int, most: int) -> str:
    return f"the matrix makes {count} jobs, and may make {most}; raise `limit.members` if that is meant"


def expand_matrix(matrix: dict[str, Data]) -> list[Member]:
    """All members, in the order of the values."""
    rows = [row for row in _rows(matrix) if not any(_fits(row, block) for block in matrix.get("exclude", ()))]
    own = tuple(rows[0]) if rows else ()
    found = [Member(row, own) for row in rows]
    extra: list[Member] = []
    for block in matrix.get("include", ()):
        shared = [key for key in block if key in own]
        takers = [one for one in found if all(_is_same(one.values[key], block[key]) for key in shared)]
        for taker in takers:
            taker.values.update((key, value) for key, value in block.items() if key not in own)
        if not takers:
            extra.append(Member(dict(block), tuple(block)))
    return found + extra


def _axes(matrix: dict[str, Data]) -> dict[str, Data]:
    return {key: values for key, values in matrix.items() if key not in RESERVED}


def _rows(matrix: dict[str, Data]) -> list[dict[str, Data]]:
    axes, paired = _axes(matrix), matrix.get("zip") or {}
    columns = [[{key: value} for value in values] for key, values in axes.items()]
    if paired:
        columns.append([dict(zip(paired, values, strict=True)) for values in zip(*paired.values(), strict=True)])
    if not columns:
        return []
    return [{key: value for part in parts for key, value in part.items()} for parts in product(*columns)]


def _fits(row: dict[str, Data], block: dict[str, Data]) -> bool:
    return all(key in row and _is_same(row[key], value) for key, value in block.items())


def _is_same(one: Data, other: Data) -> bool:
    return canonical_text(one) == canonical_text(other)
