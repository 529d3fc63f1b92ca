"""What another tool says about an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from jobgen.model.named_tuple import NamedTuple

SECONDS = 30.0
"""How long a tool may take to start, and for what is expensive."""
SECONDS_PER_OBJECT = 0.2
"""How long it may take for each object in addition: many times what the largest needs."""


class Verdict(NamedTuple):
    """The result of a check by another tool."""

    status: Literal["valid", "invalid", "failed"]
    message: str = ""
    path: Sequence[str | int] = ()
    """The field at fault; empty if it is the object itself, or unknown."""


def limit_time(objects: int) -> float:
    """Return how many seconds a tool may take to check some objects."""
    return SECONDS + SECONDS_PER_OBJECT * objects
