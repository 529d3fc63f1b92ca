"""The types that the CEL rules of a CRD see: those of the schema, with times, sets, and lists with keys."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from jobgen.check.cel.values import blank_strings
from jobgen.check.schema.formats import parse_duration
from jobgen.model.budget import Budget
from jobgen.model.data import Plain, untraced
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.times import is_date
from jobgen.schema.own_formats import LazyFields

if TYPE_CHECKING:
    from jobgen.check.cel.type_checker import Scope

Conversion = Callable[[Plain], Any]

FIELD_NAMES_AS_WRITTEN = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return "
    "var void while".split()
)
"""Reserved words: as names of fields they are escaped, and newer servers also accept them as they are after a dot."""
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
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
        kinds = schema.get("type", [])
        if "number" in kinds:
            return lambda value: float(found) if type(found := value) is int else untraced(value)
        return _FORMATS.get(schema.get("format", ""), untraced) if "string" in kinds else untraced

    def _ref(self, ref: str) -> Conversion:
        if ref not in self.refs:
            self.refs[ref] = lambda value: self.refs[ref](value)  # noqa: PLW0108
            self.refs[ref] = self.of(self.root["$defs"][ref.rpartition("/")[2]])
        return self.refs[ref]

    def _mapping(self, schema: dict[str, Any]) -> Conversion:
        properties = schema.get("properties", {})
        # Compiled when first used: rules read few of the fields of an object.
        fields = LazyFields({name: partial(self._field, name, child) for name, child in properties.items()}, None)
        # An error in an untrusted schema must be found before the first object.
        fields.update({name: fields[name] for name in properties} if self.budget else {})
        extra = schema.get("additionalProperties")
        convert_other = self.of(extra) if isinstance(extra, dict) else untraced
        keeps_null = isinstance(extra, dict) and extra.get("nullable")
        is_object = schema is self.root or is_embedded(schema)
        known = ((name, child.get("default"), bool(child.get("nullable"))) for name, child in properties.items())
        defaults = [each for each in known if each[1] is not None]
        budget = self.budget

        def convert(value: Plain) -> Plain:
            if not isinstance(value, dict):
                return untraced(value)
            if budget:
                # Defaults may contain defaults, and grow with every level.
                budget.spend(_MAPPING_STEPS + len(properties))
            seen: dict[str, Plain] = {}
            for name, found in value.items():
                # A null is the same as no field to rules.
                if name in properties and found is not None:
                    _add_field(fields[name], found, seen)
            for name, default, nullable in defaults:
                if value.get(name) is None and not (nullable and name in value):
                    _add_field(fields[name], default, seen)
            for name, found in value.items():
                if name not in properties and (keeps_null or found is not None):
                    seen[str(name)] = convert_other(found)
            return _as_object(seen, value) if is_object else seen

        return convert

    def _field(self, name: str, schema: dict[str, Any]) -> _Field:
        return _Field(self.of(schema), _list_names(name))


class _Field(NamedTuple):
    """A known field: how its value is converted, and the names by which rules read it."""

    convert: Conversion
    names: tuple[str, ...]


def _add_field(field: _Field | None, value: Plain, seen: dict[str, Plain]) -> None:
    """Add the value of a known field to what rules read of a mapping."""
    assert field is not None, "it is one of the properties"
    converted = field.convert(value)
    for name in field.names:
        seen[name] = converted


def _list_names(name: str) -> tuple[str, ...]:
    """The names of a field in values; one that no rule can name is kept as it is, because values are compared by it."""
    return (escape_name(name) or name, *((name,) if name in FIELD_NAMES_AS_WRITTEN else ()))


def generate_name(prefix: str) -> str:
    """A name as the server generates it: it cuts the prefix to leave room for its suffix."""
    return f"{prefix[:58]}xxxxx"


def _as_object(seen: dict[str, Plain], value: Mapping[str, Plain]) -> dict[str, Plain]:
    """An object with the metadata that rules can read: its name."""
    metadata = untraced(value.get("metadata"))
    known = metadata if isinstance(metadata, dict) else {}
    visible = {name: known[name] for name in ("name", "generateName") if known.get(name) is not None}
    if isinstance(prefix := visible.get("generateName"), str) and not visible.get("name"):
        # The server generates the name before it validates.
        visible["name"] = generate_name(prefix)
    head = {name: untraced(value[name]) for name in ("apiVersion", "kind") if name in value}
    return {**seen, **head, "metadata": visible}


def _decode_bytes(value: Plain) -> Any:
    import base64

    try:
        return base64.b64decode(value, validate=True) if type(value) is str else value
    except ValueError:
        return value


def _normalize_time(value: Plain) -> Any:
    """A time as text that the engine reads; rules convert it to a time."""
    return f"{value}T00:00:00Z" if type(value) is str and is_date(value) else untraced(value)


def _normalize_duration(value: Plain) -> Any:
    nanoseconds = parse_duration(value) if type(value) is str else None
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


def _strings(names: str) -> dict[str, Schema]:
    return dict.fromkeys(names.split(), _STRING_OBJECT_META)


def _list_of(items: Schema) -> Schema:
    return {"type": ["array", "null"], "items": items}


OBJECT_META: Schema = {
    **_fields(
        **_strings("name generateName namespace selfLink uid resourceVersion"),
        generation=_INTEGER,
        **_strings("creationTimestamp deletionTimestamp"),
        deletionGracePeriodSeconds=_INTEGER,
        labels=_MAP,
        annotations=_MAP,
        ownerReferences=_list_of(
            {
                **_fields(**_strings("apiVersion kind name uid"), controller=_BOOLEAN, blockOwnerDeletion=_BOOLEAN),
                "required": ["apiVersion", "kind", "name", "uid"],
            }
        ),
        finalizers=_list_of(_STRING_OBJECT_META),
        managedFields=_list_of(
            _fields(
                **_strings("manager operation apiVersion time fieldsType"),
                # Go keeps any JSON here, and reads it later.
                fieldsV1={},
                **_strings("subresource"),
            )
        ),
    ),
    "type": "object",
}


_SCALARS = {"boolean": "bool", "integer": "int", "number": "double"}
_STRINGS = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_STRING: dict[str, Any] = {"type": "string"}
_METADATA: dict[str, Any] = {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}}
_MAX_DEPTH = 100
_FIELD = lazy_pattern(r"\.\s*\??\s*([A-Za-z_]\w*)", re.ASCII)


def declare_types(
    schema: dict[str, Any], root: dict[str, Any], texts: Iterable[str], optional: tuple[str, ...] = ()
) -> Scope | None:
    """The types of `self` and `oldSelf` for rules of a schema node, as far as the texts can name fields."""
    # Imported late: the rules of most kinds are not compiled.
    from jobgen.check.cel.type_checker import Scope

    compiler = _TypeCompiler(root, _find_fields(texts))
    kind = compiler.type_of(schema, "object", is_root=schema is root or is_embedded(schema))
    if kind is None:
        return None
    shape = compiler.shape_of(schema)
    variables = [(name, f"optional_type<{kind}>" if name in optional else kind) for name in ("self", "oldSelf")]
    return Scope(
        tuple(variables),
        tuple(sorted(compiler.fields)),
        shapes=tuple((name, json.dumps(shape)) for name in ("self", "oldSelf")) if shape else (),
    )


def declare_object(
    schema: dict[str, Any], texts: Iterable[str], name: str
) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """The type of the objects of a kind and its fields, for policies; the name is the start of those of all types."""
    head = {"apiVersion": _STRING, "kind": _STRING, "metadata": OBJECT_META}
    root = {**schema, "properties": {**schema.get("properties", {}), **head}}
    compiler = _TypeCompiler(root, _find_fields(texts), name)
    return compiler.type_of(root, name, is_root=True) or "dyn", tuple(sorted(compiler.fields))


def _find_fields(texts: Iterable[str]) -> frozenset[str]:
    """The names of the fields that expressions can read."""
    return frozenset(name for text in texts for name in _FIELD.findall(blank_strings(text)))


def needs_types(types: Scope) -> bool:
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
        """The sets and the lists with keys in values that the texts can name; see `cel/lists.py`."""
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
        return [
            (known, child)
            for name, child in (schema.get("properties") or {}).items()
            for known in _list_names(name)
            if known in self.names and isinstance(child, dict)
        ]

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
    described = *map(properties.get, ("apiVersion", "kind")), *map(metadata.get, ("name", "generateName"))
    return all(isinstance(child, dict) and "string" in _list_types(child) for child in described)
