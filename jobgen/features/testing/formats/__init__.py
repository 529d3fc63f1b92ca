"""The formats of `jobgen test`: one module each, named after its format and found by listing this folder.

A module has `render`, which writes the outcomes of tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobgen.features.testing.evaluate import Outcome
    from jobgen.model.finding import Finding
    from jobgen.report.shard_part import ShardPart


def format_names() -> list[str]:
    """Return the names of all formats."""
    names = (name.removesuffix(".py") for name in os.listdir(__path__[0]))
    return sorted(name for name in names if not name.startswith(("_", ".")))


def render(
    name: str, outcomes: Sequence[Outcome], errors: Sequence[Finding] = (), shard: ShardPart | None = None
) -> str:
    """Write outcomes in a format, and the errors that kept tests from running. Only its module is imported."""
    write: Callable[[Sequence[Outcome], Sequence[Finding], ShardPart | None], str]
    write = import_module(f"{__name__}.{name}").render
    return write(outcomes, errors, shard)
