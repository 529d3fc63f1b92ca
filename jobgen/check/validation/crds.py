"""Validate CustomResourceDefinitions: their names, their versions, and the conversion between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jobgen.check.admission.fields import (
    Entry,
    Fields,
    Kind,
    Table,
    Validation,
    choice,
    fields,
    find_entry,
    find_value,
    is_empty,
    is_set,
    items,
    iter_items,
    iter_texts,
    mapping,
    one_of,
    spec,
    valid_text,
    validate_fixed_name,
)
from jobgen.check.admission.names import DNS_LABEL_1035, DNS_SUBDOMAIN, is_dns_label_1035, is_dns_subdomain
from jobgen.check.cel import available, mentions, networks, text_format
from jobgen.check.cel.values import OFFLINE
from jobgen.check.schema.build import convert_schema_node
from jobgen.check.schema.cel_rules import find_errors_of_rule
from jobgen.check.schema.crd_schema import compile_structural
from jobgen.check.validation.admissionregistration import validate_client, validate_review_versions
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.budget import Budget, BudgetExceededError, Work
from jobgen.model.data import Plain, untraced
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MALFORMED_DATA_ERRORS
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Derived
from jobgen.model.sentence import Sentence
from jobgen.model.suggest import list_alternatives

# Validate the OpenAPI schema of a version of a CRD: keywords, structure, lists, defaults and CEL rules.

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
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
_PRESERVE, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_NUMBER_OR_TEXT = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN_INSIDE = (
    *("type", "additionalProperties", "default", "title", "description", "nullable", _PRESERVE, _EMBEDDED),
    *(_INT_OR_STRING, "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type"),
    "x-kubernetes-validations",
)
_LIST_TYPE, _LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_LIST_TYPES = ("atomic", "map", "set")
_RULES = "x-kubernetes-validations"
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_STEP = lazy_pattern(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(?:'((?:[^'\\]|\\.)*)'|(\d+))\]", re.ASCII)


class _Place(NamedTuple):
    """Where in a schema a node is."""

    no_default: str = ""
    """Why there must be no default; empty if there may be one."""
    in_metadata: bool = False


def validate_schema(schema: Fields, entry: Entry, *, has_status: bool, run: Validation) -> None:
    """Validate a whole schema; rules and defaults only if the rest is valid."""
    count = len(run.problems)
    validate_description(schema, entry, has_status=has_status, run=run)
    if len(run.problems) == count:
        validate_defaults(schema, run)
        validate_rules(schema, run)


def validate_description(schema: Fields, entry: Entry, *, has_status: bool, run: Validation) -> None:
    """Validate a schema without its rules and defaults."""
    if has_status:
        for word, value in schema.items():
            if word not in _AT_ROOT and not is_empty(value) and value is not False:
                message = Sentence(
                    "`{}` is not allowed at the root of a schema with the subresource `status`; remove it", word
                )
                run.report("invalid-form", message, (schema, word))
    if schema.get("nullable") is True:
        run.report("invalid-form", "`nullable` cannot be true at the root of a schema", At(schema, "nullable"))
    if is_set(schema.get("additionalProperties")):
        message = Sentence("`additionalProperties` cannot be set at the root of a schema; remove it")
        run.report("invalid-form", message, (schema, "additionalProperties"))
    if as_text(schema.get("type")) not in ("", "object"):
        run.invalid("`type` must be `object` at the root of a schema", At(schema, "type"))
    _validate_structure(schema, entry, run, is_root=True)
    _validate_node(schema, _Place(), run, is_root=True)


def _validate_node(schema: Fields, place: _Place, run: Validation, *, is_root: bool = False) -> None:
    _validate_keywords(schema, place, run)
    validate_list_keywords(schema, run)
    properties = as_mapping(schema.get("properties"))
    extra = schema.get("additionalProperties")
    if properties and is_set(extra) and extra is not True:
        message = "`additionalProperties` and `properties` cannot be combined; remove one of them"
        run.report("invalid-form", message, (schema, "additionalProperties"))
    if isinstance(extra, dict):
        inner = place._replace(no_default="in the metadata of an object") if place.in_metadata else place
        _validate_node(extra, inner, run)
    for name, child in properties.items():
        inner = place
        if name in _META_FIELDS and (is_root or schema.get("x-kubernetes-embedded-resource") is True):
            inner = inner._replace(in_metadata=True, no_default=f"in `{name}` of an object" if is_root else "")
        _validate_node(as_mapping(child), inner, run)
    for word in ("allOf", "anyOf", "oneOf"):
        for item in as_list(schema.get(word)):
            _validate_node(as_mapping(item), place, run)
    for word in ("not", "items"):
        if isinstance(schema.get(word), dict):
            _validate_node(as_mapping(schema[word]), place, run)


def _validate_keywords(schema: Fields, place: _Place, run: Validation) -> None:
    kind = as_text(schema.get("type"))
    if kind == "null":
        run.invalid("`type` cannot be `null`; set `nullable: true` beside another type", At(schema, "type"))
    elif kind and kind not in _TYPES:
        run.report_unsupported("type", At(schema, "type"), _TYPES)
    if is_set(schema.get("default")) and place.no_default:
        message = Sentence("there must be no `default` {}; remove it", place.no_default)
        run.report("invalid-form", message, (schema, "default"))
    for word in ("$schema", "id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"):
        if not is_empty(schema.get(word)) or (word == "additionalItems" and is_set(schema.get(word))):
            message = Sentence("`{}` is not supported in the schema of a CRD; remove it", word)
            run.report("invalid-form", message, (schema, word))
    if isinstance(schema.get("items"), list) and as_list(schema["items"]):
        run.report("invalid-form", "`items` must be one schema and not a list of schemas", (schema, "items"))
    for word, (value, hint) in _FORBIDDEN_VALUES.items():
        if schema.get(word) is value:
            run.invalid(Sentence("`{}` cannot be {}; {}", word, str(value).lower(), hint), At(schema, word))
    if place.in_metadata and schema.get("x-kubernetes-embedded-resource") is True:
        message = Sentence("`x-kubernetes-embedded-resource` cannot be set in the metadata of an object; remove it")
        run.report("invalid-form", message, At(schema, "x-kubernetes-embedded-resource"))
    _validate_map_type(schema, kind, run)


def _validate_bounds(schema: Fields, run: Validation) -> None:
    """Validate the bounds of an integer with a default, which Go reads as floats."""
    bits = 32 if as_text(schema.get("format")) == "int32" else 64
    for word in ("maximum", "minimum") if as_text(schema.get("type")) == "integer" else ():
        bound = schema.get(word)
        if (
            isinstance(bound, (int, float))
            and type(bound) is not bool
            and not -(2 ** (bits - 1)) <= float(bound) < 2 ** (bits - 1)
        ):
            run.report(
                "out-of-range",
                Sentence("`{}` is `{}`, beyond the integers of {} bits", word, bound, bits),
                At(schema, word),
            )


def _validate_map_type(schema: Fields, kind: str, run: Validation) -> None:
    word = "x-kubernetes-map-type"
    if not is_set(schema.get(word)):
        return
    if as_text(schema[word]) not in ("atomic", "granular"):
        run.report_unsupported(word, At(schema, word), ("atomic", "granular"))
    if kind != "object":
        place = At(schema, "type") if kind else (schema, word)
        run.invalid(Sentence("`type` must be `object` in a schema with `{}`", word), place)


def _validate_structure(schema: Fields, entry: Entry, run: Validation, *, is_root: bool = False) -> None:
    properties, extra, items = (schema.get(word) for word in ("properties", "additionalProperties", "items"))
    if is_set(extra) and type(extra) is not bool and not isinstance(extra, dict):
        run.report(
            "wrong-type", "`additionalProperties` must be a schema or a boolean", At(schema, "additionalProperties")
        )
    _validate_type(schema, entry, run)
    if is_root or _is_true(schema, _EMBEDDED):
        _validate_meta_fields(as_mapping(properties), run, is_root=is_root)
    _validate_alternatives(schema, run)
    if isinstance(items, dict):
        _validate_structure(items, (schema, "items"), run)
    if isinstance(extra, dict):
        _validate_structure(extra, (schema, "additionalProperties"), run)
    for name, child in as_mapping(properties).items():
        if not (is_root and name == "metadata"):
            _validate_structure(as_mapping(child), (properties, name), run)


def _validate_type(schema: Fields, entry: Entry, run: Validation) -> None:
    kind, items = as_text(schema.get("type")), schema.get("items")
    if kind == "array" and not isinstance(items, dict) and not as_list(items):
        run.report("missing-field", "`type: array` requires `items`; set it", At(schema, "type"))
    if _is_true(schema, _EMBEDDED):
        if kind != "object":
            run.invalid(
                Sentence("`type` must be `object` in a schema with `{}`", _EMBEDDED),
                At(schema, "type" if kind else _EMBEDDED),
            )
        if is_set(schema.get("additionalProperties")):
            message = Sentence("`additionalProperties` and `{}` cannot be combined; remove one of them", _EMBEDDED)
            run.report("invalid-form", message, (schema, "additionalProperties"))
        if not as_mapping(schema.get("properties")) and not _is_true(schema, _PRESERVE):
            message = Sentence("`{}` requires `properties`, or `{}: true`", _EMBEDDED, _PRESERVE)
            run.report("missing-field", message, At(schema, _EMBEDDED))
    elif not kind and not _is_true(schema, _INT_OR_STRING) and not _is_true(schema, _PRESERVE):
        place = At(schema, "type") if is_set(schema.get("type")) else schema or entry
        run.report("missing-field", Sentence("the schema of `{}` requires `type`; set it", entry[1]), place)
    for word in (_PRESERVE, _EMBEDDED):
        if _is_true(schema, _INT_OR_STRING) and _is_true(schema, word):
            run.report(
                "invalid-form",
                Sentence("`{}` and `{}` cannot be combined; remove one", word, _INT_OR_STRING),
                At(schema, word),
            )


def _validate_meta_fields(properties: Fields, run: Validation, *, is_root: bool) -> None:
    for name, kind in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        field = as_mapping(properties.get(name))
        if name in properties and as_text(field.get("type")) != kind:
            place = At(field, "type") if not is_empty(field.get("type")) else (properties, name)
            run.invalid(Sentence("`{}` of an object has `type: {}`", name, kind), place)
    if not is_root:
        return
    metadata = as_mapping(properties.get("metadata"))
    known = as_mapping(metadata.get("properties"))
    other = [
        (metadata, word) for word in metadata if word not in ("type", "properties") and not is_empty(metadata[word])
    ]
    other += [(known, name) for name in known if name not in ("name", "generateName")]
    if other:
        message = Sentence(
            "`{}` cannot be set in the schema of `metadata`; restrict only `name` and `generateName`", other[0][1]
        )
        run.report("invalid-form", message, other[0])


def _validate_alternatives(schema: Fields, run: Validation, *, is_outside: bool = True) -> None:
    """Validate the pattern and the alternatives of a node; those that every integer or string has may have types."""
    pattern = as_text(schema.get("pattern"))
    if pattern and not available() and text_format.fault(pattern):
        run.invalid(Sentence("`{}` is not a regular expression", pattern), At(schema, "pattern"))
    for word in ("allOf", "anyOf", "oneOf"):
        plain = untraced(schema.get(word))
        if is_outside and word == "anyOf" and plain == _NUMBER_OR_TEXT:
            continue
        for index, item in enumerate(as_list(schema.get(word))):
            inner = as_mapping(item)
            if is_outside and word == "allOf" and index == 0 and untraced(inner.get("anyOf")) == _NUMBER_OR_TEXT:
                inner = Derived({name: value for name, value in inner.items() if name != "anyOf"}, inner)
            _validate_inside(inner, run)
    if isinstance(schema.get("not"), dict):
        _validate_inside(as_mapping(schema["not"]), run)


def _validate_inside(schema: Fields, run: Validation) -> None:
    """Validate a schema in alternatives, which describes no types."""
    for word in _FORBIDDEN_INSIDE:
        value = schema.get(word)
        if is_set(value) and value is not False and not (is_empty(value) and word != "additionalProperties"):
            message = Sentence(
                "`{}` cannot be set in `allOf`, `anyOf`, `oneOf` or `not`; move it to the schema around", word
            )
            run.report("invalid-form", message, (schema, word))
    _validate_alternatives(schema, run, is_outside=False)
    properties = as_mapping(schema.get("properties"))
    if "metadata" in properties:
        message = Sentence("`metadata` cannot be set in `allOf`, `anyOf`, `oneOf` or `not`; remove it")
        run.report("invalid-form", message, (properties, "metadata"))
    for child in (*properties.values(), schema.get("items")):
        if isinstance(child, dict):
            _validate_inside(child, run)


def _is_true(schema: Fields, word: str) -> bool:
    return schema.get(word) is True


def validate_list_keywords(schema: Fields, run: Validation) -> None:
    """Validate that a list type fits the type of the schema, its items and its keys."""
    kind = as_text(schema.get(_LIST_TYPE))
    has_type = is_set(schema.get(_LIST_TYPE))
    items = as_mapping(schema.get("items"))
    if has_type and kind not in _LIST_TYPES:
        run.report_unsupported(_LIST_TYPE, At(schema, _LIST_TYPE), _LIST_TYPES)
    if has_type and as_text(schema.get("type")) != "array":
        place = At(schema, "type") if not is_empty(schema.get("type")) else (schema, _LIST_TYPE)
        run.invalid(Sentence("`type` must be `array` in a schema with `{}`", _LIST_TYPE), place)
    elif kind == "set":
        word = {"array": _LIST_TYPE, "object": "x-kubernetes-map-type"}.get(as_text(items.get("type")), "")
        found = items.get(word)
        if word and as_text(found) != "atomic" and (word != _LIST_TYPE or is_set(found)):
            place = At(items, word) if is_set(found) else (schema, "items")
            run.invalid(Sentence("items of a set require `{}: atomic`", word), place)
    if as_list(schema.get(_LIST_KEYS)) and kind != "map":
        place = At(schema, _LIST_TYPE) if has_type else (schema, _LIST_KEYS)
        run.invalid(Sentence("`{}` requires `{}: map`", _LIST_KEYS, _LIST_TYPE), place)
    if kind == "map":
        _validate_list_keys(schema, items, run)
    if kind in ("set", "map") and items.get("nullable") is True:
        run.invalid(
            Sentence("items of a list with `{}: {}` cannot be nullable", _LIST_TYPE, kind), At(items, "nullable")
        )


def _validate_list_keys(schema: Fields, items: Fields, run: Validation) -> None:
    keys = list(iter_texts(schema.get(_LIST_KEYS)))
    if not keys:
        message = Sentence("`{}: map` requires `{}`; list the keys of items", _LIST_TYPE, _LIST_KEYS)
        run.report("missing-field", message, At(schema, _LIST_TYPE))
    if not isinstance(schema.get("items"), dict):
        run.report(
            "missing-field",
            Sentence("`{}: map` requires `items` with a schema; set it", _LIST_TYPE),
            At(schema, _LIST_TYPE),
        )
        return
    if as_text(items.get("type")) != "object":
        place = At(items, "type") if is_set(items.get("type")) else (schema, "items")
        run.invalid(Sentence("`type` of the items must be `object` in a list with `{}: map`", _LIST_TYPE), place)
        return
    properties = as_mapping(items.get("properties"))
    required = {as_text(name) for name in as_list(items.get("required"))}
    seen: set[str] = set()
    for found, node in keys:
        if found in seen:
            run.report(
                "duplicate-item", Sentence("`{}` is listed twice in `{}`; remove one of them", found, _LIST_KEYS), node
            )
        elif found not in properties:
            run.invalid(Sentence("`{}` in `{}` is not a property of the items", found, _LIST_KEYS), node)
        else:
            field, subject = as_mapping(properties[found]), f"the key `{found}` of a list"
            if as_text(field.get("type")) in ("array", "object"):
                run.invalid(Sentence("{} must be a scalar", subject), At(field, "type"))
            if found not in required and not is_set(field.get("default")):
                run.report(
                    "missing-field", Sentence("{} must be required or have a default", subject), (properties, found)
                )
            if field.get("nullable") is True:
                run.invalid(Sentence("{} cannot be nullable", subject), At(field, "nullable"))
        seen.add(found)


def validate_defaults(schema: Fields, run: Validation) -> None:
    """Validate the defaults of a node and of all nodes in it."""
    if is_set(schema.get("default")):
        plain: Any = untraced(schema)
        try:
            field = convert_schema_node({word: child for word, child in plain.items() if word != "default"})
            budget = Budget(100_000, Work.SCHEMA)
            check = compile_structural({"type": "object", "properties": {"default": field}}, budget)
            problems = check({"default": plain["default"]})
        except (*MALFORMED_DATA_ERRORS, BudgetExceededError):
            problems = []
        _validate_bounds(schema, run)
        if problems:
            run.invalid(Sentence("the default is not a valid value: {}", problems[0].sentence), (schema, "default"))
    for child in (*as_mapping(schema.get("properties")).values(), schema.get("items")):
        if isinstance(child, dict):
            validate_defaults(child, run)


class _Context(NamedTuple):
    """The converted schema of a version, and whether old and new values can be compared at a node."""

    root: dict[str, Any]
    is_correlatable: bool = True


def _drop_nulls(node: Plain) -> Plain:
    """Return a schema without fields that are null, which count as not set."""
    if not isinstance(node, dict):
        return [_drop_nulls(item) for item in node] if isinstance(node, list) else node
    return {
        key: value if key in ("default", "enum", "example") else _drop_nulls(value)
        for key, value in node.items()
        if value is not None
    }


def validate_rules(schema: Fields, run: Validation) -> None:
    """Validate the rules of all nodes of a schema."""
    plain: Any = _drop_nulls(untraced(schema))
    try:
        root = convert_schema_node(plain)
    except MALFORMED_DATA_ERRORS:
        return
    _validate_rules_of(schema, root, _Context(root), run)


def _validate_rules_of(schema: Fields, converted: Any, context: _Context, run: Validation) -> None:
    for rule, node in iter_items(schema.get(_RULES)):
        count = len(run.problems)
        _validate_texts(rule, node, schema, run)
        if len(run.problems) == count and not available():
            _validate_expressions(rule, converted, context, run)
    is_granular = as_text(schema.get("x-kubernetes-map-type")) != "atomic"
    inner = context._replace(is_correlatable=context.is_correlatable and is_granular)
    fields = as_mapping(converted).get("properties")
    for name, child in as_mapping(schema.get("properties")).items():
        _validate_rules_of(as_mapping(child), as_mapping(fields).get(name), inner, run)
    if isinstance(schema.get("additionalProperties"), dict):
        extra = as_mapping(schema["additionalProperties"])
        _validate_rules_of(extra, as_mapping(converted).get("additionalProperties"), context, run)
    if isinstance(schema.get("items"), dict):
        is_map = as_text(schema.get("x-kubernetes-list-type")) == "map"
        inner = context._replace(is_correlatable=context.is_correlatable and is_map)
        _validate_rules_of(as_mapping(schema["items"]), as_mapping(converted).get("items"), inner, run)


def _validate_texts(rule: Fields, entry: Entry, schema: Fields, run: Validation) -> None:
    text, message = as_text(rule.get("rule")), as_text(rule.get("message"))
    if not text.strip():
        run.report("missing-field", "`rule` is empty; write an expression", find_value(rule, "rule", entry))
    elif message and not message.strip():
        run.invalid("`message` is blank; write a message or remove it", At(rule, "message"))
    elif _has_lines(message.strip()):
        run.invalid("`message` must be one line", At(rule, "message"))
    elif _has_lines(text.strip()) and not message:
        run.report("missing-field", "a rule of several lines requires `message`; set it", (rule, "rule"))
    if as_text(rule.get("messageExpression")) and not as_text(rule["messageExpression"]).strip():
        run.invalid("`messageExpression` is blank; remove it", At(rule, "messageExpression"))
    if is_set(rule.get("reason")):
        one_of(*_REASONS)("reason", rule["reason"], rule, run)
    path = as_text(rule.get("fieldPath"))
    if path and (_has_lines(path) or find_field(path, schema) is None):
        run.invalid(Sentence("`{}` is not the path of a field, such as `.spec.replicas`", path), At(rule, "fieldPath"))


def _validate_expressions(rule: Fields, converted: Any, context: _Context, run: Validation) -> None:
    plain: Any = untraced(rule)
    for field, reason in find_errors_of_rule(plain, converted, context.root, run.release):
        if OFFLINE not in reason:
            run.invalid(Sentence("`{}` does not compile: {}", field, reason), At(rule, field))
    has_old = mentions(as_text(rule.get("rule")), "oldSelf")
    if has_old and not context.is_correlatable:
        message = "`oldSelf` is not known inside of lists without keys and of atomic mappings; remove it from the rule"
        run.invalid(message, At(rule, "rule"))
    elif not has_old and rule.get("optionalOldSelf") is not None:
        message = "`optionalOldSelf` has no effect in a rule without `oldSelf`; remove it"
        run.report("invalid-form", message, (rule, "optionalOldSelf"))


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


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


_APPROVAL = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")
_MAX_WARNING_BYTES = 256
_MAX_SELECTABLE = 8
_KIND_HINT = f"in lower case, {DNS_LABEL_1035}"
_require_names = fields("`names`", {}, "plural", "kind")


def _validate_group(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    group = as_text(value)
    if group and (not is_dns_subdomain(group) or "." not in group):
        run.report(
            "invalid-name", Sentence("`{}` is not an API group with a domain; {}", group, DNS_SUBDOMAIN), At(owner, key)
        )
    elif group in _PROTECTED or group.endswith(tuple(f".{domain}" for domain in _PROTECTED)):
        # The community of Kubernetes approves APIs in its groups.
        annotations = as_mapping(run.metadata.get("annotations"))
        approval = as_text(annotations.get(_APPROVAL))
        if not approval:
            message = Sentence(
                "the group `{}` belongs to Kubernetes, and requires the annotation `{}`", group, _APPROVAL
            )
            run.report("missing-field", Sentence("{}; use your domain", message), At(owner, key))
        elif not approval.startswith("unapproved") and (
            networks.request_fault(approval) or not networks.parse(approval).host
        ):
            message = Sentence(
                "`{}` is neither the URL of an approval nor `unapproved`; use a group in your own domain", approval
            )
            run.invalid(message, At(annotations, _APPROVAL))


def _validate_preserve(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    if value is True:
        run.invalid(
            Sentence("`{}` cannot be true; set `x-kubernetes-preserve-unknown-fields` in the schema", key),
            At(owner, key),
        )


def _check_names(crd: Fields, entry: Entry, run: Validation) -> None:
    names = as_mapping(crd.get("names"))
    _require_names(names, (crd, "names") if "names" in crd else entry, run)
    found: list[tuple[str, Any, str]] = [
        (as_text(names.get(field)), (names, field), DNS_LABEL_1035) for field in ("plural", "singular")
    ]
    found += [(as_text(names.get(field)).lower(), (names, field), _KIND_HINT) for field in ("kind", "listKind")]
    for field in ("shortNames", "categories"):
        found += [(name or " ", item, DNS_LABEL_1035) for name, item in iter_texts(names.get(field))]
    for name, (holder, key), hint in found:
        if name and not is_dns_label_1035(name):
            run.report(
                "invalid-name", Sentence("`{}` is not a valid name; {}", as_text(holder[key]), hint), At(holder, key)
            )
    kind = as_text(names.get("kind"))
    if kind and kind == as_text(names.get("listKind")):
        run.invalid(Sentence("`listKind` is `{}`, as `kind` is; write `{}List`", kind, kind), At(names, "listKind"))
    wanted = f"{as_text(names.get('plural'))}.{as_text(crd.get('group'))}"
    validate_fixed_name(wanted, "the plural and the group of the resource", run)


def _check_versions(crd: Fields, entry: Entry, run: Validation) -> None:
    versions = list(iter_items(crd.get("versions")))
    seen: set[str] = set()
    for version, node in versions:
        _check_version(version, node, run)
        name = as_text(version.get("name"))
        if not is_dns_label_1035(name):
            message = Sentence("`{}` is not a valid version; {}", name, DNS_LABEL_1035)
            run.report("invalid-name", message, find_value(version, "name", node))
        elif name in seen:
            run.report(
                "duplicate-item", Sentence("there are two versions named `{}`; rename one", name), At(version, "name")
            )
        seen.add(name)
    stored = [version for version, _ in versions if version.get("storage") is True]
    if len(stored) != 1:
        message = Sentence("`{}` versions have `storage: true`; exactly one must have it", len(stored))
        run.invalid(message, At(stored[1], "storage") if stored else find_entry(crd, "versions", entry))
    _validate_schemas(versions, run)


def _validate_schemas(versions: list[tuple[Fields, Entry]], run: Validation) -> None:
    """Validate the schema of each version; equal schemas are validated once."""
    schemas = [untraced(version.get("schema")) for version, _ in versions]
    is_shared = all(schema == schemas[0] for schema in schemas)
    statuses = [_has_status(version) for version, _ in versions]
    for index, (version, node) in enumerate(versions):
        schema = as_mapping(version.get("schema")).get("openAPIV3Schema")
        if not is_set(schema):
            message = Sentence(
                "the version `{}` requires `schema.openAPIV3Schema`; set it", as_text(version.get("name"))
            )
            run.report("missing-field", message, node)
            continue
        has_status = any(statuses) if is_shared else statuses[index]
        if not is_shared or index == 0:
            key = (version["schema"], "openAPIV3Schema")
            validate_schema(as_mapping(schema), key, has_status=has_status, run=run)
        _validate_selectable(version, as_mapping(schema), run)


def find_schema_errors(crd: Fields) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the schemas of a CRD besides their rules and defaults: the version, and the message."""
    for version, _ in iter_items(as_mapping(crd.get("spec")).get("versions")):
        schema = as_mapping(version.get("schema")).get("openAPIV3Schema")
        run, key = Validation({}, {}, []), (version.get("schema"), "openAPIV3Schema")
        validate_description(as_mapping(schema), key, has_status=_has_status(version), run=run)
        for problem in run.problems:
            yield as_text(version.get("name")), str(problem.sentence)


