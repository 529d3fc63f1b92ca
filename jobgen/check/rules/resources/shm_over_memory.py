"""Memory volumes larger than a memory limit."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Container, Pod
from jobgen.model.data import Node, value_of
from jobgen.model.quantity import to_milli


@rule("pod", WARNING, fields=("volumes",))
def shm_over_memory(pod: Pod) -> Iterator[Violation]:
    """A volume with `medium: Memory` whose `sizeLimit` exceeds the memory limit of a container that mounts it.

    Files in the volume count as memory of the container that wrote them. If they grow, the container is killed
    (`OOMKilled`) before the volume is full.

    Raise the memory limit, or reduce the size of the volume.
    """
    for volume in pod.volumes:
        if as_text(get_path(volume, "emptyDir", "medium")) != "Memory":
            continue
        node = get_path(volume, "emptyDir", "sizeLimit")
        size = to_milli(node) if node is not None else None
        for container in pod.containers if size else ():
            limit = container.limits.get("memory")
            memory = to_milli(limit) if limit is not None else None
            if size and memory and size > memory and _mounts(container, as_text(volume.get("name"))):
                yield Violation(
                    node, _format_message(container, node, limit), ((limit, "the memory limit"), (limit, ""))
                )


def _format_message(container: Container, size: Node, limit: Node) -> str:
    exceeded = f"the memory limit of container `{container.name}`, `{value_of(limit)}`"
    return f"a memory volume of `{value_of(size)}` exceeds {exceeded}; raise the limit or reduce the size"


def _mounts(container: Container, name: str) -> bool:
    return any(as_text(as_mapping(mount).get("name")) == name for mount in as_list(container.data.get("volumeMounts")))
