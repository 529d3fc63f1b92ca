"""The total resources of a job: accelerators, CPU and memory of all its pods, as the manifest declares them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobgen.k8s.devices import PodClaim, SharedDevices
from jobgen.k8s.kueue import is_suspended
from jobgen.k8s.nodes import as_integer, as_mapping, find_nodes
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.k8s.workloads import POD_SETS, find_pods
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import Step
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
    """Yield the pod templates of an object, each with the number of its pods: 0 if it is suspended, or a fragment."""
    pod_sets = POD_SETS.get((manifest.group, manifest.kind_name))
    suspended = is_suspended(manifest)
    if manifest.kind is not None and pod_sets is None:
        for role in manifest.roles:
            yield role.pod, 0 if suspended else role.count
        own = {id(role.pod) for role in manifest.roles}
        others = _count_described_pods(manifest.object, manifest.kind.pods)
        for pod in manifest.pods:
            if id(pod) not in own:
                yield pod, 0 if suspended or pod.partial else others.get(id(pod.template), 1)
        return
    pods = {id(pod.template): pod for pod in manifest.pods} if manifest.kind else {}
    for found in find_pods(manifest.object, pod_sets or ()):
        if isinstance(found.template, dict):
            pod = pods.get(id(found.template)) or Pod(found.template, manifest)
            yield pod, 0 if suspended or found.is_stopped else found.total


def _count_described_pods(obj: Mapping[str, Plain], paths: Iterable[Sequence[Step]]) -> dict[int, int]:
    """Return the number of pods of each template in `pods` of a kind description that has `replicas` beside it."""
    items = ((as_mapping(item), str(path[-1])) for path in paths for item in find_nodes(obj, path[:-1]))
    counts = ((item.get(field), as_integer(item.get("replicas"))) for item, field in items)
    return {id(template): max(count, 0) for template, count in counts if count is not None}


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
        cpu, memory = (count * sum_pod_requests(pod, name) for name in ("cpu", "memory"))
        total = add_totals(total, ResourceTotals(count * pod.gpus, cpu, memory))
    shared = find_shared_devices(manifest)
    return add_totals(total, ResourceTotals(sum(each.gpus for each in shared), shared=frozenset(shared)))


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


def format_amount(resource: str, thousandths: int) -> str:
    """Format thousandths of any resource as Kubernetes prints them."""
    is_size = any(word in resource for word in ("memory", "storage", "hugepages-"))
    return format_memory(thousandths) if is_size else format_cpu(thousandths)


_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def summarize_memory(thousandths: int) -> str:
    """Format thousandths of bytes for people: exact if that is short, else in the largest unit with one decimal."""
    exact = format_memory(thousandths)
    if len(exact) <= len("9999Mi"):
        return exact
    size, unit = abs(thousandths) / 1000, 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    sign = "-" if thousandths < 0 else ""
    return f"{sign}{size:.1f}{_UNITS[unit]}".replace(".0", "")


# What the pods of a job request of accelerators and of other resources.

if TYPE_CHECKING:
    from fractions import Fraction

_UNCOUNTED = "devices of a claim"
"""In place of a resource, if it is not known how many devices a claim requests."""


class RequestedAmount(NamedTuple):
    """What all pods of a template request of one resource; bytes in GiB."""

    pod: Pod
    resource: str
    amount: Fraction


def list_amounts(manifest: Manifest, resources: frozenset[str] = frozenset()) -> Iterator[RequestedAmount]:
    """Yield the accelerators that pods request, and what they request of `resources`."""
    # Imported late: only budgets need it.
    from fractions import Fraction

    shared: dict[object, tuple[Pod, Mapping[str, int]]] = {}
    for pod, count in list_counted_pods(manifest):
        if not count:
            continue
        shared |= {each.key: (pod, _list_devices(each)) for each in pod.claims.values() if each.is_shared}
        devices = _count_devices(pod)
        yield from (RequestedAmount(pod, name, Fraction(number * count)) for name, number in devices.items())
        for resource in sorted(resources - devices.keys()):
            if amount := sum_pod_requests(pod, resource):
                unit = 1000 * (2**30 if resource in ("memory", "ephemeral-storage") else 1)
                yield RequestedAmount(pod, resource, Fraction(amount * count, unit))
    for pod, counts in shared.values():
        yield from (RequestedAmount(pod, name, Fraction(number)) for name, number in counts.items())


def _count_devices(pod: Pod) -> dict[str, int]:
    """Count the accelerators of one pod by resource, without those of claims that it shares with other pods."""
    found: dict[str, int] = {}
    for name in {name for each in (*pod.containers, *pod.init_containers) for name in each.own_devices}:
        beside = most = 0
        for container in pod.init_containers:
            number = _count_own(container, name)
            most = max(most, beside + number)
            beside += number if container.is_sidecar else 0
        found[name] = max(most, beside + sum(_count_own(each, name) for each in pod.containers))
    for claim in pod.claims.values():
        for name, number in _list_devices(claim).items() if not claim.is_shared else ():
            found[name] = found.get(name, 0) + number
    return {name: number for name, number in sorted(found.items()) if number}


def _count_own(container: Container, resource: str) -> int:
    return (to_milli(container.own_devices.get(resource)) or 0) // 1000


def _list_devices(claim: PodClaim) -> Mapping[str, int]:
    if claim.definition is None or not claim.is_counted:
        return {_UNCOUNTED: 1}
    return claim.definition.list_devices()
