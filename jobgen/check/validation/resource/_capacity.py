"""Validate how much of a device's capacity claims may request."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, is_empty, is_set, report_missing
from jobgen.check.validation.resource._names import has_size, report_duplicate
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import Node, value_of
from jobgen.model.quantity import to_milli

_MAX_VALUES = 10


def validate_request_policy(capacity: Mapping[str, Node], run: Validation, *, shared: bool) -> None:
    """Validate the policy of a capacity, which only devices have that several claims share."""
    policy = capacity.get("requestPolicy")
    if not isinstance(policy, dict):
        return
    key = find_key(capacity, "requestPolicy", capacity)
    if not shared:
        run.report("invalid-form", "`requestPolicy` requires `allowMultipleAllocations: true`; set it", key)
        return
    values, limits = policy.get("validValues"), policy.get("validRange")
    if not is_empty(values) and is_set(limits):
        message = "`requestPolicy` cannot have both `validValues` and `validRange`; delete one of them"
        run.report("invalid-form", message, find_key(policy, "validRange", key))
    elif is_empty(values) and not is_set(limits):
        return
    elif not is_set(policy.get("default")):
        report_missing("`requestPolicy`", policy, "default", key, run)
    elif not is_empty(values):
        _validate_values(policy, capacity.get("value"), key, run)
    else:
        _validate_range(policy, capacity.get("value"), find_key(policy, "validRange", key), run)


def _validate_values(policy: Mapping[str, Node], most: Node, key: Node, run: Validation) -> None:
    values = as_list(policy.get("validValues"))
    if not has_size(policy, "validValues", _MAX_VALUES, run):
        return
    amounts = [to_milli(value) or 0 for value in values]
    for index, value in enumerate(values):
        text = value_of(value)
        if index and amounts[index - 1] > amounts[index]:
            run.report("invalid-value", f"`{text}` is less than the value before it; sort `validValues`", value)
        elif amounts[index] in amounts[:index]:
            report_duplicate(str(text), "validValues", value, run)
        _report_greater(value, most, "the capacity", run)
    if (to_milli(policy["default"]) or 0) not in amounts:
        message = f"the default `{value_of(policy['default'])}` is not one of `validValues`; add it there"
        run.report("invalid-value", message, policy["default"])


def _validate_range(policy: Mapping[str, Node], most: Node, key: Node, run: Validation) -> None:
    limits, default = as_mapping(policy.get("validRange")), policy["default"]
    low, high, step = (limits.get(field) for field in ("min", "max", "step"))
    if not is_set(low):
        report_missing("`validRange`", limits, "min", key, run)
        return
    _report_greater(low, most, "the capacity", run)
    _report_greater(low, default, "the default", run)
    if is_set(high):
        _report_greater(low, high, "`max`", run)
        _report_greater(high, most, "the capacity", run)
        _report_greater(default, high, "`max`", run)
    if is_set(step):
        _validate_step(step, low, [default, *([high] if is_set(high) else [])], most, run)


def _validate_step(step: Node, low: Node, values: list[Node], most: Node, run: Validation) -> None:
    first, size = to_milli(low) or 0, to_milli(step) or 0
    if first + size > (to_milli(most) or 0):
        message = f"one step of `{value_of(step)}` after `{value_of(low)}` exceeds the capacity `{value_of(most)}`"
        run.report("out-of-range", message, step)
    for value in values:
        # The API server compares whole units, rounded up.
        distance, unit = _whole(value) - _whole(low), _whole(step)
        if unit and distance % unit:
            message = f"`{value_of(value)}` is not a multiple of the step `{value_of(step)}` from `{value_of(low)}`"
            run.report("invalid-value", message, value)


def _whole(value: Node) -> int:
    return -(-(to_milli(value) or 0) // 1000)


def _report_greater(value: Node, limit: Node, what: str, run: Validation) -> None:
    if (to_milli(value) or 0) > (to_milli(limit) or 0):
        message = f"`{value_of(value)}` is greater than {what}, which is `{value_of(limit)}`"
        run.report("out-of-range", message, value)
