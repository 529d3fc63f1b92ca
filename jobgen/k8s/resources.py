"""What a job asks for: accelerators, CPU and memory of all its pods, as its manifest declares them."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.model.quantity import canonicalize_quantity, to_milli


class ResourceTotals(NamedTuple):
    """Accelerators, and thousandths of CPUs and of bytes."""

    gpus: int = 0
    cpu: int = 0
    memory: int = 0


def add_totals(one: ResourceTotals, other: ResourceTotals) -> ResourceTotals:
    """Both together."""
    return ResourceTotals(one.gpus + other.gpus, one.cpu + other.cpu, one.memory + other.memory)


def sum_resources(manifest: Manifest) -> ResourceTotals:
    """What all pods of a job ask for: their requests, or their limits where nothing is requested."""
    total = ResourceTotals()
    for role in manifest.roles:
        count = role.count
        pods = ResourceTotals(role.gpus, count * _of_pod(role.pod, "cpu"), count * _of_pod(role.pod, "memory"))
        total = add_totals(total, pods)
    return total


def _of_pod(pod: Pod, resource: str) -> int:
    """Containers run side by side, and those that prepare run one by one before them."""
    preparing = [_wanted(container, resource) for container in pod.init_containers]
    return max([sum(_wanted(container, resource) for container in pod.containers), *preparing])


def _wanted(container: Container, resource: str) -> int:
    found = to_milli(container.requests.get(resource))
    return (found if found is not None else to_milli(container.limits.get(resource))) or 0


def format_cpu(thousandths: int) -> str:
    """An amount of CPU as Kubernetes prints it."""
    return canonicalize_quantity(f"{thousandths}m") or ""


def format_memory(thousandths: int) -> str:
    """An amount of memory as people write it: in powers of 1024 where it is whole."""
    size = -(-thousandths // 1000)
    return canonicalize_quantity(f"{size // 1024}Ki" if size % 1024 == 0 else str(size)) or ""