def _has_status(version: Fields) -> bool:
    return is_set(as_mapping(version.get("subresources")).get("status"))


def _validate_warning(key: str, value: Plain, owner: Fields, run: Validation) -> None:
    written = as_text(value)
    if not is_set(value):
        return
    if owner.get("deprecated") is not True:
        run.report(
            "invalid-form",
            Sentence("`{}` requires `deprecated: true`; set it, or remove the warning", key),
            (owner, key),
        )
    elif not written or len(written.encode(errors="replace")) > _MAX_WARNING_BYTES or not written.isprintable():
        run.invalid(
            Sentence("`{}` must be one line of 1 to {} printable characters", key, _MAX_WARNING_BYTES), At(owner, key)
        )


def _check_scale_paths(scale: Fields, entry: Entry, run: Validation) -> None:
    roots = {"specReplicasPath": (".spec.",), "statusReplicasPath": (".status.",)}
    for field, known in {**roots, "labelSelectorPath": (".spec.", ".status.")}.items():
        path = as_text(scale.get(field))
        if path and not path.startswith(known):
            wanted = list_alternatives(f"`{root}`" for root in known)
            run.invalid(Sentence("`{}` is not a path that starts with {}", path, wanted), At(scale, field))


def _validate_selectable(version: Fields, schema: Fields, run: Validation) -> None:
    seen: set[str] = set()
    for item, node in iter_items(version.get("selectableFields")):
        path = as_text(item.get("jsonPath"))
        if not path:
            run.report_missing("a selectable field", item, "jsonPath", node)
            continue
        found = find_field(path, schema, allow_items=False)
        is_scalar = as_text(as_mapping(found).get("type")) in ("boolean", "integer", "string")
        if path.startswith(".metadata") or not is_scalar:
            message = Sentence(
                "`{}` is not the path of a field of type string, boolean or integer outside of `metadata`", path
            )
            run.invalid(message, At(item, "jsonPath"))
        elif path in seen:
            message = Sentence("`{}` is listed twice in `selectableFields`; remove one of them", path)
            run.report("duplicate-item", message, At(item, "jsonPath"))
        seen.add(path)
    if len(seen) > _MAX_SELECTABLE:
        run.report(
            "out-of-range",
            Sentence("`{}` selectable fields are too many; the limit is {}", len(seen), _MAX_SELECTABLE),
            (version, "selectableFields"),
        )


