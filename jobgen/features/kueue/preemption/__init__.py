"""Preemption: which admitted workloads are evicted so that another one fits."""

from __future__ import annotations

from jobgen.features.kueue.preemption.candidates import (
    DEFAULT_STRATEGIES,
    FAIR_SHARING,
    IN_QUEUE,
    RECLAIM,
    WHILE_BORROWING,
    Placement,
    Preemptor,
    Rules,
    Target,
)
from jobgen.features.kueue.preemption.classical import find_classical_targets
from jobgen.features.kueue.preemption.fair import find_fair_targets
from jobgen.features.kueue.scheduling.snapshot import Snapshot

__all__ = [
    "DEFAULT_STRATEGIES",
    "FAIR_SHARING",
    "IN_QUEUE",
    "RECLAIM",
    "WHILE_BORROWING",
    "Placement",
    "Preemptor",
    "Rules",
    "Target",
    "find_targets",
]


def find_targets(
    preemptor: Preemptor, snapshot: Snapshot, rules: Rules, can_place: Placement = lambda: True
) -> list[Target]:
    """Return the workloads to evict, none if no allowed set of them makes enough room. The snapshot is unchanged."""
    find = find_fair_targets if rules.is_fair else find_classical_targets
    with snapshot.keep_version((preemptor.queue,)):
        return find(preemptor, snapshot, rules, can_place)
