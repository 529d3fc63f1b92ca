"""Shares of a GPU that no GPU has."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Container
from jobgen.model.quantity import to_milli

_PERCENT = ("nvidia.com/gpucores", "nvidia.com/gpumem-percentage")
_MEMORY = "nvidia.com/gpumem"
_MORE_THAN_ANY_GPU_HAS = 1_000_000_000  # thousandths of MiB: about a terabyte


@rule("container", ERROR, fields=("resources",))
def gpu_share_range(container: Container) -> Iterator[Violation]:
    """More than 100 percent of a GPU, or more memory than any GPU has.

    `nvidia.com/gpumem` is counted in MiB: `8Gi` means eight thousand million of them, and the pod stays Pending for
    ever. Write `8192`. `gpucores` and `gpumem-percentage` are percents of each card; ask for more cards instead.
    """
    limits = container.limits
    for name in _PERCENT:
        if name in limits and (to_milli(limits[name]) or 0) > 100_000:
            message = f"`{name}` is a percentage of each GPU, and goes to 100; ask for more GPUs instead"
            yield Violation(limits[name], message, severity=WARNING)
    if _MEMORY in limits and (to_milli(limits[_MEMORY]) or 0) > _MORE_THAN_ANY_GPU_HAS:
        message = f"`{_MEMORY}` is counted in MiB, and no GPU has so many; write `8192` for 8 GiB"
        yield Violation(limits[_MEMORY], message)
