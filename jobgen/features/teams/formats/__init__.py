"""The formats of `jobgen teams`: one module each, named after its format and found by listing this folder.

A module has `render`, which writes the overviews of teams.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobgen.features.teams.overview import TeamOverview


def format_names() -> list[str]:
    """Return the names of all formats."""
    names = (name.removesuffix(".py") for name in os.listdir(__path__[0]))
    return sorted(name for name in names if not name.startswith(("_", ".")))


def render(name: str, teams: Sequence[TeamOverview]) -> str:
    """Write overviews in a format. Only the module of that format is imported."""
    write: Callable[[Sequence[TeamOverview]], str] = import_module(f"{__name__}.{name}").render
    return write(teams)
