"""Devices that pods claim, as the resources that Kueue charges for them.

The configuration maps device classes to resources. A claim that it cannot count makes a workload inadmissible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping, name_of
from jobgen.features.kueue.workload.requests import Amounts, DeviceMappings
from jobgen.model.named_tuple import NamedTuple

Templates = Mapping[tuple[str, str], Mapping[str, Any]]
"""The spec of the claim of each ResourceClaimTemplate, by namespace and name."""


class DeviceCharge(NamedTuple):
    """What the claims of a pod are charged."""

    amounts: Amounts
    error: str = ""
    """Why Kueue cannot admit the workload."""


def read_templates(objects: Iterable[Mapping[str, Any]]) -> Templates:
    """Read ResourceClaimTemplates."""
    found = {}
    for obj in objects:
        namespace = str(as_mapping(obj.get("metadata")).get("namespace") or "default")
        found[namespace, name_of(obj)] = as_mapping(as_mapping(obj.get("spec")).get("spec"))
    return found


def charge_claims(
    spec: Mapping[str, Any], namespace: str, templates: Templates, mappings: DeviceMappings
) -> DeviceCharge:
    """Count the devices that a pod claims by templates, as resources."""
    amounts: Amounts = {}
    for claim in map(as_mapping, as_list(spec.get("resourceClaims"))):
        name = claim.get("resourceClaimTemplateName")
        if name is None:
            if claim.get("resourceClaimName") is not None:
                return DeviceCharge({}, f"Kueue does not support the ResourceClaim `{claim['resourceClaimName']}`")
            continue
        template = templates.get((namespace, str(name)))
        if template is None:
            return DeviceCharge({}, f"ResourceClaimTemplate `{name}` does not exist")
        for request in map(as_mapping, as_list(as_mapping(template.get("devices")).get("requests"))):
            error = _add_request(request, amounts, mappings)
            if error:
                return DeviceCharge({}, f"ResourceClaimTemplate `{name}`: {error}")
    return DeviceCharge(amounts)


def _add_request(request: Mapping[str, Any], amounts: Amounts, mappings: DeviceMappings) -> str:
    """Add the devices of a request; return why Kueue cannot count them."""
    if request.get("firstAvailable"):
        return "Kueue does not support `firstAvailable`"
    # Until v1beta1, the fields of `exactly` were those of the request.
    exactly = as_mapping(request.get("exactly", request))
    if exactly.get("adminAccess") is True:
        return "Kueue does not support `adminAccess`"
    mode = exactly.get("allocationMode") or "ExactCount"
    if mode != "ExactCount":
        return f"Kueue does not support `allocationMode: {mode}`"
    device_class = str(exactly.get("deviceClassName") or "")
    if not device_class:
        return ""
    resource = mappings.resources.get(device_class)
    if resource is None:
        return f"`deviceClassMappings` of Kueue does not have DeviceClass `{device_class}`"
    if device_class in mappings.measured:
        return (
            f"the devices of DeviceClass `{device_class}` are charged by counters or capacity, which is not simulated"
        )
    count = exactly.get("count")
    amounts[resource] = amounts.get(resource, 0) + (count if type(count) is int else 1)
    return ""


def find_renamed(classes: Iterable[Mapping[str, Any]], mappings: DeviceMappings) -> dict[str, str]:
    """Return the extended resources that device classes provide, with the resource that each is charged as.

    Of several classes with the same resource, the one that was created last counts, then the first by name.
    """
    chosen: dict[str, Mapping[str, Any]] = {}
    by_name = sorted(classes, key=name_of)
    for each in sorted(by_name, key=_read_creation, reverse=True):
        extended = as_mapping(each.get("spec")).get("extendedResourceName")
        if isinstance(extended, str) and extended:
            chosen.setdefault(extended, each)
    named = ((extended, mappings.resources.get(name_of(each))) for extended, each in chosen.items())
    return {extended: resource for extended, resource in named if resource is not None and resource != extended}


def _read_creation(obj: Mapping[str, Any]) -> str:
    return str(as_mapping(obj.get("metadata")).get("creationTimestamp") or "")
