"""Validate MutatingAdmissionPolicyBindings."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, validate_fields
from jobgen.check.validation.admissionregistration._matching import validate_match, validate_mutating_operations
from jobgen.check.validation.admissionregistration._params import validate_param_ref, validate_policy_name
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the policy and the parameters that a binding names, and what it matches."""
    validate_policy_name(obj, run)
    validate_fields(run.spec, {"paramRef": validate_param_ref, "matchResources": validate_match}, run)
    validate_mutating_operations(run.spec.get("matchResources"), run)
