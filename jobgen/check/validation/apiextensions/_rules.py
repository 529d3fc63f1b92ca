"""Validate the CEL rules in a schema, with the types of the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.check.admission.fields import Validation, get_key, is_set, iter_items, validate_enum
from jobgen.check.cel import available, mentions
from jobgen.check.cel.values import OFFLINE
from jobgen.check.schema.build import convert_schema_node
from jobgen.check.schema.cel_rules import find_errors_of_rule
from jobgen.check.validation.apiextensions._paths import find_field
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.limits import MALFORMED_DATA_ERRORS
from jobgen.model.named_tuple import NamedTuple

_RULES = "x-kubernetes-validations"
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


class _Context(NamedTuple):
    """The converted schema of a version, and whether old and new values can be compared at a node."""

    root: dict[str, Any]
    is_correlatable: bool = True


def validate_rules(schema: Mapping[str, Node], key: Node, run: Validation) -> None:
    """Validate the rules of all nodes of a schema."""
    plain: Any = untraced(schema)
    try:
        root = convert_schema_node(plain)
    except MALFORMED_DATA_ERRORS:
        return
    _validate_node(schema, root, key, _Context(root), run)


def _validate_node(schema: Mapping[str, Node], converted: Any, key: Node, context: _Context, run: Validation) -> None:
    for rule, node in iter_items(get_key(schema, _RULES), schema.get(_RULES)):
        count = len(run.problems)
        _validate_texts(rule, node, schema, run)
        if len(run.problems) == count and not available():
            _validate_expressions(rule, converted, node, context, run)
    is_granular = as_text(schema.get("x-kubernetes-map-type")) != "atomic"
    inner = context._replace(is_correlatable=context.is_correlatable and is_granular)
    fields = as_mapping(converted).get("properties")
    for name, child in as_mapping(schema.get("properties")).items():
        _validate_node(as_mapping(child), as_mapping(fields).get(name), name, inner, run)
    if isinstance(schema.get("additionalProperties"), dict):
        extra, place = as_mapping(schema["additionalProperties"]), get_key(schema, "additionalProperties")
        _validate_node(extra, as_mapping(converted).get("additionalProperties"), place, context, run)
    if isinstance(schema.get("items"), dict):
        is_map = as_text(schema.get("x-kubernetes-list-type")) == "map"
        inner = context._replace(is_correlatable=context.is_correlatable and is_map)
        items, place = as_mapping(schema["items"]), get_key(schema, "items")
        _validate_node(items, as_mapping(converted).get("items"), place, inner, run)


def _validate_texts(rule: Mapping[str, Node], node: Node, schema: Mapping[str, Node], run: Validation) -> None:
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
        validate_enum(*_REASONS)("reason", rule["reason"], rule, run)
    path = as_text(rule.get("fieldPath"))
    if path and (_has_lines(path) or find_field(path, schema) is None):
        run.report("invalid-value", f"`{path}` is not the path of a field, such as `.spec.replicas`", rule["fieldPath"])


def _validate_expressions(
    rule: Mapping[str, Node], converted: Any, node: Node, context: _Context, run: Validation
) -> None:
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
