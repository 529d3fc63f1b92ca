"""Validate PodGroups."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, report_missing, require_fields
from jobgen.check.validation.scheduling._pod_groups import (
    is_validated,
    validate_group,
    validate_object_name,
    validate_short_name,
)
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the group, and the template that it was made from."""
    if not is_validated(obj):
        return
    key = find_key(obj, "spec", obj)
    validate_group(run.spec, key, run)
    reference = run.spec.get("podGroupTemplateRef")
    if not isinstance(reference, dict):
        return
    place, workload = find_key(run.spec, "podGroupTemplateRef", key), reference.get("workload")
    if not isinstance(workload, dict):
        report_missing("`podGroupTemplateRef`", reference, "workload", place, run)
        return
    names = ("workloadName", "podGroupTemplateName")
    require_fields("`workload`", workload, names, find_key(reference, "workload", place), run)
    validate_object_name("workloadName", workload.get("workloadName"), workload, run)
    validate_short_name("podGroupTemplateName", workload.get("podGroupTemplateName"), workload, run)
