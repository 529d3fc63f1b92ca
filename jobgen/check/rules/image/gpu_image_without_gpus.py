"""GPU images in jobs without GPUs."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, WARNING, Violation, rule
from jobgen.k8s.images import find_gpu_word
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.lazy_re import lazy_pattern

# Images in which `NVIDIA_VISIBLE_DEVICES` is `all`.
_EXPOSING = lazy_pattern(r"(?:docker\.io/)?nvidia/cuda:|nvcr\.io/nvidia/")


@rule("job", INFO)
def gpu_image_without_gpus(manifest: Manifest) -> Iterator[Violation]:
    """An image built for GPUs, according to its name, in a job that requests no device.

    The job trains on the CPU, slowly, or fails at the first `cuda()`. Images of NVIDIA set `NVIDIA_VISIBLE_DEVICES` to
    `all`: where its container runtime is the default, the container sees all GPUs of the node, and disturbs the jobs
    that were given them. This is a warning.

    Request GPUs in `resources.limits`, or use the smaller image for CPUs.
    """
    if manifest.has_devices:
        return
    for role in manifest.roles:
        main = role.pod.main_container
        image = as_text(main.data.get("image")) if main else ""
        if main and not role.pod.partial:
            found = find_gpu_word(image)
            if found and not any(_may_see_devices(each.pod) for each in manifest.roles):
                message = f"the image is built for GPUs (`{found}` in its name), but the job requests none"
                exposes = _EXPOSING.match(image) and "NVIDIA_VISIBLE_DEVICES=" not in main.search_text
                message += ", and it then sees all GPUs of its node, without a reservation" if exposes else ""
                message += "; request GPUs or use an image for CPUs"
                yield Violation(main.data["image"], message, severity=WARNING if exposes else None)
                return


def _may_see_devices(pod: Pod) -> bool:
    """Return True if a pod may see devices: known ones, unknown extended resources, or all devices of its node."""
    return any(
        any("/" in name for name in (*container.limits, *container.requests))
        or get_path(container.data, "resources", "claims") is not None
        or get_path(container.data, "securityContext", "privileged") is not None
        for container in pod.containers
    )
