"""Validate Leases."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, ValidatorTable, validate_fields, validate_number
from jobgen.model.data import Node

# Strategies and preferred holders need a feature gate that is off by default: the API server drops them.
_SPEC: ValidatorTable = {"leaseDurationSeconds": validate_number(1), "leaseTransitions": validate_number(0)}


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the duration and the number of transitions."""
    validate_fields(run.spec, _SPEC, run)
