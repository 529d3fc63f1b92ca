"""How much a document may hold before it is refused: Kubernetes' limits, and tighter ones of our own."""

from __future__ import annotations

MAX_BYTES = 8 * 1024 * 1024
"""A file larger than this is not read: the API server takes objects of at most 3 MiB."""

MAX_DEPTH = 200
"""Nesting beyond this is refused: pods are less than twenty levels deep."""

MAX_NODES = 1_000_000
"""Nodes after aliases are expanded."""

MAX_FAULTS = 100
"""Findings about one file before the rest of it is left alone."""

TOO_MANY_FAULTS = f"there are more than {MAX_FAULTS} faults; the rest is not looked at"


def alias_share_allowed(nodes: int) -> float:
    """The share of aliased nodes that Go's decoder takes, falling from 99 % to 10 % as documents grow."""
    low, high = 400_000, 4_000_000
    if nodes <= low:
        return 0.99
    if nodes >= high:
        return 0.10
    return 0.99 - 0.89 * (nodes - low) / (high - low)
