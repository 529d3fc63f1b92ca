"""The GPUs that the processes of a container see, and the variables that limit them."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.features.launch.values import Pods, Program
from jobgen.k8s.devices import is_device, is_device_share
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.k8s.objects import Container
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

_VARIABLE = "CUDA_VISIBLE_DEVICES"
# Resources of a GPU that several containers share, or of a part of one.
_PARTS = lazy_pattern(r"nvidia\.com/(?:gpu\.shared|vgpu|mig-.*)|.*/(?:vgpu|sgpu)")


def count_visible(program: Program, pods: Pods) -> int | None:
    """Return the number of GPUs that processes see: CUDA stops at the first identifier that it does not have."""
    value = program.variable(_VARIABLE)
    if value is None or pods.gpus is None:
        return pods.gpus
    if value.text is None:
        return None
    return count_listed(value.text, pods.gpus)


def count_listed(text: str, gpus: int) -> int | None:
    """Return how many of the GPUs a list of identifiers shows; None if it has names."""
    seen: set[int] = set()
    for item in text.split(","):
        if not item.strip().isdecimal():
            # Names of devices, or an end such as -1.
            return None if item.strip().lstrip("-")[:1].isalpha() else len(seen)
        number = int(item[:9])
        if number >= gpus or number in seen:
            break
        seen.add(number)
    return len(seen)


def count_gpus(container: Container, limits: Mapping[str, Node]) -> int | None:
    """Return the GPUs of a container; None if they cannot be counted, as shares, or are other devices."""
    if any(_PARTS.match(str(name)) or is_device_share(str(name)) for name in limits):
        return None
    if as_list(as_mapping(container.data.get("resources")).get("claims")):
        claims = container.pod.claims.values()
        if any(each.definition is None or each.definition.uncounted or each.is_shared for each in claims):
            return None
        return container.gpus or None
    manifest = container.pod.manifest
    devices = {
        str(name): value
        for name, value in limits.items()
        if is_device(str(name)) or name == manifest.cluster.gpu_resource
    }
    count = manifest.count_gpus(devices)
    # Other accelerators are counted in other ways.
    return None if devices and not count else count
