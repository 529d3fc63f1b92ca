"""The smallest changes of quota that admit jobs, found and verified by decisions.

Queues are raised one after the other, by name; a cohort instead of a queue that has only what its cohort has; and of
flavors and worker clusters, those that need the least: all changes are tried if they are few. Then each change is made
as small as possible while the others stay, and a decision with one unit less shows that it is needed. More quota can
also delay a job in Kueue, so nothing is assumed about amounts in between: the search ends where one amount admits and
the next smaller one does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from math import gcd, prod

from jobgen.features.kueue.admission_context import AdmissionContext
from jobgen.features.kueue.answers import NEVER, RUNS, WAITS, Answer, Decision, Job, decide
from jobgen.features.kueue.job_workloads import QueuedJobs
from jobgen.features.kueue.multikueue import Dispatcher, Worker
from jobgen.features.kueue.objects import ClusterQueue, Cohort
from jobgen.features.kueue.obstacles import PODS
from jobgen.features.kueue.queues.compare import split_groups
from jobgen.features.kueue.queues.comparison import SuggestedQuota, Suggestion
from jobgen.features.kueue.queues.report import explain
from jobgen.features.kueue.quota import UNLIMITED, FlavorResource, add
from jobgen.features.kueue.workloads import Workload
from jobgen.k8s.devices import is_device
from jobgen.model.named_tuple import NamedTuple

_MOST_WORK = 60_000
"""The number of workloads that are decided about in all, again and again: some 15 seconds."""


_MOST_CHOICES = 32
"""The number of choices of flavors that are tried."""
_MOST_PLACES = 32
"""The number of amounts of quota that are changed together."""
_MOST_CHANGES = 2000
"""The number of changes that are tried one by one."""


class _Slot(NamedTuple):
    """An amount of quota that can be raised."""

    queue: str
    pair: FlavorResource
    is_limit: bool = False
    """True if it is the `borrowingLimit`, not the `nominalQuota`."""
    is_cohort: bool = False
    cluster: str = ""
    """The worker cluster of MultiKueue that has the queue."""


class _StoppedError(Exception):
    """The search takes too long."""


def suggest_quota(
    queued: QueuedJobs,
    decision: Decision,
    running: frozenset[str],
    is_wanted: Callable[[Job], bool],
    most_work: int | None = None,
) -> Suggestion:
    """Find the smallest changes of quota that admit the wanted jobs, and stop none that is admitted in `decision`."""
    wanted: dict[str, Answer] = {}
    impossible: list[tuple[str, str]] = []
    for answer in decision.answers:
        if answer.decision in RUNS or not is_wanted(answer.job):
            continue
        if answer.decision == WAITS or (
            answer.decision == NEVER and answer.obstacle and answer.obstacle.code in ("quota", "cluster")
        ):
            wanted[answer.key] = answer
        elif answer.decision == NEVER or answer.job.queue:
            impossible.append((answer.key, _explain(answer)))
    quotas: list[SuggestedQuota] = []
    left, untried = _MOST_WORK if most_work is None else most_work, 0
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


def _explain(answer: Answer) -> str:
    """Return why no quota admits a workload, also what worker clusters say."""
    return "; ".join((explain(answer), *(f"worker cluster `{each.name}`: {each.reason}" for each in answer.clusters)))


def _list_used(decision: Decision) -> Counter[_Slot]:
    """Return what queues use."""
    totals = (*(("", each) for each in decision.totals), *decision.cluster_totals)
    return Counter(
        {
            _Slot(each.name, FlavorResource(each.flavor, each.resource), cluster=cluster): each.used
            for cluster, each in totals
            if each.kind == "ClusterQueue"
        }
    )


_Quota = Mapping[_Slot, int]


def _list_choices(slots: Sequence[_Slot]) -> Iterator[list[_Slot]]:
    """Yield the quota of one flavor in each queue, for all choices if they are few, else of one flavor in all."""
    flavors: dict[tuple[str, bool, str], list[str]] = {}
    for slot in slots:
        known = flavors.setdefault((slot.cluster, slot.is_cohort, slot.queue), [])
        known += [slot.pair.flavor] if slot.pair.flavor not in known else []
    if all(len(each) == 1 for each in flavors.values()):
        return
    if prod(map(len, flavors.values())) <= _MOST_CHOICES:
        choices = [dict(zip(flavors, some, strict=True)) for some in product(*flavors.values())]
    else:
        names = dict.fromkeys(name for each in flavors.values() for name in each)
        choices = [dict.fromkeys(flavors, name) for name in names]
    for choice in choices:
        yield [slot for slot in slots if choice[slot.cluster, slot.is_cohort, slot.queue] == slot.pair.flavor]


def _list_sums(units: int, places: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to give some places so many units together."""
    if places == 1:
        yield (units,)
        return
    for first in range(units + 1):
        yield from ((first, *rest) for rest in _list_sums(units - first, places - 1))


