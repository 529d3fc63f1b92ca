"""GPU resources of different device plugins."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.devices import is_device
from jobgen.k8s.objects import Container
from jobgen.model.data import Node
from jobgen.model.quantity import to_milli


@rule("container", WARNING, fields=("resources",))
def mixed_gpu_resources(container: Container) -> Iterator[Violation]:
    """Whole and virtual GPUs, or GPUs of two vendors, in one container.

    A node offers its cards through one device plugin, as `nvidia.com/gpu` or as `nvidia.com/vgpu`, and seldom has cards
    of two vendors. The pod usually stays `Pending`.

    Remove one of them; often it is a leftover.
    """
    limits = container.limits
    if len(limits) < 2:
        return
    found: list[Node] = [key for key in limits if "/" in key and is_device(str(key)) and to_milli(limits[key])]
    for number, key in enumerate(found[1:], 1):
        other = next((earlier for earlier in found[:number] if _are_exclusive(str(earlier), str(key))), None)
        if other is not None:
            message = f"no node is likely to offer both `{key}` and `{other}`; remove one of them"
            yield Violation(key, message, ((other, "the other resource"),))


def _are_exclusive(one: str, other: str) -> bool:
    virtual = {one, other} == {"nvidia.com/gpu", "nvidia.com/vgpu"}
    return virtual or one.partition("/")[0] != other.partition("/")[0]
