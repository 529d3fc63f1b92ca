"""Tables: Jobs as workloads, and what they request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.pod_sets import list_pod_sets, parse_gates
from jobgen.features.kueue.quota import CPU
from jobgen.features.kueue.requests import (
    InvalidValue,
    Summary,
    adjust_pod_sets,
    charge_pod,
    list_above_limits,
    list_outside_bounds,
    parse_settings,
    read_overhead,
    summarize,
)
from jobgen.features.kueue.workloads import PodSet, PodSetAdmission, parse_workload
from kueue_tables import Table
from kueue_tables.webhook_errors import INVALID


def job_pod_sets(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod sets of a job object."""
    gates = parse_gates(as_mapping(given.get("featureGates")))
    return {"podSets": list_pod_sets(as_mapping(given.get("object")), gates) or []}


def workload_total_requests(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the pod sets of a Workload are charged: what its admission says, or what its pods request."""
    gates = as_mapping(given.get("featureGates"))
    obj = as_mapping(given.get("workload"))
    workload = parse_workload(obj, parse_settings(given), reclaims=gates.get("ReclaimablePods", True))
    if not as_mapping(obj.get("status")).get("admission"):
        shown = [_show(each.name, each.count, each.total()) for each in workload.pod_sets]
    else:
        specs = {each.name: each for each in workload.pod_sets}
        shown = [
            {
                **_show(each.name, each.count, each.usage),
                **({"flavors": dict(each.flavors)} if each.flavors else {}),
                **({"topologyUsage": _show_domains(each, specs.get(each.name))} if each.levels else {}),
            }
            for each in workload.admission
        ]
    return {"clusterQueue": workload.cluster_queue, "podSets": shown}


def _show(name: str, count: int, amounts: Mapping[str, int]) -> dict[str, Any]:
    shown = {"name": name, "count": count}
    return {**shown, "totalRequests": _show_amounts(amounts)} if amounts else shown


def _show_amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items()}


def _show_domains(admission: PodSetAdmission, pod_set: PodSet | None) -> dict[str, Any]:
    """Show what each domain of a placement holds. There, a pod requests what its spec says."""
    requests = _show_amounts(charge_pod(pod_set.exact)) if pod_set is not None and pod_set.exact else {}
    domains = [
        {"values": list(values), "count": count, "singlePodRequests": requests} for values, count in admission.domains
    ]
    return {"levels": list(admission.levels), "domains": domains}


def adjust_resources(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Workload with the requests that its pods have in effect."""
    workload = as_mapping(given.get("workload"))
    spec = as_mapping(workload.get("spec"))
    overheads = dict(map(read_overhead, map(as_mapping, as_list(given.get("runtimeClasses")))))
    pod_sets = adjust_pod_sets(spec.get("podSets"), overheads, _summarize_namespace(given))
    kept = {name: value for name, value in workload.items() if name not in ("apiVersion", "kind")}
    return {"workload": {**kept, "spec": {**spec, "podSets": pod_sets}}}


def _summarize_namespace(given: Mapping[str, Any]) -> Summary:
    namespace = _find_namespace(as_mapping(given.get("workload")))
    ranges = map(as_mapping, as_list(given.get("limitRanges")))
    return summarize(each for each in ranges if _find_namespace(each) == namespace)


def _find_namespace(obj: Mapping[str, Any]) -> str:
    return str(as_mapping(obj.get("metadata")).get("namespace") or "")


def requests_within_limits(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the errors of pods that request more than their limits."""
    return _show_errors(list_above_limits(_get_pod_sets(given)))


def requests_within_limit_range(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the errors of pods that are outside of the LimitRanges of their namespace."""
    return _show_errors(list_outside_bounds(_get_pod_sets(given), _summarize_namespace(given)))


def _get_pod_sets(given: Mapping[str, Any]) -> list[Any]:
    return as_list(as_mapping(as_mapping(given.get("workload")).get("spec")).get("podSets"))


def _show_errors(errors: Iterable[InvalidValue]) -> dict[str, Any]:
    return {
        "errors": [
            {"field": each.field, "type": INVALID, "detail": each.detail, "badValue": each.value} for each in errors
        ]
    }


TABLES: Final[dict[str, Table]] = {
    "adjust_resources": adjust_resources,
    "job_pod_sets": job_pod_sets,
    "requests_within_limit_range": requests_within_limit_range,
    "requests_within_limits": requests_within_limits,
    "workload_total_requests": workload_total_requests,
}
