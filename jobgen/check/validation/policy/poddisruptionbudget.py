"""Validate PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, ValidatorTable, list_set_keys, validate_enum, validate_fields
from jobgen.check.admission.names import PATH_SEGMENT_NAME
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.check.validation.percentages import validate_count_or_share
from jobgen.model.data import Node

NAME_FORMAT = PATH_SEGMENT_NAME


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the number of pods that must or need not run, and the selector."""
    validate_fields(run.spec, _SPEC, run)
    given = list_set_keys(run.spec, ("minAvailable", "maxUnavailable"))
    if len(given) > 1:
        message = "`minAvailable` and `maxUnavailable` are mutually exclusive; delete one of them"
        run.report("invalid-value", message, given[1])


_SPEC: ValidatorTable = {
    "maxUnavailable": validate_count_or_share,
    "minAvailable": validate_count_or_share,
    "selector": validate_label_selector,
    "unhealthyPodEvictionPolicy": validate_enum("IfHealthyBudget", "AlwaysAllow"),
}
