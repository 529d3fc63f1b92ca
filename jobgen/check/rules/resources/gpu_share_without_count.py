"""Shares of a GPU without a number of GPUs."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.devices import is_device
from jobgen.k8s.objects import Container

_SHARES = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")


@rule("container", INFO, fields=("resources",))
def gpu_share_without_count(container: Container) -> Iterator[Violation]:
    """Memory or cores of a GPU without a number of GPUs.

    HAMi then adds its configured default, usually one GPU, while quotas and queues that count GPUs count none.

    Add `nvidia.com/vgpu` or `nvidia.com/gpu`, whichever the cluster uses.
    """
    limits = container.limits
    key = next((key for key in limits if key in _SHARES), None)
    if key is not None and not any(is_device(str(name)) for name in limits):
        yield Violation(key, f"`{key}` sets the share of each GPU, but nothing sets the number of GPUs; add it")
