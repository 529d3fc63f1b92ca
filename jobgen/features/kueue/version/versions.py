"""What a version of Kueue reads of objects, apart from its feature gates: what it does not know, it ignores.

The versions are those in which the fields appear in `apis/` of Kueue, and the annotations in its constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from jobgen.features.kueue.objects import ClusterQueue, Cohort, Fungibility
from jobgen.features.kueue.version.gate_defaults import Version, is_past
from jobgen.features.kueue.workload.requests import ResourceSettings

_COHORT_WEIGHT_SINCE = (0, 11)
_MULTIPLY_SINCE = (0, 16)
_PREFERENCE_SINCE = (0, 15)
_PREFERENCE_CORRECT = "0.16.2"

_BORROW, _PREEMPT = "BorrowingOverPreemption", "PreemptionOverBorrowing"
_SWAPPED: Final[Mapping[str, str]] = {_BORROW: _PREEMPT, _PREEMPT: _BORROW}

CHARGED, IGNORED, REJECTED = "charged", "ignored", "rejected"
"""What becomes of the claims of pods."""

_ANNOTATIONS: Final[Mapping[Version, tuple[str, ...]]] = {
    (0, 11): ("kueue.x-k8s.io/podset-unconstrained-topology",),
    (0, 13): (
        "kueue.x-k8s.io/podset-group-name",
        "kueue.x-k8s.io/podset-slice-required-topology",
        "kueue.x-k8s.io/podset-slice-size",
    ),
    (0, 17): ("kueue.x-k8s.io/podset-slice-required-topology-constraints",),
}
"""Annotations of pods by the first version that knows them. The other ones are as old as topologies."""


def list_unknown_annotations(version: Version) -> frozenset[str]:
    """Return the annotations of pods that a version does not know yet."""
    return frozenset(name for since, names in _ANNOTATIONS.items() if version < since for name in names)


def adapt_queue(queue: ClusterQueue, version: Version, gates: Mapping[str, bool]) -> ClusterQueue:
    """Return a queue as a version of Kueue reads it."""
    fungibility = _adapt_fungibility(queue.fungibility, version, gates)
    if fungibility != queue.fungibility:
        queue = queue._replace(fungibility=fungibility)
    if gates["LendingLimit"]:
        return queue
    return queue._replace(quotas={pair: each._replace(lending_limit=None) for pair, each in queue.quotas.items()})


def _adapt_fungibility(found: Fungibility, version: Version, gates: Mapping[str, bool]) -> Fungibility:
    """Return which flavor comes first. Until 0.16.2 the two preferences mean each other."""
    if found.preference and version >= _PREFERENCE_SINCE:
        if is_past(version, _PREFERENCE_CORRECT):
            return found
        return found._replace(preference=_SWAPPED.get(found.preference, found.preference))
    is_implied = gates["FlavorFungibilityImplicitPreferenceDefault"] and found.when_can_borrow == "TryNextFlavor"
    return found._replace(preference=_PREEMPT if is_implied else "")


def adapt_cohorts(cohorts: Iterable[Cohort], version: Version, gates: Mapping[str, bool]) -> list[Cohort]:
    """Return the cohorts as a version of Kueue reads them. Without objects, cohorts have neither parents nor quota."""
    if not gates["HierarchicalCohorts"]:
        return []
    if version >= _COHORT_WEIGHT_SINCE:
        return list(cohorts)
    return [each._replace(weight=1.0) for each in cohorts]


def treat_claims(gates: Mapping[str, bool]) -> str:
    """Return what becomes of the claims of pods. Without their feature gate, Kueue ignores them until 0.18."""
    if gates["KueueDRAIntegration"]:
        return CHARGED
    return REJECTED if gates["KueueDRARejectWorkloadsWhenDRADisabled"] else IGNORED


def renames_resources(gates: Mapping[str, bool]) -> bool:
    """Return whether extended resources that a device class provides are charged under another name."""
    return gates["KueueDRAIntegration"] and gates["KueueDRAIntegrationExtendedResource"]


def adapt_settings(settings: ResourceSettings, version: Version, gates: Mapping[str, bool]) -> ResourceSettings:
    """Return the settings for requests as a version of Kueue reads them."""
    if not gates["ConfigurableResourceTransformations"]:
        return settings._replace(transformations=())
    if version >= _MULTIPLY_SINCE:
        return settings
    return settings._replace(transformations=tuple(each._replace(multiply_by="") for each in settings.transformations))
