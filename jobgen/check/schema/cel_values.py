"""Values as the CEL rules of a CRD see them: with defaults and names that CEL can say."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from jobgen.model.data import Data, untraced, value_of
from jobgen.model.limits import Budget

Shape = Callable[[Data], Data]
"""Makes of a value what its rules see."""

_RESERVED = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return "
    "var void while".split()
)
_SPELT = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_METADATA = ("name", "generateName")
_LONGEST_NAME = 63
_LETTERS = "xxxxx"
_SHAPE_STEPS = 5


def shape(schema: dict[str, Any], root: dict[str, Any], budget: Budget | None = None) -> Shape:
    """How the values of a schema node look to its rules."""
    return _Shapes(root, budget).of(schema)


def escaped(name: str) -> str:
    """A field's name as an identifier of CEL, or nothing if there is none for it."""
    if name in _RESERVED:
        return f"__{name}__"
    spelt = re.sub(r"__|[-./]", lambda part: _SPELT[part[0]], name)
    return spelt if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", spelt) else ""


class _Shapes:
    """The shapes of one schema; a type that refers to itself has one that does too."""

    def __init__(self, root: dict[str, Any], budget: Budget | None) -> None:
        self.root = root
        self.budget = budget
        self.refs: dict[str, Shape] = {}

    def of(self, schema: dict[str, Any]) -> Shape:
        if "$ref" in schema:
            return self._ref(schema["$ref"])
        if "anyOf" in schema and schema["anyOf"][-1] == {"type": "null"}:
            return self.of(schema["anyOf"][0])
        if "properties" in schema or isinstance(schema.get("additionalProperties"), dict):
            return self._mapping(schema)
        if isinstance(schema.get("items"), dict):
            item = self.of(schema["items"])
            return lambda value: [item(child) for child in value] if isinstance(value, list) else untraced(value)
        return _scalar(schema)

    def _ref(self, ref: str) -> Shape:
        if ref not in self.refs:
            self.refs[ref] = lambda value: self.refs[ref](value)  # noqa: PLW0108
            self.refs[ref] = self.of(self.root["$defs"][ref.rpartition("/")[2]])
        return self.refs[ref]

    def _mapping(self, schema: dict[str, Any]) -> Shape:
        fields = {name: (self.of(child), child) for name, child in schema.get("properties", {}).items()}
        extra = schema.get("additionalProperties")
        other = self.of(extra) if isinstance(extra, dict) else untraced
        keeps_null = bool(isinstance(extra, dict) and extra.get("nullable"))
        is_object = schema is self.root or schema.get("x-kubernetes-embedded-resource")

        def shaped(value: Data) -> Data:
            if not isinstance(value, dict):
                return untraced(value)
            if self.budget:
                # Defaults may hold defaults, and grow with every level.
                self.budget.spend(_SHAPE_STEPS + len(fields))
            seen: dict[str, Data] = {}
            for name, (of_field, child) in fields.items():
                found = value.get(name)
                if value_of(found) is None and "default" in child and not (name in value and child.get("nullable")):
                    found = child["default"]
                if value_of(found) is not None or (name in value and child.get("nullable")):
                    _put(seen, name, of_field(found))
            for name, found in value.items():
                if name not in fields and (value_of(found) is not None or keeps_null):
                    seen[str(name)] = other(found)
            return _as_object(seen, value) if is_object else seen

        return shaped


def _put(seen: dict[str, Data], name: str, value: Data) -> None:
    spelt = escaped(name)
    if spelt:
        seen[spelt] = value
    if name in _RESERVED:
        # Newer servers take a reserved word for a field's name where it stands behind a dot.
        seen[name] = value


def _as_object(seen: dict[str, Data], value: Data) -> dict[str, Data]:
    """Of an object's metadata, rules see its name only."""
    metadata = untraced(value.get("metadata"))
    known = metadata if isinstance(metadata, dict) else {}
    shown = {name: known[name] for name in _METADATA if known.get(name) is not None}
    if isinstance(prefix := shown.get("generateName"), str) and not shown.get("name"):
        # The server has made the name by then; it cuts the prefix to leave room for its letters.
        shown["name"] = prefix[: _LONGEST_NAME - len(_LETTERS)] + _LETTERS
    head = {name: untraced(value[name]) for name in ("apiVersion", "kind") if name in value}
    return {**seen, **head, "metadata": shown}


def _scalar(schema: dict[str, Any]) -> Shape:
    kinds = schema.get("type", [])
    if "number" in kinds:
        return lambda value: float(found) if type(found := value_of(value)) is int else untraced(value)
    return _bytes if "string" in kinds and schema.get("format") == "byte" else untraced


def _bytes(value: Data) -> Data:
    found = value_of(value)
    try:
        return base64.b64decode(found, validate=True) if type(found) is str else found
    except ValueError:
        return found
