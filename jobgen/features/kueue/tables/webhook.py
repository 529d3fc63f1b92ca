"""Tables: What the webhooks of Kueue refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from jobgen.features.kueue.objects import as_mapping
from jobgen.features.kueue.tables import Table
from jobgen.features.kueue.validation.flavors import validate_resource_flavor
from jobgen.features.kueue.validation.queues import validate_cluster_queue, validate_cohort
from jobgen.features.kueue.validation.workloads import parse_workload_gates, validate_workload
from jobgen.features.kueue.workload.field_errors import FieldError


def _get_object(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_mapping(given.get("object"))


def _get_gates(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_mapping(given.get("featureGates"))


def _show_errors(errors: Iterable[FieldError]) -> dict[str, Any]:
    return {"errors": [{"field": each.field, "type": each.type, "detail": each.detail} for each in errors]}


def check_cluster_queue(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Kueue refuses of a ClusterQueue."""
    has_policy = bool(_get_gates(given).get("ConcurrentAdmission"))
    return _show_errors(validate_cluster_queue(_get_object(given), has_concurrent_admission=has_policy))


def check_cohort(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Kueue refuses of a Cohort."""
    return _show_errors(validate_cohort(_get_object(given)))


def check_resource_flavor(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Kueue refuses of a ResourceFlavor."""
    return _show_errors(validate_resource_flavor(_get_object(given)))


def check_workload(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Kueue refuses of a Workload."""
    return _show_errors(validate_workload(_get_object(given), parse_workload_gates(_get_gates(given))))


TABLES: Final[dict[str, Table]] = {
    "validate_cluster_queue": check_cluster_queue,
    "validate_cohort": check_cohort,
    "validate_resource_flavor": check_resource_flavor,
    "validate_workload": check_workload,
}
