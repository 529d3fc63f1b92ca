"""The total resources of a job: accelerators, CPU and memory of all its pods, as the manifest declares them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from jobgen.k8s.device_claims import SharedDevices
from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.k8s.pod_sets import POD_SETS, find_pods
from jobgen.model.quantity import canonicalize_quantity, to_milli


class ResourceTotals(NamedTuple):
    """Accelerators, thousandths of CPUs, and thousandths of bytes."""

    gpus: int = 0
    cpu: int = 0
    memory: int = 0
    shared: frozenset[SharedDevices] = frozenset()
    """Which of the accelerators belong to claims that other jobs may share."""

    @property
    def amounts(self) -> tuple[int, int, int]:
        """Accelerators, CPU and memory."""
        return self.gpus, self.cpu, self.memory


def add_totals(one: ResourceTotals, other: ResourceTotals) -> ResourceTotals:
    """Return the sum of two totals, in which a shared claim counts once."""
    gpus = sum_gpus(((one.gpus, one.shared), (other.gpus, other.shared)))
    return ResourceTotals(gpus, one.cpu + other.cpu, one.memory + other.memory, one.shared | other.shared)


def sum_gpus(jobs: Iterable[tuple[int, Iterable[Any]]]) -> int:
    """Return the sum of the GPUs of jobs, each with the shared claims among them, which count once."""
    total, seen = 0, set()
    for gpus, shared in jobs:
        total += gpus
        for claim, count in shared:
            total -= count if claim in seen else 0
            seen.add(claim)
    return total


def count_gpus(manifest: Manifest) -> int:
    """Return the number of GPUs of all pods of an object of any kind."""
    own = sum(count * pod.gpus for pod, count in list_counted_pods(manifest) if count)
    return own + sum(each.gpus for each in find_shared_devices(manifest))


def count_pods(manifest: Manifest) -> Iterator[tuple[Pod, int]]:
    """Yield the pod templates of an object, each with the number of its pods; 0 while the object is suspended.

    A DaemonSet counts as one pod, because its number of nodes is unknown. A template that others complete counts 0.
    """
    pod_sets = POD_SETS.get((manifest.group, manifest.kind_name))
    suspended = is_suspended(manifest)
    if manifest.kind is not None and pod_sets is None:
        for role in manifest.roles:
            yield role.pod, 0 if suspended else role.count
        own = {id(role.pod) for role in manifest.roles}
        yield from ((pod, 0) for pod in manifest.pods if id(pod) not in own)
        return
    pods = {id(pod.template): pod for pod in manifest.pods} if manifest.kind else {}
    for found in find_pods(manifest.object, pod_sets or ()):
        if isinstance(found.template, dict):
            pod = pods.get(id(found.template)) or Pod(found.template, manifest)
            yield pod, 0 if suspended or found.is_stopped else found.total


def list_counted_pods(manifest: Manifest) -> list[tuple[Pod, int]]:
    """Return the pods of an object of any kind, each with the number of times that it counts."""
    if not manifest.kind:
        return list(count_pods(manifest))
    # A kind with a description counts as a whole also while a job is suspended.
    roles = [(role.pod, role.count) for role in manifest.roles]
    if len(manifest.pods) == len(roles):
        return roles
    return roles + [(pod, count) for pod, count in count_pods(manifest) if count and pod.role is None]


def find_shared_devices(manifest: Manifest) -> tuple[SharedDevices, ...]:
    """Return the GPUs of claims that the pods of an object of any kind share."""
    return manifest.list_shared_devices(pod for pod, count in list_counted_pods(manifest) if count)


def sum_resources(manifest: Manifest) -> ResourceTotals:
    """Return the total of all pods of a job: their requests, or their limits for resources without a request."""
    total = ResourceTotals()
    for pod, count in list_counted_pods(manifest):
        pods = ResourceTotals(
            count * pod.gpus, count * sum_pod_requests(pod, "cpu"), count * sum_pod_requests(pod, "memory")
        )
        total = add_totals(total, pods)
    return add_totals(total, _sum_shared(manifest))


def _sum_shared(manifest: Manifest) -> ResourceTotals:
    shared = find_shared_devices(manifest)
    return ResourceTotals(sum(each.gpus for each in shared), shared=frozenset(shared))


def sum_pod_requests(pod: Pod, resource: str) -> int:
    """Return what one pod requests: the sum of its containers, or the largest init container; in thousandths."""
    init = [_get_request(container, resource) for container in pod.init_containers]
    return max([sum(_get_request(container, resource) for container in pod.containers), *init])


def _get_request(container: Container, resource: str) -> int:
    found = to_milli(container.requests.get(resource))
    return (found if found is not None else to_milli(container.limits.get(resource))) or 0


def format_cpu(thousandths: int) -> str:
    """Format thousandths of CPUs as Kubernetes prints them."""
    return canonicalize_quantity(f"{thousandths}m") or ""


def format_memory(thousandths: int) -> str:
    """Format thousandths of bytes, with a suffix such as `Gi` if the number is a multiple of 1024."""
    size = -(-thousandths // 1000)
    return canonicalize_quantity(f"{size // 1024}Ki" if size % 1024 == 0 else str(size)) or ""


_BYTES = ("memory", "storage", "hugepages-")


def format_amount(resource: str, thousandths: int) -> str:
    """Format thousandths of any resource as Kubernetes prints them."""
    is_size = any(word in resource for word in _BYTES)
    return format_memory(thousandths) if is_size else format_cpu(thousandths)


_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LONGEST_EXACT = len("9999Mi")


def summarize_memory(thousandths: int) -> str:
    """Format thousandths of bytes for people: exact if that is short, else in the largest unit with one decimal."""
    exact = format_memory(thousandths)
    if len(exact) <= _LONGEST_EXACT:
        return exact
    size, unit = abs(thousandths) / 1000, 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    sign = "-" if thousandths < 0 else ""
    return f"{sign}{size:.1f}{_UNITS[unit]}".replace(".0", "")
