"""Validate ResourceClaims."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation
from jobgen.check.validation.resource._claims import validate_claim_spec
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the requests, constraints and configuration."""
    validate_claim_spec(run.spec, as_text(obj.get("apiVersion")).rpartition("/")[2], run)
