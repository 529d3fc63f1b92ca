"""Validate that a schema is structural: each value has a type, and alternatives only restrict it."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, get_key, is_empty, is_set
from jobgen.check.cel import available, patterns
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, untraced, value_of

_PRESERVE, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_NUMBER_OR_TEXT = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN_INSIDE = (
    *("type", "additionalProperties", "default", "title", "description", "nullable", _PRESERVE, _EMBEDDED),
    *(_INT_OR_STRING, "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type"),
    "x-kubernetes-validations",
)


def validate_structure(schema: Mapping[str, Node], key: Node, run: Validation) -> None:
    """Validate the schema of an object."""
    if is_set(schema.get("additionalProperties")):
        message = "`additionalProperties` has no place at the root of a schema; remove it"
        run.report("invalid-form", message, get_key(schema, "additionalProperties"))
    kind = as_text(schema.get("type"))
    if kind and kind != "object":
        run.report("invalid-value", "`type` must be `object` at the root of a schema", schema["type"])
    _validate_node(schema, key, run, is_root=True)


def _validate_node(schema: Mapping[str, Node], key: Node, run: Validation, *, is_root: bool = False) -> None:
    properties, extra, items = (schema.get(word) for word in ("properties", "additionalProperties", "items"))
    _validate_type(schema, key, run)
    if is_root or _is_true(schema, _EMBEDDED):
        _validate_meta_fields(as_mapping(properties), run, is_root=is_root)
    _validate_pattern(schema, run)
    _validate_alternatives(schema, run)
    if isinstance(items, dict):
        _validate_node(items, get_key(schema, "items"), run)
    if isinstance(extra, dict):
        _validate_node(extra, get_key(schema, "additionalProperties"), run)
    for name, child in as_mapping(properties).items():
        if not (is_root and name == "metadata"):
            _validate_node(as_mapping(child), name, run)


def _validate_type(schema: Mapping[str, Node], key: Node, run: Validation) -> None:
    kind, items = as_text(schema.get("type")), schema.get("items")
    if kind == "array" and not isinstance(items, dict) and not as_list(items):
        run.report("missing-field", "`type: array` requires `items`; set it", schema["type"])
    if _is_true(schema, _EMBEDDED):
        _validate_embedded(schema, kind, run)
    elif not kind and not _is_true(schema, _INT_OR_STRING) and not _is_true(schema, _PRESERVE):
        node = schema.get("type") if is_set(schema.get("type")) else schema or key
        run.report("missing-field", f"the schema of `{key}` requires `type`; set it", node)
    for word in (_PRESERVE, _EMBEDDED):
        if _is_true(schema, _INT_OR_STRING) and _is_true(schema, word):
            run.report("invalid-form", f"`{word}` and `{_INT_OR_STRING}` exclude each other; remove one", schema[word])


def _validate_embedded(schema: Mapping[str, Node], kind: str, run: Validation) -> None:
    if kind != "object":
        node = schema["type"] if kind else schema[_EMBEDDED]
        run.report("invalid-value", f"`type` must be `object` in a schema with `{_EMBEDDED}`", node)
    if is_set(schema.get("additionalProperties")):
        message = f"`additionalProperties` and `{_EMBEDDED}` exclude each other; remove one of them"
        run.report("invalid-form", message, get_key(schema, "additionalProperties"))
    if not as_mapping(schema.get("properties")) and not _is_true(schema, _PRESERVE):
        message = f"`{_EMBEDDED}` requires `properties`, or `{_PRESERVE}: true`"
        run.report("missing-field", message, schema[_EMBEDDED])


def _validate_meta_fields(properties: Mapping[str, Node], run: Validation, *, is_root: bool) -> None:
    for name, kind in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        field = as_mapping(properties.get(name))
        if name in properties and as_text(field.get("type")) != kind:
            node = field.get("type") if not is_empty(field.get("type")) else get_key(properties, name)
            run.report("invalid-value", f"`{name}` of an object has `type: {kind}`", node)
    if not is_root:
        return
    metadata = as_mapping(properties.get("metadata"))
    known = as_mapping(metadata.get("properties"))
    other = [word for word in metadata if word not in ("type", "properties") and not is_empty(metadata[word])]
    other += [name for name in known if name not in ("name", "generateName")]
    if other:
        message = f"`{other[0]}` has no place in the schema of `metadata`; restrict only `name` and `generateName`"
        run.report("invalid-form", message, other[0])


def _validate_pattern(schema: Mapping[str, Node], run: Validation) -> None:
    pattern = as_text(schema.get("pattern"))
    if pattern and not available() and patterns.fault(pattern):
        run.report("invalid-value", f"`{pattern}` is not a regular expression", schema["pattern"])


def _validate_alternatives(schema: Mapping[str, Node], run: Validation, *, is_outside: bool = True) -> None:
    """Validate `allOf`, `anyOf`, `oneOf` and `not`; those that every integer or string has may have types."""
    for word in ("allOf", "anyOf", "oneOf"):
        plain = untraced(schema.get(word))
        if is_outside and word == "anyOf" and plain == _NUMBER_OR_TEXT:
            continue
        for index, item in enumerate(as_list(schema.get(word))):
            inner = as_mapping(item)
            if is_outside and word == "allOf" and index == 0 and untraced(inner.get("anyOf")) == _NUMBER_OR_TEXT:
                inner = {name: value for name, value in inner.items() if name != "anyOf"}
            _validate_inside(inner, run)
    if isinstance(schema.get("not"), dict):
        _validate_inside(as_mapping(schema["not"]), run)


def _validate_inside(schema: Mapping[str, Node], run: Validation) -> None:
    """Validate a schema in alternatives, which describes no types."""
    for word in _FORBIDDEN_INSIDE:
        value = schema.get(word)
        if is_set(value) and value_of(value) is not False and not (is_empty(value) and word != "additionalProperties"):
            message = f"`{word}` has no place in `allOf`, `anyOf`, `oneOf` and `not`; move it to the schema around"
            run.report("invalid-form", message, get_key(schema, word))
    _validate_pattern(schema, run)
    _validate_alternatives(schema, run, is_outside=False)
    properties = as_mapping(schema.get("properties"))
    if "metadata" in properties:
        message = "`metadata` has no place in `allOf`, `anyOf`, `oneOf` and `not`; remove it"
        run.report("invalid-form", message, get_key(properties, "metadata"))
    for child in (*properties.values(), schema.get("items")):
        if isinstance(child, dict):
            _validate_inside(child, run)


def _is_true(schema: Mapping[str, Node], word: str) -> bool:
    return value_of(schema.get(word)) is True
