"""The second pass: workloads that have quota, but whose pods still need a place.

Pods are placed after their nodes have been provisioned, and again when a node has failed.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from jobgen.features.kueue.workload.workloads import Workload


class SecondPass:
    """Workloads that need a place, beside the queues of those that need quota."""

    def __init__(self) -> None:
        self.ready: dict[str, Workload] = {}
        """Workloads that are tried in the next cycle, by key."""
        self.failed: dict[str, Workload] = {}
        """Workloads that found no place, and wait for a change."""

    def add(self, workload: Workload) -> None:
        """Add a workload if its pods need a place."""
        if workload.needs_second_pass:
            self.ready[workload.key] = workload

    def take(self, busy: AbstractSet[str] = frozenset()) -> list[tuple[Workload, str]]:
        """Take the workloads of a cycle, with their queues; those of queues that are busy wait for the next cycle."""
        taken = [(each, each.cluster_queue) for each in self.ready.values() if each.cluster_queue not in busy]
        for workload, _ in taken:
            del self.ready[workload.key]
        return taken

    def put_aside(self, workload: Workload) -> None:
        """Keep a workload that found no place."""
        self.failed[workload.key] = workload

    def retry(self) -> None:
        """Try again what found no place."""
        self.ready |= self.failed
        self.failed.clear()

    def forget(self, key: str) -> None:
        """Remove a workload."""
        self.ready.pop(key, None)
        self.failed.pop(key, None)
