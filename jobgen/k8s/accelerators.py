"""Accelerator resources by name: whole devices, and shares of a device (its memory or cores)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from jobgen.model.data import Node
from jobgen.model.finding import pluralize
from jobgen.model.lazy_re import lazy_pattern
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

WELL_KNOWN_RESOURCES = (
    "nvidia.com/gpu",
    "nvidia.com/vgpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "google.com/tpu",
    "huawei.com/Ascend910",
    "huawei.com/Ascend310P",
    "cambricon.com/mlu",
    "cambricon.com/vmlu",
    "metax-tech.com/gpu",
    "metax-tech.com/sgpu",
    "hygon.com/dcunum",
    "iluvatar.ai/gpu",
    "mthreads.com/vgpu",
    "enflame.com/gcu",
    "kunlunxin.com/xpu",
    "birentech.com/gpu",
    "vastaitech.com/va",
)
"""The names to suggest for a misspelled resource."""


@cache
def is_device(resource: str) -> bool:
    """Return whether a resource counts accelerators."""
    return resource in _COMMON_DEVICES or ("/" in resource and _DEVICES.match(resource) is not None)


def name_device(resource: str) -> str:
    """Return what the vendor calls an accelerator: `GPU`, or another word."""
    return _OTHER_NOUNS.get(resource.partition("/")[0], "GPU")


def format_devices(resources: Mapping[str, Node]) -> str:
    """Return the accelerators in words, such as `2 GPUs` or `4 TPUs`."""
    counts: dict[str, int] = {}
    for name, value in resources.items():
        if is_device(str(name)) and (count := (to_milli(value) or 0) // 1000):
            noun = name_device(str(name))
            counts[noun] = counts.get(noun, 0) + count
    return " and ".join(pluralize(count, noun) for noun, count in counts.items())


@cache
def is_device_share(resource: str) -> bool:
    """Return whether a resource is a share of an accelerator: its memory or cores."""
    return _SHARES.match(resource) is not None


def find_device_node(limits: Mapping[str, Node], requests: Mapping[str, Node]) -> Node:
    """Return the node with the number of devices that a container requests, or None if it requests none."""
    resources = (*limits.items(), *requests.items())
    return next((value for name, value in resources if is_device(str(name)) and to_milli(value)), None)
