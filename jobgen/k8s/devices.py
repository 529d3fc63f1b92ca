"""Accelerator resources by name: whole devices, and shares of a device (its memory or cores)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.finding import Identity, pluralize
from jobgen.model.lazy_re import has_any, lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at
from jobgen.model.quantity import to_milli

# Found without the pattern, which takes as long to compile as some files to check.
_COMMON_DEVICES = frozenset(("nvidia.com/gpu", "amd.com/gpu"))
# Resources that count devices, by vendor. MIG slices and vNPU templates count as devices.
_DEVICES = lazy_pattern(
    r"""(?:
      nvidia\.com/(?:gpu|gpu\.shared|vgpu|mig-[0-9]+g\.[0-9]+gb(?:\.[a-z.]+)?)
    | amd\.com/gpu
    | gpu\.intel\.com/(?:i915|xe)
    | habana\.ai/gaudi
    | aws\.amazon\.com/neuron(?:core|device)?
    | google\.com/tpu
    | huawei\.com/Ascend[0-9]+[A-Za-z0-9]*(?:-[0-9]+c)?
    | cambricon\.com/(?:mlu|mlunum|vmlu|mlu\.share|mlu\.mim-[0-9a-z.]+)
    | metax-tech\.com/s?gpu
    | hygon\.com/dcunum
    | iluvatar\.ai/(?:gpu|vgpu)
    | mthreads\.com/v?gpu
    | enflame\.com/(?:drs-)?gcu
    | kunlunxin\.com/v?xpu
    | birentech\.com/gpu
    | vastaitech\.com/va
    )\Z""",
    re.VERBOSE,
)
# Resources that size a share of a device.
_SHARES = lazy_pattern(
    r"""(?:
      (?:nvidia|amd)\.com/gpu(?:mem|mem-percentage|cores)
    | huawei\.com/Ascend[0-9]+[A-Za-z0-9]*-(?:memory|core)
    | cambricon\.com/mlu\.smlu\.v(?:core|memory)
    | metax-tech\.com/v(?:core|memory)
    | hygon\.com/dcu(?:mem|cores)
    | iluvatar\.ai/vcuda-(?:core|memory)
    | mthreads\.com/sgpu-(?:core|memory)
    | enflame\.com/gcu-(?:core|memory)
    | kunlunxin\.com/vxpu-memory
    )\Z""",
    re.VERBOSE,
)

# Accelerators that their vendors do not call GPUs, and what they call them.
_OTHER_NOUNS = {
    "google.com": "TPU",
    "aws.amazon.com": "Neuron device",
    "habana.ai": "Gaudi device",
    "huawei.com": "NPU",
    "cambricon.com": "MLU",
}

WELL_KNOWN_RESOURCES = tuple(
    """nvidia.com/gpu nvidia.com/vgpu nvidia.com/gpu.shared nvidia.com/gpumem nvidia.com/gpumem-percentage
    nvidia.com/gpucores amd.com/gpu gpu.intel.com/i915 gpu.intel.com/xe habana.ai/gaudi aws.amazon.com/neuron
    aws.amazon.com/neuroncore google.com/tpu huawei.com/Ascend910 huawei.com/Ascend310P cambricon.com/mlu
    cambricon.com/vmlu metax-tech.com/gpu metax-tech.com/sgpu hygon.com/dcunum iluvatar.ai/gpu mthreads.com/vgpu
    enflame.com/gcu kunlunxin.com/xpu birentech.com/gpu vastaitech.com/va""".split()
)
"""The names to suggest for a misspelled resource."""


@cache
def is_device(resource: str) -> bool:
    """Return True if a resource counts accelerators."""
    return resource in _COMMON_DEVICES or ("/" in resource and _DEVICES.match(resource) is not None)


def name_device(resource: str) -> str:
    """Return what the vendor calls an accelerator: `GPU`, or another word."""
    return _OTHER_NOUNS.get(resource.partition("/")[0], "GPU")


def format_devices(resources: Mapping[str, Plain]) -> str:
    """Return the accelerators in words, such as `2 GPUs` or `4 TPUs`."""
    counts: dict[str, int] = {}
    for name, value in resources.items():
        if is_device(str(name)) and (count := (to_milli(value) or 0) // 1000):
            noun = name_device(str(name))
            counts[noun] = counts.get(noun, 0) + count
    return " and ".join(pluralize(count, noun) for noun, count in counts.items())


@cache
def is_device_share(resource: str) -> bool:
    """Return True if a resource is a share of an accelerator: its memory or cores."""
    return _SHARES.match(resource) is not None


# Parts of the names of resources that are no accelerators: networks, mounts, virtual machines, and shares of a node.
_NO_ACCELERATORS = tuple(
    """/ib /resib efa eni hca hostdev infiniband mellanox.com/ networking. nic openshift.io/ rdma roce sriov
    /tun fuse kvm vhost dsa.intel.com/ qat.intel.com/ sgx batch-cpu batch-memory mid-cpu mid-memory
    kubernetes.io/attachable-volumes""".split()
)


def may_be_accelerator(resource: str) -> bool:
    """Return True if a resource may count devices that jobgen does not know as accelerators.

    Each resource of a device plugin has a domain; only what is known to be something else is left out.
    """
    if "/" not in resource or is_device(resource) or is_device_share(resource):
        return False
    return not has_any(resource.lower(), _NO_ACCELERATORS)


_LETTERS = lazy_pattern(r"[^a-z0-9]")
_DOMAINS = frozenset(name.partition("/")[0] for name in WELL_KNOWN_RESOURCES)


@cache
def find_meant_device(name: str) -> str:
    """Return the well-known name that this name misspells, or an empty string."""
    if is_device(name) or is_device_share(name):
        return ""
    domain, _, rest = name.partition("/")
    for known in WELL_KNOWN_RESOURCES:
        right, _, tail = known.partition("/")
        if domain == right and _normalize(rest) == _normalize(tail):
            return known
        if domain not in _DOMAINS and _normalize(rest) == _normalize(tail) and _is_misspelling(domain, right):
            return known
    return ""


def _normalize(word: str) -> str:
    """Remove case, dashes and the plural from a word."""
    return _LETTERS.sub("", word.lower()).removesuffix("s")


def _is_misspelling(domain: str, right: str) -> bool:
    """Return True if a domain lacks its suffix, or has one letter that is wrong, missing, added or swapped."""
    if domain.lower() in (right, right.rpartition(".")[0]):
        return True
    if abs(len(domain) - len(right)) > 1 or domain[:1] != right[:1]:
        return False
    start = 0
    while start < min(len(domain), len(right)) and domain[start] == right[start]:
        start += 1
    a, b = domain[start:], right[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


# Devices: the classes and claims of an environment, the claims of a pod, and the devices that they request.

DEVICE_CLASSES: Mapping[str, str] = {
    **dict.fromkeys(("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"), "nvidia.com/gpu"),
    "gpu.amd.com": "amd.com/gpu",
    "gpu.intel.com": "gpu.intel.com/xe",
    "gaudi.intel.com": "habana.ai/gaudi",
    "neuron.aws.com": "aws.amazon.com/neuron",
    "tpu.google.com": "google.com/tpu",
    **dict.fromkeys(("compute-domain-daemon.nvidia.com", "compute-domain-default-channel.nvidia.com"), ""),
}
"""The classes that vendors' drivers install, and the names of the drivers, each with the resource that counts the same
devices without DRA. Slices of a device count as devices, as they do without DRA. Channels of GPUs count as none."""
CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""The prefix of the resource that every class has: a container may request devices of the class by it."""
GROUP = "resource.k8s.io"
CHANNEL_GROUP = "resource.nvidia.com"
"""The API group of ComputeDomains, whose operator creates templates for channels between GPUs."""
Devices: TypeAlias = Mapping[str, int]
ADMIN_LABEL = "resource.kubernetes.io/admin-access"
"""The label of namespaces in which claims may have `adminAccess`, with the value `true`."""
ClaimKey = tuple[str, str]
"""The namespace and the name of a claim or a template."""


