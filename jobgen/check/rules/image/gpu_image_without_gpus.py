"""An image for GPUs in a job that has none."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.images import parse_image_name
from jobgen.k8s.objects import Manifest, Pod, as_text, get_path
from jobgen.model.lazy_re import lazy_pattern

_FOR_GPUS = lazy_pattern(r"gpu|cuda[0-9]*|cu1[0-9]{2}|cudnn[0-9]*|rocm[0-9]*")


@rule("job", INFO)
def gpu_image_without_gpus(manifest: Manifest) -> Iterator[Violation]:
    """An image that is built for GPUs, by its name, in a job of which no container asks for any device.

    It trains on the CPU, slowly, or fails at the first `cuda()`. Ask for GPUs in `resources.limits`, or take the
    smaller image for CPUs.
    """
    if manifest.gpus:
        return
    for role in manifest.roles:
        main = role.pod.main_container
        image = as_text(main.data.get("image")) if main else ""
        if main and ("cu" in image or "gpu" in image or "rocm" in image) and not role.pod.partial:
            found = next(filter(_FOR_GPUS.fullmatch, sorted(parse_image_name(image).name_tokens)), "")
            if found and not any(_may_see_devices(each.pod) for each in manifest.roles):
                message = f"`{found}` in the image's name says GPUs, and the job asks for none"
                yield Violation(main.data["image"], message)
                return


def _may_see_devices(pod: Pod) -> bool:
    """Whether a pod gets devices, also those that we do not know, or any that its node has."""
    return any(
        any("/" in name for name in (*container.limits, *container.requests))
        or get_path(container.data, "resources", "claims") is not None
        or get_path(container.data, "securityContext", "privileged") is not None
        for container in pod.containers
    )
