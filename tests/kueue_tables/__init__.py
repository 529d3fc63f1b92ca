"""Test tables of Kueue as functions: from what a case gives to what it expects.

A case is `{"name", "given", "expect"}`, with plain objects as in YAML. Each module of this package has the tables of
one part of Kueue; to add a table, add a function to the `TABLES` of its module. Quantities in an answer are strings
that compare by value; lists of names have no order, unless the field is called `order`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Table = Callable[[Mapping[str, Any]], dict[str, Any]]

_MODULES = ("clusters", "cycle", "cycle_tas", "flavor", "placement", "preemption", "quota", "webhook", "workload")


def list_tables() -> dict[str, Table]:
    """Return all tables by name."""
    found: dict[str, Table] = {}
    for module in _MODULES:
        found |= import_module(f"{__name__}.{module}").TABLES
    return found


def answer(table: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Kueue's scheduler decides in a case of a table, as the case expects it."""
    tables = list_tables()
    if table not in tables:
        raise ValueError(f"`{table}` is not a table; the tables are {', '.join(sorted(tables))}")
    return tables[table](given)
