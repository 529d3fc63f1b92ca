"""Validate ReplicationControllers."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, is_empty, is_set, report_missing, validate_fields
from jobgen.check.validation.workloads import REPLICAS, report_missing_spec, validate_match, validate_template
from jobgen.k8s.nodes import as_mapping, get_path
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the number of pods, the selector and the template."""
    if not run.spec:
        report_missing_spec(obj, run)
        return
    validate_fields(run.spec, REPLICAS, run)
    validate_template(run)
    labels = as_mapping(get_path(run.spec.get("template"), "metadata", "labels"))
    if not is_empty(run.spec.get("selector")):
        validate_match({"matchLabels": run.spec["selector"]}, run)
    elif is_set(run.spec.get("template")) and not labels:
        # The default is the labels of the template.
        report_missing("`spec`", run.spec, "selector", run.spec, run)
