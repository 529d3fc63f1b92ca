"""Partial admission: the largest numbers of pods that fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jobgen.features.kueue.workload.workloads import PodSet


def search_counts(
    pod_sets: Sequence[PodSet], fits: Callable[[Sequence[int]], Any | None]
) -> tuple[tuple[int, ...], Any] | None:
    """Search the largest numbers of pods that fit, between `min_count` and `count` of each pod set."""
    deltas = [
        pod_set.count - (pod_set.count if pod_set.min_count is None else pod_set.min_count) for pod_set in pod_sets
    ]
    total = sum(deltas)
    if not total:
        return None

    def scale(step: int) -> tuple[int, ...]:
        pairs = zip(pod_sets, deltas, strict=True)
        return tuple(pod_set.count - delta * step // total for pod_set, delta in pairs)

    low, high, found = 0, total, None
    while low <= high:
        middle = (low + high) // 2
        result = fits(scale(middle))
        if result is not None:
            found, high = (scale(middle), result), middle - 1
        else:
            low = middle + 1
    return found
