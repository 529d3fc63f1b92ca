"""Validate ValidatingAdmissionPolicies."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, get_key, is_set, iter_items, validate_enum, validate_fields
from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.check.cel.admission_scope import AdmissionScope
from jobgen.check.validation.admissionregistration._expressions import (
    has_items,
    make_scope,
    validate_conditions,
    validate_expression,
    validate_variables,
)
from jobgen.check.validation.admissionregistration._matching import (
    require_match,
    validate_failure_policy,
    validate_match,
)
from jobgen.check.validation.admissionregistration._params import validate_param_kind
from jobgen.k8s.nodes import as_list, as_text
from jobgen.model.data import Node

_MAX_ANNOTATIONS = 20
_MAX_EXPRESSION_LENGTH = 5 * 1024
_FIELDS = {
    "failurePolicy": validate_failure_policy,
    "paramKind": validate_param_kind,
    "matchConstraints": validate_match,
}


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate what a policy matches, and its expressions with the types that they have in the API server."""
    spec = run.spec
    validate_fields(spec, _FIELDS, run)
    require_match(spec, run)
    scope = make_scope(spec, has_variables=has_items(spec, "variables"))
    validate_conditions(spec, scope, run)
    validate_variables(spec, scope, run)
    if not has_items(spec, "validations") and not has_items(spec, "auditAnnotations"):
        message = "the policy has neither `validations` nor `auditAnnotations`; add one of them"
        run.report("missing-field", message, spec or get_key(obj, "spec"))
    for item, node in iter_items(get_key(spec, "validations"), spec.get("validations")):
        _validate_validation(item, scope, node, run)
    _validate_annotations(spec, scope, run)


def _validate_validation(item: Mapping[str, Node], scope: AdmissionScope, node: Node, run: Validation) -> None:
    validate_expression(item, "expression", scope, node, run, "bool")
    if as_text(item.get("messageExpression")):
        validate_expression(item, "messageExpression", scope.without(authorizer=True), node, run, "string")
    message = as_text(item.get("message"))
    if message and not message.strip():
        run.report("invalid-value", "`message` is blank; write a message or remove it", item["message"])
    elif "\n" in message.strip() or "\r" in message.strip():
        run.report("invalid-value", "`message` must be one line", item["message"])
    if is_set(item.get("reason")):
        validate_enum("Forbidden", "Invalid", "RequestEntityTooLarge")("reason", item["reason"], item, run)


def _validate_annotations(spec: Mapping[str, Node], scope: AdmissionScope, run: Validation) -> None:
    annotations = spec.get("auditAnnotations")
    count = len(as_list(annotations))
    if count > _MAX_ANNOTATIONS:
        message = f"`{count}` audit annotations are too many; the limit is {_MAX_ANNOTATIONS}"
        run.report("out-of-range", message, as_list(annotations)[_MAX_ANNOTATIONS])
    seen: set[str] = set()
    for item, node in iter_items(get_key(spec, "auditAnnotations"), annotations):
        key = as_text(item.get("key"))
        if not is_label_key(f"{as_text(run.metadata.get('name'))}/{key}"):
            message = f"`{key}` is not a valid key of an audit annotation, after the policy's name and `/`; {LABEL_KEY}"
            run.report("invalid-name", message, item.get("key") or node)
        elif key in seen:
            run.report("duplicate-item", f"there are two audit annotations with the key `{key}`", item["key"])
        seen.add(key)
        text = as_text(item.get("valueExpression")).strip()
        if len(text.encode(errors="replace")) > _MAX_EXPRESSION_LENGTH:
            message = f"`valueExpression` is longer than {_MAX_EXPRESSION_LENGTH} bytes; shorten it"
            run.report("out-of-range", message, item["valueExpression"])
        else:
            validate_expression(item, "valueExpression", scope, node, run, "string", "null")
