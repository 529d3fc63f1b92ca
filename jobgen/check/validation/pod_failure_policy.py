"""Validate the policy by which a Job handles failed pods."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    get_key,
    is_empty,
    is_set,
    iter_items,
    iter_mappings,
    report_missing,
    report_unsupported,
    validate_enum,
)
from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.model.data import Node, value_of
from jobgen.model.suggest import did_you_mean

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_MAX_RULES = 20
_MAX_VALUES = 255
_MAX_CONDITIONS = 20
_validate_status = validate_enum("", "True", "False", "Unknown")


def validate_pod_failure_policy(spec: Mapping[str, Node], run: Validation) -> None:
    """Validate the rules of a policy, which belongs to the spec of a Job."""
    policy = as_mapping(spec.get("podFailurePolicy"))
    key = get_key(policy, "rules")
    _validate_length(key, policy.get("rules"), _MAX_RULES, run)
    for rule, node in iter_items(key, policy.get("rules")):
        _validate_action(rule, node, spec, run)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if isinstance(codes, dict):
            _validate_exit_codes(rule, codes, spec, run)
        _validate_conditions(rule, run)
        if is_set(codes) is not is_empty(conditions):
            message = "a rule requires exactly one of `onExitCodes` and `onPodConditions`"
            run.report("invalid-form", message, find_key(rule, "onPodConditions", node))


def _validate_length(key: str, value: Node, limit: int, run: Validation) -> None:
    if isinstance(value, list) and len(value) > limit:
        run.report("out-of-range", f"`{key}` has `{len(value)}` items; the maximum is {limit}", key)


def _validate_action(rule: Mapping[str, Node], parent: Node, spec: Mapping[str, Node], run: Validation) -> None:
    action = as_text(rule.get("action"))
    if is_empty(rule.get("action")):
        report_missing("a rule", rule, "action", parent, run)
    elif action == "FailIndex" and not is_set(spec.get("backoffLimitPerIndex")):
        run.report("invalid-value", "`FailIndex` requires `backoffLimitPerIndex` of the Job; set it", rule["action"])
    elif action and action not in _ACTIONS:
        report_unsupported("action", rule["action"], _ACTIONS, run)


def _validate_conditions(rule: Mapping[str, Node], run: Validation) -> None:
    key = get_key(rule, "onPodConditions")
    _validate_length(key, rule.get(key), _MAX_CONDITIONS, run)
    for pattern, node in iter_items(key, rule.get(key)):
        found = as_text(pattern.get("type"))
        if is_empty(pattern.get("type")):
            report_missing("a condition", pattern, "type", node, run)
        elif found and not is_label_key(found):
            run.report("invalid-value", f"`{found}` is not a valid type of a condition; {LABEL_KEY}", pattern["type"])
        _validate_status("status", pattern.get("status"), pattern, run)


def _validate_exit_codes(
    rule: Mapping[str, Node], codes: Mapping[str, Node], spec: Mapping[str, Node], run: Validation
) -> None:
    parent = get_key(rule, "onExitCodes")
    operator = as_text(codes.get("operator"))
    if is_empty(codes.get("operator")):
        report_missing(f"`{parent}`", codes, "operator", parent, run)
    elif operator and operator not in _OPERATORS:
        report_unsupported("operator", codes["operator"], _OPERATORS, run)
    _validate_container(codes.get("containerName"), spec, run)
    if is_empty(codes.get("values")):
        report_missing(f"`{parent}`", codes, "values", parent, run)
        return
    key = get_key(codes, "values")
    _validate_length(key, codes["values"], _MAX_VALUES, run)
    values = as_list(codes["values"])
    # Kubernetes reads null as 0.
    numbers = [as_integer(node) if is_set(node) else 0 for node in values]
    for index, (number, node) in enumerate(zip(numbers, values, strict=True)):
        if operator == "In" and number == 0:
            run.report("invalid-value", "`values` cannot contain 0 with `In`; exit code 0 is no failure", node or key)
        if number is not None and number in numbers[:index]:
            run.report("duplicate-item", f"`values` contains `{number}` twice; delete one of them", node or key)
    known = [number for number in numbers if number is not None]
    if any(one > other for one, other in pairwise(known)):
        run.report("invalid-value", f"`values` must be in ascending order: {sorted(set(known))}", key)


def _validate_container(value: Node, spec: Mapping[str, Node], run: Validation) -> None:
    found = value_of(value)
    if type(found) is not str:
        return
    pod_spec = as_mapping(get_path(spec.get("template"), "spec"))
    lists = (pod_spec.get(field) for field in ("containers", "initContainers"))
    names = [as_text(container.get("name")) for containers in lists for container in iter_mappings(containers)]
    if found not in names:
        message = f"the pod has no container `{found}`{did_you_mean(found, names) or '; name one of its containers'}"
        run.report("invalid-value", message, value)
