"""The tests of CEL itself, evaluated by the API server 1.36.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance import Verdict
from conformance._cel import check_expression


def run(data: Any) -> Iterator[Verdict]:
    """Evaluate each expression."""
    for case in data["cases"]:
        agrees, said = check_expression(case["expr"], case["expect"], case.get("names", ()), case.get("vars"))
        yield Verdict(case["id"], agrees, f"{case['expr'][:200]}: expected {str(case['expect'])[:200]}, got {said}")
