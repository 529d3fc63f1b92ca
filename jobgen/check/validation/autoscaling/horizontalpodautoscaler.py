"""Validate HorizontalPodAutoscalers of both versions; the older has one field for its metric."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    ValidatorTable,
    get_key,
    is_set,
    iter_items,
    report_missing,
    require_fields,
    validate_enum,
    validate_fields,
    validate_mapping,
    validate_number,
)
from jobgen.check.admission.resources import validate_quantity
from jobgen.check.validation.metrics import validate_metrics
from jobgen.check.validation.object_references import validate_object_reference
from jobgen.check.validation.workloads import report_missing_spec
from jobgen.k8s.nodes import as_integer, as_mapping, as_text
from jobgen.model.data import Node

_MAX_PERIOD = 1800
_MAX_WINDOW = 3600
_POLICIES = ("Pods", "Percent")
_TOLERANCE_SINCE = (1, 35)
_validate_positive = validate_number(1)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the target, the bounds, the metrics and the behavior."""
    if not run.spec:
        report_missing_spec(obj, run)
        return
    validate_fields(run.spec, _SPEC, run)
    highest, lowest = run.spec.get("maxReplicas"), run.spec.get("minReplicas")
    if not is_set(highest):
        report_missing("`spec`", run.spec, "maxReplicas", run.spec, run)
    else:
        bounds = as_integer(highest), as_integer(lowest)
        if bounds[0] is not None and bounds[1] is not None and 1 <= bounds[0] < bounds[1]:
            message = f"`maxReplicas` is `{bounds[0]}`, less than `minReplicas`, which is `{bounds[1]}`; raise it"
            run.report("out-of-range", message, highest)
    if not is_set(run.spec.get("scaleTargetRef")):
        report_missing("`spec`", run.spec, "scaleTargetRef", run.spec, run)


def _validate_target(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    # A ReplicationController is the only kind without a group that can be scaled.
    requires_group = as_text(as_mapping(value).get("kind")) != "ReplicationController"
    validate_object_reference(key, value, run, requires_group=requires_group)


def _validate_rules(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    """Validate how fast an autoscaler may scale in one direction."""
    if not isinstance(value, dict):
        return
    validate_fields(value, _RULES, run)
    policies = value.get("policies")
    if isinstance(policies, list) and not policies:
        report_missing(f"`{key}`", value, "policies", key, run)
    for policy, node in iter_items(get_key(value, "policies"), policies):
        require_fields("a policy", policy, ("type", "value", "periodSeconds"), node, run)
        validate_fields(policy, _POLICY, run)


def _validate_tolerance(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    if run.release >= _TOLERANCE_SINCE:
        validate_quantity(key, value, owner, run)


_POLICY: ValidatorTable = {
    "periodSeconds": validate_number(1, _MAX_PERIOD),
    "type": validate_enum("", *_POLICIES),
    "value": _validate_positive,
}
_RULES: ValidatorTable = {
    "selectPolicy": validate_enum("Max", "Min", "Disabled"),
    "stabilizationWindowSeconds": validate_number(0, _MAX_WINDOW),
    "tolerance": _validate_tolerance,
}
_SPEC: ValidatorTable = {
    "behavior": validate_mapping({"scaleDown": _validate_rules, "scaleUp": _validate_rules}),
    "maxReplicas": _validate_positive,
    "metrics": validate_metrics,
    "minReplicas": _validate_positive,
    "scaleTargetRef": _validate_target,
    "targetCPUUtilizationPercentage": _validate_positive,
}
