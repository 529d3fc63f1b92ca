"""A volume in memory that is larger than the memory of its container."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Fault, rule
from jobgen.k8s.objects import Container, Pod, at, items, mapping, text
from jobgen.model.amounts import amount
from jobgen.model.data import Data, bare


@rule("pod", WARNING, fields=("volumes",))
def shm_over_memory(pod: Pod) -> Iterator[Fault]:
    """A volume with `medium: Memory` whose `sizeLimit` is above the memory limit of a container that mounts it.

    What is written there counts as the memory of who wrote it: the container is killed (`OOMKilled`) before the volume
    is full. Raise the memory limit, or make the volume smaller.
    """
    for volume in pod.volumes:
        if text(at(volume, "emptyDir", "medium")) != "Memory":
            continue
        node = at(volume, "emptyDir", "sizeLimit")
        size = amount(node) if node is not None else None
        for container in pod.containers if size else ():
            limit = container.limits.get("memory")
            memory = amount(limit) if limit is not None else None
            if size and memory and size > memory and _mounts(container, text(volume.get("name"))):
                yield Fault(node, _told(container, node, limit), ((limit, "the memory limit"),))


def _told(container: Container, size: Data, limit: Data) -> str:
    return f"`{bare(size)}` in memory, and the container `{container.name}` may use `{bare(limit)}` in all"


def _mounts(container: Container, name: str) -> bool:
    return any(text(mapping(mount).get("name")) == name for mount in items(container.data.get("volumeMounts")))
