"""Read what DeviceClasses, ResourceClaims and ResourceClaimTemplates define."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobgen.k8s.accelerators import is_device
from jobgen.k8s.device_catalog import (
    ADMIN_LABEL,
    CHANNEL_GROUP,
    DEVICE_CLASSES,
    GROUP,
    Claim,
    ClaimKey,
    DeviceCatalog,
    Devices,
)
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern

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
