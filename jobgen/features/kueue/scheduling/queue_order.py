"""The order of one queue: which of its pending workloads is tried next."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from jobgen.features.kueue.workload.workloads import PodSet, Workload

Measure = Callable[[Workload], float]
"""How much the LocalQueue of a workload has used, for admission fair sharing."""


def order_in_queue(workload: Workload) -> tuple[int, str, str]:
    """Return the key that orders the workloads of a queue: the greatest priority, then the first that was queued."""
    return (-workload.priority, workload.timestamp, workload.uid)


Shape = tuple[Any, ...]
"""What decides how a workload is scheduled; workloads of one shape in one queue have the same fate."""


def find_shape(workload: Workload) -> Shape:
    """Return the shape of a workload."""
    return (workload.priority, *map(_describe_pods, workload.pod_sets))


_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority", "topologySpreadConstraints")


def _describe_pods(pod_set: PodSet) -> tuple[Any, ...]:
    spec = pod_set.spec
    placement = repr([spec.get(name) for name in _PLACEMENT]) if any(name in spec for name in _PLACEMENT) else ""
    exact = frozenset(pod_set.exact.items()) if pod_set.exact else None
    requests = frozenset(pod_set.requests.items())
    return (pod_set.name, pod_set.count, pod_set.min_count, requests, exact, pod_set.topology, placement)


class PendingQueue:
    """The pending workloads of one queue.

    Each LocalQueue has a heap of its own if their usage decides first; else there is one heap for all.
    """

    def __init__(self, measure: Measure | None = None) -> None:
        self._measure = measure
        self._members: dict[str, tuple[Workload, int]] = {}
        self._shapes: dict[str, Shape] = {}
        self._by_shape: dict[Shape, set[str]] = {}
        self._heaps: dict[tuple[str, str], list[tuple[tuple[int, str, str], int, str]]] = {}
        self._count = 0
        self.preemptor = ""
        """The workload that waits for its preemptions: it stays the head."""

    def __len__(self) -> int:
        """Return the number of workloads."""
        return len(self._members)

    def __iter__(self) -> Iterator[Workload]:
        """Yield the workloads in the order in which they were added."""
        return (workload for workload, _ in list(self._members.values()))

    def push(self, workload: Workload) -> None:
        """Add a workload."""
        self._count += 1
        self._members[workload.key] = workload, self._count
        self._by_shape.setdefault(self.find_shape(workload), set()).add(workload.key)
        group = (workload.namespace, workload.queue) if self._measure else ("", "")
        heapq.heappush(self._heaps.setdefault(group, []), (order_in_queue(workload), self._count, workload.key))

    def find_shape(self, workload: Workload) -> Shape:
        """Return the shape of a workload, which is computed once."""
        shape = self._shapes.get(workload.key)
        if shape is None:
            shape = self._shapes[workload.key] = find_shape(workload)
        return shape

    def peek(self) -> Workload | None:
        """Return the head, without removing it."""
        best: tuple[Any, ...] | None = None
        head: Workload | None = None
        for workload in self._list_heads():
            usage = self._measure(workload) if self._measure else 0.0
            key = (usage, workload.key != self.preemptor, order_in_queue(workload))
            if best is None or key < best:
                best, head = key, workload
        return head

    def _list_heads(self) -> Iterator[Workload]:
        """Yield what may be the head: the workload that preempts, and the first of each heap."""
        if self.preemptor in self._members:
            yield self._members[self.preemptor][0]
        for heap in self._heaps.values():
            # What was removed stays in its heap until it comes to the front.
            while heap and self._members.get(heap[0][2], (None, 0))[1] != heap[0][1]:
                heapq.heappop(heap)
            if heap:
                yield self._members[heap[0][2]][0]

    def pop(self) -> Workload | None:
        """Remove the head and return it."""
        head = self.peek()
        if head is not None:
            self.remove(head.key)
        return head

    def remove(self, key: str) -> Workload | None:
        """Remove a workload and return it."""
        found, _ = self._members.pop(key, (None, 0))
        if found is not None:
            self._by_shape[self.find_shape(found)].discard(key)
        return found

    def remove_shape(self, shape: Shape) -> list[Workload]:
        """Remove all workloads of a shape and return them."""
        removed = (self.remove(key) for key in sorted(self._by_shape.get(shape, ())))
        return [workload for workload in removed if workload is not None]
