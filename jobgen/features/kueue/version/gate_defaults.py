"""Which feature gates of Kueue are on, by its version.

The table follows `pkg/features/kube_features.go` at each release from 0.8.0 to 0.19.2. It has the gates that decide
about admission. A patch release of an older minor version can have a gate that the next minor version gets later: so
`0.15.6 0.16.0 0.16.3` means since 0.15.6, but not in 0.16.0 to 0.16.2. Where a gate does not exist yet, Kueue does what
it does with the gate off; where it does not exist any more, what it did with the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobgen.model.named_tuple import NamedTuple

Version = tuple[int, ...]

OLDEST: Final = (0, 8)
"""The first version that the table has; older ones decide as this one."""
_ANY_PATCH = 10**6


class Gate(NamedTuple):
    """The releases at which a gate begins or ceases to exist, and at which its default changes; both begin with off."""

    exists: str
    on: str = ""


GATES: Final[Mapping[str, Gate]] = {
    "ConcurrentAdmission": Gate("0.18"),
    "ConfigurableResourceTransformations": Gate("0.9 0.16", "0.10"),
    "DRAExtendedResources": Gate("0.17 0.19"),
    "DynamicResourceAllocation": Gate("0.14 0.19"),
    "ElasticJobsViaWorkloadSlices": Gate("0.13", "0.18"),
    "ElasticJobsViaWorkloadSlicesWithTAS": Gate("0.17"),
    "FairSharingPreemptWithinNominal": Gate("0.15.6 0.16.0 0.16.3", "0.15.6 0.16.0 0.16.3"),
    "FairSharingPrioritizeNonBorrowing": Gate("0.15.5 0.16.0 0.16.2", "0.15.5 0.16.0 0.16.2"),
    "FlavorFungibility": Gate("0.8", "0.8"),
    "FlavorFungibilityImplicitPreferenceDefault": Gate("0.13 0.16.0 0.16.4 0.17.0"),
    "FlavorFungibilityPreserveScanProgress": Gate("0.18.5 0.19.0 0.19.1", "0.18.5 0.19.0 0.19.1"),
    "HierarchicalCohorts": Gate("0.11.4", "0.9"),
    "KueueDRAIntegration": Gate("0.18", "0.18"),
    "KueueDRAIntegrationExtendedResource": Gate("0.18", "0.19"),
    "KueueDRARejectWorkloadsWhenDRADisabled": Gate("0.18", "0.18"),
    "LendingLimit": Gate("0.8 0.19", "0.9"),
    "LocalQueueDefaulting": Gate("0.10 0.19", "0.12"),
    "ManagedJobsNamespaceSelectorAlwaysRespected": Gate("0.13", "0.15"),
    "MultiKueueOrchestratedPreemption": Gate("0.17"),
    "MultiplePreemptions": Gate("0.8 0.13", "0.9"),
    "PartialAdmission": Gate("0.8", "0.8"),
    "PrioritizePreemptorWorkloads": Gate("0.18.6 0.19.0 0.19.2"),
    "PrioritySortingWithinCohort": Gate("0.8", "0.8"),
    "QuotaCheckStrategy": Gate("0.18", "0.19"),
    "RecomputeAssignmentUponPreemptionTargetsOverlap": Gate("0.18.5 0.19.0 0.19.1"),
    "SchedulerTimestampPreemptionBuffer": Gate("0.15.6 0.16.0 0.16.3"),
    "SchedulingEquivalenceHashing": Gate("0.15.6 0.16.0 0.16.3", "0.15.6 0.15.7 0.16.3 0.16.4 0.18"),
    "TASBalancedPlacement": Gate("0.15"),
    "TASHandleOverlappingFlavors": Gate("0.16.9 0.17.0 0.17.4", "0.18"),
    "TASMultiLayerTopology": Gate("0.17", "0.19"),
    "TASProfileLeastFreeCapacity": Gate("0.11 0.17"),
    "TASProfileMixed": Gate("0.11", "0.15"),
    "TASProfileMostFreeCapacity": Gate("0.11 0.13"),
    "TASRecomputeAssignmentWithinSchedulingCycle": Gate("0.17.6 0.18.0 0.18.2", "0.17.6 0.18.0 0.18.2"),
    "TASRespectNodeAffinityPreferred": Gate("0.18"),
    "TopologyAwareScheduling": Gate("0.9", "0.14"),
    "WorkloadPriorityClassDefaulting": Gate("0.18"),
}
"""The gates that decide about admission, by name."""

NOT_SIMULATED: Final = frozenset(
    """ConcurrentAdmission MultiKueueOrchestratedPreemption MultiplePreemptions SchedulerTimestampPreemptionBuffer
    TASProfileLeastFreeCapacity TASProfileMostFreeCapacity""".split()
)
"""Gates whose other state than the default is not simulated."""

_RENAMED: Final[Mapping[str, str]] = {
    "DynamicResourceAllocation": "KueueDRAIntegration",
    "DRAExtendedResources": "KueueDRAIntegrationExtendedResource",
}
"""Gates that have another name since 0.18."""


def gates_at(version: Version, switched: Mapping[str, bool]) -> dict[str, bool]:
    """Return which gates are on in a version if these differ from its defaults. What it does not have is ignored."""
    found = {name: is_past(version, gate.on) for name, gate in GATES.items()}
    for name, value in switched.items():
        if has_gate(version, name):
            found[name] = value
            if name in _RENAMED and not has_gate(version, _RENAMED[name]):
                found[_RENAMED[name]] = value
    return found


def has_gate(version: Version, name: str) -> bool:
    """Return whether a version has a gate, as far as it decides about admission."""
    return name in GATES and is_past(version, GATES[name].exists)


def is_past(version: Version, switches: str) -> bool:
    """Return whether something is on that is switched on, off, and so on at these releases.

    A version without a patch is the last release of it.
    """
    exact = (max(version, OLDEST) + (_ANY_PATCH,) * 3)[:3]
    return sum(_parse(each) <= exact for each in switches.split()) % 2 == 1


def _parse(release: str) -> Version:
    return tuple(map(int, release.split(".")))


def list_gate_notes(version: Version, switched: Mapping[str, bool]) -> Iterator[str]:
    """Yield what the switched gates mean for a decision: those that do not exist, and those that are not simulated."""
    shown = ".".join(map(str, version))
    for name, value in sorted(switched.items()):
        if name not in GATES:
            continue
        if not has_gate(version, name):
            yield f"Kueue {shown} has no feature gate `{name}`, so it is ignored"
        elif name in NOT_SIMULATED and value != is_past(version, GATES[name].on):
            yield f"feature gate `{name}` is not simulated as it is switched"
