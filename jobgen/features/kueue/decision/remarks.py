"""What is wrong with the objects that decide about admission: what a cluster would reject, or jobgen cannot read.

A decision that rests on such an object is of little use, so the output names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from jobgen.features.kueue.objects import as_list, as_mapping, name_of
from jobgen.features.kueue.validation.flavors import validate_resource_flavor
from jobgen.features.kueue.validation.queues import validate_cluster_queue, validate_cohort
from jobgen.features.kueue.workload.field_errors import FieldError
from jobgen.model.quantity import parse_quantity

Object = Mapping[str, Any]

_VALIDATIONS: Final[Mapping[str, Callable[[Object], Iterator[FieldError]]]] = {
    "ClusterQueue": validate_cluster_queue,
    "Cohort": validate_cohort,
    "ResourceFlavor": validate_resource_flavor,
}
_STOP = ("None", "Hold", "HoldAndDrain")
_WORDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "ClusterQueue": {"stopPolicy": _STOP, "queueingStrategy": ("BestEffortFIFO", "StrictFIFO")},
    "LocalQueue": {"stopPolicy": _STOP},
}
"""Fields of a spec that have one of a few values."""
_QUOTAS = ("nominalQuota", "borrowingLimit", "lendingLimit")
_MAX_SHOWN, _MAX_ERROR = 60, 400
MAX_REMARKS: Final = 20


def list_invalid(by_kind: Mapping[str, tuple[Object, ...]]) -> Iterator[str]:
    """Yield what is wrong with objects, one text for each of them."""
    for kind, objects in by_kind.items():
        for obj in objects:
            found = next(_list_problems(kind, obj), "")
            if found:
                yield f"{kind} `{name_of(obj)}` is not valid: {found}"


def _list_problems(kind: str, obj: Object) -> Iterator[str]:
    spec = obj.get("spec")
    if spec is not None and not isinstance(spec, dict):
        yield "`spec` must be a mapping"
        return
    for field, words in _WORDS.get(kind, {}).items():
        value = as_mapping(spec).get(field)
        if value is not None and value not in words:
            yield f"`{field}` is `{_show(value)}`, and must be one of {', '.join(f'`{word}`' for word in words)}"
    if kind in ("WorkloadPriorityClass", "PriorityClass") and type(obj.get("value")) is not int:
        yield f"`value` is `{_show(json.dumps(obj.get('value'), default=str))}`, and must be a whole number"
    if kind in ("ClusterQueue", "Cohort"):
        yield from _list_unreadable(as_mapping(spec))
    yield from (_show(each, _MAX_ERROR) for each in _VALIDATIONS.get(kind, _accept)(obj))


def _accept(_: Object) -> Iterator[FieldError]:
    yield from ()


def _list_unreadable(spec: Object) -> Iterator[str]:
    """Yield quotas that are no quantities, and resources without a quota."""
    groups = spec.get("resourceGroups")
    if groups is not None and not isinstance(groups, list):
        yield "`resourceGroups` must be a list"
    for group in map(as_mapping, as_list(groups)):
        covered = list(map(str, as_list(group.get("coveredResources"))))
        for flavor in map(as_mapping, as_list(group.get("flavors"))):
            quotas = list(map(as_mapping, as_list(flavor.get("resources"))))
            yield from _list_quotas(quotas)
            if missing := sorted(set(covered) - {str(each.get("name")) for each in quotas}):
                yield f"flavor `{_show(flavor.get('name'))}` has no quota of `{_show(missing[0])}`"


def _list_quotas(quotas: list[Object]) -> Iterator[str]:
    for quota in quotas:
        for field in _QUOTAS:
            value = quota.get(field)
            is_missing = value is None and field == "nominalQuota"
            if is_missing or (value is not None and (type(value) is bool or parse_quantity(str(value)) is None)):
                yield f"`{field}` of `{_show(quota.get('name'))}` is `{_show(value)}`, which is not a quantity"


def _show(value: Any, most: int = _MAX_SHOWN) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}…"
