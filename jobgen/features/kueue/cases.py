"""Conformance cases: what a simulation of Kueue answers, compared with what Kueue itself decided.

A file is a JSON list of cases, `{"name", "given", "expect"}`; the name of the file is that of the table. `given` has
what the table is about, with Kubernetes objects as in YAML, and `expect` the answer. Quantities compare by value. Lists
have no order unless they are called `order`. Of `flavorAttempts`, only those that case and answer name compare.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobgen.api.errors import UsageError
from jobgen.features.kueue.library import decide
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_quantity

Case = Mapping[str, Any]
AnswerCase = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Answers a case: from the name of its table, and what it gives."""


class CaseVerdict(NamedTuple):
    """How an answer compares with what a case expects."""

    table: str
    name: str
    differences: tuple[str, ...]
    """The paths at which they differ; none if they agree."""


def answer_cluster(table: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a case of a whole cluster: `objects`, `version` and `configuration` in, a decision by workload out."""
    if "objects" not in given:
        raise UsageError(f"cases of `{table}` give no `objects`; name a module that answers them")
    found = decide(given["objects"], version=given.get("version", ""), configuration=given.get("configuration"))
    return {"decisions": {each.workload: each.decision for each in found.workloads}}


def read_cases(paths: Iterable[str | os.PathLike[str]]) -> dict[str, list[Case]]:
    """Read files of cases by table.

    Args:
        paths: JSON files, each of which is a list of cases; the name of a file is that of the table.

    Raises:
        UsageError: A file cannot be read, or is not a list of cases.

    """
    found: dict[str, list[Case]] = {}
    for path in map(Path, paths):
        try:
            data = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(f"`{path}` cannot be read: {error}") from error
        if not isinstance(data, list) or not all(
            isinstance(each, dict) and {"given", "expect"} <= {*each} for each in data
        ):
            raise UsageError(f"`{path}` is not a list of cases; a case has `name`, `given` and `expect`")
        found.setdefault(path.stem, []).extend(data)
    return found


def run_cases(tables: Mapping[str, Sequence[Case]], answer: AnswerCase = answer_cluster) -> Iterator[CaseVerdict]:
    """Answer cases and compare.

    Args:
        tables: The cases by table.
        answer: Takes the name of a table and what a case gives, and returns what the case expects; by default `decide`.

    Raises:
        UsageError: A case gives no `objects`, and there is no other `answer`.

    """
    for table, cases in sorted(tables.items()):
        for case in cases:
            got, want = _select(answer(table, case["given"]), case["expect"])
            yield CaseVerdict(table, str(case.get("name", "")), tuple(_compare(_normalize(got), _normalize(want))))


def _select(got: Mapping[str, Any], want: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Leave out what Kueue's own tests do not compare: preemptions not skipped, flavors not tried."""
    kept = {name: each for name, each in want.items() if name != "skippedPreemptions" or any(each.values())}
    if "flavorAttempts" not in want:
        return dict(got), kept
    sides = got.get("flavorAttempts", {}), want["flavorAttempts"]
    shared = [{name: each for name, each in side.items() if all(name in other for other in sides)} for side in sides]
    return {**got, "flavorAttempts": shared[0]}, {**kept, "flavorAttempts": shared[1]}


def _normalize(value: Any, key: str = "") -> Any:
    """Return the same value in one notation."""
    if isinstance(value, dict):
        return {name: _normalize(each, name) for name, each in sorted(value.items())}
    if isinstance(value, list):
        items = [_normalize(each) for each in value]
        return items if key == "order" else sorted(items, key=lambda each: json.dumps(each, sort_keys=True))
    found = parse_quantity(value) if isinstance(value, str) else None
    return value if found is None else ("quantity", *_reduce(found.amount, found.power))


def _reduce(amount: int, power: int) -> tuple[int, int]:
    while amount and amount % 10 == 0:
        amount, power = amount // 10, power + 1
    return amount, power if amount else 0


def _compare(got: Any, want: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two answers differ."""
    if isinstance(got, dict) and isinstance(want, dict):
        for name in sorted({*got, *want}):
            yield from _compare(got.get(name), want.get(name), f"{path}.{name}")
    elif got != want:
        yield f"{path}: {got!r} instead of {want!r}"
