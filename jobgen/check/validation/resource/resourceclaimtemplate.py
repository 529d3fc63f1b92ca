"""Validate ResourceClaimTemplates."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_empty
from jobgen.check.admission.metadata import validate_annotation_keys, validate_labels
from jobgen.check.validation.resource._claims import validate_claim_spec
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

_ALLOWED_METADATA = ("annotations", "labels")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the metadata and the spec of the claims."""
    metadata = as_mapping(run.spec.get("metadata"))
    validate_labels("labels", metadata.get("labels"), metadata, run)
    validate_annotation_keys("annotations", metadata.get("annotations"), metadata, run)
    for field, value in metadata.items():
        if field not in _ALLOWED_METADATA and not is_empty(value):
            message = f"`{field}` cannot be set in a template; Kubernetes names the claims after their pods"
            run.report("invalid-value", message, find_key(metadata, field, metadata))
    validate_claim_spec(as_mapping(run.spec.get("spec")), as_text(obj.get("apiVersion")).rpartition("/")[2], run)
