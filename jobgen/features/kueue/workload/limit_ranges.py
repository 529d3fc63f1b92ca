"""LimitRanges: the defaults and bounds that they set for the pods of a workload.

Kueue applies the LimitRanges of a namespace to its workloads. A workload that is outside of them stays pending,
however much quota is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.workload.field_errors import INVALID, FieldError, join_errors
from jobgen.features.kueue.workload.requests import charge_pod, read_amounts, sum_pod_requests, to_nanos
from jobgen.model.named_tuple import NamedTuple

CONTAINER: Final = "Container"
POD: Final = "Pod"

Quantities = Mapping[str, Any]
"""Quantities by resource, as they are written."""


class Bounds(NamedTuple):
    """What all LimitRanges of a namespace say about containers, or about pods."""

    greatest: Quantities = MappingProxyType({})
    least: Quantities = MappingProxyType({})
    limits: Quantities = MappingProxyType({})
    """The limits of containers that have none."""
    requests: Quantities = MappingProxyType({})
    """The requests of containers that have none."""


Summary = Mapping[str, Bounds]
"""Bounds by type."""


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


def find_invalid_requests(pod_sets: Sequence[Any], summary: Summary) -> str:
    """Return why the pods of a workload are invalid, in the words of Kueue; empty if they are valid."""
    if errors := list(list_above_limits(pod_sets)):
        return f"resources validation failed: {join_errors(errors)}"
    if errors := list(list_outside_bounds(pod_sets, summary)):
        return f"resources didn't satisfy LimitRange constraints: {join_errors(errors)}"
    return ""


def list_above_limits(pod_sets: Sequence[Any]) -> Iterator[FieldError]:
    """List the containers and pods whose requests exceed their limits."""
    for path, spec in _list_specs(pod_sets):
        for field in ("initContainers", "containers"):
            for index, container in enumerate(map(as_mapping, as_list(spec.get(field)))):
                yield from _compare(f"{path}.{field}[{index}]", container)
        yield from _compare(f"{path}.resources", spec)


def _list_specs(pod_sets: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for index, pod_set in enumerate(map(as_mapping, pod_sets)):
        yield f"spec.podSets[{index}].template.spec", as_mapping(as_mapping(pod_set.get("template")).get("spec"))


def _compare(path: str, holder: Mapping[str, Any]) -> Iterator[FieldError]:
    resources = as_mapping(holder.get("resources"))
    if names := _find_greater(resources.get("requests"), resources.get("limits")):
        yield FieldError(path, INVALID, "requests must not exceed its limits", names)


def _find_greater(one: Any, other: Any) -> list[str]:
    """The resources of which one has more than another, if both have it."""
    return _find_greater_amounts(read_amounts(as_mapping(one)), read_amounts(as_mapping(other)))


def _find_greater_amounts(one: Mapping[str, int], other: Mapping[str, int]) -> list[str]:
    return sorted(name for name in one.keys() & other.keys() if one[name] > other[name])


def list_outside_bounds(pod_sets: Sequence[Any], summary: Summary) -> Iterator[FieldError]:
    """List the containers and pods that are outside of the bounds of LimitRanges."""
    for path, spec in _list_specs(pod_sets):
        for field in ("initContainers", "containers") if CONTAINER in summary else ():
            for index, container in enumerate(map(as_mapping, as_list(spec.get(field)))):
                resources = as_mapping(container.get("resources"))
                requests, limits = (as_mapping(resources.get(name)) for name in ("requests", "limits"))
                most, least = _merge(requests, limits, max), _merge(requests, limits, min)
                amounts = (read_amounts(most), read_amounts(least))
                yield from _find_outside(f"{path}.{field}[{index}]", *amounts, summary[CONTAINER])
        if POD in summary:
            total = charge_pod(sum_pod_requests(spec))
            yield from _find_outside(path, total, total, summary[POD])


def _find_outside(path: str, most: Mapping[str, int], least: Mapping[str, int], bounds: Bounds) -> Iterator[FieldError]:
    if names := _find_greater_amounts(most, read_amounts(bounds.greatest)):
        yield FieldError(path, INVALID, "requests must not be above the limitRange max", names)
    if names := _find_greater_amounts(read_amounts(bounds.least), least):
        yield FieldError(path, INVALID, "requests must not be below the limitRange min", names)
