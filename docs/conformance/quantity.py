"""The function resource.ParseQuantity of Kubernetes 1.36.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance import Verdict
from jobgen.model.quantity import canonicalize_quantity


def run(data: Any) -> Iterator[Verdict]:
    """Compare canonical forms."""
    for case in data["cases"]:
        found = canonicalize_quantity(case["text"])
        yield Verdict(
            case["id"], found == case["expect"], f"{case['text']!r}: expected {case['expect']!r}, got {found!r}"
        )
