"""Validate Namespaces."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, join_names
from jobgen.check.admission.metadata import validate_finalizers
from jobgen.check.admission.names import LABEL_NAME
from jobgen.check.pod_security.levels import LABELS, LEVELS, parse_version
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

NAME_FORMAT = LABEL_NAME


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the finalizers of the spec, and the labels of Pod Security, which an admission plugin reads."""
    validate_finalizers("finalizers", run.spec.get("finalizers"), run.spec, run)
    labels = as_mapping(run.metadata.get("labels"))
    for label in LABELS:
        if label in labels:
            _validate_level(label, labels[label], run)


def _validate_level(label: str, value: Node, run: Validation) -> None:
    found = as_text(value)
    if label.endswith("-version"):
        is_valid, expected = parse_version(found) is not None, "`latest` or a version such as `v1.36`"
    else:
        is_valid, expected = found in LEVELS, join_names(list(LEVELS), "or")
    if not is_valid:
        run.report("invalid-label", f"label `{label}` is `{found}`, but must be {expected}", value)