class Claim(NamedTuple):
    """The devices that a claim, or each claim of a template, requests."""

    requests: Mapping[str, Devices]
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
    other_namespaces: frozenset[str] = frozenset()
    """The known namespaces in which claims may not have `adminAccess`. The cluster may have more."""
    defaulted_namespaces: frozenset[str] = frozenset()
    """The namespaces with a LimitRange that sets requests or limits of containers; empty text if one names none."""

    def find_resource(self, device_class: str) -> str | None:
        """Return the resource that counts the devices of a class; None if the class is not known."""
        return self.classes.get(device_class, DEVICE_CLASSES.get(device_class))


_TEXTS = tuple(text.encode() for text in (GROUP, CHANNEL_GROUP, ADMIN_LABEL, "LimitRange"))


def may_concern_devices(content: bytes) -> bool:
    """Return True if a file may have objects that belong in a catalog; an escape may stand for any character."""
    return b"\\" in content or has_any(content, _TEXTS)


CatalogSource: TypeAlias = Callable[[], DeviceCatalog]
"""Reads the catalog; called only for objects that claim devices."""


def no_catalog() -> DeviceCatalog:
    """Return the catalog of a cluster of which nothing is known."""
    return DeviceCatalog()


CLASS, CLAIM, TEMPLATE = "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"
KINDS = frozenset((CLASS, CLAIM, TEMPLATE))
_DOMAIN = "ComputeDomain"
_OTHER_KINDS = frozenset((("Namespace", ""), ("LimitRange", ""), (_DOMAIN, CHANNEL_GROUP)))
# What a LimitRange sets in containers that do not say it: the bounds are defaults of the defaults.
_DEFAULTS = ("default", "defaultRequest", "max", "min")
_driver = lazy_pattern(r"""\bdevice\.driver\s*==\s*(["'])([^"']+)\1""")
_DEFINED_TWICE = Claim({}, "it is defined more than once, and not the same")


