"""The types of a Kubernetes release, read when they are first needed, in the two forms that the API server uses.

In an object of Kubernetes' own kinds, Go decodes a type: null is as good as nothing, and validation, not the type, says
what is required. In a CRD the type is a part of the schema: required fields, keys of lists and quantities are checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any

from jobgen.repo.shipped import read_shipped_schema
from jobgen.spec.kinds import parse_version

# Schemas of several releases in one: what differs between releases says since when it applies, and until when.

Schema = dict[str, Any]

OTHER_RELEASES = "x-jobgen-other-releases"
"""The keyword of a selected schema that lists the fields of other releases, each with its range in words."""

RANGE = ("since", "until")
CHILDREN = ("items", "additionalProperties")
"""The keywords whose value is a schema."""
_PARTS = frozenset(("properties", *CHILDREN))
_OF_RELEASES = _PARTS.union(RANGE, ("releases",))
"""The keywords by which a schema may differ between releases, itself or in its parts."""


class RecurringSchemaError(Exception):
    """A field that a release removes and a later one has again, which a range cannot express."""


def merge_history(history: Sequence[tuple[str, Schema | None]], *, bridge: bool = False) -> Schema:
    """Merge the schemas of a node in all releases, oldest first; None is a release without it.

    With `bridge`, a field that releases remove and a later one has again counts as present in all of them.
    """
    merge = partial(merge_history, bridge=bridge)
    present = [(release, node) for release, node in history if node is not None]
    presence = [(release, node is not None) for release, node in history]
    spans = [range_ for range_, value in _find_spans(presence) if value]
    if len(spans) > 1 and not bridge:
        raise RecurringSchemaError(spans)
    merged: Schema = _write_range((spans[0][0], spans[-1][1]))
    ranges: dict[tuple[str, str], Schema] = {}
    for word in sorted({word for _, node in present for word in node}):
        values = [(release, node.get(word)) for release, node in present]
        if word == "properties" and all(value is not None for _, value in values):
            fields = [(at, value or {}) for at, value in values]
            names = sorted({name for _, field in fields for name in field})
            merged[word] = {name: merge([(at, field.get(name)) for at, field in fields]) for name in names}
        elif word in CHILDREN and all(isinstance(value, dict) for _, value in values):
            merged[word] = merge(values)
        elif all(value == values[0][1] for _, value in values):
            merged[word] = values[0][1]
        else:
            for range_, value in _find_spans(values):
                ranges.setdefault(range_, {})[word] = value
    if ranges:
        merged["releases"] = [{**_write_range(range_), **words} for range_, words in sorted(ranges.items())]
    return merged


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
    if _OF_RELEASES.isdisjoint(node):
        return node
    selected = {word: value for word, value in node.items() if word not in (*RANGE, "releases", "properties")}
    selected = select_words(selected, node.get("releases", ()), release)
    for word in CHILDREN:
        if isinstance(selected.get(word), dict):
            selected[word] = select_release(selected[word], release, product)
    if "properties" in node:
        fields = node["properties"]
        ranged = [name for name, child in fields.items() if "since" in child or "until" in child]
        others = {name: describe_range(fields[name], product) for name in ranged if not contains(fields[name], release)}
        selected["properties"] = {
            name: select_release(child, release, product) for name, child in fields.items() if name not in others
        }
        if others:
            selected[OTHER_RELEASES] = others
    return selected


def select_words(own: Schema, entries: Sequence[Schema], release: str) -> Schema:
    """The keywords of a node in a release: its own, and those of entries that have the release."""
    words = dict(own)
    for entry in entries:
        if contains(entry, release):
            words |= {word: value for word, value in entry.items() if word not in RANGE}
    return words


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


QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
METADATA = "meta_v1.ObjectMeta"
DECODED = "decoded:"
"""Marks the name of a type that is decoded although the schema around it is that of a CRD."""
_INT_OR_STRING: Schema = {"type": ["integer", "string"], "x-kubernetes-int-or-string": True}
_TEMPLATE_METADATA: Schema = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
    "additionalProperties": False,
}
_ANY: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_IN_CRD: dict[str, Schema] = {
    "Any": _ANY,
    "Duration": {"type": "string"},
    "IntOrString": _INT_OR_STRING,
    "MicroTime": {"type": "string", "format": "date-time"},
    "Quantity": {**_INT_OR_STRING, "pattern": QUANTITY},
    "TemplateMetadata": _TEMPLATE_METADATA,
    "Time": {"type": "string", "format": "date-time"},
}
_IN_OBJECT: dict[str, Schema] = {
    "Any": _ANY,
    "Duration": {"type": "string", "x-jobgen-form": "duration"},
    "IntOrString": {"type": ["integer", "string"], "format": "int32"},
    "MicroTime": {"type": "string", "x-jobgen-form": "micro-time"},
    "Quantity": {"type": ["string", "number"], "x-jobgen-form": "quantity"},
    "Time": {"type": "string", "x-jobgen-form": "time"},
}
_LIST_MARKS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys")


@cache
def read_types(place: str) -> dict[str, Any]:
    """Read the types of a group and version, such as `core_v1`; empty if Kubernetes has none."""
    content = read_shipped_schema(f"kubernetes/{place}.json")
    known: dict[str, Any] = json.loads(content) if content is not None else {}
    return known


class Types(Mapping[str, Schema]):
    """The types of a release by name, such as `core_v1.PodSpec`, and the types of the file that refers to them."""

    def __init__(
        self, release: str, *, in_crd: bool, own: Mapping[str, Schema] | None = None, has_list_keys: bool = True
    ) -> None:
        self.release = release
        self.in_crd = in_crd
        self.own = own or {}
        self.has_list_keys = has_list_keys
        """True if the CRD keeps the keys of lists, which old generators of CRDs left out."""
        self._found: dict[str, Schema] = {}

    def __getitem__(self, name: str) -> Schema:
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def is_scalar(self, name: str) -> bool:
        """Return True if values of a type, such as `Quantity`, are neither mappings nor lists."""
        return name.removeprefix(DECODED) in _IN_OBJECT and name not in self.own

    def _find(self, name: str) -> Schema:
        decoded = name.removeprefix(DECODED)
        is_decoded = decoded != name or not self.in_crd
        mark = DECODED if decoded != name else ""
        if decoded in self.own:
            return self.own[decoded]
        scalars = _IN_OBJECT if is_decoded else _IN_CRD
        if decoded in scalars:
            return scalars[decoded]
        place, _, short = decoded.rpartition(".")
        node = select_release(read_types(place)["types"][short], self.release, "Kubernetes")
        if is_decoded:
            is_empty = node == {"type": "object"}
            return _as_decoded({**node, "properties": {}} if is_empty else node, mark)
        return as_crd(node) if self.has_list_keys else _without_list_keys(as_crd(node))


def _as_decoded(node: Schema, mark: str) -> Schema:
    """A type as Go decodes it."""
    if "$ref" in node:
        return {"$ref": f"{mark}{node['$ref']}", "nullable": True}
    kept = {word: value for word, value in node.items() if word not in (*_LIST_MARKS, "required")}
    if kept.get("format") == "byte":
        # Go also reads a list of bytes.
        byte = {"type": "integer", "minimum": 0, "maximum": 255, "nullable": True}
        kept |= {"type": ["string", "array"], "items": byte, "x-jobgen-form": "base64"}
        del kept["format"]
    kept = _convert_children(kept, lambda child: _as_decoded(child, mark))
    if "properties" in kept:
        kept.setdefault("additionalProperties", False)
    return {**kept, "nullable": True}


def _convert_children(node: Schema, convert: Callable[[Schema], Schema]) -> Schema:
    # Alternatives restrict the fields of the mapping around them; they do not list all of them.
    kept = {**node, **{word: convert(node[word]) for word in CHILDREN if isinstance(node.get(word), dict)}}
    if "properties" in node:
        kept["properties"] = {name: convert(child) for name, child in node["properties"].items()}
    return kept


def _without_list_keys(node: Schema) -> Schema:
    """A type whose lists may repeat their items."""
    kept = {word: value for word, value in node.items() if word not in _LIST_MARKS}
    return _convert_children(kept, _without_list_keys)


def as_crd(node: Schema) -> Schema:
    """A type as a part of a CRD: fields that it does not list are unknown."""
    if "$ref" in node:
        return {"$ref": "TemplateMetadata"} if node["$ref"] == METADATA else node
    if _PARTS.isdisjoint(node):
        return node
    kept = _convert_children(node, as_crd)
    is_open = kept.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in kept
    return {**kept, "additionalProperties": False} if "properties" in kept and not is_open else kept
