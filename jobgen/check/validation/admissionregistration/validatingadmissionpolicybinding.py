"""Validate ValidatingAdmissionPolicyBindings."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, get_key, iter_texts, report_unsupported, validate_fields
from jobgen.check.validation.admissionregistration._matching import validate_match
from jobgen.check.validation.admissionregistration._params import validate_param_ref, validate_policy_name
from jobgen.model.data import Node

_FIELDS = {"paramRef": validate_param_ref, "matchResources": validate_match}
_ACTIONS = ("Audit", "Deny", "Warn")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the policy and the parameters that a binding names, what it matches, and its actions."""
    validate_policy_name(obj, run)
    validate_fields(run.spec, _FIELDS, run)
    seen: dict[str, Node] = {}
    for found, item in iter_texts(run.spec.get("validationActions")):
        if found not in _ACTIONS:
            report_unsupported("validationActions", item, _ACTIONS, run)
        elif found in seen:
            run.report("duplicate-item", f"there are two actions named `{found}`; remove one of them", item)
        seen.setdefault(found, item)
    if {"Deny", "Warn"} <= seen.keys():
        message = "`Deny` and `Warn` exclude each other, because a denial is shown anyway; remove one"
        run.report("invalid-value", message, next(seen[found] for found in reversed(seen) if found != "Audit"))
    if not seen:
        message = "the binding has no actions; list at least one of `Deny`, `Warn` and `Audit`"
        run.report("missing-field", message, find_key(run.spec, "validationActions", get_key(obj, "spec")))
