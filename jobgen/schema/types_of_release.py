"""The types of a Kubernetes release, read when they are first needed, in the two forms that the API server uses.

In an object of Kubernetes' own kinds, Go decodes a type: null is as good as nothing, and validation, not the type, says
what is required. In a CRD the type is a part of the schema: required fields, keys of lists and quantities are checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jobgen.repo.shipped import read_shipped_schema
from jobgen.schema.history import Schema, select_release

QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
METADATA = "meta_v1.ObjectMeta"
_PRODUCT = "Kubernetes"
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
        """Whether the CRD keeps the keys of lists, which old generators of CRDs left out."""
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
        node = select_release(read_types(place)["types"][short], self.release, _PRODUCT)
        if is_decoded:
            return _as_decoded(node, mark)
        return as_crd(node) if self.has_list_keys else _without_list_keys(as_crd(node))


_BYTE: Schema = {"type": "integer", "minimum": 0, "maximum": 255, "nullable": True}


def _as_decoded(node: Schema, mark: str) -> Schema:
    """A type as Go decodes it."""
    if "$ref" in node:
        return {"$ref": f"{mark}{node['$ref']}", "nullable": True}
    kept = {word: value for word, value in node.items() if word not in (*_LIST_MARKS, "required")}
    if kept.get("format") == "byte":
        # Go also reads a list of bytes.
        kept |= {"type": ["string", "array"], "items": _BYTE, "x-jobgen-form": "base64"}
        del kept["format"]
    for word in ("items", "additionalProperties"):
        if isinstance(kept.get(word), dict):
            kept[word] = _as_decoded(kept[word], mark)
    if "properties" in kept:
        kept["properties"] = {name: _as_decoded(child, mark) for name, child in kept["properties"].items()}
        kept.setdefault("additionalProperties", False)
    return {**kept, "nullable": True}


def _without_list_keys(node: Schema) -> Schema:
    """A type whose lists may repeat their items."""
    kept = {word: value for word, value in node.items() if word not in _LIST_MARKS}
    for word in ("items", "additionalProperties"):
        if isinstance(kept.get(word), dict):
            kept[word] = _without_list_keys(kept[word])
    if "properties" in kept:
        kept["properties"] = {name: _without_list_keys(child) for name, child in kept["properties"].items()}
    return kept


def as_crd(node: Schema) -> Schema:
    """A type as a part of a CRD: fields that it does not list are unknown."""
    if "$ref" in node:
        return {"$ref": "TemplateMetadata"} if node["$ref"] == METADATA else node
    kept = dict(node)
    # Alternatives restrict the fields of the mapping around them; they do not list all of them.
    for word in ("items", "additionalProperties"):
        if isinstance(kept.get(word), dict):
            kept[word] = as_crd(kept[word])
    if "properties" in kept:
        kept["properties"] = {name: as_crd(child) for name, child in kept["properties"].items()}
        if not (kept.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in kept):
            kept["additionalProperties"] = False
    return kept
