"""What the pods of a job request of accelerators and of other resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from jobgen.k8s.device_claims import PodClaim
from jobgen.k8s.objects import Container, Manifest, Pod
from jobgen.k8s.resources import list_counted_pods, sum_pod_requests
from jobgen.model.quantity import to_milli

if TYPE_CHECKING:
    from fractions import Fraction

_GIB = 2**30
_BYTES = frozenset(("memory", "ephemeral-storage"))
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
                unit = 1000 * (_GIB if resource in _BYTES else 1)
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
