"""The types that the CEL rules of a CRD see: those of the schema, with times, sets, and lists with keys."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from jobgen.check.cel.fields import ObjectTypes, find_names
from jobgen.check.schema.formats import is_date, parse_duration
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.limits import Budget

Conversion = Callable[[Node], Any]
"""Converts a value."""

FIELD_NAMES_AS_WRITTEN = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return "
    "var void while".split()
)
"""Reserved words: as names of fields they are escaped, and newer servers also accept them as they are after a dot."""
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_METADATA_FIELDS = ("name", "generateName")
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
    visible = {name: known[name] for name in _METADATA_FIELDS if known.get(name) is not None}
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


Schema = dict[str, Any]

_STRING_OBJECT_META: Schema = {"type": ["string", "null"]}
_INTEGER: Schema = {"type": ["integer", "null"], "format": "int64"}
_BOOLEAN: Schema = {"type": ["boolean", "null"]}
_MAP: Schema = {"type": ["object", "null"], "additionalProperties": _STRING_OBJECT_META}


def _fields(**properties: Schema) -> Schema:
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _list_of(items: Schema) -> Schema:
    return {"type": ["array", "null"], "items": items}


OBJECT_META: Schema = {
    **_fields(
        name=_STRING_OBJECT_META,
        generateName=_STRING_OBJECT_META,
        namespace=_STRING_OBJECT_META,
        selfLink=_STRING_OBJECT_META,
        uid=_STRING_OBJECT_META,
        resourceVersion=_STRING_OBJECT_META,
        generation=_INTEGER,
        creationTimestamp=_STRING_OBJECT_META,
        deletionTimestamp=_STRING_OBJECT_META,
        deletionGracePeriodSeconds=_INTEGER,
        labels=_MAP,
        annotations=_MAP,
        ownerReferences=_list_of(
            {
                **_fields(
                    apiVersion=_STRING_OBJECT_META,
                    kind=_STRING_OBJECT_META,
                    name=_STRING_OBJECT_META,
                    uid=_STRING_OBJECT_META,
                    controller=_BOOLEAN,
                    blockOwnerDeletion=_BOOLEAN,
                ),
                "required": ["apiVersion", "kind", "name", "uid"],
            }
        ),
        finalizers=_list_of(_STRING_OBJECT_META),
        managedFields=_list_of(
            _fields(
                manager=_STRING_OBJECT_META,
                operation=_STRING_OBJECT_META,
                apiVersion=_STRING_OBJECT_META,
                time=_STRING_OBJECT_META,
                fieldsType=_STRING_OBJECT_META,
                # Go keeps any JSON here, and reads it later.
                fieldsV1={},
                subresource=_STRING_OBJECT_META,
            )
        ),
    ),
    "type": "object",
}


def with_object_meta(schema: Schema) -> Schema:
    """Return the schema of a kind with the metadata of every kind."""
    return {**schema, "properties": {**schema.get("properties", {}), "metadata": OBJECT_META}}


_SCALARS = {"boolean": "bool", "integer": "int", "number": "double"}
_STRINGS = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_STRING: dict[str, Any] = {"type": "string"}
_METADATA: dict[str, Any] = {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}}
_MAX_DEPTH = 100


def declare_types(
    schema: dict[str, Any], root: dict[str, Any], texts: Iterable[str], optional: tuple[str, ...] = ()
) -> ObjectTypes | None:
    """The types of `self` and `oldSelf` for rules of a schema node, as far as the texts can name fields."""
    names: frozenset[str] = frozenset().union(*map(find_names, texts))
    compiler = _TypeCompiler(root, frozenset(name[1:] for name in names if name.startswith(".")))
    kind = compiler.type_of(schema, "object", is_root=schema is root or is_embedded(schema))
    if kind is None:
        return None
    shape = compiler.shape_of(schema)
    variables = [(name, f"optional_type<{kind}>" if name in optional else kind) for name in ("self", "oldSelf")]
    return ObjectTypes(
        tuple(variables),
        tuple(sorted(compiler.fields)),
        tuple(sorted(names)),
        tuple((name, json.dumps(shape)) for name in ("self", "oldSelf")) if shape else (),
    )


def declare_object(
    schema: dict[str, Any], texts: Iterable[str], name: str
) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """The type of the objects of a kind and its fields, for policies; the name is the start of those of all types."""
    names: frozenset[str] = frozenset().union(*map(find_names, texts))
    head = {"apiVersion": _STRING, "kind": _STRING, "metadata": OBJECT_META}
    root = {**schema, "properties": {**schema.get("properties", {}), **head}}
    compiler = _TypeCompiler(root, frozenset(each[1:] for each in names if each.startswith(".")), name)
    return compiler.type_of(root, name, is_root=True) or "dyn", tuple(sorted(compiler.fields))


def needs_types(types: ObjectTypes) -> bool:
    """Return True if rules must be evaluated with types: they can read times, sets, or lists with keys."""
    kinds = [kind for _, kind in types.variables] + [kind for _, _, kind in types.fields]
    return bool(types.shapes) or any("timestamp" in kind or "duration" in kind for kind in kinds)


def is_embedded(schema: dict[str, Any]) -> bool:
    """Return True if a schema is that of an object in another object."""
    return bool(schema.get("x-kubernetes-embedded-resource"))


class _TypeCompiler:
    """Collects the fields of the objects in a schema that have one of some names."""

    def __init__(self, root: dict[str, Any], names: frozenset[str], prefix: str = "object") -> None:
        self.root = root
        self.prefix = prefix
        self.names = names
        self.fields: set[tuple[str, str, str]] = set()
        self._known: dict[str, str | None] = {}
        self._depth = 0

    def type_of(self, schema: dict[str, Any], path: str, *, is_root: bool) -> str | None:
        """The type of a schema node; None if rules cannot see its values."""
        schema, path = self._resolve(schema, path)
        if schema.get("x-kubernetes-int-or-string"):
            return "dyn"
        kind = next((kind for kind in _list_types(schema) if kind != "null"), "")
        if kind == "array":
            item = self._type_of_child(schema.get("items"), f"{path}.items")
            return item and f"list<{item}>"
        if kind == "object" or is_root:
            return self._object(schema, path, is_root=is_root)
        return _STRINGS.get(schema.get("format", ""), "string") if kind == "string" else _SCALARS.get(kind)

    def shape_of(self, schema: dict[str, Any], depth: int = 0) -> dict[str, Any]:
        """The sets and the lists with keys in values that the texts can name; see `cel/shapes.py`."""
        schema, _ = self._resolve(schema, "")
        shape: dict[str, Any] = {}
        if depth > _MAX_DEPTH:
            return shape
        if schema.get("x-kubernetes-list-type") == "set":
            shape["list"] = "set"
        elif keys := schema.get("x-kubernetes-list-map-keys"):
            shape["list"] = [escape_name(key) or key for key in keys]
        inner = schema.get("items", schema.get("additionalProperties"))
        if isinstance(inner, dict) and (found := self.shape_of(inner, depth + 1)):
            shape["items"] = found
        fields = {}
        for name, child in self._list_fields(schema):
            if found := self.shape_of(child, depth + 1):
                fields[name] = found
        return {**shape, "fields": fields} if fields else shape

    def _object(self, schema: dict[str, Any], path: str, *, is_root: bool) -> str | None:
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            value = self._type_of_child(extra, f"{path}.values")
            return value and f"map<string, {value}>"
        if path in self._known:
            return path
        self._known[path] = path
        properties = dict(self._list_fields(schema))
        if is_root and not _has_metadata(schema):
            own = {"apiVersion": _STRING, "kind": _STRING, "metadata": _METADATA}
            properties |= {name: child for name, child in own.items() if name in self.names}
        for name, child in properties.items():
            found = self._type_of_child(child, f"{path}.{name}")
            if found:
                self.fields.add((path, name, found))
        return path

    def _type_of_child(self, schema: Any, path: str) -> str | None:
        if not isinstance(schema, dict) or path.count(".") > _MAX_DEPTH:
            return None
        return self.type_of(schema, path, is_root=is_embedded(schema))

    def _list_fields(self, schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The fields that the texts can name, by the names that they have in rules."""
        found = []
        for name, child in (schema.get("properties") or {}).items():
            names = [escape_name(name), *([name] if name in FIELD_NAMES_AS_WRITTEN else [])]
            found += [(known, child) for known in names if known in self.names and isinstance(child, dict)]
        return found

    def _resolve(self, schema: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
        """The schema that a reference names; a type that refers to itself gets one name."""
        if "anyOf" in schema and schema["anyOf"][-1:] == [{"type": "null"}]:
            return self._resolve(schema["anyOf"][0], path)
        if "$ref" not in schema:
            return schema, path
        name = schema["$ref"].rpartition("/")[2]
        return self._resolve(self.root["$defs"][name], f"{self.prefix}.{name}")


def _list_types(schema: dict[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return kinds if isinstance(kinds, list) else [kinds]


def _has_metadata(schema: dict[str, Any]) -> bool:
    """Return True if the schema of an object describes all the metadata that rules can see."""
    properties = schema.get("properties") or {}
    metadata = (properties.get("metadata") or {}).get("properties") or {}
    described = (
        properties.get("apiVersion"),
        properties.get("kind"),
        metadata.get("name"),
        metadata.get("generateName"),
    )
    return all(isinstance(child, dict) and "string" in _list_types(child) for child in described)
