"""Merge rows about workloads that differ only in the name, such as those of the members of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobgen.model.named_tuple import NamedTuple

_MAX_NAMES = 5

Row = tuple[str, ...]
"""Everything that is said about a workload."""


class EqualRows(NamedTuple):
    """A row, and the workloads that it is about."""

    workloads: tuple[str, ...]
    row: Row

    @property
    def names(self) -> str:
        """The names of the workloads; of many, the first and the number of the others."""
        return show_names(self.workloads)


def merge_equal(rows: Iterable[tuple[str, Row]]) -> list[EqualRows]:
    """Merge rows, given with the name of their workload, in the order of the first of each."""
    found: dict[Row, list[str]] = {}
    for name, row in rows:
        found.setdefault(row, []).append(name)
    return [EqualRows(tuple(names), row) for row, names in found.items()]


def show_names(names: Sequence[str]) -> str:
    """List names; of many, the first and the number of the others."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"
