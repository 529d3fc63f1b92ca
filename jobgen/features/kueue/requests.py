"""What pods request: the sum of their containers, with LimitRanges, overhead and the devices of claims."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from jobgen.features.kueue.objects import as_list, as_mapping, name_of
from jobgen.features.kueue.quota import UNLIMITED, add, to_amount, to_multiples
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_quantity

Amounts = dict[str, int]

_NANO = 10**9


class Transformation(NamedTuple):
    """How one resource is charged as others."""

    source: str
    strategy: str
    outputs: Mapping[str, int]
    """Factors by resource, in nanos."""
    multiply_by: str = ""


COUNTER, CAPACITY = "counter", "capacity"


class DeviceSource(NamedTuple):
    """A counter or a capacity of devices that is charged as a resource."""

    kind: str
    """`counter` or `capacity`."""
    name: str
    driver: str
    selector: str
    """A CEL expression about devices; empty for all."""
    resource: str


class DeviceMappings(NamedTuple):
    """How devices that pods claim are charged."""

    resources: Mapping[str, str] = {}
    """The resource of each device class."""
    sources: Mapping[str, tuple[DeviceSource, ...]] = {}
    """How device classes are charged whose devices are not just counted."""
    accepts_selectors: bool = True
    """False if the version of Kueue admits no claim that selects devices."""


class ResourceSettings(NamedTuple):
    """The part of Kueue's configuration that concerns requests."""

    excluded_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    devices: DeviceMappings = DeviceMappings()


NO_SETTINGS = ResourceSettings()


def parse_settings(config: Mapping[str, Any]) -> ResourceSettings:
    """Parse `excludeResourcePrefixes`, `transformations` and `deviceClassMappings`."""
    transformations = tuple(
        Transformation(
            str(raw.get("input", "")),
            str(raw.get("strategy") or "Retain"),
            {str(name): to_nanos(factor) for name, factor in as_mapping(raw.get("outputs")).items()},
            str(raw.get("multiplyBy") or ""),
        )
        for raw in map(as_mapping, as_list(config.get("transformations")))
    )
    resources: dict[str, str] = {}
    sources: dict[str, tuple[DeviceSource, ...]] = {}
    for mapping in map(as_mapping, as_list(config.get("deviceClassMappings"))):
        for name in map(str, as_list(mapping.get("deviceClassNames"))):
            # Of several resources of a device class, the first counts.
            resources.setdefault(name, str(mapping.get("name", "")))
            found = tuple(_list_sources(mapping))
            if found:
                sources[name] = (*sources.get(name, ()), *found)
    prefixes = tuple(map(str, as_list(config.get("excludeResourcePrefixes"))))
    return ResourceSettings(prefixes, transformations, DeviceMappings(resources, sources))


