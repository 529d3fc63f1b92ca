"""Validate the OpenAPI schema of a version: keywords, structure, lists, defaults and CEL rules."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, get_key, is_empty, is_set, report_unsupported
from jobgen.check.validation.apiextensions._defaults import validate_defaults
from jobgen.check.validation.apiextensions._lists import validate_list_keywords
from jobgen.check.validation.apiextensions._rules import validate_rules
from jobgen.check.validation.apiextensions._structure import validate_structure
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, value_of
from jobgen.model.named_tuple import NamedTuple

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_AT_ROOT = frozenset(
    """description type format title maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern
    maxItems minItems uniqueItems multipleOf required items properties externalDocs example
    x-kubernetes-preserve-unknown-fields x-kubernetes-validations""".split()
)
_FORBIDDEN_VALUES = {
    "uniqueItems": (True, "it takes too long, so use `x-kubernetes-list-type: set`"),
    "x-kubernetes-preserve-unknown-fields": (False, "remove it"),
}
_META_FIELDS = ("metadata", "kind", "apiVersion")


class _Place(NamedTuple):
    """Where in a schema a node is."""

    no_default: str = ""
    """Why there must be no default; empty if there may be one."""
    in_metadata: bool = False


def validate_schema(schema: Mapping[str, Node], key: Node, *, has_status: bool, run: Validation) -> None:
    """Validate a whole schema; rules and defaults only if the rest is valid."""
    count = len(run.problems)
    validate_description(schema, key, has_status=has_status, run=run)
    if len(run.problems) == count:
        validate_defaults(schema, run)
        validate_rules(schema, key, run)


def validate_description(schema: Mapping[str, Node], key: Node, *, has_status: bool, run: Validation) -> None:
    """Validate a schema without its rules and defaults."""
    if has_status:
        for word, value in schema.items():
            if word not in _AT_ROOT and not is_empty(value) and value_of(value) is not False:
                message = f"`{word}` is not allowed at the root of a schema with the subresource `status`; remove it"
                run.report("invalid-form", message, word)
    if value_of(schema.get("nullable")) is True:
        run.report("invalid-form", "`nullable` cannot be true at the root of a schema", schema["nullable"])
    validate_structure(schema, key, run)
    _validate_node(schema, key, _Place(), run, is_root=True)


def _validate_node(
    schema: Mapping[str, Node], key: Node, place: _Place, run: Validation, *, is_root: bool = False
) -> None:
    _validate_keywords(schema, place, run)
    validate_list_keywords(schema, key, run)
    properties = as_mapping(schema.get("properties"))
    extra = schema.get("additionalProperties")
    if properties and is_set(extra) and value_of(extra) is not True:
        message = "`additionalProperties` and `properties` exclude each other; remove one of them"
        run.report("invalid-form", message, get_key(schema, "additionalProperties"))
    if isinstance(extra, dict):
        inner = place._replace(no_default="in the metadata of an object") if place.in_metadata else place
        _validate_node(extra, get_key(schema, "additionalProperties"), inner, run)
    for name, child in properties.items():
        inner = place
        if name in _META_FIELDS and (is_root or value_of(schema.get("x-kubernetes-embedded-resource")) is True):
            inner = inner._replace(in_metadata=True, no_default=f"in `{name}` of an object" if is_root else "")
        _validate_node(as_mapping(child), name, inner, run)
    for word in ("allOf", "anyOf", "oneOf"):
        for item in as_list(schema.get(word)):
            _validate_node(as_mapping(item), get_key(schema, word), place, run)
    for word in ("not", "items"):
        if isinstance(schema.get(word), dict):
            _validate_node(as_mapping(schema[word]), get_key(schema, word), place, run)


def _validate_keywords(schema: Mapping[str, Node], place: _Place, run: Validation) -> None:
    kind = as_text(schema.get("type"))
    if kind == "null":
        run.report("invalid-value", "`type` cannot be `null`; set `nullable: true` beside another type", schema["type"])
    elif kind and kind not in _TYPES:
        report_unsupported("type", schema["type"], _TYPES, run)
    if is_set(schema.get("default")) and place.no_default:
        message = f"there must be no `default` {place.no_default}; remove it"
        run.report("invalid-form", message, get_key(schema, "default"))
    for word in _UNSUPPORTED:
        if not is_empty(schema.get(word)) or (word == "additionalItems" and is_set(schema.get(word))):
            message = f"`{word}` is not supported in the schema of a CRD; remove it"
            run.report("invalid-form", message, get_key(schema, word))
    if isinstance(schema.get("items"), list) and as_list(schema["items"]):
        run.report("invalid-form", "`items` must be one schema and not a list of schemas", get_key(schema, "items"))
    for word, (value, hint) in _FORBIDDEN_VALUES.items():
        if value_of(schema.get(word)) is value:
            run.report("invalid-value", f"`{word}` cannot be {str(value).lower()}; {hint}", schema[word])
    if place.in_metadata and value_of(schema.get("x-kubernetes-embedded-resource")) is True:
        message = "`x-kubernetes-embedded-resource` has no place in the metadata of an object; remove it"
        run.report("invalid-form", message, schema["x-kubernetes-embedded-resource"])
    _validate_map_type(schema, kind, run)


def _validate_map_type(schema: Mapping[str, Node], kind: str, run: Validation) -> None:
    word = "x-kubernetes-map-type"
    if not is_set(schema.get(word)):
        return
    if as_text(schema[word]) not in ("atomic", "granular"):
        report_unsupported(word, schema[word], ("atomic", "granular"), run)
    if kind != "object":
        node = schema["type"] if kind else get_key(schema, word)
        run.report("invalid-value", f"`type` must be `object` in a schema with `{word}`", node)