def _check_conversion(conversion: Fields, entry: Entry, run: Validation) -> None:
    strategy, webhook = as_text(conversion.get("strategy")), as_mapping(conversion.get("webhook"))
    inner: Entry = (conversion, "webhook") if "webhook" in conversion else entry
    if strategy == "Webhook":
        if not is_set(webhook.get("clientConfig")):
            run.report("missing-field", "`strategy: Webhook` requires `webhook.clientConfig`; set it", webhook or inner)
        else:
            validate_client(webhook, inner, run)
        validate_review_versions("conversionReviewVersions", webhook, inner, run)
    elif is_set(webhook.get("clientConfig")) or as_list(webhook.get("conversionReviewVersions")):
        run.report("invalid-form", Sentence("`webhook` cannot be set with `strategy: {}`; remove it", strategy), inner)


_COLUMN: Table = {
    "format": one_of("", "byte", "date", "date-time", "double", "float", "int32", "int64", "password"),
    "jsonPath": valid_text("invalid-value", "`{found}` is not a path; start with `.`", lambda path: path[0] == "."),
    "type": one_of("", "boolean", "date", "integer", "number", "string"),
}
_VERSION: Table = {
    "additionalPrinterColumns": items("a column", _COLUMN, "name", "type", "jsonPath"),
    "deprecationWarning": _validate_warning,
    "subresources": mapping({"scale": mapping({}, "specReplicasPath", "statusReplicasPath", _check_scale_paths)}),
}
_check_version = fields("a version", _VERSION)
_CRD: Table = {
    "conversion": mapping({}, choice("`conversion`", "strategy", "None", "Webhook"), _check_conversion),
    "group": _validate_group,
    "preserveUnknownFields": _validate_preserve,
    "scope": one_of("", "Cluster", "Namespaced"),
}

_check_crd = spec("a CustomResourceDefinition", _CRD, "group", "scope", _check_names, _check_versions)
KINDS = {"CustomResourceDefinition": Kind(_check_crd)}
