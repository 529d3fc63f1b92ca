"""Resources of different plugins in one container."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.accelerators import is_device
from jobgen.k8s.objects import Container
from jobgen.model.data import Data
from jobgen.model.quantity import to_milli


@rule("container", WARNING, fields=("resources",))
def mixed_gpu_resources(container: Container) -> Iterator[Violation]:
    """Whole GPUs beside virtual ones, or GPUs of two vendors, in one container.

    A node offers its cards to one plugin only, as `nvidia.com/gpu` or as `nvidia.com/vgpu`, and seldom has cards of two
    vendors: the pod stays Pending. Often one of them was left over; remove it.
    """
    limits = container.limits
    if len(limits) < 2:
        return
    found: list[Data] = [key for key in limits if "/" in key and is_device(str(key)) and to_milli(limits[key])]
    for number, key in enumerate(found[1:], 1):
        other = next((earlier for earlier in found[:number] if _apart(str(earlier), str(key))), None)
        if other is not None:
            message = f"`{key}` beside `{other}`: no node offers both; remove the one that was left over"
            yield Violation(key, message, ((other, "the other"),))


def _apart(one: str, other: str) -> bool:
    virtual = {one, other} == {"nvidia.com/gpu", "nvidia.com/vgpu"}
    return virtual or one.partition("/")[0] != other.partition("/")[0]
