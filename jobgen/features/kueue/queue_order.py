"""The order of workloads: within a queue, and of the heads of all queues in a cycle."""

from __future__ import annotations

from bisect import bisect
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


_Place = tuple[tuple[int, str, str], int, Workload, int]
"""Where a workload stands in its queue: the key of the order, a number of its own, the workload, its shape."""


class _Line:
    """Workloads in their order."""

    __slots__ = ("at", "places")

    def __init__(self) -> None:
        self.places: list[_Place] = []
        self.at = 0
        """All before it are parked."""


class PendingQueue:
    """The workloads that wait in one queue. Those that are parked keep their place, but are not tried.

    Each LocalQueue has a line of its own if their usage decides first; else there is one line for all.
    """

    def __init__(self, measure: Measure | None = None) -> None:
        self._measure = measure
        self._places: dict[str, _Place] = {}
        self._lines: dict[tuple[str, str], _Line] = {}
        self._shapes: dict[Shape, int] = {}
        self._shape_of: dict[str, int] = {}
        self._count = 0
        self._held: set[str] = set()
        self._parked: set[str] = set()
        self._tried: dict[int, str] = {}
        self.preemptor = ""
        """The workload that waits for its preemptions: it stays the head."""

    def __len__(self) -> int:
        """Return the number of workloads that are not parked."""
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Workload]:
        """Yield the workloads that are not parked, in their order."""
        return (place[2] for line in self._lines.values() for place in list(line.places) if not self._is_parked(place))

    def list_parked(self) -> list[Workload]:
        """Return the workloads that are parked, in their order."""
        return [place[2] for line in self._lines.values() for place in line.places if self._is_parked(place)]

    def list_all(self) -> list[Workload]:
        """Return all workloads, in the order in which they were added."""
        return [place[2] for place in self._places.values()]

    def push(self, workload: Workload, *, is_held: bool = False) -> None:
        """Add a workload; one that `is_held` stays parked until it is removed."""
        self.remove(workload.key)
        self._count += 1
        place = order_in_queue(workload), self._count, workload, self.find_shape(workload)
        self._places[workload.key] = place
        line = self._find_line(workload)
        at = bisect(line.places, place)
        line.places.insert(at, place)
        line.at = min(line.at, at)
        if is_held:
            self._held.add(workload.key)

    def find_shape(self, workload: Workload) -> int:
        """Return the number of the shape of a workload, which is computed once."""
        number = self._shape_of.get(workload.key)
        if number is None:
            number = self._shapes.setdefault(find_shape(workload), len(self._shapes))
            self._shape_of[workload.key] = number
        return number

    def peek(self) -> Workload | None:
        """Return the head: the workload that preempts, or the first that is not parked."""
        heads: list[Workload] = []
        for line in self._lines.values():
            places, at = line.places, line.at
            while at < len(places) and self._is_parked(places[at]):
                at += 1
            line.at = at
            if at < len(places):
                heads.append(places[at][2])
        if not heads:
            return None
        preemptor = self._places.get(self.preemptor) if self.preemptor else None
        if preemptor is not None and not self._is_parked(preemptor):
            heads.append(preemptor[2])
        if self._measure is None:
            return heads[-1]
        measure = self._measure
        return min(heads, key=lambda each: (measure(each), each.key != self.preemptor, order_in_queue(each)))

    def remove(self, key: str) -> None:
        """Remove a workload."""
        place = self._places.pop(key, None)
        if place is not None:
            line = self._find_line(place[2])
            at = bisect(line.places, place) - 1
            del line.places[at]
            line.at -= at < line.at
            self._held.discard(key)
            self._parked.discard(key)

    def park(self, workload: Workload, *, with_shape: bool = False) -> None:
        """Keep a workload from being tried; or all of its shape, also those that are added later."""
        if with_shape:
            self._tried[self.find_shape(workload)] = workload.key
        else:
            self._parked.add(workload.key)

    def retry(self) -> None:
        """Let all be tried again that were parked."""
        self._parked.clear()
        self._tried.clear()
        for line in self._lines.values():
            line.at = 0

    def find_tried(self, workload: Workload) -> str:
        """Return the workload of the same shape that was tried instead, by key; empty if there is none."""
        place = self._places.get(workload.key)
        tried = self._tried.get(place[3], "") if place else ""
        return "" if tried == workload.key else tried

    def list_shape(self, workload: Workload) -> list[Workload]:
        """Return the other workloads of the same shape."""
        shape = self.find_shape(workload)
        return [place[2] for place in self._places.values() if place[3] == shape and place[2].key != workload.key]

    def _find_line(self, workload: Workload) -> _Line:
        group = (workload.namespace, workload.queue) if self._measure else ("", "")
        line = self._lines.get(group)
        if line is None:
            line = self._lines[group] = _Line()
        return line

    def _is_parked(self, place: _Place) -> bool:
        key = place[2].key
        return place[3] in self._tried or key in self._parked or key in self._held


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
