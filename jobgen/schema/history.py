"""Schemas of several releases in one: what differs between releases says since when it applies, and until when.

`since` is the first release that has a field, `until` the first that does not have it anymore. `releases` lists the
other keywords that differ, each entry with its range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from jobgen.spec.kinds import parse_version

Schema = dict[str, Any]

OTHER_RELEASES = "x-jobgen-other-releases"
"""The keyword of a selected schema that lists the fields of other releases, each with its range in words."""

RANGE = ("since", "until")
"""The keywords that say which releases have a node."""
_CHILDREN = ("items", "additionalProperties")


class RecurringSchemaError(Exception):
    """A field that a release removes and a later one has again, which a range cannot express."""


def merge_history(history: Sequence[tuple[str, Schema | None]], *, bridge: bool = False) -> Schema:
    """Merge the schemas of a node in all releases, oldest first; None is a release without it.

    With `bridge`, a field that releases remove and a later one has again counts as present in all of them.
    """

    def merge(values: Sequence[tuple[str, Schema | None]]) -> Schema:
        return merge_history(values, bridge=bridge)

    present = [(release, node) for release, node in history if node is not None]
    merged: Schema = _find_range([(release, node is not None) for release, node in history], bridge=bridge)
    ranges: dict[tuple[str, str], Schema] = {}
    for word in sorted({word for _, node in present for word in node}):
        values = [(release, node.get(word)) for release, node in present]
        if word == "properties" and all(value is not None for _, value in values):
            fields = [(at, value or {}) for at, value in values]
            names = sorted({name for _, field in fields for name in field})
            merged[word] = {name: merge([(at, field.get(name)) for at, field in fields]) for name in names}
        elif word in _CHILDREN and all(isinstance(value, dict) for _, value in values):
            merged[word] = merge(values)
        elif all(value == values[0][1] for _, value in values):
            merged[word] = values[0][1]
        else:
            for range_, value in _find_spans(values):
                ranges.setdefault(range_, {})[word] = value
    if ranges:
        merged["releases"] = [{**_write_range(range_), **words} for range_, words in sorted(ranges.items())]
    return merged


def _find_range(presence: Sequence[tuple[str, bool]], *, bridge: bool) -> Schema:
    """The range of releases in which something is present."""
    spans = [range_ for range_, value in _find_spans(presence) if value]
    if len(spans) > 1 and not bridge:
        raise RecurringSchemaError(spans)
    return _write_range((spans[0][0], spans[-1][1]))


def _find_spans(values: Sequence[tuple[str, Any]]) -> Iterator[tuple[tuple[str, str], Any]]:
    """The ranges of consecutive releases with equal values that are not None."""
    start = 0
    for index in range(1, len(values) + 1):
        if index < len(values) and values[index][1] == values[start][1]:
            continue
        until = values[index][0] if index < len(values) else ""
        if values[start][1] is not None:
            yield (values[start][0] if start else "", until), values[start][1]
        start = index


def _write_range(range_: tuple[str, str]) -> Schema:
    return {word: release for word, release in zip(RANGE, range_, strict=True) if release}


def select_release(node: Schema, release: str, product: str = "") -> Schema:
    """The schema of one release; an empty release is the newest. The product is named in hints about other releases."""
    selected = {word: value for word, value in node.items() if word not in (*RANGE, "releases", "properties")}
    for entry in node.get("releases", ()):
        if contains(entry, release):
            selected |= {word: value for word, value in entry.items() if word not in RANGE}
    for word in _CHILDREN:
        if isinstance(selected.get(word), dict):
            selected[word] = select_release(selected[word], release, product)
    if "properties" in node:
        fields = node["properties"]
        selected["properties"] = {
            name: select_release(child, release, product) for name, child in fields.items() if contains(child, release)
        }
        others = {
            name: describe_range(child, product) for name, child in fields.items() if not contains(child, release)
        }
        if others:
            selected[OTHER_RELEASES] = others
    return selected


def contains(range_: Mapping[str, Any], release: str) -> bool:
    """Return True if a release is in the range of a node; the newest release has everything that was not removed."""
    if "since" not in range_ and "until" not in range_:
        return True
    if not release:
        return "until" not in range_
    at = _parse(release)
    return not ("since" in range_ and at < _parse(range_["since"])) and not (
        "until" in range_ and at >= _parse(range_["until"])
    )


_parse = lru_cache(maxsize=1024)(parse_version)


def describe_range(range_: Mapping[str, Any], product: str) -> str:
    """Since when something exists and when it was removed, in words."""
    since = f"exists since {product} {range_['since']}" if "since" in range_ else ""
    removed_by = range_.get("until", "") if since else f"{product} {range_.get('until', '')}"
    until = f"was removed in {removed_by}" if "until" in range_ else ""
    return " and ".join(filter(None, (since, until)))
