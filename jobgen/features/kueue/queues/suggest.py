"""The smallest changes of quota that admit jobs, found and verified by decisions.

Queues are raised one after the other, by name. Then each change is made as small as possible while the others stay, and
a decision with one unit less shows that it is needed. More quota can also delay a job in Kueue, so nothing is assumed
about amounts in between: the search ends where one amount admits and the next smaller one does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import gcd
from typing import NamedTuple

from jobgen.features.kueue.answers import NEVER, RUNS, WAITS, Answer, Decision, Job, decide
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.obstacles import PODS
from jobgen.features.kueue.queues.compare import split_groups
from jobgen.features.kueue.queues.comparison import SuggestedQuota, Suggestion
from jobgen.features.kueue.queues.report import explain
from jobgen.features.kueue.quota import UNLIMITED, FlavorResource, add

_MOST_WORK = 60_000
"""The number of workloads that are decided about in all, again and again: some 15 seconds."""


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
            impossible.append((answer.key, explain(answer)))
    quotas: list[SuggestedQuota] = []
    left, untried = _MOST_WORK, 0
    for group in split_groups(queued):
        keys = {each.key for job in group.jobs for each in job.workloads}
        targets = {key: answer for key, answer in wanted.items() if key in keys}
        if not targets:
            continue
        search = _Search(group, running, left)
        try:
            admitted = {each.key for each in decision.answers if each.key in keys and each.decision in RUNS}
            waiting = {each.key for each in decision.answers}
            admitted |= {each.workloads[0].key for each in queued.context.outside} - waiting
            quotas += search.find(targets, admitted)
            impossible += search.impossible
        except _StoppedError:
            untried += len(targets)
        left = search.left
    return Suggestion(tuple(quotas), tuple(sorted(impossible)), untried)


def _list_used(decision: Decision) -> Counter[_Slot]:
    """Return what queues use."""
    totals = (each for each in decision.totals if each.kind == "ClusterQueue")
    return Counter({_Slot(each.name, FlavorResource(each.flavor, each.resource)): each.used for each in totals})


class _Search:
    """Searches for the quota of the queues of some jobs, which share quota or nodes with no others."""

    def __init__(self, queued: QueuedJobs, running: frozenset[str], left: int) -> None:
        self._context, self._jobs = queued.context, queued.jobs
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
        slots = [_Slot(queue, pair) for queue in queues for pair in sorted(self._context.queues[queue].quotas)]
        raised = {slot: self._raise(slot) for slot in slots}
        most = self._decide(raised)
        fits = {each.key for each in most.answers if each.decision in RUNS}
        fits |= admitted - {each.key for each in most.answers}
        self.impossible += ((each.key, explain(each)) for each in most.answers if each.key in targets.keys() - fits)
        self._required = frozenset((targets.keys() | admitted) & fits)
        # What is used now, and what the targets use, unless other jobs take it first; else what is used if nothing
        # lacks, unless jobs then choose other flavors.
        least = _list_used(self._decide({}))
        for each in most.answers:
            if each.key in targets and each.workload:
                least.update({_Slot(each.cluster_queue, pair): used for pair, used in each.workload.usage.items()})
        for used in (least, _list_used(most), Counter(raised)):
            self._quota = {slot: used[slot] for slot in slots if used[slot] > self._find_amount(slot)}
            if self._admits(self._quota):
                break
        for queue in queues:
            rest = {slot: amount for slot, amount in self._quota.items() if slot.queue != queue}
            limits = [slot._replace(is_limit=True) for slot in slots if slot.queue == queue]
            limits = [slot for slot in limits if self._find_amount(slot) < UNLIMITED]
            tried = rest | {slot: self._raise(slot) for slot in limits}
            if limits and len(rest) < len(self._quota) and self._admits(tried):
                self._quota = tried
        is_smaller = True
        while is_smaller:
            is_smaller = sum(map(self._shrink, sorted(self._quota))) > 0
        for slot, amount in sorted(self._quota.items()):
            field = "borrowingLimit" if slot.is_limit else "nominalQuota"
            lacking = min(self._list_lacking(self._quota | {slot: amount - 1}))
            yield SuggestedQuota(slot.queue, *slot.pair, field, self._find_amount(slot), amount, lacking)

    def _find_amount(self, slot: _Slot) -> int:
        quota = self._context.queues[slot.queue].quotas[slot.pair]
        if not slot.is_limit:
            return quota.nominal
        return UNLIMITED if quota.borrowing_limit is None else quota.borrowing_limit

    def _raise(self, slot: _Slot) -> int:
        """Return an amount that is enough for all workloads together."""
        found, resource = self._find_amount(slot), slot.pair.resource
        for pod_set in (each for workload in self._workloads for each in workload.pod_sets):
            found = add(found, pod_set.count if resource == PODS else pod_set.total().get(resource, 0))
        return min(found, UNLIMITED - 1)

    def _decide(self, quota: Mapping[_Slot, int]) -> Decision:
        key = tuple(sorted(quota.items()))
        if key not in self._known:
            self.left -= len(self._workloads)
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

    def _shrink(self, slot: _Slot) -> bool:
        """Make a change smaller while the others stay, until one unit less does not admit; return True if it was."""
        low, high, before = self._find_amount(slot), self._quota[slot], self._quota
        if high - low > 1 and not self._admits(before | {slot: high - 1}):
            return False
        rest = {other: amount for other, amount in before.items() if other != slot}
        if self._admits(rest):
            self._quota = rest
            return True
        for step in (self._find_step(slot), 1):
            while high - low > step:
                # One unit less first: an amount that was found with a greater step is often the least.
                amount = high - 1 if step == 1 and high == self._quota[slot] else low + (high - low) // step // 2 * step
                amount = max(low + step, amount)
                low, high = (low, amount) if self._admits(rest | {slot: amount}) else (amount, high)
            self._quota = rest | {slot: high}
        return self._quota != before

    def _find_step(self, slot: _Slot) -> int:
        """Return the greatest unit of which all requests and quotas are multiples: decisions change only there."""
        pod_sets, resource = [each for one in self._workloads for each in one.pod_sets], slot.pair.resource
        amounts = [1 if resource == PODS else each.requests.get(resource, 0) for each in pod_sets]
        for queue in self._context.queues.values():
            amounts += (each or 0 for each in queue.quotas.get(slot.pair, ()))
        return max(1, gcd(*amounts))
