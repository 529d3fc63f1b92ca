"""The order of workloads: within a queue, and of the heads of all queues in a cycle."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from jobgen.features.kueue.assignment import Assignment
from jobgen.features.kueue.cluster_objects import DEFAULT_GATES, Gates
from jobgen.features.kueue.preemption import Target
from jobgen.features.kueue.quota import QuotaNode, Usage, compute_share
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.workloads import Workload

Measure = Callable[[Workload], float]
"""How much the LocalQueue of a workload has used, for admission fair sharing."""


def order_in_queue(workload: Workload) -> tuple[int, str, str]:
    """Return the key that orders the workloads of a queue: the greatest priority, then the first that was queued."""
    return (-workload.priority, workload.timestamp, workload.uid)


Shape = tuple[Any, ...]
"""What decides how a workload is scheduled; workloads of one shape in one queue have the same fate."""


def find_shape(workload: Workload) -> Shape:
    """Return the shape of a workload."""
    shape: list[Any] = [workload.priority]
    for each in workload.pod_sets:
        spec = each.spec
        placement = repr([spec.get(name) for name in _PLACEMENT]) if any(name in spec for name in _PLACEMENT) else ""
        exact = frozenset(each.exact.items()) if each.exact else None
        requests = frozenset(each.requests.items())
        shape.append((each.name, each.count, each.min_count, requests, exact, each.topology, placement))
    return tuple(shape)


_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority", "topologySpreadConstraints")


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
        # The workload that preempts, and the first of each heap.
        heads = [self._members[self.preemptor][0]] if self.preemptor in self._members else []
        for heap in self._heaps.values():
            # What was removed stays in its heap until it comes to the front.
            while heap and self._members.get(heap[0][2], (None, 0))[1] != heap[0][1]:
                heapq.heappop(heap)
            if heap:
                heads.append(self._members[heap[0][2]][0])

        def order(workload: Workload) -> tuple[Any, ...]:
            usage = self._measure(workload) if self._measure else 0.0
            return usage, workload.key != self.preemptor, order_in_queue(workload)

        return min(heads, key=order, default=None)

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


class Entry:
    """The head of a queue in one cycle, and the flavors and targets that it would get."""

    __slots__ = ("assignment", "is_preemptor", "mode", "queue", "targets", "usage", "workload")

    def __init__(
        self,
        workload: Workload,
        queue: str,
        assignment: Assignment,
        targets: list[Target],
        *,
        is_preemptor: bool = False,
    ) -> None:
        self.workload = workload
        self.queue = queue
        self.is_preemptor = is_preemptor
        self.record(assignment, targets)

    def record(self, assignment: Assignment, targets: list[Target]) -> None:
        """Set the flavors and the targets."""
        self.assignment = assignment
        self.mode = assignment.mode
        self.targets = targets
        self.usage: Usage = {} if self.workload.reserved else assignment.usage
        """What it would use more than now."""


def order_classically(entries: Iterable[Entry], gates: Gates = DEFAULT_GATES) -> list[Entry]:
    """Order entries: those that borrow less first, then by priority and time."""
    return sorted(
        entries,
        key=lambda entry: order_entry(entry.workload, entry.assignment.level, gates, is_preemptor=entry.is_preemptor),
    )


def order_entry(workload: Workload, level: int, gates: Gates, *, is_preemptor: bool = False) -> tuple[Any, ...]:
    """Return the key of a workload that borrows at a level."""
    return (
        not workload.reserved,
        not (gates.prefers_preemptors and is_preemptor),
        level,
        -workload.priority if gates.sorts_by_priority else 0,
        workload.timestamp,
    )


_Measured = tuple[tuple[Any, ...], Entry]
"""The key of an entry at a queue or cohort, and the entry."""


class FairOrder:
    """The order of fair sharing: at each cohort, the entry whose side has the least share comes first.

    The share of a queue changes only when its own entry is processed, so the entries of the queues of a cohort are
    sorted once. The share of a cohort changes only with the entries below it, so the first of a cohort is kept until
    then.
    """

    def __init__(self, entries: Sequence[Entry], snapshot: Snapshot, gates: Gates = DEFAULT_GATES) -> None:
        self._snapshot = snapshot
        self._gates = gates
        self._alone: list[Entry] = []
        self._roots: dict[int, QuotaNode] = {}
        self._sorted: dict[int, list[_Measured]] = {}
        self._cohorts: dict[int, list[QuotaNode]] = {}
        self._first: dict[int, _Measured | None] = {}
        for entry in entries:
            node = snapshot.nodes[entry.queue]
            if node.parent is None:
                self._alone.append(entry)
                continue
            self._roots[id(node.root)] = node.root
            self._sorted.setdefault(id(node.parent), []).append((self._measure(node, entry), entry))
            for cohort in node.list_ancestors():
                self._sorted.setdefault(id(cohort), [])
                if id(cohort) not in self._cohorts:
                    self._cohorts[id(cohort)] = [child for child in cohort.children if not child.is_queue]
        for several in self._sorted.values():
            # The first is taken from the end.
            several.sort(key=lambda pair: pair[0])
            several.reverse()

    def __iter__(self) -> Iterator[Entry]:
        """Yield entries; the caller adds the usage of each before it asks for the next."""
        yield from self._alone
        for root in self._roots.values():
            cohorts = [each for each in root.list_below() if id(each) in self._cohorts]
            cohorts.reverse()
            while True:
                # The cohorts to compare again, from below.
                for cohort in cohorts:
                    if cohort is not root:
                        self._find_first(cohort)
                best = self._run(root)
                if best is None:
                    break
                _, entry = best
                cohorts = list(self._snapshot.nodes[entry.queue].list_ancestors())
                self._sorted[id(cohorts[0])].pop()
                for cohort in cohorts:
                    self._first.pop(id(cohort), None)
                yield entry

    def _run(self, cohort: QuotaNode) -> _Measured | None:
        """Return the entry of a cohort that comes first, as it compares to the others of the cohort."""
        best: _Measured | None = None
        for child in self._cohorts.get(id(cohort), ()):
            found = self._find_first(child)
            if found is not None and (best is None or found[0] < best[0]):
                best = found
        several = self._sorted.get(id(cohort))
        if several and (best is None or several[-1][0] < best[0]):
            return several[-1]
        return best

    def _find_first(self, cohort: QuotaNode) -> _Measured | None:
        """Return the first entry of a cohort, as it compares to those of the cohorts and queues beside it."""
        if id(cohort) not in self._first:
            found = self._run(cohort)
            self._first[id(cohort)] = (self._measure(cohort, found[1]), found[1]) if found else None
        return self._first[id(cohort)]

    def _measure(self, node: QuotaNode, entry: Entry) -> tuple[Any, ...]:
        """Return the key of an entry at a queue or cohort, whose share includes the entry."""
        self._snapshot.add_usage(entry.queue, entry.usage)
        share = compute_share(node)
        self._snapshot.remove_usage(entry.queue, entry.usage)
        return (
            not (self._gates.prefers_preemptors and entry.is_preemptor),
            self._gates.prefers_non_borrowing and share.borrows_any(entry.usage),
            share.order,
            -entry.workload.priority if self._gates.sorts_by_priority else 0,
            entry.workload.timestamp,
        )
