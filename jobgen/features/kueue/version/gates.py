"""Feature gates of Kueue that decide how a scheduling cycle runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.model.named_tuple import NamedTuple


class Gates(NamedTuple):
    """Feature gates of the cycle, with the defaults of Kueue 0.19."""

    partial_admission: bool = True
    sorts_by_priority: bool = True
    """PrioritySortingWithinCohort: among queues, the greater priority comes first."""
    prefers_preemptors: bool = False
    """PrioritizePreemptorWorkloads: what waits for its preemptions comes first."""
    prefers_non_borrowing: bool = True
    """FairSharingPrioritizeNonBorrowing: with fair sharing, what does not borrow comes first."""
    recomputes_overlap: bool = False
    """RecomputeAssignmentUponPreemptionTargetsOverlap: look again when another workload has the same targets."""
    concurrent_admission: bool = False
    """ConcurrentAdmission: a workload has a variant for each flavor."""
    orchestrated_preemption: bool = False
    """MultiKueueOrchestratedPreemption: preemption gates count."""
    elastic_jobs: bool = True
    """ElasticJobsViaWorkloadSlices: a workload can replace a smaller one of the same job."""
    parks_same_shape: bool = True
    """SchedulingEquivalenceHashing: what has the shape of a parked workload is parked with it."""
    preserves_progress: bool = True
    """FlavorFungibilityPreserveScanProgress: the next cycle goes on with the next flavor."""
    boosts_priority: bool = False
    """PriorityBoost: an annotation adds to the priority."""
    is_fungible: bool = True
    """FlavorFungibility: without it the first flavor that fits is taken."""
    recomputes_placement: bool = True
    """TASRecomputeAssignmentWithinSchedulingCycle: look for another placement when its place has been taken."""
    evicts_without_replacement: bool = True
    """TASFailedNodeReplacementFailFast: evict a workload if no other node can replace one that failed."""


_NAMES: Mapping[str, str] = {
    "PartialAdmission": "partial_admission",
    "PrioritySortingWithinCohort": "sorts_by_priority",
    "PrioritizePreemptorWorkloads": "prefers_preemptors",
    "FairSharingPrioritizeNonBorrowing": "prefers_non_borrowing",
    "RecomputeAssignmentUponPreemptionTargetsOverlap": "recomputes_overlap",
    "ConcurrentAdmission": "concurrent_admission",
    "MultiKueueOrchestratedPreemption": "orchestrated_preemption",
    "ElasticJobsViaWorkloadSlices": "elastic_jobs",
    "SchedulingEquivalenceHashing": "parks_same_shape",
    "PriorityBoost": "boosts_priority",
    "FlavorFungibility": "is_fungible",
    "FlavorFungibilityPreserveScanProgress": "preserves_progress",
    "TASRecomputeAssignmentWithinSchedulingCycle": "recomputes_placement",
    "TASFailedNodeReplacementFailFast": "evicts_without_replacement",
}

DEFAULT_GATES = Gates()


def parse_gates(switched: Mapping[str, Any]) -> Gates:
    """Return the gates where these differ from the defaults."""
    return DEFAULT_GATES._replace(**{_NAMES[name]: bool(value) for name, value in switched.items() if name in _NAMES})
