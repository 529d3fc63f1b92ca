"""Validate the policy by which an indexed Job succeeds before all its indexes have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, get_key, is_set, iter_items, report_missing, validate_number
from jobgen.k8s.nodes import as_integer
from jobgen.model.data import Node, value_of

_MAX_RULES = 20
_MAX_TEXT = 64 * 1024
_validate_count = validate_number(0)


def validate_success_policy(parent: str, policy: Mapping[str, Node], completions: int, run: Validation) -> None:
    """Validate the rules of a policy of a Job with this number of completions."""
    rules = policy.get("rules")
    key = get_key(policy, "rules")
    if not rules:
        report_missing(f"`{parent}`", policy, "rules", parent, run)
    elif isinstance(rules, list) and len(rules) > _MAX_RULES:
        run.report("out-of-range", f"`rules` has `{len(rules)}` items; the maximum is {_MAX_RULES}", key)
    for rule, node in iter_items(key, rules):
        if not is_set(rule.get("succeededCount")) and not is_set(rule.get("succeededIndexes")):
            message = "a rule requires `succeededCount` or `succeededIndexes`; set one of them"
            run.report("missing-field", message, node)
        total = _validate_indexes(rule.get("succeededIndexes"), completions, run)
        _validate_succeeded_count(rule.get("succeededCount"), completions, total, run)


def _validate_indexes(value: Node, completions: int, run: Validation) -> int | None:
    """Validate a list of indexes such as `0,2-4` and return how many it has; None if that is unknown."""
    found = value_of(value)
    if type(found) is not str:
        return None
    if len(found) > _MAX_TEXT:
        run.report(
            "out-of-range", f"`succeededIndexes` has `{len(found)}` characters; the maximum is {_MAX_TEXT}", value
        )
        return None
    total, last = 0, None
    for part in found.split(",") if found else ():
        interval = _parse_interval(part)
        if interval is None:
            message = f"`{part}` in `succeededIndexes` is no index; write indexes like `0,2-4`"
        elif interval[-1] >= completions:
            message = f"index `{interval[-1]}` in `succeededIndexes` must be less than `completions`: `{completions}`"
        elif (last is not None and last >= interval[0]) or (len(interval) == 2 and interval[0] >= interval[1]):
            message = f"`{part}` in `succeededIndexes` is not in ascending order; sort the indexes"
        else:
            total += interval[-1] - interval[0] + 1
            last = interval[-1]
            continue
        run.report("invalid-value", message, value)
        return None
    return total


def _parse_interval(text: str) -> list[int] | None:
    """Return one index or two; None if the text is neither."""
    parts = text.split("-")
    # Go accepts a sign; `-` separates the parts.
    if len(parts) > 2 or not all(re.fullmatch(r"\+?[0-9]{1,100}", part) for part in parts):
        return None
    return [int(part) for part in parts]


def _validate_succeeded_count(value: Node, completions: int, total: int | None, run: Validation) -> None:
    count = as_integer(value)
    if count is None:
        return
    _validate_count("succeededCount", value, {}, run)
    if count > completions:
        message = f"`succeededCount` is `{count}`, more than `completions`, which is `{completions}`; lower it"
        run.report("out-of-range", message, value)
    elif total is not None and count > total:
        message = f"`succeededCount` is `{count}`, but `succeededIndexes` has only `{total}`; lower it"
        run.report("out-of-range", message, value)
