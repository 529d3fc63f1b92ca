"""The addresses of nodes in texts, which differ from operator to operator."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from jobgen.operators.created import CreatedPod


class Hosts(NamedTuple):
    """The ranks of nodes by their addresses."""

    ranks: dict[str, int]
    pattern: re.Pattern[str] | None

    def neutralize(self, text: str) -> str:
        """Return a text with `<rank 0>` in place of the address of the node with this rank."""
        if self.pattern is None:
            return text
        return self.pattern.sub(lambda match: f"<rank {self.ranks[match[0]]}>", text)


def find_hosts(pods: Iterable[CreatedPod]) -> Hosts:
    """Collect the addresses of the nodes of a set of pods."""
    ranks = {pod.address: pod.rank for pod in pods if pod.rank is not None and pod.address}
    if not ranks:
        return Hosts(ranks, None)
    names = "|".join(map(re.escape, sorted(ranks, key=len, reverse=True)))
    return Hosts(ranks, re.compile(rf"(?<![\w.-])(?:{names})(?![\w-])"))