def concerns_devices(obj: Mapping[str, Plain]) -> bool:
    """Return True if an object belongs in a catalog: devices, claims, namespaces, which may allow some, LimitRanges."""
    return _belongs_in_catalog(as_text(obj.get("kind")), as_text(obj.get("apiVersion")))


def is_device_kind(identity: Identity) -> bool:
    """Return True if the objects of a kind belong in a catalog."""
    return _belongs_in_catalog(identity.kind, identity.api_version)


def _belongs_in_catalog(kind: str, api_version: str) -> bool:
    group = api_version.rpartition("/")[0]
    return (kind in KINDS and group == GROUP) or (kind, group) in _OTHER_KINDS


def build_catalog(
    objects: Iterable[Mapping[str, Plain]], gpu_resource: str, exported: Iterable[Mapping[str, Plain]] = ()
) -> DeviceCatalog:
    """Return what objects define, and exported ones with other names; `gpu_resource` counts GPUs in the cluster."""
    own, other = ([obj for obj in each if concerns_devices(obj)] for each in (objects, exported))
    named = [(as_text(obj.get("kind")), as_text(get_path(obj, "metadata", "name")), obj) for obj in (*other, *own)]
    classes = {name: _find_resource(obj, gpu_resource) for kind, name, obj in named if kind == CLASS}
    catalog = DeviceCatalog(classes)
    templates: dict[ClaimKey, Claim] = {}
    claims: dict[ClaimKey, Claim] = {}
    for each in (other, own):
        templates |= _index(each, TEMPLATE, catalog, "spec", "spec")
        # The operator of ComputeDomains creates templates that request channels, and no devices.
        for obj in each:
            if as_text(obj.get("kind")) == _DOMAIN:
                name = as_text(get_path(obj, "spec", "channel", "resourceClaimTemplate", "name"))
                templates[as_text(get_path(obj, "metadata", "namespace")), name] = Claim({})
        claims |= _index(each, CLAIM, catalog, "spec")
    namespaces = [
        (name, get_path(obj, "metadata", "labels", ADMIN_LABEL)) for kind, name, obj in named if kind == "Namespace"
    ]
    admin = {name for name, label in namespaces if as_text(label) == "true"}
    others = frozenset(name for name, _ in namespaces if name not in admin)
    defaulted = frozenset(
        as_text(get_path(obj, "metadata", "namespace"))
        for kind, _, obj in named
        if kind == "LimitRange" and _sets_defaults(obj)
    )
    return DeviceCatalog(classes, templates, claims, others, defaulted)


