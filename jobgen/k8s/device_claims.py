"""Devices: the classes and claims of an environment, the claims of a pod, and the devices that they request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from jobgen.k8s.accelerators import is_device
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern

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


CLASS, CLAIM, TEMPLATE = "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"
KINDS = frozenset((CLASS, CLAIM, TEMPLATE))
_DOMAIN = "ComputeDomain"
_driver = lazy_pattern(r"""\bdevice\.driver\s*==\s*(["'])([^"']+)\1""")
_DEFINED_TWICE = Claim({}, "it is defined more than once, and not the same")


def concerns_devices(obj: Mapping[str, Node]) -> bool:
    """Return whether an object defines devices or claims, or is a namespace, which may allow some claims."""
    kind, group = as_text(obj.get("kind")), as_text(obj.get("apiVersion")).rpartition("/")[0]
    return (kind in KINDS and group == GROUP) or (kind, group) in (("Namespace", ""), (_DOMAIN, CHANNEL_GROUP))


def build_catalog(
    objects: Iterable[Mapping[str, Node]], gpu_resource: str, exported: Iterable[Mapping[str, Node]] = ()
) -> DeviceCatalog:
    """Return what objects define, in addition to or in place of exported ones; those of other kinds are ignored.

    `gpu_resource` is the resource that counts GPUs in the cluster.
    """
    own, other = ([obj for obj in each if concerns_devices(obj)] for each in (objects, exported))
    classes = {
        as_text(get_path(obj, "metadata", "name")): _find_resource(obj, gpu_resource)
        for obj in (*other, *own)
        if as_text(obj.get("kind")) == CLASS
    }
    catalog = DeviceCatalog(classes)
    templates = [
        {**_index(each, TEMPLATE, catalog, "spec", "spec"), **dict(_list_channels(each))} for each in (other, own)
    ]
    claims = [_index(each, CLAIM, catalog, "spec") for each in (other, own)]
    namespaces = [obj for obj in (*other, *own) if as_text(obj.get("kind")) == "Namespace"]
    admin = {as_text(get_path(obj, "metadata", "name")) for obj in namespaces if _allows_admins(obj)}
    return catalog._replace(
        templates={**templates[0], **templates[1]},
        claims={**claims[0], **claims[1]},
        admin_namespaces=frozenset(admin),
        other_namespaces=frozenset(as_text(get_path(obj, "metadata", "name")) for obj in namespaces) - admin,
    )


def _list_channels(objects: Iterable[Mapping[str, Node]]) -> Iterator[tuple[ClaimKey, Claim]]:
    """Yield the templates that the operator of ComputeDomains creates: they request channels, and no devices."""
    for obj in objects:
        if as_text(obj.get("kind")) == _DOMAIN:
            name = as_text(get_path(obj, "spec", "channel", "resourceClaimTemplate", "name"))
            yield (as_text(get_path(obj, "metadata", "namespace")), name), Claim({})


def _allows_admins(namespace: Mapping[str, Node]) -> bool:
    """Return True if a namespace has the label for administrators."""
    return as_text(get_path(namespace, "metadata", "labels", ADMIN_LABEL)) == "true"


def _find_resource(device_class: Mapping[str, Node], gpu_resource: str) -> str:
    """Return the resource that counts the devices of a class: its own, that of its name, or that of its driver."""
    spec = as_mapping(device_class.get("spec"))
    resource = as_text(spec.get("extendedResourceName"))
    if is_device(resource) or resource == gpu_resource:
        return resource
    name = as_text(get_path(device_class, "metadata", "name"))
    texts = (as_text(get_path(selector, "cel", "expression")) for selector in as_list(spec.get("selectors")))
    drivers = [match[2] for text in texts for match in _driver.finditer(text)]
    return next((DEVICE_CLASSES[each] for each in (name, *drivers) if each in DEVICE_CLASSES), "")


def _index(
    objects: Iterable[Mapping[str, Node]], kind: str, catalog: DeviceCatalog, *path: str
) -> dict[ClaimKey, Claim]:
    found: dict[ClaimKey, Claim] = {}
    for obj in objects:
        if as_text(obj.get("kind")) == kind:
            metadata = as_mapping(obj.get("metadata"))
            key = (as_text(metadata.get("namespace")), as_text(metadata.get("name")))
            claim = _read_claim(as_mapping(get_path(obj, *path, "devices")), catalog)
            found[key] = claim if found.get(key, claim) == claim else _DEFINED_TWICE
    return found


def _read_claim(devices: Mapping[str, Node], catalog: DeviceCatalog) -> Claim:
    requests: dict[str, Devices] = {}
    reasons: list[str] = []
    for request in map(as_mapping, as_list(devices.get("requests"))):
        # Before `resource.k8s.io/v1beta2`, the fields of `exactly` were those of the request itself.
        exactly = as_mapping(request.get("exactly", request))
        options = [dict(_count_request(one, catalog, reasons)) for one in _list_options(request, exactly)]
        # The scheduler takes the first that is available: the one with the most devices is the most that it may be.
        requests[as_text(request.get("name"))] = max(options, key=lambda each: sum(each.values()), default={})
    return Claim(requests, reasons[0] if reasons else "")


def _list_options(request: Mapping[str, Node], exactly: Mapping[str, Node]) -> list[Mapping[str, Node]]:
    alternatives = [as_mapping(one) for one in as_list(request.get("firstAvailable"))]
    return alternatives or [exactly]


def _count_request(
    request: Mapping[str, Node], catalog: DeviceCatalog, reasons: list[str]
) -> Iterator[tuple[str, int]]:
    """Yield the resource of a request and its number of devices."""
    if value_of(request.get("adminAccess")) is True:
        # Access for monitoring takes no device from others.
        return
    device_class = as_text(request.get("deviceClassName"))
    resource = catalog.find_resource(device_class)
    if resource is None:
        reasons.append(f"the DeviceClass `{device_class}` is not in the repository")
    elif resource and as_text(request.get("allocationMode")) == "All":
        reasons.append("it requests all devices of a node (`allocationMode: All`)")
    elif resource:
        count = as_integer(request.get("count"))
        yield resource, max(1 if count is None else count, 0) or 1


class PodClaim(NamedTuple):
    """A claim of a pod: a claim of its own, made from a template, or one that it shares with other pods."""

    name: Node
    """The node that names the claim or the template."""
    kind: str
    key: ClaimKey
    definition: Claim | None
    """What the claim requests; None if that is not known."""

    @property
    def is_shared(self) -> bool:
        """Whether other pods may have the same claim."""
        return self.kind == "ResourceClaim"

    @property
    def is_counted(self) -> bool:
        """Whether it is known how many devices it requests."""
        return self.definition is not None and not self.definition.uncounted


class SharedDevices(NamedTuple):
    """GPUs of a claim that several pods share: they count once."""

    claim: ClaimKey
    gpus: int


def find_claims(entries: Node, namespace: str, read_catalog: CatalogSource) -> Iterator[tuple[str, PodClaim]]:
    """Yield the claims that `resourceClaims` of a pod lists, each with its name in the pod."""
    for entry in as_list(entries):
        if isinstance(entry, dict):
            field = "resourceClaimName" if as_text(entry.get("resourceClaimName")) else "resourceClaimTemplateName"
            key = (namespace, as_text(entry.get(field)))
            catalog = read_catalog()
            if field == "resourceClaimName":
                claim = PodClaim(entry[field], "ResourceClaim", key, catalog.claims.get(key))
            else:
                claim = PodClaim(entry.get(field), "ResourceClaimTemplate", key, catalog.templates.get(key))
            yield as_text(entry.get("name")), claim
