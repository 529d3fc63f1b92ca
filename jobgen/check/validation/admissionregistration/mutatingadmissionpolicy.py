"""Validate MutatingAdmissionPolicies."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    get_key,
    is_empty,
    is_set,
    iter_items,
    report_missing,
    report_unsupported,
    validate_enum,
    validate_fields,
)
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
    validate_mutating_operations,
)
from jobgen.check.validation.admissionregistration._params import validate_param_kind
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

_FIELDS = {
    "failurePolicy": validate_failure_policy,
    "paramKind": validate_param_kind,
    "matchConstraints": validate_match,
}
_RESULTS = {"JSONPatch": ("jsonPatch", "list<JSONPatch>"), "ApplyConfiguration": ("applyConfiguration", "Object")}


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate what a policy matches, and its expressions with the types that they have in the API server."""
    spec = run.spec
    validate_fields(spec, _FIELDS, run)
    require_match(spec, run)
    validate_mutating_operations(spec.get("matchConstraints"), run)
    scope = make_scope(spec, has_variables=True)
    validate_conditions(spec, scope, run)
    validate_variables(spec, scope, run)
    if not has_items(spec, "mutations"):
        report_missing("a policy", spec, "mutations", get_key(obj, "spec"), run)
    for item, node in iter_items(get_key(spec, "mutations"), spec.get("mutations")):
        _validate_mutation(item, scope, node, run)
    if is_empty(spec.get("reinvocationPolicy")):
        report_missing("a policy", spec, "reinvocationPolicy", get_key(obj, "spec"), run)
    else:
        validate_enum("IfNeeded", "Never")("reinvocationPolicy", spec["reinvocationPolicy"], spec, run)


def _validate_mutation(item: Mapping[str, Node], scope: AdmissionScope, node: Node, run: Validation) -> None:
    kind = as_text(item.get("patchType"))
    if not kind:
        report_missing("a mutation", item, "patchType", node, run)
        return
    if kind not in _RESULTS:
        report_unsupported("patchType", item["patchType"], tuple(_RESULTS), run)
        return
    for name, (field, result) in _RESULTS.items():
        if name != kind and is_set(item.get(field)):
            message = f"`{field}` has no place beside `patchType: {kind}`; remove one of them"
            run.report("invalid-form", message, get_key(item, field))
        elif name == kind and not is_set(item.get(field)):
            report_missing(f"`patchType: {kind}`", item, field, node, run)
        elif name == kind:
            patch = as_mapping(item[field])
            validate_expression(patch, "expression", scope, get_key(item, field), run, result)
