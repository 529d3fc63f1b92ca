"""Validate the OpenAPI schema of a version of a CRD: keywords, structure, lists, defaults and CEL rules."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from jobgen.check.admission.fields import (
    Fields,
    Validation,
    get_key,
    is_empty,
    is_set,
    iter_items,
    iter_texts,
    one_of,
    report_unsupported,
)
from jobgen.check.cel import available, mentions, text_format
from jobgen.check.cel.values import OFFLINE
from jobgen.check.schema.build import convert_schema_node
from jobgen.check.schema.cel_rules import find_errors_of_rule
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MALFORMED_DATA_ERRORS, Budget, BudgetExceededError

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


def validate_schema(schema: Fields, key: Node, *, has_status: bool, run: Validation) -> None:
    """Validate a whole schema; rules and defaults only if the rest is valid."""
    count = len(run.problems)
    validate_description(schema, key, has_status=has_status, run=run)
    if len(run.problems) == count:
        validate_defaults(schema, run)
        validate_rules(schema, key, run)


def validate_description(schema: Fields, key: Node, *, has_status: bool, run: Validation) -> None:
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


def _validate_node(schema: Fields, key: Node, place: _Place, run: Validation, *, is_root: bool = False) -> None:
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


def _validate_keywords(schema: Fields, place: _Place, run: Validation) -> None:
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


def _validate_map_type(schema: Fields, kind: str, run: Validation) -> None:
    word = "x-kubernetes-map-type"
    if not is_set(schema.get(word)):
        return
    if as_text(schema[word]) not in ("atomic", "granular"):
        report_unsupported(word, schema[word], ("atomic", "granular"), run)
    if kind != "object":
        node = schema["type"] if kind else get_key(schema, word)
        run.report("invalid-value", f"`type` must be `object` in a schema with `{word}`", node)


_PRESERVE, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_NUMBER_OR_TEXT = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN_INSIDE = (
    *("type", "additionalProperties", "default", "title", "description", "nullable", _PRESERVE, _EMBEDDED),
    *(_INT_OR_STRING, "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type"),
    "x-kubernetes-validations",
)


def validate_structure(schema: Fields, key: Node, run: Validation) -> None:
    """Validate the schema of an object."""
    if is_set(schema.get("additionalProperties")):
        message = "`additionalProperties` has no place at the root of a schema; remove it"
        run.report("invalid-form", message, get_key(schema, "additionalProperties"))
    kind = as_text(schema.get("type"))
    if kind and kind != "object":
        run.report("invalid-value", "`type` must be `object` at the root of a schema", schema["type"])
    _validate_structure_node(schema, key, run, is_root=True)


def _validate_structure_node(schema: Fields, key: Node, run: Validation, *, is_root: bool = False) -> None:
    properties, extra, items = (schema.get(word) for word in ("properties", "additionalProperties", "items"))
    _validate_type(schema, key, run)
    if is_root or _is_true(schema, _EMBEDDED):
        _validate_meta_fields(as_mapping(properties), run, is_root=is_root)
    _validate_pattern(schema, run)
    _validate_alternatives(schema, run)
    if isinstance(items, dict):
        _validate_structure_node(items, get_key(schema, "items"), run)
    if isinstance(extra, dict):
        _validate_structure_node(extra, get_key(schema, "additionalProperties"), run)
    for name, child in as_mapping(properties).items():
        if not (is_root and name == "metadata"):
            _validate_structure_node(as_mapping(child), name, run)


def _validate_type(schema: Fields, key: Node, run: Validation) -> None:
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


def _validate_embedded(schema: Fields, kind: str, run: Validation) -> None:
    if kind != "object":
        node = schema["type"] if kind else schema[_EMBEDDED]
        run.report("invalid-value", f"`type` must be `object` in a schema with `{_EMBEDDED}`", node)
    if is_set(schema.get("additionalProperties")):
        message = f"`additionalProperties` and `{_EMBEDDED}` exclude each other; remove one of them"
        run.report("invalid-form", message, get_key(schema, "additionalProperties"))
    if not as_mapping(schema.get("properties")) and not _is_true(schema, _PRESERVE):
        message = f"`{_EMBEDDED}` requires `properties`, or `{_PRESERVE}: true`"
        run.report("missing-field", message, schema[_EMBEDDED])


def _validate_meta_fields(properties: Fields, run: Validation, *, is_root: bool) -> None:
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


def _validate_pattern(schema: Fields, run: Validation) -> None:
    pattern = as_text(schema.get("pattern"))
    if pattern and not available() and text_format.fault(pattern):
        run.report("invalid-value", f"`{pattern}` is not a regular expression", schema["pattern"])


def _validate_alternatives(schema: Fields, run: Validation, *, is_outside: bool = True) -> None:
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


def _validate_inside(schema: Fields, run: Validation) -> None:
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


def _is_true(schema: Fields, word: str) -> bool:
    return value_of(schema.get(word)) is True


_LIST_TYPE, _LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_LIST_TYPES = ("atomic", "map", "set")


def validate_list_keywords(schema: Fields, key: Node, run: Validation) -> None:
    """Validate that a list type fits the type of the schema, its items and its keys."""
    kind = as_text(schema.get(_LIST_TYPE))
    has_type = is_set(schema.get(_LIST_TYPE))
    items = as_mapping(schema.get("items"))
    if has_type and kind not in _LIST_TYPES:
        report_unsupported(_LIST_TYPE, schema[_LIST_TYPE], _LIST_TYPES, run)
    if has_type and as_text(schema.get("type")) != "array":
        node = schema.get("type") if not is_empty(schema.get("type")) else get_key(schema, _LIST_TYPE)
        run.report("invalid-value", f"`type` must be `array` in a schema with `{_LIST_TYPE}`", node)
    elif kind == "set":
        _validate_set_items(items, get_key(schema, "items"), run)
    if as_list(schema.get(_LIST_KEYS)) and kind != "map":
        node = schema[_LIST_TYPE] if has_type else get_key(schema, _LIST_KEYS)
        run.report("invalid-value", f"`{_LIST_KEYS}` requires `{_LIST_TYPE}: map`", node)
    if kind == "map":
        _validate_list_keys(schema, items, key, run)
    if kind in ("set", "map") and value_of(items.get("nullable")) is True:
        run.report(
            "invalid-value", f"items of a list with `{_LIST_TYPE}: {kind}` cannot be nullable", items["nullable"]
        )


def _validate_set_items(items: Fields, key: Node, run: Validation) -> None:
    kind = as_text(items.get("type"))
    word = {"array": _LIST_TYPE, "object": "x-kubernetes-map-type"}.get(kind, "")
    found = as_text(items.get(word)) if word else ""
    if (kind == "array" and is_set(items.get(word)) and found != "atomic") or (kind == "object" and found != "atomic"):
        node = items.get(word) if is_set(items.get(word)) else key
        run.report("invalid-value", f"items of a set require `{word}: atomic`", node)


def _validate_list_keys(schema: Fields, items: Fields, key: Node, run: Validation) -> None:
    keys = list(iter_texts(schema.get(_LIST_KEYS)))
    if not keys:
        run.report(
            "missing-field", f"`{_LIST_TYPE}: map` requires `{_LIST_KEYS}`; list the keys of items", schema[_LIST_TYPE]
        )
    if not isinstance(schema.get("items"), dict):
        run.report("missing-field", f"`{_LIST_TYPE}: map` requires `items` with a schema; set it", schema[_LIST_TYPE])
        return
    if as_text(items.get("type")) != "object":
        node = items.get("type") if is_set(items.get("type")) else get_key(schema, "items")
        run.report("invalid-value", f"`type` of the items must be `object` in a list with `{_LIST_TYPE}: map`", node)
        return
    properties = as_mapping(items.get("properties"))
    required = {as_text(name) for name in as_list(items.get("required"))}
    seen: set[str] = set()
    for found, node in keys:
        if found in seen:
            run.report("duplicate-item", f"`{found}` is twice in `{_LIST_KEYS}`; remove one of them", node)
        elif found not in properties:
            run.report("invalid-value", f"`{found}` in `{_LIST_KEYS}` is not a property of the items", node)
        else:
            _validate_list_key(
                found, as_mapping(properties[found]), get_key(properties, found), run, is_required=found in required
            )
        seen.add(found)


def _validate_list_key(name: str, field: Fields, key: Node, run: Validation, *, is_required: bool) -> None:
    if as_text(field.get("type")) in ("array", "object"):
        run.report("invalid-value", f"the key `{name}` of a list must be a scalar", field["type"])
    if not is_required and not is_set(field.get("default")):
        run.report("missing-field", f"the key `{name}` of a list must be required or have a default", key)
    if value_of(field.get("nullable")) is True:
        run.report("invalid-value", f"the key `{name}` of a list cannot be nullable", field["nullable"])


_MAX_STEPS = 100_000


def validate_defaults(schema: Fields, run: Validation) -> None:
    """Validate the defaults of a node and of all nodes in it."""
    if is_set(schema.get("default")):
        plain: Any = untraced(schema)
        problem = _find_problem(plain)
        if problem:
            run.report("invalid-value", f"the default is not a valid value: {problem}", get_key(schema, "default"))
    for child in (*as_mapping(schema.get("properties")).values(), schema.get("items")):
        if isinstance(child, dict):
            validate_defaults(child, run)


def _find_problem(schema: dict[str, Any]) -> str:
    value = schema["default"]
    try:
        field = convert_schema_node({word: child for word, child in schema.items() if word != "default"})
        check = compile_structural({"type": "object", "properties": {"default": field}}, Budget(_MAX_STEPS))
        problems = check({"default": value})
    except (*MALFORMED_DATA_ERRORS, BudgetExceededError):
        return ""
    return problems[0].message if problems else ""


_RULES = "x-kubernetes-validations"
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


class _Context(NamedTuple):
    """The converted schema of a version, and whether old and new values can be compared at a node."""

    root: dict[str, Any]
    is_correlatable: bool = True


def validate_rules(schema: Fields, key: Node, run: Validation) -> None:
    """Validate the rules of all nodes of a schema."""
    plain: Any = untraced(schema)
    try:
        root = convert_schema_node(plain)
    except MALFORMED_DATA_ERRORS:
        return
    _validate_rules_of(schema, root, key, _Context(root), run)


def _validate_rules_of(schema: Fields, converted: Any, key: Node, context: _Context, run: Validation) -> None:
    for rule, node in iter_items(get_key(schema, _RULES), schema.get(_RULES)):
        count = len(run.problems)
        _validate_texts(rule, node, schema, run)
        if len(run.problems) == count and not available():
            _validate_expressions(rule, converted, node, context, run)
    is_granular = as_text(schema.get("x-kubernetes-map-type")) != "atomic"
    inner = context._replace(is_correlatable=context.is_correlatable and is_granular)
    fields = as_mapping(converted).get("properties")
    for name, child in as_mapping(schema.get("properties")).items():
        _validate_rules_of(as_mapping(child), as_mapping(fields).get(name), name, inner, run)
    if isinstance(schema.get("additionalProperties"), dict):
        extra, place = as_mapping(schema["additionalProperties"]), get_key(schema, "additionalProperties")
        _validate_rules_of(extra, as_mapping(converted).get("additionalProperties"), place, context, run)
    if isinstance(schema.get("items"), dict):
        is_map = as_text(schema.get("x-kubernetes-list-type")) == "map"
        inner = context._replace(is_correlatable=context.is_correlatable and is_map)
        items, place = as_mapping(schema["items"]), get_key(schema, "items")
        _validate_rules_of(items, as_mapping(converted).get("items"), place, inner, run)


def _validate_texts(rule: Fields, node: Node, schema: Fields, run: Validation) -> None:
    text, message = as_text(rule.get("rule")), as_text(rule.get("message"))
    if not text.strip():
        run.report("missing-field", "`rule` is empty; write an expression", rule.get("rule") or node)
    elif message and not message.strip():
        run.report("invalid-value", "`message` is blank; write a message or remove it", rule["message"])
    elif _has_lines(message.strip()):
        run.report("invalid-value", "`message` must be one line", rule["message"])
    elif _has_lines(text.strip()) and not message:
        run.report("missing-field", "a rule of several lines requires `message`; set it", get_key(rule, "rule"))
    if as_text(rule.get("messageExpression")) and not as_text(rule["messageExpression"]).strip():
        run.report("invalid-value", "`messageExpression` is blank; remove it", rule["messageExpression"])
    if is_set(rule.get("reason")):
        one_of(*_REASONS)("reason", rule["reason"], rule, run)
    path = as_text(rule.get("fieldPath"))
    if path and (_has_lines(path) or find_field(path, schema) is None):
        run.report("invalid-value", f"`{path}` is not the path of a field, such as `.spec.replicas`", rule["fieldPath"])


def _validate_expressions(rule: Fields, converted: Any, node: Node, context: _Context, run: Validation) -> None:
    plain: Any = untraced(rule)
    for field, reason in find_errors_of_rule(plain, converted, context.root):
        if OFFLINE not in reason:
            run.report("invalid-value", f"`{field}` does not compile: {reason}", rule[field])
    has_old = mentions(as_text(rule.get("rule")), "oldSelf")
    if has_old and not context.is_correlatable:
        message = "`oldSelf` is not known inside of lists without keys and of atomic mappings; remove it from the rule"
        run.report("invalid-value", message, rule["rule"])
    elif not has_old and value_of(rule.get("optionalOldSelf")) is not None:
        message = "`optionalOldSelf` has no effect in a rule without `oldSelf`; remove it"
        run.report("invalid-form", message, get_key(rule, "optionalOldSelf"))


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


_STEP = lazy_pattern(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(?:'((?:[^'\\]|\\.)*)'|(\d+))\]", re.ASCII)


def find_field(path: str, schema: Fields, *, allow_items: bool = True) -> Fields | None:
    """Return the schema of the field at a path; None if there is no such field."""
    place, found = 0, schema
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            return None
        place = step.end()
        name = step[1] or re.sub(r"\\(.)", r"\1", step[2] or "")
        properties, extra = as_mapping(found.get("properties")), found.get("additionalProperties")
        is_item = step[3] is not None
        child = properties.get(name, extra) if not is_item else found.get("items") if allow_items else None
        if not isinstance(child, dict):
            return None
        found = child
    return found if place else None
