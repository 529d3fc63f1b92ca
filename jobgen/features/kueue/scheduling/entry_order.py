"""The order of a cycle: the heads of all queues, one after the other, against what the ones before leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jobgen.features.kueue.assign.assignment import Assignment
from jobgen.features.kueue.preemption import Target
from jobgen.features.kueue.quota import QuotaNode, Share, Usage, compute_share
from jobgen.features.kueue.scheduling.snapshot import Snapshot
from jobgen.features.kueue.version.gates import DEFAULT_GATES, Gates
from jobgen.features.kueue.workload.workloads import Workload


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
            self._insert(entry)
        for several in self._sorted.values():
            # The first is taken from the end.
            several.sort(key=lambda pair: pair[0])
            several.reverse()

    def _insert(self, entry: Entry) -> None:
        node = self._snapshot.nodes[entry.queue]
        if node.parent is None:
            self._alone.append(entry)
            return
        self._roots[id(node.root)] = node.root
        self._sorted.setdefault(id(node.parent), []).append((self._measure(node, entry), entry))
        for cohort in node.list_ancestors():
            self._sorted.setdefault(id(cohort), [])
            if id(cohort) not in self._cohorts:
                self._cohorts[id(cohort)] = [child for child in cohort.children if not child.is_queue]

    def __iter__(self) -> Iterator[Entry]:
        """Yield entries; the caller adds the usage of each before it asks for the next."""
        yield from self._alone
        for root in self._roots.values():
            cohorts = [each for each in root.list_below() if id(each) in self._cohorts]
            cohorts.reverse()
            while (best := self._find_best(root, cohorts)) is not None:
                _, entry = best
                cohorts = list(self._snapshot.nodes[entry.queue].list_ancestors())
                self._sorted[id(cohorts[0])].pop()
                for cohort in cohorts:
                    self._first.pop(id(cohort), None)
                yield entry

    def _find_best(self, root: QuotaNode, changed: Sequence[QuotaNode]) -> _Measured | None:
        """Return the entry of a tree that comes first; `changed` are the cohorts to compare again, from below."""
        for cohort in changed:
            if cohort is not root:
                self._find_first(cohort)
        return self._run(root)

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
            *_order_share(share),
            -entry.workload.priority if self._gates.sorts_by_priority else 0,
            entry.workload.timestamp,
        )


def _order_share(share: Share) -> tuple[bool, float]:
    """The key of a share: infinite ones come last, and compare by their ratio."""
    return (True, share.ratio) if share.is_infinite else (False, share.precise)