class _Search:
    """Searches for the quota of the queues of some jobs, which share quota or nodes with no others."""

    def __init__(self, queued: QueuedJobs, running: frozenset[str], left: int) -> None:
        self._context, self._jobs = queued.context, queued.jobs
        self._running = running
        self.left = left
        self._reserve = 0
        """How much is left for what must be done after a search that may stop."""
        self.impossible: list[tuple[str, str]] = []
        self._workloads = [each for job in self._jobs for each in job.workloads]
        dispatcher = queued.context.dispatcher
        self._dispatcher = dispatcher if isinstance(dispatcher, Dispatcher) else None
        found = self._dispatcher
        self._workers = {name: each for name, each in found.workers.items() if name not in found.lost} if found else {}
        self._known: dict[tuple[tuple[_Slot, int], ...], Decision] = {}
        self._required: frozenset[str] = frozenset()
        self._quota: dict[_Slot, int] = {}
        """The changed quota."""

    def find(self, targets: Mapping[str, Answer], admitted: set[str]) -> Iterator[SuggestedQuota]:
        """Yield the changes that admit targets; those that no quota admits go to `impossible`."""
        queues = sorted({answer.cluster_queue for answer in targets.values()})
        slots = [_Slot(queue, pair) for queue in queues for pair in sorted(self._context.queues[queue].quotas)]
        sent = [each for each in targets.values() if self._context.find_remote_check(each.cluster_queue) is not None]
        remote = {name: sorted(self._list_slots(name, sent)) for name in self._workers}
        every = [*slots, *(slot for several in remote.values() for slot in several)]
        most = self._decide({slot: self._raise(slot) for slot in every})
        fits = {each.key for each in most.answers if each.decision in RUNS}
        fits |= admitted - {each.key for each in most.answers}
        self.impossible += ((each.key, _explain(each)) for each in most.answers if each.key in targets.keys() - fits)
        self._required = frozenset((targets.keys() | admitted) & fits)
        if not self._required & targets.keys():
            return
        shared = sorted({self._find_cohort(slot) or slot for slot in slots})
        others = {*every} - {*slots}
        if shared != sorted(slots) and self._admits({slot: self._raise(slot) for slot in {*shared, *others}}):
            slots = shared
        # One worker cluster is enough for many jobs; all of them, if it is not.
        options = [self._find_smallest([*slots, *several], targets) for several in remote.values()]
        found = [each for each in options if each is not None]
        if not found:
            every = [*slots, *(each for several in remote.values() for each in several)]
            found = [self._find_smallest(every, targets) or {}]
        self._quota = min(found, key=self._measure)
        for slot, amount in sorted(self._quota.items()):
            field = "borrowingLimit" if slot.is_limit else "nominalQuota"
            lacking = min(self._list_lacking(self._quota | {slot: amount - 1}))
            kind, before = "Cohort" if slot.is_cohort else "ClusterQueue", self._find_amount(slot)
            yield SuggestedQuota(slot.queue, *slot.pair, field, before, amount, lacking, kind, slot.cluster)

    def _list_slots(self, cluster: str, sent: Sequence[Answer]) -> set[_Slot]:
        """Return the quota of the queues in a worker cluster that some workloads are sent to."""
        context = self._workers[cluster].context
        names = {context.find_cluster_queue(each.workload) for each in sent if each.workload} & context.queues.keys()
        return {_Slot(name, pair, cluster=cluster) for name in names for pair in context.queues[name].quotas}

    def _find_cohort(self, slot: _Slot) -> _Slot | None:
        """Return the quota of the nearest cohort that has any, for a queue that has none of its own."""
        cohorts = {each.name: each for each in self._context.cohorts}
        queue = self._context.queues[slot.queue]
        name, seen = "" if queue.quotas[slot.pair].nominal else queue.cohort, set[str]()
        while name in cohorts and name not in seen:
            seen.add(name)
            if slot.pair in cohorts[name].quotas and cohorts[name].quotas[slot.pair].nominal:
                return _Slot(name, slot.pair, is_cohort=True)
            name = cohorts[name].parent
        return None

    def _measure(self, quota: _Quota) -> tuple[int, int, int]:
        """Return how much is raised: devices first."""
        raised = [(is_device(slot.pair.resource), amount - self._find_amount(slot)) for slot, amount in quota.items()]
        return sum(each for is_first, each in raised if is_first), sum(each for _, each in raised), len(raised)

    def _find_smallest(self, slots: Sequence[_Slot], targets: Mapping[str, Answer]) -> dict[_Slot, int] | None:
        """Return the least quota in some places that is enough, of all flavors; None if no quota there is enough.

        Jobs take the first flavor that has quota for them, so that with quota in all of them a later one is not tried.
        """
        best = self._reduce(slots, targets)
        if best is None:
            return None
        self._reserve = self.left // 2
        try:
            for some in _list_choices(slots):
                found = self._reduce(some, targets)
                if found is not None and self._measure(found) < self._measure(best):
                    best = found
            best = self._enumerate(slots, best) or best
        except _StoppedError:
            # What was found is enough, and no part of it can be left out.
            pass
        finally:
            self._reserve = 0
        return best

    def _enumerate(self, slots: Sequence[_Slot], best: Mapping[_Slot, int]) -> dict[_Slot, int] | None:
        """Return the smallest of all changes that are smaller than the best one that is known; None if there is none.

        All are tried where they are few. Amounts of devices decide first, so the others are as large as they can be.
        """
        devices = [slot for slot in slots if is_device(slot.pair.resource)]
        chosen = devices or list(slots)
        if len(chosen) > _MOST_PLACES:
            return None
        rest = {slot: self._raise(slot) for slot in slots if slot not in chosen}
        # Decisions change only at multiples of this.
        step = gcd(*(self._find_step(slot) for slot in chosen))
        most = min(-(-self._measure(best)[0 if devices else 1] // step), _MOST_CHANGES)
        smaller = (some for units in range(most) for some in _list_sums(units, len(chosen)))
        for some in islice(smaller, _MOST_CHANGES):
            raised = ((slot, units * step) for slot, units in zip(chosen, some, strict=True) if units)
            changed = {slot: self._find_amount(slot) + amount for slot, amount in raised}
            if self._admits(changed | rest):
                self._quota = changed | rest
                self._shrink_all()
                return self._quota
        return None

    def _reduce(self, slots: Sequence[_Slot], targets: Mapping[str, Answer]) -> dict[_Slot, int] | None:
        """Return quota in some places that is enough, and of which nothing can be left out; None if none is enough."""
        raised = {slot: self._raise(slot) for slot in slots}
        if not self._admits(raised):
            return None
        most = self._decide(raised)
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
        for queue in sorted({slot.queue for slot in slots if not slot.cluster and not slot.is_cohort}):
            own = [slot for slot in slots if (slot.queue, slot.cluster, slot.is_cohort) == (queue, "", False)]
            rest = {slot: amount for slot, amount in self._quota.items() if slot not in own}
            limits = [slot._replace(is_limit=True) for slot in own]
            limits = [slot for slot in limits if self._find_amount(slot) < UNLIMITED]
            tried = rest | {slot: self._raise(slot) for slot in limits}
            if limits and len(rest) < len(self._quota) and self._admits(tried):
                self._quota = tried
        self._shrink_all()
        return self._quota

    def _shrink_all(self) -> None:
        """Make each change as small as possible while the others stay."""
        is_smaller = True
        while is_smaller:
            is_smaller = sum(map(self._shrink, sorted(self._quota))) > 0

    def _find_owner(self, slot: _Slot) -> ClusterQueue | Cohort:
        if slot.is_cohort:
            return next(each for each in self._context.cohorts if each.name == slot.queue)
        return (self._workers[slot.cluster].context if slot.cluster else self._context).queues[slot.queue]

    def _find_amount(self, slot: _Slot) -> int:
        quota = self._find_owner(slot).quotas[slot.pair]
        if not slot.is_limit:
            return quota.nominal
        return UNLIMITED if quota.borrowing_limit is None else quota.borrowing_limit

    def _list_workloads(self, cluster: str) -> list[Workload]:
        """Return the workloads as a cluster charges them."""
        return [self._workers[cluster].copy(each)[0] for each in self._workloads] if cluster else self._workloads

    def _raise(self, slot: _Slot) -> int:
        """Return an amount that is enough for all workloads together."""
        found, resource = self._find_amount(slot), slot.pair.resource
        for pod_set in (each for workload in self._list_workloads(slot.cluster) for each in workload.pod_sets):
            found = add(found, pod_set.count if resource == PODS else pod_set.total().get(resource, 0))
        return min(found, UNLIMITED - 1)

    def _decide(self, quota: _Quota) -> Decision:
        key = tuple(sorted(quota.items()))
        if key not in self._known:
            self.left -= len(self._workloads)
            if self.left < self._reserve:
                raise _StoppedError
            self._known[key] = decide(self._apply(quota), self._jobs, self._running)
        return self._known[key]

    def _apply(self, quota: _Quota) -> AdmissionContext:
        """Return the queues with other quota."""
        changed: dict[tuple[str, bool, str], ClusterQueue | Cohort] = {}
        for slot, amount in quota.items():
            key = slot.cluster, slot.is_cohort, slot.queue
            owner = changed.get(key) or self._find_owner(slot)
            one = owner.quotas[slot.pair]._replace(**{"borrowing_limit" if slot.is_limit else "nominal": amount})
            changed[key] = owner._replace(quotas={**owner.quotas, slot.pair: one})

        def replace(context: AdmissionContext, cluster: str) -> AdmissionContext:
            queues = {name: changed.get((cluster, False, name), each) for name, each in context.queues.items()}
            cohorts = [changed.get((cluster, True, each.name), each) for each in context.cohorts]
            return context.replace_queues(queues, cohorts)  # type: ignore[arg-type]

        context = replace(self._context, "")
        if self._dispatcher:
            workers = dict[str, Worker](self._dispatcher.workers)
            for name in {cluster for cluster, *_ in changed if cluster}:
                workers[name] = workers[name]._replace(context=replace(workers[name].context, name))
            context.dispatcher = self._dispatcher._replace(workers=workers)
        return context

    def _list_lacking(self, quota: _Quota) -> list[str]:
        answers = self._decide(quota).answers
        return [each.key for each in answers if each.key in self._required and each.decision not in RUNS]

    def _admits(self, quota: _Quota) -> bool:
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
        resource = slot.pair.resource
        pod_sets = [each for one in self._list_workloads(slot.cluster) for each in one.pod_sets]
        amounts = [1 if resource == PODS else each.requests.get(resource, 0) for each in pod_sets]
        context = self._workers[slot.cluster].context if slot.cluster else self._context
        owners: list[ClusterQueue | Cohort] = [*context.queues.values(), *context.cohorts]
        for owner in owners:
            amounts += (each or 0 for each in owner.quotas.get(slot.pair, ()))
        return max(1, gcd(*amounts))
