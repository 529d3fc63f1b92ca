"""The test tables of Kueue 0.19.2, and random clusters that its own code decided about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kueue_tables import answer

from conformance import Verdict
from jobgen.kueue import run_cases


def run(data: Any) -> Iterator[Verdict]:
    """Answer each case."""
    for each in run_cases(data, answer):
        yield Verdict(f"{each.table}/{each.name}", not each.differences, "; ".join(each.differences), each.table)
