"""What claims for devices take from quotas, as the API server counts them."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import iter_mappings
from jobgen.k8s.device_catalog import CLASS_RESOURCE
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.k8s.releases import Release
from jobgen.model.data import Node

CLAIM_COUNT = "count/resourceclaims.resource.k8s.io"
_BY_CLASS = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES = 32
"""The devices that a claim for all devices of a node may get."""

_EXTENDED_RESOURCE_RELEASE: Release = (1, 36)
"""The first release that counts claims as the extended resource of their class."""

_ONE = 1000


def measure_device_claim(spec: Node, resources: Mapping[str, str], release: Release) -> dict[str, int]:
    """Return what a claim takes from quotas: thousandths of devices of a class, and of its extended resource.

    `resources` are the extended resources of classes.
    """
    counts: dict[str, int] = {}
    for request in iter_mappings(as_mapping(as_mapping(spec).get("devices")).get("requests")):
        for name, count in _count_request(request).items():
            counts[name] = counts.get(name, 0) + count
    used = {f"{name}{_BY_CLASS}": count * _ONE for name, count in counts.items()}
    if release >= _EXTENDED_RESOURCE_RELEASE:
        for name, count in counts.items():
            used[f"requests.{CLASS_RESOURCE}{name}"] = count * _ONE
            if resources.get(name):
                key = f"requests.{resources[name]}"
                used[key] = used.get(key, 0) + count * _ONE
    return used


def _count_request(request: Mapping[str, Node]) -> dict[str, int]:
    """The devices of each class; of alternatives, the most that one of them requests."""
    most: dict[str, int] = {}
    # Before `resource.k8s.io/v1beta2`, the fields of `exactly` were those of the request itself.
    for option in list(iter_mappings(request.get("firstAvailable"))) or [as_mapping(request.get("exactly", request))]:
        name = as_text(option.get("deviceClassName"))
        count = as_integer(option.get("count"))
        number = _MOST_DEVICES if as_text(option.get("allocationMode")) == "All" else 1 if count is None else count
        most[name] = max(most.get(name, 0), number)
    return {name: count for name, count in most.items() if name}
