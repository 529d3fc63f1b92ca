"""Tables: which worker clusters MultiKueue asks, and how devices of claims are charged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobgen.features.kueue.claims import charge_claims, charge_source, list_devices, read_claim_facts, round_capacity
from jobgen.features.kueue.cluster_objects import group_objects, parse_configuration
from jobgen.features.kueue.multikueue import STEP, nominate_next
from jobgen.features.kueue.readiness import check_clusters
from jobgen.features.kueue.requests import CAPACITY, COUNTER, DeviceSource

Given = Mapping[str, Any]
_API = "resource.k8s.io/v1"


def _nominate(given: Given) -> list[str]:
    """Nominate as the version does; the order and the step of the configuration count since 0.19."""
    is_new, nominated = given.get("version") != "0.18", list(given.get("nominated", ()))
    step = given.get("stepSize", STEP) if is_new else STEP
    return nominated + nominate_next(given["clusters"], nominated, step, keeps_order=is_new)


def _check(given: Given) -> dict[str, Any]:
    config = {"spec": {"clusters": given["config"]}} if "config" in given else None
    clusters = {
        name: {"status": {"conditions": [{"type": "Active", "status": str(is_active)}]}}
        for name, is_active in given.get("clusters", {}).items()
    }
    is_active, reason = check_clusters(config, clusters)
    return {"active": is_active, "reason": reason}


def _select(driver: str) -> list[Any]:
    return [{"cel": {"expression": f"device.driver == '{driver}'"}}]


def _make_request(raw: Given) -> dict[str, Any]:
    exactly = {"deviceClassName": raw["class"], "count": raw["count"]}
    exactly |= {name: raw[name] for name in ("allocationMode", "adminAccess") if name in raw}
    exactly |= {"selectors": _select(raw["selector"])} if "selector" in raw else {}
    return {"firstAvailable": [exactly]} if raw.get("firstAvailable") else {"exactly": exactly}


def _count(given: Given) -> Any:
    objects: list[Any] = [
        {
            "apiVersion": _API,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": f"claim-{number}", "namespace": "ml"},
            "spec": {"spec": {"devices": {"requests": list(map(_make_request, requests))}}},
        }
        for number, requests in enumerate(given["claims"])
    ]
    objects += [
        {
            "apiVersion": _API,
            "kind": "ResourceSlice",
            "metadata": {"name": driver},
            "spec": {
                "driver": driver,
                "pool": {"name": driver, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"device-{number}"} for number in range(size)],
            },
        }
        for driver, size in given.get("devices", {}).items()
    ]
    objects += [
        {"apiVersion": _API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": _select(driver)}}
        for name, driver in given.get("classes", {}).items()
    ]
    mappings = [{"name": resource, "deviceClassNames": [name]} for name, resource in given["mappings"].items()]
    configuration = parse_configuration({"resources": {"deviceClassMappings": mappings}}, given.get("version", "0.19"))
    facts = read_claim_facts(group_objects(objects, configuration))
    claims = [{"resourceClaimTemplateName": f"claim-{number}"} for number in range(len(given["claims"]))]
    return _tell(charge_claims({"resourceClaims": claims}, "ml", facts))


def _tell(found: Any) -> Any:
    return "error" if isinstance(found, str) or found is None else found


def _charge_counter(given: Given) -> Any:
    others = {name: {"value": value} for name, value in given.get("others", {}).items()}
    devices = [
        {"consumesCounters": [{"counters": {"memory": {"value": value}, **others}} for value in values]}
        for values in given["devices"]
    ]
    return _tell(charge_source(DeviceSource(COUNTER, "memory", "", "", ""), devices, given["count"]))


def _count_complete(given: Given) -> int:
    slices = [
        {
            "spec": {
                "driver": "gpu",
                "pool": {"name": name, "generation": generation, "resourceSliceCount": count},
                "devices": [{"name": f"device-{number}"}],
            }
        }
        for number, (name, generation, count) in enumerate(given["slices"])
    ]
    return len(list(list_devices(slices)))


def _show(amount: Any) -> Any:
    """Return an amount as a case writes it: in `Gi` if it is whole, else in `Mi`."""
    if not isinstance(amount, int):
        return _tell(amount)
    return f"{amount >> 30}Gi" if amount % (1 << 30) == 0 else f"{amount >> 20}Mi"


def _charge_capacity(given: Given) -> Any:
    devices = [{"capacity": {"memory": each} if each else {}} for each in given["devices"]]
    source = DeviceSource(CAPACITY, "memory", "", "", "")
    return _show(charge_source(source, devices, given["count"], given.get("request")))


def _round(given: Given) -> Any:
    return _show(round_capacity(given["value"], given["policy"]))


TABLES: Final = {
    "nominate_clusters": _nominate,
    "multikueue_check": _check,
    "count_devices": _count,
    "charge_counter": _charge_counter,
    "complete_pools": _count_complete,
    "round_capacity": _round,
    "charge_capacity": _charge_capacity,
}
