"""Changes that a CRD's own CEL rules refuse: those that compare `self` with `oldSelf`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from jobgen.check.schema.cel_values import Shape, shape
from jobgen.k8s.compare import FieldPath
from jobgen.model.data import Data
from jobgen.model.limits import MALFORMED_DATA_ERRORS, Budget, BudgetExceededError
from jobgen.model.path import Named

_RULES = "x-kubernetes-validations"
_UNCHANGED = "self == oldSelf"
_EACH = "*"
_STEPS = 200_000
"""The largest CRDs have some ten thousand nodes."""


class Rejection(NamedTuple):
    """A node whose change the API server refuses, and what it says."""

    path: FieldPath
    message: str


class _Point(NamedTuple):
    """A node of a schema that has rules about changes; a step is a property, any key, or the key of a list's items."""

    steps: tuple[str | tuple[str], ...]
    rules: tuple[dict[str, Any], ...]
    shape: Shape


def find_rejections(schema: bytes, old: Data, new: Data) -> list[Rejection]:
    """What the rules of a schema say of a change; what is new or gone has nothing to be compared with."""
    points, budget = _points(schema)
    budget.reset()
    try:
        return [refusal for point in points for refusal in _at(point, old, new)]
    except (BudgetExceededError, *MALFORMED_DATA_ERRORS):
        # A lint says what is wrong with the schema.
        return []


def _at(point: _Point, old: Data, new: Data) -> Iterator[Rejection]:
    for path, before, after in _nodes(point.steps, old, new, ()):
        if before is after or before is None or after is None:
            continue
        then, now = point.shape(before), point.shape(after)
        for rule in point.rules:
            if not _holds(rule["rule"], then, now):
                yield Rejection(path, str(rule.get("message") or f"failed rule: `{' '.join(rule['rule'].split())}`"))


def _holds(rule: str, then: Data, now: Data) -> bool:
    if " ".join(rule.split()) == _UNCHANGED:
        return bool(then == now)
    # Most rules are the one above, and need no CEL.
    from jobgen.check.cel import Expression, available, compile_cel

    expression = None if available() else compile_cel(rule, ("self", "oldSelf"))
    return not isinstance(expression, Expression) or expression({"self": now, "oldSelf": then}) is not False


def _nodes(
    steps: tuple[str | tuple[str], ...], old: Data, new: Data, path: FieldPath
) -> Iterator[tuple[FieldPath, Data, Data]]:
    """The nodes at a point of a schema that both sides have."""
    if not steps:
        yield path, old, new
        return
    step, *rest = steps
    if isinstance(step, tuple):
        before, after = _by(step[0], old), _by(step[0], new)
        for key in before.keys() & after.keys():
            yield from _nodes(tuple(rest), before[key], after[key], (*path, Named(step[0], key)))
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in (old.keys() & new.keys()) if step == _EACH else (step,):
            yield from _nodes(tuple(rest), old.get(key), new.get(key), (*path, str(key)))


def _by(key: str, items: Data) -> dict[str, Data]:
    found = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return {str(item[key]): item for item in found if key in item}


@lru_cache(maxsize=64)
def _points(schema: bytes) -> tuple[tuple[_Point, ...], Budget]:
    budget = Budget(_STEPS)
    if b"oldSelf" not in schema:
        return (), budget
    try:
        root = json.loads(schema)
        return tuple(_walk(root, root, (), (), budget)), budget
    except (BudgetExceededError, *MALFORMED_DATA_ERRORS):
        return (), budget


def _walk(
    node: Any, root: Any, steps: tuple[str | tuple[str], ...], above: tuple[str, ...], budget: Budget
) -> Iterator[_Point]:
    if not isinstance(node, dict):
        return
    budget.spend()
    rules = tuple(rule for rule in node.get(_RULES, ()) if "oldSelf" in rule.get("rule", "") and not _optional(rule))
    if rules:
        yield _Point(steps, rules, shape(node, root, budget))
    ref = node.get("$ref", "").rpartition("/")[2]
    if ref and ref not in above:
        # A type inside itself is not followed: no CRD can have one.
        yield from _walk(root["$defs"][ref], root, steps, (*above, ref), budget)
    for form in node.get("anyOf", ())[:1]:
        yield from _walk(form, root, steps, above, budget)
    for name, child in node.get("properties", {}).items():
        yield from _walk(child, root, (*steps, name), above, budget)
    yield from _walk(node.get("additionalProperties"), root, (*steps, _EACH), above, budget)
    keys = node.get("x-kubernetes-list-map-keys")
    if keys:
        # Items of other lists cannot be told apart, and the API server does not compare them.
        yield from _walk(node.get("items"), root, (*steps, (keys[0],)), above, budget)


def _optional(rule: dict[str, Any]) -> bool:
    return bool(rule.get("optionalOldSelf"))