def _sets_defaults(limit_range: Mapping[str, Plain]) -> bool:
    items = (as_mapping(item) for item in as_list(get_path(limit_range, "spec", "limits")))
    return any(as_text(item.get("type")) == "Container" and any(map(item.get, _DEFAULTS)) for item in items)


def _find_resource(device_class: Mapping[str, Plain], gpu_resource: str) -> str:
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
    objects: Iterable[Mapping[str, Plain]], kind: str, catalog: DeviceCatalog, *path: str
) -> dict[ClaimKey, Claim]:
    found: dict[ClaimKey, Claim] = {}
    for obj in objects:
        if as_text(obj.get("kind")) == kind:
            metadata = as_mapping(obj.get("metadata"))
            key = (as_text(metadata.get("namespace")), as_text(metadata.get("name")))
            requests: dict[str, Devices] = {}
            reasons: list[str] = []
            for request in map(as_mapping, as_list(get_path(obj, *path, "devices", "requests"))):
                # Before `resource.k8s.io/v1beta2`, the fields of `exactly` were those of the request itself.
                exactly = as_mapping(request.get("exactly", request))
                alternatives = [as_mapping(one) for one in as_list(request.get("firstAvailable"))] or [exactly]
                options = [_count_request(one, catalog, reasons) for one in alternatives]
                # The scheduler takes the first that is available: the most devices are the most that it may be.
                requests[as_text(request.get("name"))] = max(options, key=lambda each: sum(each.values()))
            claim = Claim(requests, reasons[0] if reasons else "")
            found[key] = claim if found.get(key, claim) == claim else _DEFINED_TWICE
    return found


def _count_request(request: Mapping[str, Plain], catalog: DeviceCatalog, reasons: list[str]) -> Devices:
    if request.get("adminAccess") is True:
        # Access for monitoring takes no device from others.
        return {}
    device_class = as_text(request.get("deviceClassName"))
    resource = catalog.find_resource(device_class)
    if resource is None:
        reasons.append(f"the DeviceClass `{device_class}` is not in the repository")
    elif resource and as_text(request.get("allocationMode")) == "All":
        reasons.append("it requests all devices of a node (`allocationMode: All`)")
    elif resource:
        count = as_integer(request.get("count"))
        return {resource: max(1 if count is None else count, 0) or 1}
    return {}


class PodClaim(NamedTuple):
    """A claim of a pod: a claim of its own, made from a template, or one that it shares with other pods."""

    place: At | None
    """The place of its name."""
    kind: str
    key: ClaimKey
    definition: Claim | None
    """What the claim requests; None if that is not known."""

    @property
    def is_shared(self) -> bool:
        """Return True if other pods may have the same claim."""
        return self.kind == CLAIM

    @property
    def is_counted(self) -> bool:
        """Return True if it is known how many devices it requests."""
        return self.definition is not None and not self.definition.uncounted


class SharedDevices(NamedTuple):
    """GPUs of a claim that several pods share: they count once."""

    claim: ClaimKey
    gpus: int


def find_claims(entries: Plain, namespace: str, read_catalog: CatalogSource) -> Iterator[tuple[str, PodClaim]]:
    """Yield the claims that `resourceClaims` of a pod lists, each with its name in the pod."""
    for entry in as_list(entries):
        if isinstance(entry, dict):
            kind = CLAIM if as_text(entry.get("resourceClaimName")) else TEMPLATE
            field = "resourceClaimName" if kind == CLAIM else "resourceClaimTemplateName"
            key = (namespace, as_text(entry.get(field)))
            known = read_catalog().claims if kind == CLAIM else read_catalog().templates
            yield as_text(entry.get("name")), PodClaim(find_at(entry, field), kind, key, known.get(key))
