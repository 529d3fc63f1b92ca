"""CPU-only images on GPUs."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.devices import format_devices
from jobgen.k8s.images import parse_image_name
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Container

_ACCELERATED = frozenset(("gpu", "cuda", "rocm", "npu", "hpu", "tpu"))


@rule("container", WARNING, fields=("image",))
def cpu_image_on_gpus(container: Container) -> Iterator[Violation]:
    """An image built for CPUs, according to its name, in a container that requests accelerators.

    The framework in the image does not see the devices: it trains on the CPU or fails at the first `cuda()`, and no
    other job can use the devices in the meantime.

    Use an image built for the accelerator, or request none.
    """
    image = as_text(container.data["image"])
    if "cpu" not in image or not container.devices:
        return
    features = parse_image_name(image).name_tokens
    if "cpu" in features and not features & _ACCELERATED:
        devices = format_devices(container.devices)
        message = f"`{image}` is built for CPUs, but the container requests {devices}; use an image built for them"
        yield Violation(container.data["image"], message, ((container.device_node, ""),))
