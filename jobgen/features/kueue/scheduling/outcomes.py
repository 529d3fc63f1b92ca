"""What a scheduling cycle decides about a workload, in the words of Kueue."""

from __future__ import annotations

from jobgen.features.kueue.preemption import Target
from jobgen.features.kueue.workload.workloads import PodSetAdmission, Workload
from jobgen.model.named_tuple import NamedTuple

NO_LONGER_FITS = "Workload no longer fits after processing another workload"
OVERLAPPING = "Workload has overlapping preemption targets with another workload"
FITS_LATER = f"{OVERLAPPING}, but will fit after these preemptions complete"
GATED = "Workload requires preemption, but it's gated"
MORE_FAVORABLE = "A more favorable variant is already admitted"
BELOW_LAST_ACCEPTABLE = "Target flavor is below LastAcceptableFlavorName"
NOT_REPLACED = "Workload was evicted as there was no replacement for unhealthy node(s)"
NOT_SELECTED = "workload namespace doesn't match ClusterQueue selector"
WAITING_FOR_PREEMPTED, MISCONFIGURED, WAITING = "WaitingForPreemptedWorkloads", "Misconfigured", "WaitingForQuota"
PENDING_EVALUATION, ADMISSION_GATED, SUSPENDED = "PendingEvaluation", "AdmissionGated", "Suspended"

ADMITTED, PREEMPTING, WAITS, INADMISSIBLE = "admitted", "preempting", "waiting", "inadmissible"
EVICTED = "evicted"

MIGRATION = "FlavorMigration"
"""Why a variant of a workload is evicted: another one gets a better flavor."""


NODE_FAILURES = "NodeFailures"
"""Why a workload is evicted for which no node replaces one that failed."""


class Outcome(NamedTuple):
    """What a cycle decided about a workload."""

    state: str
    """`admitted`, `preempting`, `waiting`, `inadmissible`, or `evicted` if a failed node cannot be replaced."""
    reason: str = ""
    message: str = ""
    admission: tuple[PodSetAdmission, ...] = ()
    targets: tuple[Target, ...] = ()
    level: int = 0


class Eviction(NamedTuple):
    """A workload that is evicted, and for whom."""

    target: Target
    preemptor: Workload
    queue: str
    """The ClusterQueue of the preemptor."""


class Decision(NamedTuple):
    """The outcome of an entry, and where the workload goes if it is not admitted."""

    outcome: Outcome
    requeue: bool = False
    """Whether it is tried again at once, instead of waiting for a change."""
    parks_shape: bool = False
    """Whether workloads of the same shape cannot be admitted either."""
    becomes_head: bool = False
    """Whether it stays the head of its queue."""
    keeps_progress: bool = True
    """Whether the next cycle goes on with the next flavor."""
