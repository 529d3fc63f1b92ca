"""What classes of devices are, and what claims for devices request: dynamic resource allocation (DRA) as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from jobgen.model.named_tuple import NamedTuple

DEVICE_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "gpu.nvidia.com": "nvidia.com/gpu",
        "mig.nvidia.com": "nvidia.com/gpu",
        "vfio.gpu.nvidia.com": "nvidia.com/gpu",
        "gpu.amd.com": "amd.com/gpu",
        "gpu.intel.com": "gpu.intel.com/xe",
        "gaudi.intel.com": "habana.ai/gaudi",
        "neuron.aws.com": "aws.amazon.com/neuron",
        "tpu.google.com": "google.com/tpu",
        "compute-domain-daemon.nvidia.com": "",
        "compute-domain-default-channel.nvidia.com": "",
    }
)
"""The classes that vendors' drivers install, and the names of the drivers, each with the resource that counts the same
devices without DRA. Slices of a device count as devices, as they do without DRA. Channels of GPUs count as none."""

CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""The prefix of the resource that every class has: a container may request devices of the class by it."""

GROUP = "resource.k8s.io"
"""The API group of classes and claims."""

CHANNEL_GROUP = "resource.nvidia.com"
"""The API group of ComputeDomains, whose operator creates templates for channels between GPUs."""

Devices: TypeAlias = Mapping[str, int]
"""The numbers of devices, by resource."""

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
"""The label of namespaces in which claims may have `adminAccess`, with the value `true`."""

ClaimKey = tuple[str, str]
"""The namespace and the name of a claim or a template."""


class Claim(NamedTuple):
    """The devices that a claim, or each claim of a template, requests."""

    requests: Mapping[str, Devices]
    """The devices of each request."""
    uncounted: str = ""
    """Why not all its devices can be counted, to follow "because"; empty if they can."""

    def list_devices(self, request: str = "") -> Devices:
        """Return the devices of one request, or of all."""
        total: dict[str, int] = {}
        for name, devices in self.requests.items():
            if request in ("", name):
                add_devices(total, devices)
        return total


def add_devices(total: dict[str, int], devices: Devices) -> None:
    """Add numbers of devices to others."""
    for resource, count in devices.items():
        total[resource] = total.get(resource, 0) + count


class DeviceCatalog(NamedTuple):
    """The classes, templates and claims that are known of a cluster."""

    classes: Mapping[str, str] = MappingProxyType({})
    """The resource of each class that is defined there; empty if its devices are no accelerators."""
    templates: Mapping[ClaimKey, Claim] = MappingProxyType({})
    claims: Mapping[ClaimKey, Claim] = MappingProxyType({})
    admin_namespaces: frozenset[str] = frozenset()
    """The namespaces in which claims may have `adminAccess`."""
    other_namespaces: frozenset[str] = frozenset()
    """The other namespaces that are known. The cluster may have more of both."""

    def find_resource(self, device_class: str) -> str | None:
        """Return the resource that counts the devices of a class; None if the class is not known."""
        return self.classes.get(device_class, DEVICE_CLASSES.get(device_class))


def may_concern_devices(content: bytes) -> bool:
    """Return whether a file may have objects that belong in a catalog; an escape may stand for any character."""
    return b"\\" in content or any(text.encode() in content for text in (GROUP, CHANNEL_GROUP, ADMIN_LABEL))


CatalogSource: TypeAlias = Callable[[], DeviceCatalog]
"""Reads the catalog; called only for objects that claim devices."""


def no_catalog() -> DeviceCatalog:
    """Return the catalog of a cluster of which nothing is known."""
    return DeviceCatalog()
