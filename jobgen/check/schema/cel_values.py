"""Converts values to what the CEL rules of a CRD read: with defaults, and with escaped field names."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from jobgen.check.schema.formats import is_date, parse_duration
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.limits import Budget
from jobgen.model.named_tuple import NamedTuple

Conversion = Callable[[Node], Any]
"""Converts a value."""

FIELD_NAMES_AS_WRITTEN = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return "
    "var void while".split()
)
"""Reserved words: as names of fields they are escaped, and newer servers also accept them as they are after a dot."""
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_METADATA = ("name", "generateName")
_MAX_NAME_LENGTH = 63
_GENERATED_SUFFIX = "xxxxx"
_MAPPING_STEPS = 5


def compile_conversion(schema: dict[str, Any], root: dict[str, Any], budget: Budget | None = None) -> Conversion:
    """The conversion of values of a schema node."""
    return _ConversionCompiler(root, budget).of(schema)


def escape_name(name: str) -> str:
    """A field's name as a CEL identifier; empty if it has none."""
    if name in FIELD_NAMES_AS_WRITTEN:
        return f"__{name}__"
    escaped = re.sub(r"__|[-./]", lambda part: _ESCAPES[part[0]], name)
    return escaped if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", escaped) else ""


class _ConversionCompiler:
    """Compiles the conversions of one schema; a `$ref` is compiled once, so schemas may be recursive."""

    def __init__(self, root: dict[str, Any], budget: Budget | None) -> None:
        self.root = root
        self.budget = budget
        self.refs: dict[str, Conversion] = {}

    def of(self, schema: dict[str, Any]) -> Conversion:
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

    def _ref(self, ref: str) -> Conversion:
        if ref not in self.refs:
            self.refs[ref] = lambda value: self.refs[ref](value)  # noqa: PLW0108
            self.refs[ref] = self.of(self.root["$defs"][ref.rpartition("/")[2]])
        return self.refs[ref]

    def _mapping(self, schema: dict[str, Any]) -> Conversion:
        properties = schema.get("properties", {})
        fields = {name: _Field(self.of(child), _list_names(name)) for name, child in properties.items()}
        extra = schema.get("additionalProperties")
        is_object = bool(schema is self.root or schema.get("x-kubernetes-embedded-resource"))
        other = _OtherFields(
            self.of(extra) if isinstance(extra, dict) else untraced,
            keeps_null=bool(isinstance(extra, dict) and extra.get("nullable")),
        )
        return _convert_mapping(fields, _list_defaults(properties), other, self.budget, is_object=is_object)


class _Field(NamedTuple):
    """A known field: how its value is converted, and the names by which rules read it."""

    convert: Conversion
    names: tuple[str, ...]

    def add(self, seen: dict[str, Node], value: Node) -> None:
        """Add its value to what rules read of a mapping."""
        converted = self.convert(value)
        for name in self.names:
            seen[name] = converted


class _OtherFields(NamedTuple):
    """How the values of fields that are not known are converted."""

    convert: Conversion
    keeps_null: bool


def _convert_mapping(
    fields: Mapping[str, _Field],
    defaults: list[tuple[str, Any, bool]],
    other: _OtherFields,
    budget: Budget | None,
    *,
    is_object: bool,
) -> Conversion:
    def convert(value: Node) -> Node:
        if not isinstance(value, dict):
            return untraced(value)
        if budget:
            # Defaults may contain defaults, and grow with every level.
            budget.spend(_MAPPING_STEPS + len(fields))
        seen: dict[str, Node] = {}
        for name, found in value.items():
            # A null is the same as no field to rules.
            if name in fields and value_of(found) is not None:
                fields[name].add(seen, found)
        for name, default, nullable in defaults:
            if value_of(value.get(name)) is None and not (nullable and name in value):
                fields[name].add(seen, default)
        for name, found in value.items():
            if name not in fields and (other.keeps_null or value_of(found) is not None):
                seen[str(name)] = other.convert(found)
        return _as_object(seen, value) if is_object else seen

    return convert


def _list_defaults(properties: Mapping[str, Any]) -> list[tuple[str, Any, bool]]:
    """The fields with a default, each with whether a null stays."""
    known = ((name, child.get("default"), bool(child.get("nullable"))) for name, child in properties.items())
    return [each for each in known if each[1] is not None]


def _list_names(name: str) -> tuple[str, ...]:
    escaped = escape_name(name)
    return (*((escaped,) if escaped else ()), *((name,) if name in FIELD_NAMES_AS_WRITTEN else ()))


def _as_object(seen: dict[str, Node], value: Mapping[str, Node]) -> dict[str, Node]:
    """An object with the metadata that rules can read: its name."""
    metadata = untraced(value.get("metadata"))
    known = metadata if isinstance(metadata, dict) else {}
    visible = {name: known[name] for name in _METADATA if known.get(name) is not None}
    if isinstance(prefix := visible.get("generateName"), str) and not visible.get("name"):
        # The server generates the name before it validates, and cuts the prefix to leave room for its suffix.
        visible["name"] = prefix[: _MAX_NAME_LENGTH - len(_GENERATED_SUFFIX)] + _GENERATED_SUFFIX
    head = {name: untraced(value[name]) for name in ("apiVersion", "kind") if name in value}
    return {**seen, **head, "metadata": visible}


def _scalar(schema: dict[str, Any]) -> Conversion:
    kinds = schema.get("type", [])
    if "number" in kinds:
        return lambda value: float(found) if type(found := value_of(value)) is int else untraced(value)
    return _FORMATS.get(schema.get("format", ""), untraced) if "string" in kinds else untraced


def _decode_bytes(value: Node) -> Any:
    found = value_of(value)
    try:
        return base64.b64decode(found, validate=True) if type(found) is str else found
    except ValueError:
        return found


def _normalize_time(value: Node) -> Any:
    """A time as text that the engine reads; rules convert it to a time."""
    found = value_of(value)
    return f"{found}T00:00:00Z" if type(found) is str and is_date(found) else untraced(value)


def _normalize_duration(value: Node) -> Any:
    found = value_of(value)
    nanoseconds = parse_duration(found) if type(found) is str else None
    if nanoseconds is None:
        return untraced(value)
    sign, rest = "-" if nanoseconds < 0 else "", abs(nanoseconds)
    return f"{sign}{rest // 10**9}.{rest % 10**9:09}s"


_FORMATS: dict[str, Conversion] = {
    "byte": _decode_bytes,
    "date": _normalize_time,
    "duration": _normalize_duration,
}
