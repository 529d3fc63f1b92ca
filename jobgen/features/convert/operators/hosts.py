"""The addresses of nodes in texts, which differ from operator to operator."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jobgen.features.convert.operators.created import CreatedPod
from jobgen.model.named_tuple import NamedTuple


class Hosts(NamedTuple):
    """The ranks of nodes by their addresses."""

    ranks: dict[str, int]

    def neutralize(self, text: str) -> str:
        """Return a text with `<rank 0>` in place of the address of the node with this rank."""
        found = [address for address in self.ranks if address in text]
        if not found:
            return text
        names = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
        return re.sub(rf"(?<![\w.-])(?:{names})(?![\w-])", lambda match: f"<rank {self.ranks[match[0]]}>", text)


def find_hosts(pods: Iterable[CreatedPod]) -> Hosts:
    """Collect the addresses of the nodes of a set of pods."""
    return Hosts({pod.address: pod.rank for pod in pods if pod.rank is not None and pod.address})
