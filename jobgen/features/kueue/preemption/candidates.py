"""Candidates of preemption: which admitted workloads may be evicted for another one, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key

from jobgen.features.kueue.quota import FlavorResource, QuotaNode, Usage
from jobgen.features.kueue.scheduling.snapshot import Snapshot
from jobgen.features.kueue.workload.workloads import Workload
from jobgen.model.named_tuple import NamedTuple

IN_QUEUE, RECLAIM = "InClusterQueue", "InCohortReclamation"
WHILE_BORROWING, FAIR_SHARING = "InCohortReclaimWhileBorrowing", "InCohortFairSharing"

FINAL_SHARE, INITIAL_SHARE = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
DEFAULT_STRATEGIES = (FINAL_SHARE, INITIAL_SHARE)

_BUFFER = timedelta(minutes=5)
_LATEST = "~"
"""Later than all times. A workload without a time has reserved its quota just now."""


Measure = Callable[[Workload], float | None]
"""What the LocalQueue of a workload used lately; None if its ClusterQueue does not count it."""


class Target(NamedTuple):
    """A workload to evict, and the rule that allows it."""

    workload: Workload
    reason: str


class Preemptor(NamedTuple):
    """A workload that needs room."""

    workload: Workload
    queue: str
    usage: Usage
    """What it would use."""
    needed: frozenset[FlavorResource]
    """The flavors and resources in which there is not enough."""


class Rules(NamedTuple):
    """Settings of Kueue that decide how it assigns flavors and preempts."""

    is_fair: bool = False
    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    within_nominal: bool = True
    """The gate FairSharingPreemptWithinNominal."""
    has_buffer: bool = False
    """The gate SchedulerTimestampPreemptionBuffer: only what is newer by five minutes counts as newer."""
    measure: Measure | None = None
    """What the LocalQueue of a workload used lately, if admission is fair among LocalQueues."""
    ignores_undeclared: bool = False
    """Whether resources that a queue does not cover need no quota."""


Placement = Callable[[], bool]
"""Whether the pods can be placed now."""


def satisfies(policy: str, preemptor: Workload, candidate: Workload, *, has_buffer: bool = False) -> bool:
    """Return whether a policy lets a workload preempt another."""
    if policy == "Any":
        return True
    if candidate.priority < preemptor.priority:
        return policy in ("LowerPriority", "LowerOrNewerEqualPriority")
    if policy != "LowerOrNewerEqualPriority" or candidate.priority != preemptor.priority:
        return False
    is_newer = candidate.timestamp > preemptor.timestamp
    if is_newer and has_buffer:
        return _parse_time(candidate.timestamp) - _parse_time(preemptor.timestamp) > _BUFFER
    return is_newer


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text or "0001-01-01T00:00:00Z")


def order_candidates(candidates: Iterable[Workload], queue: str, measure: Measure | None = None) -> list[Workload]:
    """Return candidates in the order in which they are evicted.

    Those already evicted come first, then those of other queues, then the lower priority, then the latest.
    """
    # The last sort decides first.
    ordered = sorted(candidates, key=lambda each: each.uid)
    ordered.sort(key=lambda each: each.reserved or _LATEST, reverse=True)
    ordered.sort(key=lambda each: (*_rank(each, queue), each.priority))
    if measure is None:
        return ordered

    def compare(one: Workload, other: Workload) -> int:
        first, second = _rank(one, queue), _rank(other, queue)
        if first != second:
            return -1 if first < second else 1
        return _compare_queues(one, other, measure) or one.priority - other.priority

    return sorted(ordered, key=cmp_to_key(compare))


def _rank(candidate: Workload, queue: str) -> tuple[bool, bool]:
    return not candidate.is_evicted, candidate.cluster_queue == queue


def _compare_queues(one: Workload, other: Workload, measure: Measure) -> int:
    """Of two LocalQueues of the same ClusterQueue, the one that used more comes first."""
    if one.cluster_queue != other.cluster_queue or one.queue == other.queue:
        return 0
    first, second = measure(one), measure(other)
    if first is None or second is None:
        return 0
    return (first < second) - (first > second)


def list_candidates(
    policy: str, preemptor: Preemptor, queue: str, snapshot: Snapshot, rules: Rules
) -> Sequence[Workload]:
    """Return the workloads of a queue that a policy allows to evict, and that use what is needed."""
    if policy == "Never":
        return []
    users = snapshot.list_users(queue, preemptor.needed)
    if policy == "Any" or not users or users[0].priority > preemptor.workload.priority:
        return users if policy == "Any" else []
    return [each for each in users if satisfies(policy, preemptor.workload, each, has_buffer=rules.has_buffer)]


def fits(node: QuotaNode, usage: Usage, *, may_borrow: bool) -> bool:
    """Return whether there is room for a usage; without borrowing, in the quota of the queue itself."""
    if not may_borrow and any(node.is_borrowing(pair, amount) for pair, amount in usage.items()):
        return False
    return node.fits(usage)


def put_back(targets: list[Target], snapshot: Snapshot, has_room: Callable[[], bool]) -> list[Target]:
    """Keep targets that are not needed after all, the last ones first; the one that made it fit is needed."""
    kept = list(targets)
    for target in reversed(targets[:-1]):
        snapshot.charge_usage(target.workload)
        if has_room():
            kept.remove(target)
        else:
            snapshot.free_usage(target.workload)
    return kept
