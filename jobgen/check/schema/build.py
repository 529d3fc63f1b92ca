"""Builds the schemas of custom resources from kind descriptions, and JSON Schemas from CRDs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.check.schema.crd_schema import DROPS_STATUS
from jobgen.check.schema.shipped import DIALECT, allow_null, assemble_custom, bundle_schema
from jobgen.model.suggest import did_you_mean
from jobgen.schema.types_of_release import QUANTITY, merge_history, read_types
from jobgen.spec.merge import merge

Schema = dict[str, Any]

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
_WORDS = {"rules": "x-kubernetes-validations"}


class UnknownTypeError(Exception):
    """A kind description names a type that does not exist; the text is a message for users."""

    def __init__(self, name: object, hint: str) -> None:
        super().__init__(f"there is no type `{name}`{hint}")
        self.name = name


def describe_custom(described: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """The schema that a kind description has, with all releases of its operator in one."""
    steps: list[tuple[str, Schema, dict[str, Schema]]] = []
    for since, older in _list_releases(described):
        then = merge(described, {key: older[key] for key in ("rules", "spec") if key in older}, [])
        built = _Types(merge(shared, older.get("types", {}), []))
        fields = {"spec": built.schema(then["spec"])}
        status = then.get("status", True)
        if status:
            fields["status"] = {"type": "object", **_SCALARS["any"]} if status is True else built.schema(status)
        root: Schema = {"type": "object", "properties": fields}
        if then.get("rules"):
            root["x-kubernetes-validations"] = then["rules"]
        steps.append((since, root, built.used))
    names = sorted({name for _, _, types in steps for name in types})
    types = {name: merge_history([(since, types.get(name)) for since, _, types in steps]) for name in names}
    head = {
        "apiVersion": described["apiVersion"],
        "kind": described["kind"],
        "spellings": described.get("spellings"),
        "plural": described.get("plural"),
        "operator": described["operator"]["name"],
        "fromDocumentation": described.get("fromDocumentation"),
        # An operator whose behavior is known only from its documentation may know more fields.
        "incomplete": described.get("requirements", {}).get("fromDocumentation"),
    }
    schema = merge_history([(since, root) for since, root, _ in steps])
    keys = {"listKeys": False} if described.get("listKeys") is False else {}
    return {**{key: value for key, value in head.items() if value}, **keys, "types": types, "schema": schema}


def _list_releases(described: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The releases in which the schema changed, oldest first, each with the differences of the description then."""
    since = str(described["operator"].get("since", "0"))
    for older in described.get("specs", ()):
        yield since, older
        since = older["until"]
    yield since, {}