def _list_sources(mapping: Mapping[str, Any]) -> Iterator[DeviceSource]:
    for source in map(as_mapping, as_list(mapping.get("sources"))):
        for kind in (COUNTER, CAPACITY):
            if isinstance(raw := source.get(kind), dict):
                selector = as_mapping(as_mapping(raw.get("deviceSelector")).get("cel")).get("expression")
                texts = (raw.get("name"), raw.get("driver"), selector, mapping.get("name"))
                yield DeviceSource(kind, *(str(text or "") for text in texts))


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
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
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
    """Convert the requests of a pod to the amounts that Kueue charges for it, rounded up."""
    kept = {
        name: amount for name, amount in requests.items() if not name.startswith(settings.excluded_prefixes or ("\0",))
    }
    amounts: Amounts = {}
    for name, nanos in _transform(kept, settings.transformations).items():
        unit = _NANO // 1000 if name == "cpu" else _NANO
        amounts[name] = min(max(-(-nanos // unit), 0), UNLIMITED)
    return amounts


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


def multiply(amounts: Mapping[str, int], count: int) -> Amounts:
    """Multiply amounts by a number of pods."""
    return {name: min(amount * count, UNLIMITED) for name, amount in amounts.items()}


def read_amounts(quantities: Mapping[str, Any]) -> Amounts:
    """Read quantities by resource as amounts."""
    return {str(name): to_amount(str(name), value) for name, value in quantities.items()}


def sum_amounts(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    """Add amounts by resource."""
    return {name: add(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


CONTAINER: Final = "Container"
POD: Final = "Pod"


class Bounds(NamedTuple):
    """What all LimitRanges of a namespace say about containers, or about pods."""

    greatest: Mapping[str, Any] = MappingProxyType({})
    least: Mapping[str, Any] = MappingProxyType({})
    limits: Mapping[str, Any] = MappingProxyType({})
    """The limits of containers that have none."""
    requests: Mapping[str, Any] = MappingProxyType({})
    """The requests of containers that have none."""


Summary = Mapping[str, Bounds]


def summarize(limit_ranges: Iterable[Mapping[str, Any]]) -> Summary:
    """Combine LimitRanges: of bounds the strictest counts, of defaults the first."""
    found: dict[str, Bounds] = {}
    for limit_range in limit_ranges:
        for item in map(as_mapping, as_list(as_mapping(limit_range.get("spec")).get("limits"))):
            kind = str(item.get("type", ""))
            known = found.get(kind, Bounds())
            found[kind] = Bounds(
                _merge(known.greatest, item.get("max"), min),
                _merge(known.least, item.get("min"), max),
                _merge(known.limits, item.get("default"), None),
                _merge(known.requests, item.get("defaultRequest"), None),
            )
    return found


def keep_first(known: Any, more: Any) -> dict[str, Any]:
    """Add quantities of resources that have none yet."""
    return {**as_mapping(more), **as_mapping(known)}


def _merge(known: Any, more: Any, choose: Callable[..., Any] | None) -> dict[str, Any]:
    merged = keep_first(known, more)
    if choose is not None:
        both = as_mapping(known).keys() & as_mapping(more).keys()
        merged |= {name: choose(known[name], more[name], key=to_nanos) for name in both}
    return merged


class InvalidValue(NamedTuple):
    """A field with an invalid value, as the validation of Kubernetes reports it."""

    field: str
    detail: str
    value: Any

    def __str__(self) -> str:
        """The text that Kubernetes shows."""
        shown = json.dumps(self.value, default=str, separators=(",", ":"))
        return f"{self.field}: Invalid value: {shown}: {self.detail}"


def join_errors(errors: Sequence[InvalidValue]) -> str:
    """Join errors as Kubernetes does: several are in brackets, equal ones are shown once."""
    texts = list(dict.fromkeys(map(str, errors)))
    return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)


def find_invalid_requests(pod_sets: Sequence[Any], summary: Summary) -> str:
    """Return why the pods of a workload are invalid, in the words of Kueue; empty if they are valid."""
    if errors := list(list_above_limits(pod_sets)):
        return f"resources validation failed: {join_errors(errors)}"
    if errors := list(list_outside_bounds(pod_sets, summary)):
        return f"resources didn't satisfy LimitRange constraints: {join_errors(errors)}"
    return ""


def list_above_limits(pod_sets: Sequence[Any]) -> Iterator[InvalidValue]:
    """List the containers and pods whose requests exceed their limits."""
    for path, spec in _list_specs(pod_sets):
        for where, holder in (*_list_containers(path, spec), (f"{path}.resources", spec)):
            resources = as_mapping(holder.get("resources"))
            requests, limits = (read_amounts(as_mapping(resources.get(name))) for name in ("requests", "limits"))
            if names := _find_greater_amounts(requests, limits):
                yield InvalidValue(where, "requests must not exceed its limits", names)


def _list_specs(pod_sets: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for index, pod_set in enumerate(map(as_mapping, pod_sets)):
        yield f"spec.podSets[{index}].template.spec", as_mapping(as_mapping(pod_set.get("template")).get("spec"))


def _list_containers(path: str, spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in ("initContainers", "containers"):
        for index, container in enumerate(map(as_mapping, as_list(spec.get(field)))):
            yield f"{path}.{field}[{index}]", container


def _find_greater_amounts(one: Mapping[str, int], other: Mapping[str, int]) -> list[str]:
    return sorted(name for name in one.keys() & other.keys() if one[name] > other[name])


def list_outside_bounds(pod_sets: Sequence[Any], summary: Summary) -> Iterator[InvalidValue]:
    """List the containers and pods that are outside of the bounds of LimitRanges."""
    for path, spec in _list_specs(pod_sets):
        for where, container in _list_containers(path, spec) if CONTAINER in summary else ():
            resources = as_mapping(container.get("resources"))
            requests, limits = (as_mapping(resources.get(name)) for name in ("requests", "limits"))
            most, least = _merge(requests, limits, max), _merge(requests, limits, min)
            yield from _find_outside(where, read_amounts(most), read_amounts(least), summary[CONTAINER])
        if POD in summary:
            total = charge_pod(sum_pod_requests(spec))
            yield from _find_outside(path, total, total, summary[POD])


def _find_outside(
    path: str, most: Mapping[str, int], least: Mapping[str, int], bounds: Bounds
) -> Iterator[InvalidValue]:
    if names := _find_greater_amounts(most, read_amounts(bounds.greatest)):
        yield InvalidValue(path, "requests must not be above the limitRange max", names)
    if names := _find_greater_amounts(read_amounts(bounds.least), least):
        yield InvalidValue(path, "requests must not be below the limitRange min", names)


def read_overhead(runtime_class: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a RuntimeClass and the overhead of its pods."""
    return name_of(runtime_class), as_mapping(as_mapping(runtime_class.get("overhead")).get("podFixed"))


def adjust_pod_sets(
    pod_sets: Any, overheads: Mapping[str, Mapping[str, Any]], summary: Summary
) -> list[dict[str, Any]]:
    """Return pod sets whose pods have overhead, by their RuntimeClass, defaults, and limits as requests."""
    found = []
    for pod_set in map(as_mapping, as_list(pod_sets)):
        template = as_mapping(pod_set.get("template"))
        spec = as_mapping(template.get("spec"))
        changed: dict[str, Any] = {}
        if not as_mapping(spec.get("overhead")) and (overhead := overheads.get(str(spec.get("runtimeClassName")))):
            changed["overhead"] = overhead
        bounds = summary.get(CONTAINER, Bounds())
        for field in ("initContainers", "containers"):
            if isinstance(containers := spec.get(field), list):
                changed[field] = [_adjust_resources(as_mapping(each), bounds) for each in containers]
        if isinstance(spec.get("resources"), dict):
            changed["resources"] = _adjust_resources(spec, summary.get(POD, Bounds()))["resources"]
        found.append({**pod_set, "template": {**template, "spec": {**spec, **changed}}})
    return found


def _adjust_resources(holder: Mapping[str, Any], bounds: Bounds) -> Mapping[str, Any]:
    """Return a container or pod with all requests that it has in effect."""
    resources = as_mapping(holder.get("resources"))
    limits = keep_first(resources.get("limits"), bounds.limits)
    requests = keep_first(keep_first(resources.get("requests"), bounds.requests), limits)
    made = {**resources, "limits": limits, "requests": requests}
    kept = {name: value for name, value in made.items() if value}
    return {**holder, "resources": kept} if kept or resources else holder
