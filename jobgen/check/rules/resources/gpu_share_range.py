"""Shares of a GPU that are out of range."""

from collections.abc import Iterator

from jobgen.check.rules import ERROR, WARNING, Violation, rule
from jobgen.k8s.objects import Container
from jobgen.model.quantity import to_milli

_PERCENT = ("nvidia.com/gpucores", "nvidia.com/gpumem-percentage")
_MEMORY = "nvidia.com/gpumem"
_MORE_THAN_ANY_GPU_HAS = 1_000_000_000  # thousandths of MiB: about a terabyte


@rule("container", ERROR, fields=("resources",))
def gpu_share_range(container: Container) -> Iterator[Violation]:
    """A GPU share above 100 percent, or more memory than any GPU has.

    `nvidia.com/gpumem` counts MiB, so `8Gi` means more than eight billion MiB and the pod stays `Pending` forever.
    `gpucores` and `gpumem-percentage` are percentages of each card; more than 100 is a warning.

    Write `8192` for 8 GiB, and request more cards instead of more than 100 percent.
    """
    limits = container.limits
    for name in _PERCENT:
        if name in limits and (to_milli(limits[name]) or 0) > 100_000:
            message = f"`{name}` is a percentage of each GPU and must be at most 100; request more GPUs instead"
            yield Violation(limits[name], message, severity=WARNING)
    if _MEMORY in limits and (to_milli(limits[_MEMORY]) or 0) > _MORE_THAN_ANY_GPU_HAS:
        message = f"`{_MEMORY}` counts MiB, and no GPU has that many; write `8192` for 8 GiB"
        yield Violation(limits[_MEMORY], message)