def build_schemas(described: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[tuple[str, Schema]]:
    """The JSON Schemas of a kind, each with its file name: the current one, and those of older operators."""
    group, version = described["apiVersion"].split("/")
    stem = f"{group}/{described['kind'].lower()}_{version}"
    custom = describe_custom(described, shared)
    for since, older in _list_releases(described):
        suffix = f"-until-{older['until']}" if older else ""
        yield f"{stem}{suffix}.json", bundle_schema(assemble_custom(custom, since if older else ""))


def convert_crd(crd: Mapping[str, Any]) -> Iterator[tuple[str, Schema]]:
    """The schema of every version that a CustomResourceDefinition serves, with its file name."""
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    head = {"$schema": DIALECT, "title": kind}
    for version in crd["spec"]["versions"]:
        described = version.get("schema", {}).get("openAPIV3Schema")
        if version.get("served", True) and described:
            name, schema = version["name"], convert_schema_node(described)
            own = {"apiVersion": {"enum": [f"{group}/{name}"]}, "kind": {"enum": [kind]}}
            fields = {**schema.get("properties", {}), **own, "metadata": {"type": "object"}}
            required = sorted({*schema.get("required", ()), "apiVersion", "kind", "metadata"})
            root = {**head, **schema, "type": "object", "properties": fields, "required": required}
            if "status" in (version.get("subresources") or ()):
                root[DROPS_STATUS] = True
            yield f"{group}/{kind.lower()}_{name}.json", root


def convert_schema_node(node: Schema) -> Schema:
    """A node of a structural schema as strict JSON Schema, with null where Kubernetes drops or keeps it."""
    kept = {key: node[key] for key in node if key in KEPT_KEYWORDS}
    if node.get("x-kubernetes-int-or-string"):
        kept["type"] = ["integer", "string"]
    for word in ("allOf", "anyOf", "oneOf"):
        if word in node and not node.get("x-kubernetes-int-or-string"):
            kept[word] = [convert_schema_node(form) for form in node[word]]
    kept |= {word: convert_schema_node(node[word]) for word in ("not", "items") if word in node}
    required = node.get("required", [])
    if "properties" in node:
        fields = {name: convert_schema_node(child) for name, child in node["properties"].items()}
        kept["properties"] = {name: child if name in required else allow_null(child) for name, child in fields.items()}
    if isinstance(node.get("additionalProperties"), dict):
        kept["additionalProperties"] = allow_null(convert_schema_node(node["additionalProperties"]))
    elif node.get("type") == "object" and not node.get("x-kubernetes-preserve-unknown-fields") and "properties" in node:
        kept["additionalProperties"] = False
    return allow_null(kept) if node.get("nullable") else kept


KEPT_KEYWORDS = frozenset(
    """type format pattern enum required minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
    minLength maxLength minItems maxItems minProperties maxProperties
    x-kubernetes-int-or-string x-kubernetes-preserve-unknown-fields
    x-kubernetes-list-type x-kubernetes-list-map-keys x-kubernetes-map-type x-kubernetes-validations
    x-kubernetes-embedded-resource default nullable""".split()
)


class _Types:
    """Builds the types of a kind description; the shared ones that it uses are collected."""

    def __init__(self, shared: Mapping[str, Any]) -> None:
        self.shared = shared
        self.used: dict[str, Schema] = {}

    def schema(self, described: Any) -> Schema:
        """The schema of a type in a kind description."""
        is_name = isinstance(described, str) and described not in _SCALARS and " | " not in described
        if not is_name or "." in described:
            return self._build_inline(described)
        if described not in self.used:
            # Set first, because a type may refer to itself.
            self.used[described] = {}
            self.used[described] = self._build_shared(described)
        return {"$ref": described}

    def _build_inline(self, described: Any) -> Schema:
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
        if "." not in described:
            return dict(_SCALARS[described]) if described in _SCALARS else self._build_shared(described)
        # `io.k8s.api.core.v1.PodSpec` is `core_v1.PodSpec`.
        *_, group, version, short = ["", "", *described.split(".")]
        known = read_types(f"{group}_{version}").get("types", {})
        if short not in known:
            raise UnknownTypeError(described, did_you_mean(short, [*_SCALARS, *self.shared, *known]))
        return {"$ref": f"{group}_{version}.{short}"}

    def _build_with_keywords(self, described: dict[str, Any]) -> Schema:
        """A type with more keywords; a shared type is built inline, because its other uses do not have them."""
        schema = self._build_inline(described["="])
        for word, value in described.items():
            if word == "keys":
                schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": value}
            elif word != "=":
                schema[_WORDS.get(word, word)] = value
        return schema

    def _mapping(self, described: dict[str, Any]) -> Schema:
        named = {name: value for name, value in described.items() if name != "*"}
        schema: Schema = {"type": "object"}
        if named or "*" not in described:
            schema["properties"] = {name.removesuffix("!"): self.schema(value) for name, value in named.items()}
        required = sorted(name[:-1] for name in named if name.endswith("!"))
        schema |= {"required": required} if required else {}
        if "*" in described:
            schema["additionalProperties"] = self.schema(described["*"])
        return schema

    def _build_shared(self, name: str) -> Schema:
        if name not in self.shared:
            raise UnknownTypeError(name, did_you_mean(name, [*_SCALARS, *self.shared]))
        return self._build_inline(self.shared[name])
