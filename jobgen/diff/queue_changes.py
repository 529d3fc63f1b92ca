"""What a merge does to the queues of environments, as values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from jobgen.model.named_tuple import NamedTuple

UNKNOWN, PREEMPTED = "unknown", "preempted"

JobName = tuple[str, str, str]
"""Kind, namespace and name of a job."""


class Update(StrEnum):
    """What a merge does to a job that the old state has."""

    UNCHANGED = "unchanged"
    """A running job is not affected."""
    IN_PLACE = "in-place"
    """A running job changes without being stopped."""
    RESTARTED = "restarted"
    """It is stopped, and queued again."""
    NOT_APPLIED = "not-applied"
    """The old job stays: its change is rejected, or it is removed from the files only."""


class Change(StrEnum):
    """How a workload fares after the merge, the most severe first."""

    PREEMPTED = "preempted"
    """It ran, and is evicted."""
    WORSE = "worse"
    LONGER = "waits-longer"
    """It waits as before, and new jobs are before it."""
    RESTART = "after-restart"
    """It keeps running, but would not be admitted if it were started again."""
    NEW = "new"
    BETTER = "better"


class WorkloadChange(NamedTuple):
    """What becomes of one workload."""

    change: Change
    workload: str
    """Namespace and name."""
    kind: str
    cluster_queue: str
    before: str
    """The decision before the merge; empty for a new job, `unknown` if the old state has no queues."""
    after: str
    """The decision after the merge, or `preempted`."""
    reason: str
    behind: tuple[str, ...] = ()
    """The workloads that it waits behind; if it waits longer, only those that are new."""
    requeued: str = ""
    """The decision when it is queued again: after it is preempted, or if it is started again."""
    preempted_by: str = ""
    rule: str = ""
    """The rule that allows the preemption, as in the condition of the workload."""


class QuotaAmounts(NamedTuple):
    """The quota of a queue or cohort, and its use, as Kubernetes writes quantities."""

    nominal: str
    used: str
    borrowed: str
    lent: str
    waiting: str


class QuotaChange(NamedTuple):
    """The quota of a queue or cohort for one resource in one flavor; None on a side that does not have it."""

    kind: str
    name: str
    flavor: str
    resource: str
    before: QuotaAmounts | None
    after: QuotaAmounts | None


class QueueObjectChange(NamedTuple):
    """A queue, or another object that decides about admission, that is added, removed or changed."""

    action: str
    kind: str
    namespace: str
    name: str


class QueueChanges(NamedTuple):
    """What a merge does to the queues of one environment."""

    environment: str
    workloads: tuple[WorkloadChange, ...] = ()
    quota: tuple[QuotaChange, ...] = ()
    objects: tuple[QueueObjectChange, ...] = ()
    errors: tuple[str, ...] = ()
    """Why the queues are not compared: what cannot be read."""
    settles: bool = True
    """False if workloads evict each other in turn, before or after the merge; what is shown is one of the states."""
    complete: bool = True
    """False if there is so much to decide that a simulation was stopped before its end."""

    def count_changes(self) -> Mapping[Change, int]:
        """Return how many workloads fare in each way, the most severe first."""
        found = [each.change for each in self.workloads]
        return {change: found.count(change) for change in Change if change in found}
