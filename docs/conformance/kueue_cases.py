"""The test tables of Kueue 0.19.2, and random clusters that its own code decided about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kueue_tables import list_tables

from conformance import Verdict
from jobgen.model.quantity import parse_quantity


def run(data: Any) -> Iterator[Verdict]:
    """Answer each case; quantities compare by value, and lists have no order unless they are called `order`."""
    tables = list_tables()
    for table, cases in sorted(data.items()):
        for case in cases:
            got, want = normalize(tables[table](case["given"])), normalize(drop_zeros(case["expect"]))
            differences = list(list_differences(got, want))
            yield Verdict(f"{table}/{case['name']}", not differences, "; ".join(differences), table)


def normalize(value: Any, key: str = "") -> Any:
    """Return the same value in one notation."""
    if isinstance(value, dict):
        return {name: normalize(each, name) for name, each in sorted(value.items())}
    if isinstance(value, list):
        items = [normalize(each) for each in value]
        return items if key == "order" else sorted(items, key=lambda each: json.dumps(each, sort_keys=True))
    found = parse_quantity(value) if isinstance(value, str) else None
    return value if found is None else ("quantity", *_reduce(found.amount, found.power))


def _reduce(amount: int, power: int) -> tuple[int, int]:
    while amount and amount % 10 == 0:
        amount, power = amount // 10, power + 1
    return (amount, power if amount else 0)


def drop_zeros(expect: dict[str, Any]) -> dict[str, Any]:
    """Return an expectation without skipped preemptions if there are none: nothing that a case gives asks for them."""
    return {name: each for name, each in expect.items() if name != "skippedPreemptions" or any(each.values())}


def list_differences(got: Any, want: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two answers differ."""
    if isinstance(got, dict) and isinstance(want, dict):
        for name in sorted({*got, *want}):
            yield from list_differences(got.get(name), want.get(name), f"{path}.{name}")
    elif got != want:
        yield f"{path}: {got!r} instead of {want!r}"
