"""An image without drivers for the GPUs that its container holds."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.images import parse_image_name
from jobgen.k8s.objects import Container, as_text

_ACCELERATED = frozenset(("gpu", "cuda", "rocm", "npu", "hpu", "tpu"))


@rule("container", WARNING, fields=("image",))
def cpu_image_on_gpus(container: Container) -> Iterator[Violation]:
    """An image that is built for CPUs, by its name, in a container that holds GPUs.

    The framework in it does not see the devices: it trains on the CPU, or fails at the first `cuda()`, and nobody else
    can use them. Take the image for GPUs, or ask for none.
    """
    image = as_text(container.data["image"])
    if "cpu" not in image or not container.gpus:
        return
    features = parse_image_name(image).name_tokens
    if "cpu" in features and not features & _ACCELERATED:
        message = f"`{image}` is built for CPUs, and the container holds {container.gpus} accelerators"
        message = message.removesuffix("s") if container.gpus == 1 else message
        yield Violation(container.data["image"], f"{message}; take an image that can use it")
