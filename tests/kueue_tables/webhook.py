"""Tables: What the webhooks of Kueue refuse, with the words of Kueue for each fault that jobgen finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from jobgen.check.operators.kueue import (
    Fault,
    find_cluster_queue_faults,
    find_cohort_faults,
    find_flavor_faults,
    find_selector_problems,
)
from jobgen.features.kueue.objects import as_mapping
from kueue_tables import Table
from kueue_tables.webhook_errors import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    FieldError,
    list_key_errors,
    list_supported,
    list_value_errors,
    validate_selector,
)
from kueue_tables.webhook_workloads import NEGATIVE, list_warnings, parse_workload_gates, validate_workload

_DEFINED = "when ConcurrentAdmissionPolicy is defined"
_DETAILS: Final[Mapping[str, str]] = {
    "order": "must match the name in coveredResources",
    "negative": NEGATIVE,
    "lends-too-much": "must be less than or equal to the nominalQuota",
    "preemption": "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
    "preference": 'preference "{value}" requires both whenCanBorrow and whenCanPreempt to be TryNextFlavor',
    "weight-negative": NEGATIVE,
    "weight-small": "When not 0, weight must be > 10e-9",
    "too-many": "total number of {what} across all resourceGroups must be ≤ {most}, got {found}",
    "too-many-quotas": "number of flavor-resource combinations in a resourceGroup must be ≤ {most}, got {found}",
    "concurrent-groups": f"must have exactly one ResourceGroup {_DEFINED}",
    "concurrent-flavors": f"cannot have more than {{most}} resource flavors in the ResourceGroup {_DEFINED}",
    "constraints": 'may only be set when migration.mode is "TryPreferredFlavors" (got "{mode}")',
    "strict-order": f"StrictFIFO queueing strategy cannot be used {_DEFINED}",
    "taint-twice": "taints must be unique by key and effect pair",
}
_FIELDS: Final[Mapping[str, str]] = {
    "weight-negative": "spec.fairSharing",
    "weight-small": "spec.fairSharing",
    "concurrent-groups": "spec.resourceGroups",
    "concurrent-flavors": "spec.resourceGroups[0].flavors",
    "label-key": "spec.nodeLabels",
    "label-value": "spec.nodeLabels",
}
_TYPES: Final[Mapping[str, str]] = {
    "resource-twice": DUPLICATE,
    "flavor-twice": DUPLICATE,
    "taint-twice": DUPLICATE,
    "constraints": FORBIDDEN,
    "check-flavor": NOT_SUPPORTED,
}


def _write_details(fault: Fault) -> Iterable[str]:
    values = fault.values
    match fault.code:
        case "resource-name":
            return list_key_errors(values["name"])
        case "label-key" | "taint-key":
            return list_key_errors(values["key"])
        case "label-value" | "taint-value":
            return list_value_errors(values["value"])
        case "no-cohort" | "no-parent":
            return [f"must be nil when {'parent' if values['parent'] == 'parentName' else 'cohort'} is empty"]
        case "check-flavor":
            return [list_supported(sorted(set(values["flavors"])))]
        case "last-flavor":
            flavors = " ".join(sorted(set(values["flavors"])))
            return [f"must be one of the flavors defined in the ClusterQueue: [{flavors}]"]
    return [_DETAILS.get(fault.code, "").format_map(values)]


def _write_field(fault: Fault) -> str:
    if fault.code in _FIELDS:
        return _FIELDS[fault.code]
    steps = fault.path[:-1] if fault.code in ("taint-twice", "too-many-quotas") else fault.path
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _write_errors(faults: Iterable[Fault]) -> Iterator[FieldError]:
    for fault in faults:
        for detail in _write_details(fault):
            yield FieldError(_write_field(fault), _TYPES.get(fault.code, INVALID), detail)


def validate_cluster_queue(obj: Mapping[str, Any], *, has_concurrent_admission: bool = False) -> Iterator[FieldError]:
    """List what Kueue refuses of a ClusterQueue."""
    yield from _write_errors(find_cluster_queue_faults(obj, has_concurrent_admission=has_concurrent_admission))
    spec = as_mapping(obj.get("spec"))
    if find_selector_problems(spec):
        yield from validate_selector("spec.namespaceSelector", spec["namespaceSelector"])


def validate_cohort(obj: Mapping[str, Any]) -> Iterator[FieldError]:
    """List what Kueue refuses of a Cohort."""
    return _write_errors(find_cohort_faults(obj))


def validate_resource_flavor(obj: Mapping[str, Any]) -> Iterator[FieldError]:
    """List what Kueue refuses of a ResourceFlavor."""
    return _write_errors(find_flavor_faults(obj))


def _answer(validate: Callable[..., Iterator[FieldError]], given: Mapping[str, Any], **gates: Any) -> dict[str, Any]:
    errors = validate(as_mapping(given.get("object")), **gates)
    return {"errors": [{"field": each.field, "type": each.type, "detail": each.detail} for each in errors]}


def _get_gates(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_mapping(given.get("featureGates"))


def _answer_workload(given: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the errors, and the warnings if there are any."""
    found = _answer(validate_workload, given, gates=parse_workload_gates(_get_gates(given)))
    warnings = list(list_warnings(as_mapping(given.get("object"))))
    return {**found, "warnings": warnings} if warnings else found


TABLES: Final[dict[str, Table]] = {
    "validate_cluster_queue": lambda given: _answer(
        validate_cluster_queue, given, has_concurrent_admission=bool(_get_gates(given).get("ConcurrentAdmission"))
    ),
    "validate_cohort": lambda given: _answer(validate_cohort, given),
    "validate_resource_flavor": lambda given: _answer(validate_resource_flavor, given),
    "validate_workload": _answer_workload,
}
