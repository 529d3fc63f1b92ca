"""Why the API server or Kueue refuses an object of a queue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jobgen.check.operators.kueue import describe_faults
from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.model.quantity import parse_quantity

Object = Mapping[str, Any]
DRAINS = "HoldAndDrain"
"""The policy that stops a queue and what runs in it."""
_STOP = ("None", "Hold", DRAINS)
_WORDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "ClusterQueue": {"stopPolicy": _STOP, "queueingStrategy": ("BestEffortFIFO", "StrictFIFO")},
    "LocalQueue": {"stopPolicy": _STOP},
}
"""Fields of a spec that have one of a few values."""
_MAX_SHOWN, _MAX_ERROR = 60, 400


def list_problems(kind: str, obj: Object) -> Iterator[str]:
    """Yield why the API server or Kueue refuses an object."""
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
    yield from (_show(each, _MAX_ERROR) for each in describe_faults(kind, obj))


def _list_unreadable(spec: Object) -> Iterator[str]:
    """Yield quotas that are no quantities, and resources without a quota."""
    groups = spec.get("resourceGroups")
    if groups is not None and not isinstance(groups, list):
        yield "`resourceGroups` must be a list"
    for group in map(as_mapping, as_list(groups)):
        covered = list(map(str, as_list(group.get("coveredResources"))))
        for flavor in map(as_mapping, as_list(group.get("flavors"))):
            quotas = list(map(as_mapping, as_list(flavor.get("resources"))))
            fields = ("nominalQuota", "borrowingLimit", "lendingLimit")
            for quota, field in ((quota, field) for quota in quotas for field in fields):
                value = quota.get(field)
                if value is None and field != "nominalQuota":
                    continue
                if value is None or type(value) is bool or parse_quantity(str(value)) is None:
                    yield f"`{field}` of `{_show(quota.get('name'))}` is `{_show(value)}`, which is not a quantity"
            if missing := sorted(set(covered) - {str(each.get("name")) for each in quotas}):
                yield f"flavor `{_show(flavor.get('name'))}` has no quota of `{_show(missing[0])}`"


def _show(value: Any, most: int = _MAX_SHOWN) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}…"
