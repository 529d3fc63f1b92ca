"""The smallest changes of quota that admit jobs, found and verified by decisions.

Queues are raised one after the other, by name. Then each change is made as small as possible while the others stay, and
a decision with one unit less shows that it is needed. More quota can also delay a job in Kueue, so nothing is assumed
about amounts in between: the search ends where one amount admits and the next smaller one does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import gcd
from typing import NamedTuple

from jobgen.features.kueue.answers import NEVER, RUNS, WAITS, Answer, Decision, Job, decide
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.obstacles import PODS
from jobgen.features.kueue.queues.compare import group_jobs
from jobgen.features.kueue.queues.comparison import SuggestedQuota, Suggestion
from jobgen.features.kueue.quota import UNLIMITED, FlavorResource, add

_MOST_WORK = 100_000
"""The number of workloads that are decided about in all, again and again: about a minute."""


class _Slot(NamedTuple):
    """An amount of quota that can be raised."""

    queue: str
    pair: FlavorResource
    is_limit: bool = False
    """True if it is the `borrowingLimit`, not the `nominalQuota`."""


class _StoppedError(Exception):
    """The search takes too long."""


def suggest_quota(
    queued: QueuedJobs, decision: Decision, running: frozenset[str], is_wanted: Callable[[Job], bool]
) -> Suggestion:
    """Find the smallest changes of quota that admit the wanted jobs, and stop none that is admitted in `decision`."""
    wanted: dict[str, Answer] = {}
    impossible: list[tuple[str, str]] = []
    for answer in decision.answers:
        if answer.decision in RUNS or not is_wanted(answer.job):
            continue
        if answer.decision == WAITS or (
            answer.decision == NEVER and answer.obstacle and answer.obstacle.code == "quota"
        ):
            wanted[answer.key] = answer
        elif answer.decision == NEVER or answer.job.queue:
            impossible.append((answer.key, answer.reason))
    quotas: list[SuggestedQuota] = []
    left, untried = _MOST_WORK, 0
    for jobs in group_jobs(queued):
        keys = {each.key for job in jobs for each in job.workloads}
        targets = {key: answer for key, answer in wanted.items() if key in keys}
        if not targets:
            continue
        search = _Search(queued._replace(jobs=jobs), running, left)
        try:
            admitted = {each.key for each in decision.answers if each.key in keys and each.decision in RUNS}
            quotas += search.find(targets, admitted)
            impossible += search.impossible
        except _StoppedError:
            untried += len(targets)
        left = search.left
    return Suggestion(tuple(quotas), tuple(sorted(impossible)), untried)


class _Search:
    """Searches for the quota of the queues of some jobs, which share quota or nodes with no others."""

    def __init__(self, queued: QueuedJobs, running: frozenset[str], left: int) -> None:
        self._context, self._jobs = queued
        self._running = running
        self.left = left
        self.impossible: list[tuple[str, str]] = []
        self._workloads = [each for job in self._jobs for each in job.workloads]
        self._known: dict[tuple[tuple[_Slot, int], ...], Decision] = {}
        self._required: frozenset[str] = frozenset()
        self._quota: dict[_Slot, int] = {}
        """The changed quota."""

    def find(self, targets: Mapping[str, Answer], admitted: set[str]) -> Iterator[SuggestedQuota]:
        """Yield the changes that admit targets; those that no quota admits go to `impossible`."""
        queues = sorted({answer.cluster_queue for answer in targets.values()})
        raised = {slot: self._raise(slot) for queue in queues for slot in self._list_slots(queue)}
        most = {each.key: each for each in self._decide(raised).answers}
        refused = [key for key in targets if most[key].decision not in RUNS]
        self.impossible += ((key, most[key].reason) for key in refused)
        kept = {key for key in admitted if most[key].decision in RUNS}
        required: set[str] = kept
        for queue in queues:
            own = {key for key, each in targets.items() if each.cluster_queue == queue} - {*refused}
            required |= own
            self._required = frozenset(required)
            if self._admits(self._quota):
                continue
            limits = [slot for slot in self._list_slots(queue, is_limit=True) if self._find_amount(slot) is not None]
            used = {pair for key in own for pair in (most[key].workload or self._workloads[0]).usage}
            nominal = list(self._list_slots(queue))
            for slots in (limits, [slot for slot in nominal if slot.pair in used], nominal):
                tried = self._quota | {slot: self._raise(slot) for slot in slots}
                if slots and self._admits(tried):
                    self._quota = tried
                    break
            self._shrink(slot for slot in self._quota if slot.queue == queue)
        if not self._admits(self._quota):
            self._quota = {**raised}
        while self._shrink(self._quota):
            pass
        for slot, amount in sorted(self._quota.items()):
            lacking = self._list_lacking(self._quota | {slot: amount - 1})
            field = "borrowingLimit" if slot.is_limit else "nominalQuota"
            yield SuggestedQuota(slot.queue, *slot.pair, field, self._find_amount(slot) or 0, amount, min(lacking))

    def _list_slots(self, queue: str, *, is_limit: bool = False) -> Iterator[_Slot]:
        yield from (_Slot(queue, pair, is_limit) for pair in sorted(self._context.queues[queue].quotas))

    def _find_amount(self, slot: _Slot) -> int | None:
        quota = self._context.queues[slot.queue].quotas[slot.pair]
        return quota.borrowing_limit if slot.is_limit else quota.nominal

    def _raise(self, slot: _Slot) -> int:
        """Return an amount that is enough for all workloads together."""
        found = max(0, self._find_amount(slot) or 0)
        for pod_set in (each for workload in self._workloads for each in workload.pod_sets):
            resource = slot.pair.resource
            found = add(found, pod_set.count if resource == PODS else pod_set.total().get(resource, 0))
        return min(found, UNLIMITED - 1)

    def _decide(self, quota: Mapping[_Slot, int]) -> Decision:
        key = tuple(sorted(quota.items()))
        if key not in self._known:
            self.left -= len(self._workloads) + len(self._context.queues)
            if self.left < 0:
                raise _StoppedError
            queues = dict(self._context.queues)
            for slot, amount in quota.items():
                queue = queues[slot.queue]
                changed = {"borrowing_limit" if slot.is_limit else "nominal": amount}
                quotas = {**queue.quotas, slot.pair: queue.quotas[slot.pair]._replace(**changed)}
                queues[slot.queue] = queue._replace(quotas=quotas)
            self._known[key] = decide(self._context.replace_queues(queues), self._jobs, self._running)
        return self._known[key]

    def _list_lacking(self, quota: Mapping[_Slot, int]) -> list[str]:
        answers = self._decide(quota).answers
        return [each.key for each in answers if each.key in self._required and each.decision not in RUNS]

    def _admits(self, quota: Mapping[_Slot, int]) -> bool:
        return not self._list_lacking(quota)

    def _shrink(self, slots: Iterable[_Slot]) -> bool:
        """Make changes as small as possible, each while the others stay; return True if one became smaller."""
        is_smaller = False
        for slot in sorted(slots):
            before = self._quota[slot]
            rest = {other: amount for other, amount in self._quota.items() if other != slot}
            after = None if self._admits(rest) else self._find_least(slot, rest)
            self._quota = rest if after is None else rest | {slot: after}
            is_smaller = is_smaller or after != before
        return is_smaller

    def _find_least(self, slot: _Slot, rest: Mapping[_Slot, int]) -> int:
        """Return an amount that admits, although one unit less does not."""
        low, high = self._find_amount(slot) or 0, self._quota[slot]
        totals = self._decide(self._quota).totals

        def bisect(amount: int) -> None:
            nonlocal low, high
            if low < amount < high:
                low, high = (low, amount) if self._admits({**rest, slot: amount}) else (amount, high)

        for each in totals:
            # What the queue uses in the end is often what it needs.
            if each[:4] == ("ClusterQueue", slot.queue, *slot.pair):
                bisect(each.used)
        for step in (self._find_step(slot), 1):
            bisect(high - step)
            while high - low > step:
                bisect(low + max(1, (high - low) // step // 2) * step)
        return high

    def _find_step(self, slot: _Slot) -> int:
        """Return the greatest unit of which all requests and quotas are multiples: decisions change only there."""
        resource = slot.pair.resource
        amounts = [
            1 if resource == PODS else each.requests.get(resource, 0) for w in self._workloads for each in w.pod_sets
        ]
        for queue in self._context.queues.values():
            amounts += (each or 0 for each in queue.quotas.get(slot.pair, ()))
        return max(1, gcd(*amounts))
