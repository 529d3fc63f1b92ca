"""Changes of single pods, and the same change of several pods as one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from jobgen.model.named_tuple import NamedTuple


class Change(NamedTuple):
    """What differs between two pods."""

    kind: str
    field: str
    before: Any
    after: Any
    training: bool


def describe_changes(
    pairs: Iterable[tuple[str, Iterable[Change]]], total: int
) -> Iterator[tuple[str, str, str, Any, Any, bool]]:
    """Yield each change once, with the ranks that it concerns.

    Changes of a name, an address or a variable of an operator are the same if only the values differ from rank to rank.
    """
    found: dict[str, tuple[Change, list[int]]] = {}
    for rank, changes in pairs:
        for change in changes:
            values = [change.before, change.after] if change.training else [change.before is None, change.after is None]
            key = json.dumps([change.kind, change.field, *values], sort_keys=True, default=str)
            found.setdefault(key, (change, []))[1].append(int(rank))
    for change, ranks in found.values():
        where = "all nodes" if len(ranks) == total else _format_ranks(ranks)
        yield change.kind, where, change.field, change.before, change.after, change.training


def _format_ranks(ranks: list[int]) -> str:
    """Write ranks as `rank 0` or `ranks 1-3, 5`."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and spans[-1][1] == rank - 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(texts)}"
