"""The formats of `jobgen queue`: one module each, named after its format and found by listing this folder.

A module has `render`, which writes the reports of environments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobgen.features.kueue.queues.report import EnvironmentReport


def format_names() -> list[str]:
    """Return the names of all formats."""
    names = (name.removesuffix(".py") for name in os.listdir(__path__[0]))
    return sorted(name for name in names if not name.startswith(("_", ".")))


def render(name: str, reports: Sequence[EnvironmentReport]) -> str:
    """Write reports in a format. Only the module of that format is imported."""
    write: Callable[[Sequence[EnvironmentReport]], str] = import_module(f"{__name__}.{name}").render
    return write(reports)
