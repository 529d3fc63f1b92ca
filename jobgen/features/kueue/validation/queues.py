"""What the webhooks refuse of ClusterQueues and Cohorts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.kueue.objects import STRICT_FIFO, as_list, as_mapping
from jobgen.features.kueue.validation.formats import validate_key, validate_selector
from jobgen.features.kueue.workload.field_errors import DUPLICATE, FORBIDDEN, INVALID, NOT_SUPPORTED, FieldError
from jobgen.features.kueue.workload.requests import to_nanos
from jobgen.model.named_tuple import NamedTuple

NEGATIVE = "must be greater than or equal to 0"
MAX_FLAVORS, MAX_RESOURCES, MAX_COMBINATIONS, MAX_CONCURRENT_FLAVORS = 256, 256, 512, 16
_GROUPS = "spec.resourceGroups"
_NEXT_FLAVOR = "TryNextFlavor"
_PREFERRED = "TryPreferredFlavors"


class _Parent(NamedTuple):
    """What quotas may have beside the nominal quota."""

    word: str
    exists: bool
    is_lending_bound: bool
    """Whether a queue can lend at most its nominal quota."""


def validate_cluster_queue(obj: Mapping[str, Any], *, has_concurrent_admission: bool = False) -> Iterator[FieldError]:
    """List what Kueue refuses of a ClusterQueue; the gate ConcurrentAdmission is off by default."""
    spec = as_mapping(obj.get("spec"))
    groups = _list_groups(spec)
    parent = _Parent("cohort", bool(spec.get("cohortName") or spec.get("cohort")), is_lending_bound=True)
    yield from _validate_groups(groups, parent)
    yield from validate_selector("spec.namespaceSelector", spec.get("namespaceSelector"))
    yield from _validate_preemption(as_mapping(spec.get("preemption")))
    yield from _validate_fungibility(as_mapping(spec.get("flavorFungibility")))
    yield from _validate_weight(spec)
    yield from _validate_totals(groups)
    if has_concurrent_admission and isinstance(spec.get("concurrentAdmissionPolicy"), dict):
        yield from _validate_concurrent_admission(spec, groups)
    yield from _validate_check_flavors(spec, groups)


def validate_cohort(obj: Mapping[str, Any]) -> Iterator[FieldError]:
    """List what Kueue refuses of a Cohort."""
    spec = as_mapping(obj.get("spec"))
    parent = _Parent("parent", bool(spec.get("parentName") or spec.get("parent")), is_lending_bound=False)
    yield from _validate_weight(spec)
    yield from _validate_groups(_list_groups(spec), parent)


def _list_groups(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(map(as_mapping, as_list(spec.get("resourceGroups"))))


def _list_flavors(group: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(map(as_mapping, as_list(group.get("flavors"))))


def _name_flavors(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({str(flavor.get("name", "")) for group in groups for flavor in _list_flavors(group)})


def _validate_groups(groups: Sequence[Mapping[str, Any]], parent: _Parent) -> Iterator[FieldError]:
    resources: set[str] = set()
    flavors: set[str] = set()
    for number, group in enumerate(groups):
        covered = [str(name) for name in as_list(group.get("coveredResources"))]
        for index, name in enumerate(covered):
            field = f"{_GROUPS}[{number}].coveredResources[{index}]"
            yield from validate_key(field, name)
            if name in resources:
                yield FieldError(field, DUPLICATE, "", name)
            resources.add(name)
        for index, flavor in enumerate(_list_flavors(group)):
            field = f"{_GROUPS}[{number}].flavors[{index}]"
            yield from _validate_quotas(field, flavor, covered, parent)
            name = str(flavor.get("name", ""))
            if name in flavors:
                yield FieldError(f"{field}.name", DUPLICATE, "", name)
            flavors.add(name)


def _validate_quotas(
    field: str, flavor: Mapping[str, Any], covered: Sequence[str], parent: _Parent
) -> Iterator[FieldError]:
    quotas = map(as_mapping, as_list(flavor.get("resources")))
    for index, (quota, name) in enumerate(zip(quotas, covered, strict=False)):
        path = f"{field}.resources[{index}]"
        if quota.get("name") != name:
            yield FieldError(f"{path}.name", INVALID, "must match the name in coveredResources", quota.get("name"))
        nominal, lent = quota.get("nominalQuota"), quota.get("lendingLimit")
        for each in ("nominalQuota", "borrowingLimit", "lendingLimit"):
            if to_nanos(quota.get(each)) < 0:
                yield FieldError(f"{path}.{each}", INVALID, NEGATIVE, quota[each])
        for each in ("borrowingLimit", "lendingLimit"):
            if quota.get(each) is not None and not parent.exists:
                yield FieldError(f"{path}.{each}", INVALID, f"must be nil when {parent.word} is empty", quota[each])
        if lent is not None and parent.is_lending_bound and to_nanos(lent) > to_nanos(nominal):
            yield FieldError(f"{path}.lendingLimit", INVALID, "must be less than or equal to the nominalQuota", lent)


def _validate_preemption(preemption: Mapping[str, Any]) -> Iterator[FieldError]:
    borrow = as_mapping(preemption.get("borrowWithinCohort"))
    reclaims = (preemption.get("reclaimWithinCohort") or "Never") != "Never"
    if not reclaims and (borrow.get("policy") or "Never") != "Never":
        text = "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
        yield FieldError("spec.preemption", INVALID, text, preemption)


def _validate_fungibility(fungibility: Mapping[str, Any]) -> Iterator[FieldError]:
    preference = fungibility.get("preference")
    if preference is None:
        return
    if any(fungibility.get(name) != _NEXT_FLAVOR for name in ("whenCanBorrow", "whenCanPreempt")):
        text = f'preference "{preference}" requires both whenCanBorrow and whenCanPreempt to be {_NEXT_FLAVOR}'
        yield FieldError("spec.flavorFungibility.preference", INVALID, text, preference)


def _validate_weight(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    weight = as_mapping(spec.get("fairSharing")).get("weight")
    nanos = to_nanos(weight)
    if nanos < 0:
        yield FieldError("spec.fairSharing", INVALID, NEGATIVE, weight)
    # Kueue cannot compute with one nano or less.
    if nanos == 1:
        yield FieldError("spec.fairSharing", INVALID, "When not 0, weight must be > 10e-9", weight)


def _validate_totals(groups: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    totals = (
        ("flavors", MAX_FLAVORS, sum(len(_list_flavors(group)) for group in groups)),
        ("covered resources", MAX_RESOURCES, sum(len(as_list(group.get("coveredResources"))) for group in groups)),
    )
    for what, most, total in totals:
        if total > most:
            text = f"total number of {what} across all resourceGroups must be ≤ {most}, got {total}"
            yield FieldError(_GROUPS, INVALID, text, total)
    for number, group in enumerate(groups):
        total = sum(len(as_list(flavor.get("resources"))) for flavor in _list_flavors(group))
        if total > MAX_COMBINATIONS:
            text = "number of flavor-resource combinations in a resourceGroup must be"
            yield FieldError(f"{_GROUPS}[{number}]", INVALID, f"{text} ≤ {MAX_COMBINATIONS}, got {total}", total)


def _validate_concurrent_admission(
    spec: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]
) -> Iterator[FieldError]:
    defined = "when ConcurrentAdmissionPolicy is defined"
    if len(groups) != 1:
        yield FieldError(_GROUPS, INVALID, f"must have exactly one ResourceGroup {defined}", len(groups))
    elif (count := len(_list_flavors(groups[0]))) > MAX_CONCURRENT_FLAVORS:
        text = f"cannot have more than {MAX_CONCURRENT_FLAVORS} resource flavors in the ResourceGroup {defined}"
        yield FieldError(f"{_GROUPS}[0].flavors", INVALID, text, count)
    yield from _validate_migration(as_mapping(spec["concurrentAdmissionPolicy"].get("migration")), groups)
    if spec.get("queueingStrategy") == STRICT_FIFO:
        text = f"StrictFIFO queueing strategy cannot be used {defined}"
        yield FieldError("spec.queueingStrategy", INVALID, text, STRICT_FIFO)


def _validate_migration(migration: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    constraints, mode = migration.get("constraints"), migration.get("mode")
    if not isinstance(constraints, dict):
        return
    field = "spec.concurrentAdmissionPolicy.migration.constraints"
    last, flavors = constraints.get("lastAcceptableFlavorName"), _name_flavors(groups)
    if mode and mode != _PREFERRED:
        text = f'may only be set when migration.mode is "{_PREFERRED}" (got "{mode}")'
        yield FieldError(field, FORBIDDEN, text)
    elif last is not None and last not in flavors:
        text = f"must be one of the flavors defined in the ClusterQueue: [{' '.join(flavors)}]"
        yield FieldError(f"{field}.lastAcceptableFlavorName", INVALID, text, last)


def _validate_check_flavors(spec: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    flavors = _name_flavors(groups)
    checks = as_list(as_mapping(spec.get("admissionChecksStrategy")).get("admissionChecks"))
    for number, check in enumerate(map(as_mapping, checks)):
        for index, flavor in enumerate(as_list(check.get("onFlavors"))):
            if flavor not in flavors:
                field = f"spec.admissionChecksStrategy.admissionChecks[{number}].onFlavors[{index}]"
                yield FieldError(field, NOT_SUPPORTED, list_supported(flavors), flavor)


def list_supported(values: Sequence[str]) -> str:
    """Describe the supported values of a field."""
    return f"supported values: {', '.join(f'{chr(34)}{each}{chr(34)}' for each in values)}" if values else ""
