"""Values of a job that a cluster would reject. They count as nothing, so that the job would seem to fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.workload.requests import to_nanos
from jobgen.features.kueue.workload.workloads import PodSet
from jobgen.model.quantity import parse_quantity

_COUNTS: Final = frozenset(("completions", "instances", "numNodes", "numOfHosts", "parallelism", "replicas", "size"))
_MAX_SHOWN = 60


def find_unreadable(obj: Mapping[str, Any], pod_sets: Iterable[PodSet]) -> str:
    """Return the first number of pods or request of a job that is not valid; empty if all are."""
    return next(_list_counts(obj.get("spec")), "") or next(_list_requests(pod_sets), "")


def _list_counts(node: Any) -> Iterator[str]:
    """Yield numbers of pods that are no numbers, outside of the templates of pods."""
    if isinstance(node, list):
        for each in node:
            yield from _list_counts(each)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in _COUNTS and value is not None and (type(value) is not int or value < 0):
            yield f"`{key}` is `{_show(value)}`, and must be a whole number that is not negative"
        elif key != "template" or "template" in as_mapping(as_mapping(value).get("spec")):
            yield from _list_counts(value)


def _list_requests(pod_sets: Iterable[PodSet]) -> Iterator[str]:
    for pod_set in pod_sets:
        for field in ("containers", "initContainers"):
            for container in map(as_mapping, as_list(pod_set.spec.get(field))):
                resources = as_mapping(container.get("resources"))
                for several in ("requests", "limits"):
                    yield from _list_quantities(as_mapping(resources.get(several)))


def _list_quantities(quantities: Mapping[str, Any]) -> Iterator[str]:
    for name, value in quantities.items():
        nanos = to_nanos(value)
        if nanos < 0:
            yield f"`{_show(name)}` is `{_show(value)}`, and must not be negative"
        elif not nanos and value is not None and (type(value) is bool or parse_quantity(str(value)) is None):
            yield f"`{_show(name)}` is `{_show(value)}`, which is not a quantity"


def _show(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
