"""Builds the JSON Schemas of custom resources from kind descriptions and the types of a Kubernetes release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.model.suggest import did_you_mean
from jobgen.spec.merge import merge

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

_INT_OR_STRING: Schema = {"type": ["integer", "string"], "x-kubernetes-int-or-string": True}
_SCALARS: dict[str, Schema] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "int": {"type": "integer"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "count": {"type": "integer", "format": "int32", "minimum": 0},
    "int-or-string": _INT_OR_STRING,
    "quantity": {**_INT_OR_STRING, "pattern": QUANTITY},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
}
# Kubernetes types that have another schema in a CRD.
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CRD_FORMS: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _SCALARS["quantity"],
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _SCALARS["int-or-string"],
    f"{_META}Time": {"type": "string", "format": "date-time"},
    f"{_META}FieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_WORDS = {"rules": "x-kubernetes-validations"}
_LIST_MARKS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys")


class UnknownTypeError(Exception):
    """A kind description names a type that does not exist; the text is a message for users."""

    def __init__(self, name: object, hint: str) -> None:
        super().__init__(f"there is no type `{name}`{hint}")
        self.name = name


def build_schemas(
    described: Mapping[str, Any], shared: Mapping[str, Any], kubernetes: Mapping[str, Schema]
) -> Iterator[tuple[str, Schema]]:
    """The schemas of a kind, each with its file name: the current one, and those of older operators."""
    group, version = described["apiVersion"].split("/")
    stem = f"{group}/{described['kind'].lower()}_{version}"
    yield f"{stem}.json", _resource(described, shared, kubernetes)
    for older in described.get("specs", ()):
        then = merge(described, {key: older[key] for key in ("rules", "spec") if key in older}, [])
        types = merge(shared, older.get("types", {}), [])
        yield f"{stem}-until-{older['until']}.json", _resource(then, types, kubernetes)


def _resource(described: Mapping[str, Any], shared: Mapping[str, Any], kubernetes: Mapping[str, Schema]) -> Schema:
    types = _Types(shared, kubernetes, has_list_keys=described.get("listKeys", True))
    fields = {
        "apiVersion": {"enum": [described["apiVersion"]]},
        "kind": {"enum": [described["kind"], *described.get("spellings", ())]},
        "metadata": types.metadata(),
        # A CRD does not require a spec.
        "spec": _allow_null(types.schema(described["spec"])),
    }
    if described.get("status", True):
        fields["status"] = {"type": ["object", "null"], "x-kubernetes-preserve-unknown-fields": True}
    root = {"type": "object", "required": ["apiVersion", "kind", "metadata"], "properties": fields}
    if described.get("rules"):
        root["x-kubernetes-validations"] = described["rules"]
    head = {"$schema": DIALECT, "title": described["kind"]}
    return {**head, **root, "additionalProperties": False, "$defs": dict(sorted(types.used.items()))}


def convert_crd(crd: Mapping[str, Any]) -> Iterator[tuple[str, Schema]]:
    """The schema of every version that a CustomResourceDefinition serves, with its file name."""
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    for version in crd["spec"]["versions"]:
        described = version.get("schema", {}).get("openAPIV3Schema")
        if version.get("served", True) and described:
            name = version["name"]
            yield f"{group}/{kind.lower()}_{name}.json", _convert_root(described, f"{group}/{name}", kind)


def _convert_root(described: Schema, api_version: str, kind: str) -> Schema:
    schema = _convert_node(described)
    fields = schema.get("properties", {})
    own = {"apiVersion": {"enum": [api_version]}, "kind": {"enum": [kind]}, "metadata": {"type": "object"}}
    required = sorted({*schema.get("required", ()), "apiVersion", "kind", "metadata"})
    head = {"$schema": DIALECT, "title": kind}
    return {**head, **schema, "type": "object", "properties": {**fields, **own}, "required": required}


def _convert_node(node: Schema) -> Schema:
    """A node of a structural schema as strict JSON Schema, with null where Kubernetes drops or keeps it."""
    kept = {key: node[key] for key in node if key in _KEPT_KEYWORDS}
    if node.get("x-kubernetes-int-or-string"):
        kept["type"] = ["integer", "string"]
    for word in ("allOf", "anyOf", "oneOf"):
        if word in node and not node.get("x-kubernetes-int-or-string"):
            kept[word] = [_convert_node(form) for form in node[word]]
    if "not" in node:
        kept["not"] = _convert_node(node["not"])
    if "items" in node:
        kept["items"] = _convert_node(node["items"])
    required = node.get("required", [])
    if "properties" in node:
        fields = {name: _convert_node(child) for name, child in node["properties"].items()}
        kept["properties"] = {name: child if name in required else _allow_null(child) for name, child in fields.items()}
    if isinstance(node.get("additionalProperties"), dict):
        kept["additionalProperties"] = _allow_null(_convert_node(node["additionalProperties"]))
    elif node.get("x-kubernetes-embedded-resource"):
        kept["required"] = sorted({*required, "apiVersion", "kind", "metadata"})
    elif node.get("type") == "object" and not node.get("x-kubernetes-preserve-unknown-fields") and "properties" in node:
        kept["additionalProperties"] = False
    return _allow_null(kept) if node.get("nullable") else kept


_KEPT_KEYWORDS = frozenset(
    """type format pattern enum required minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
    minLength maxLength minItems maxItems minProperties maxProperties
    x-kubernetes-int-or-string x-kubernetes-preserve-unknown-fields
    x-kubernetes-list-type x-kubernetes-list-map-keys x-kubernetes-validations
    x-kubernetes-embedded-resource default nullable""".split()
)


class _Types:
    """Builds types of kind descriptions and of a Kubernetes release; named ones are collected for `$defs`."""

    def __init__(self, shared: Mapping[str, Any], kubernetes: Mapping[str, Schema], *, has_list_keys: bool) -> None:
        self.list_marks = _LIST_MARKS if has_list_keys else ()
        self.shared = shared
        self.kubernetes = kubernetes
        self.used: dict[str, Schema] = {}

    def metadata(self) -> Schema:
        """The metadata of an object, which is the same for every kind."""
        return self._named(f"{_META}ObjectMeta")

    def schema(self, described: Any) -> Schema:
        """The schema of a type in a kind description."""
        if _is_name(described):
            return self._named(described)
        return self._build_inline(described)

    def _build_inline(self, described: Any) -> Schema:
        """The schema of a type at the place where it is used."""
        if isinstance(described, list) and described:
            return {"type": "array", "items": self.schema(described[0])}
        if isinstance(described, dict):
            return self._build_with_keywords(described) if "=" in described else self._mapping(described)
        if not isinstance(described, str):
            raise UnknownTypeError(
                described, "; write its name, a mapping of fields, or a list with the type of its items"
            )
        if " | " in described:
            return {"enum": described.split(" | ")}
        return dict(_SCALARS[described]) if described in _SCALARS else self._content(described)

    def _build_with_keywords(self, described: dict[str, Any]) -> Schema:
        """A type with more keywords; a named type is built inline, because its other uses do not have them."""
        schema = self._build_inline(described["="])
        for word, value in described.items():
            if word == "keys":
                schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": value}
            elif word != "=":
                schema[_WORDS.get(word, word)] = value
        return schema

    def _mapping(self, described: dict[str, Any]) -> Schema:
        named = {name: value for name, value in described.items() if name != "*"}
        properties = {name.removesuffix("!"): self.schema(value) for name, value in named.items()}
        schema = _strict(properties, [name[:-1] for name in named if name.endswith("!")])
        if "*" in described:
            schema["additionalProperties"] = _allow_null(self.schema(described["*"]))
        return schema

    def _named(self, name: str) -> Schema:
        key = name.rpartition(".")[2]
        if key not in self.used:
            # Set first, because a type may refer to itself.
            self.used[key] = {}
            self.used[key] = self._content(name)
        return {"$ref": f"#/$defs/{key}"}

    def _content(self, name: str) -> Schema:
        known = self.kubernetes if "." in name else self.shared
        if name not in known:
            raise UnknownTypeError(name, did_you_mean(name, [*_SCALARS, *self.shared, *self.kubernetes]))
        return self._kubernetes(known[name]) if "." in name else self._build_inline(known[name])

    def _kubernetes(self, node: Any) -> Schema:
        """A type of a Kubernetes release as in a CRD: strict, without descriptions, with short metadata."""
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            inner = "TemplateMetadata" if name == f"{_META}ObjectMeta" else name
            return dict(_CRD_FORMS[name]) if name in _CRD_FORMS else self._named(inner)
        if "properties" in node:
            fields = {name: self._kubernetes(child) for name, child in node["properties"].items()}
            return _strict(fields, node.get("required", []))
        kind = _type(node)
        schema: Schema = {"type": kind} if kind else {}
        schema |= {key: node[key] for key in ("format", *self.list_marks) if key in node}
        if "items" in node:
            schema["items"] = self._kubernetes(node["items"])
        if isinstance(node.get("additionalProperties"), dict):
            schema["additionalProperties"] = _allow_null(self._kubernetes(node["additionalProperties"]))
        return schema


def _is_name(described: Any) -> bool:
    return isinstance(described, str) and described not in _SCALARS and " | " not in described


def _type(node: Schema) -> str:
    """The type of a node without `null`, which the source of the types adds everywhere."""
    kinds = node.get("type", [])
    return next((kind for kind in kinds if kind != "null"), "") if isinstance(kinds, list) else str(kinds)


def _strict(properties: dict[str, Schema], required: list[str]) -> Schema:
    """An object with these fields only; an optional field may also be null, which drops it."""
    fields = {name: child if name in required else _allow_null(child) for name, child in properties.items()}
    schema: Schema = {"type": "object", "properties": fields, "additionalProperties": False}
    return {**schema, "required": sorted(required)} if required else schema


def _allow_null(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if schema.get("enum"):
        return {**schema, "enum": [*schema["enum"], None]}
    if "type" not in schema:
        return schema
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*kinds, "null"]}
