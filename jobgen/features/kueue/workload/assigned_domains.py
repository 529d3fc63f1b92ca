"""Where the pods of an admitted pod set are, as its Workload writes it: in a list, or in the compact form of v1beta2.

The compact form has slices of domains. What is the same in all domains of a slice is `universal`; other values share
only a prefix and a suffix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping

_MOST_DOMAINS = 100_000
"""The greatest number of domains in a slice that the API allows."""

Domains = tuple[tuple[tuple[str, ...], int], ...]
"""Values of the levels, and the number of pods there."""


def parse_domains(assignment: Mapping[str, Any]) -> Domains:
    """Parse the domains of a `topologyAssignment`. What is incomplete is left out."""
    slices = as_list(assignment.get("slices"))
    if slices:
        return tuple(domain for each in slices for domain in _expand_slice(as_mapping(each)))
    domains = [as_mapping(each) for each in as_list(assignment.get("domains"))]
    return tuple(
        (tuple(map(str, each["values"])), _as_count(each.get("count"))) for each in domains if _has_values(each)
    )


def _has_values(domain: Mapping[str, Any]) -> bool:
    return bool(as_list(domain.get("values")))


def _expand_slice(part: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], int]]:
    levels = list(map(as_mapping, as_list(part.get("valuesPerLevel"))))
    counts = as_mapping(part.get("podCounts"))
    for index in range(min(_as_count(part.get("domainCount")), _MOST_DOMAINS)):
        values = [_find_value(level, index) for level in levels]
        count = counts.get("universal", _get(counts.get("individual"), index))
        if None in values or not isinstance(count, int):
            return
        yield tuple(str(value) for value in values), count


def _find_value(level: Mapping[str, Any], index: int) -> str | None:
    if "universal" in level:
        return str(level["universal"])
    individual = as_mapping(level.get("individual"))
    root = _get(individual.get("roots"), index)
    return None if root is None else f"{individual.get('prefix') or ''}{root}{individual.get('suffix') or ''}"


def _get(items: Any, index: int) -> Any:
    found = as_list(items)
    return found[index] if index < len(found) else None


def _as_count(value: Any) -> int:
    return value if isinstance(value, int) else 0
