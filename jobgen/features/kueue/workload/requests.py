"""What the pods of a workload request, as Kueue charges it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from jobgen.features.kueue.amounts import UNLIMITED, add, to_amount, to_multiples
from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_quantity

Amounts = dict[str, int]
"""Amounts by resource."""

_NANO = 10**9
_POD_LEVEL = frozenset(("cpu", "memory"))


class Transformation(NamedTuple):
    """How one resource is charged as others."""

    source: str
    strategy: str
    outputs: Mapping[str, int]
    """Factors by resource, in nanos."""
    multiply_by: str = ""


class DeviceMappings(NamedTuple):
    """How devices that pods claim are charged."""

    resources: Mapping[str, str] = {}
    """The resource of each device class."""
    measured: frozenset[str] = frozenset()
    """Device classes that are charged by counters or capacity of their devices, not by their number."""


class ResourceSettings(NamedTuple):
    """The part of Kueue's configuration that concerns requests."""

    excluded_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    devices: DeviceMappings = DeviceMappings()


NO_SETTINGS = ResourceSettings()


def parse_settings(config: Mapping[str, Any]) -> ResourceSettings:
    """Parse `excludeResourcePrefixes`, `transformations` and `deviceClassMappings`."""
    return ResourceSettings(
        tuple(map(str, as_list(config.get("excludeResourcePrefixes")))),
        tuple(_parse_transformation(each) for each in map(as_mapping, as_list(config.get("transformations")))),
        _parse_devices(config.get("deviceClassMappings")),
    )


def _parse_devices(raw: Any) -> DeviceMappings:
    """Parse `deviceClassMappings`. Of several resources of a device class, the first counts."""
    resources: dict[str, str] = {}
    measured = set()
    for mapping in map(as_mapping, as_list(raw)):
        for name in map(str, as_list(mapping.get("deviceClassNames"))):
            resources.setdefault(name, str(mapping.get("name", "")))
            if mapping.get("sources"):
                measured.add(name)
    return DeviceMappings(resources, frozenset(measured))


def _parse_transformation(raw: Mapping[str, Any]) -> Transformation:
    outputs = {str(name): to_nanos(factor) for name, factor in as_mapping(raw.get("outputs")).items()}
    return Transformation(
        str(raw.get("input", "")), str(raw.get("strategy") or "Retain"), outputs, str(raw.get("multiplyBy") or "")
    )


def to_nanos(quantity: Any) -> int:
    """Convert a quantity to nanos; what is no quantity is 0."""
    return _parse_nanos(str(quantity))


@lru_cache(4096)
def _parse_nanos(text: str) -> int:
    """Convert the text of a quantity. Few different ones occur in many jobs."""
    found = parse_quantity(text)
    return 0 if found is None else to_multiples(found, -9)


Exact = dict[str, int]
"""Quantities by resource, in nanos: exact, before they are rounded."""


def sum_pod_requests(spec: Mapping[str, Any]) -> Exact:
    """Sum the requests of one pod as Kubernetes does: containers, sidecars, init containers, overhead.

    Limits do not count; `adjust.py` makes them requests where Kueue does.
    """
    total: Exact = {}
    for container in map(as_mapping, as_list(spec.get("containers"))):
        _add_all(total, _read_requests(container))
    sidecars: Exact = {}
    largest: Exact = {}
    for container in map(as_mapping, as_list(spec.get("initContainers"))):
        own = _read_requests(container)
        if container.get("restartPolicy") == "Always":
            _add_all(total, own)
            _add_all(sidecars, own)
            _keep_largest(largest, sidecars)
        else:
            together = dict(sidecars)
            _add_all(together, own)
            _keep_largest(largest, together)
    _keep_largest(total, largest)
    for name, amount in _read_requests(spec).items():
        # Requests of the whole pod replace those of its containers. Pods cannot request other resources as a whole.
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = amount
    _add_all(total, {str(name): to_nanos(value) for name, value in as_mapping(spec.get("overhead")).items()})
    return total


def _read_requests(holder: Mapping[str, Any]) -> Exact:
    requests = as_mapping(as_mapping(holder.get("resources")).get("requests"))
    return {str(name): to_nanos(value) for name, value in requests.items()}


def _add_all(total: Exact, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _keep_largest(total: Exact, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        total[name] = max(total.get(name, amount), amount)


def charge_pod(requests: Exact, settings: ResourceSettings = NO_SETTINGS) -> Amounts:
    """Convert the requests of a pod to the amounts that Kueue charges for it."""
    kept = {
        name: amount for name, amount in requests.items() if not name.startswith(settings.excluded_prefixes or ("\0",))
    }
    transformed = _transform(kept, settings.transformations)
    return {name: _round_up(name, amount) for name, amount in transformed.items()}


def _transform(requests: Exact, transformations: Iterable[Transformation]) -> Mapping[str, int | Fraction]:
    by_source = {each.source: each for each in transformations}
    if not by_source.keys() & requests.keys():
        return requests
    retained: dict[str, int | Fraction] = {}
    made: dict[str, int | Fraction] = {}
    for name, amount in requests.items():
        found = by_source.get(name)
        if found is None or found.strategy != "Replace":
            retained[name] = amount
        if found is None:
            continue
        for output, factor in found.outputs.items():
            value = Fraction(amount) * factor / _NANO
            if found.multiply_by in requests:
                value = value * requests[found.multiply_by] / _NANO
            made[output] = made.get(output, 0) + value
    for name, sum_made in made.items():
        retained[name] = retained.get(name, 0) + max(sum_made, 0)
    return retained


def _round_up(resource: str, nanos: int | Fraction) -> int:
    unit = _NANO // 1000 if resource == "cpu" else _NANO
    return min(max(-(-nanos // unit), 0), UNLIMITED)


def multiply(amounts: Mapping[str, int], count: int) -> Amounts:
    """Multiply amounts by a number of pods."""
    return {name: min(amount * count, UNLIMITED) for name, amount in amounts.items()}


def read_amounts(quantities: Mapping[str, Any]) -> Amounts:
    """Read quantities by resource as amounts."""
    return {str(name): to_amount(str(name), value) for name, value in quantities.items()}


def sum_amounts(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    """Add amounts by resource."""
    return {name: add(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
