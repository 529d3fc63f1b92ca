"""The names of time zones that Kubernetes knows."""

from __future__ import annotations

from functools import cache
from pathlib import Path


def is_time_zone(name: str) -> bool:
    """Return whether a name is in the IANA database, with the case of its letters."""
    return name in list_time_zones()


@cache
def list_time_zones() -> frozenset[str]:
    """Return the names of the IANA database, also those that are links to others."""
    text = (Path(__file__).parents[2] / "data" / "time_zones.txt").read_text(encoding="utf-8")
    return frozenset(text.split())
