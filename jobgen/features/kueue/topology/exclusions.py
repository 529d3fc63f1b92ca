"""Why nodes take no pod of a request, and the text of a failure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from jobgen.features.kueue.topology.request import Plan
from jobgen.features.kueue.topology.tree import Domain, TopologyTree


class Exclusions:
    """How many nodes are excluded, by reason."""

    def __init__(self, total: int, counts: dict[str, int] | None = None) -> None:
        self.total = total
        self.counts = dict(counts or {})

    def note(self, reason: str) -> None:
        """Count a node that is excluded."""
        self.counts[reason] = self.counts.get(reason, 0) + 1

    def __str__(self) -> str:
        if not self.counts:
            return ""
        reasons = ", ".join(sorted(f"{reason}: {number}" for reason, number in self.counts.items()))
        return f". Total nodes: {self.total}; excluded: {reasons}"


def explain_failure(name: str, fitting: int, plan: Plan, exclusions: Exclusions) -> str:
    """Say how many pods or slices a topology has room for."""
    unit = "pod(s)" if plan.slice_size == 1 else "slice(s)"
    if fitting == 0:
        return f'topology "{name}" doesn\'t allow to fit any of {plan.slices} {unit}{exclusions}'
    return f'topology "{name}" allows to fit only {fitting} out of {plan.slices} {unit}{exclusions}'


def explain_layers(name: str, tree: TopologyTree, depth: int, plan: Plan, exclusions: Exclusions) -> str:
    """Say for each layer of slices how many fit in the domain with the most room."""
    start = f'topology "{name}" doesn\'t allow to fit'
    domains = tree.by_level[depth].values()
    if not domains:
        return start
    best = min(domains, key=lambda each: (-each.slices, ",".join(each.key)))
    parts = [
        f"; {_count_slices(best, tree.levels.index(level) - depth, size)}/{plan.count // size}"
        f" slice(s) fit on level {level}"
        for level, size in plan.layers
    ]
    return f"{start}{''.join(parts)}{exclusions}"


def _count_slices(domain: Domain, depth: int, size: int) -> int:
    domains: Sequence[Domain] = [domain]
    for _ in range(depth):
        domains = list(chain.from_iterable(each.children for each in domains))
    return sum(each.pods // size for each in domains)
