"""Shares of a run: which of several machines processes which file."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from jobgen.model.named_tuple import NamedTuple

MAX_SHARDS = 256
"""As many jobs as GitHub starts for a matrix; GitLab starts 200."""
_BYTES_PER_FILE = 500
"""What a file costs besides its text, in bytes of text."""


class InvalidShardError(ValueError):
    """A text does not name a shard; the message gives the reason."""


class Shard(NamedTuple):
    """One of several shares, counted from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"shard {self.number} of {self.total}"

    @property
    def is_first(self) -> bool:
        """Return True if it compares the files of all shards with each other."""
        return self.number == 1

    @property
    def is_part(self) -> bool:
        """Return True if there are others."""
        return self.total > 1

    def select(self, sizes: Iterable[tuple[str, int]], shared: float = 0.0) -> frozenset[str]:
        """Return the names of this shard's files. Every machine with the same files gets the same answer.

        The largest file goes first, each to the shard with the least work. `shared` is the work of the first shard with
        the files of others, as a part of all work.
        """
        costs = {name: size + _BYTES_PER_FILE for name, size in sizes}
        loads = [(0.0, index) for index in range(1, self.total + 1)]
        loads[0] = (shared * sum(costs.values()) if self.is_part else 0.0, 1)
        heapq.heapify(loads)
        own = []
        for name, cost in sorted(costs.items(), key=lambda item: (-item[1], item[0])):
            load, index = loads[0]
            heapq.heapreplace(loads, (load + cost, index))
            if index == self.number:
                own.append(name)
        return frozenset(own)


def parse_shard(text: str) -> Shard:
    """Return the shard that a text such as `2/4` names; raise InvalidShardError if it names none."""
    index, slash, count = text.partition("/")
    digits = len(str(MAX_SHARDS))
    if not (slash and all(part.isascii() and part.isdigit() and len(part) <= digits for part in (index, count))):
        raise InvalidShardError(
            f"`{text[:40]}` is not a shard; write `1/4` for the first of four, of at most {MAX_SHARDS}"
        )
    shard = Shard(int(index), int(count))
    if not 1 <= shard.total <= MAX_SHARDS:
        raise InvalidShardError(f"`{text}` has {shard.total} shards; write 1 to {MAX_SHARDS}")
    if not 1 <= shard.number <= shard.total:
        raise InvalidShardError(f"there is no shard {shard.number} of {shard.total}; shards are counted from 1")
    return shard
