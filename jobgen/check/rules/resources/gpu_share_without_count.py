"""A share of a GPU, and no GPU."""

from collections.abc import Iterator

from jobgen.check.rules import INFO, Violation, rule
from jobgen.k8s.accelerators import is_device
from jobgen.k8s.objects import Container

_SHARES = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")


@rule("container", INFO, fields=("resources",))
def gpu_share_without_count(container: Container) -> Iterator[Violation]:
    """Memory or cores of a GPU, without saying of how many GPUs.

    HAMi then adds as many as its settings say, usually one, and quotas and queues that count GPUs count none. Write
    `nvidia.com/vgpu` or `nvidia.com/gpu` beside it, as the cluster calls them.
    """
    limits = container.limits
    key = next((key for key in limits if key in _SHARES), None)
    if key is not None and not any(is_device(str(name)) for name in limits):
        yield Violation(key, f"`{key}` says how much of each GPU, and nothing how many; write their number beside it")
