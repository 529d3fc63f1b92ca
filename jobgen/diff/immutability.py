"""Find changes that a CRD rejects by its CEL transition rules: those that compare `self` with `oldSelf`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jobgen.check.schema.cel_values import Conversion, compile_conversion
from jobgen.k8s.compare import FieldPath
from jobgen.model.data import Node
from jobgen.model.limits import MALFORMED_DATA_ERRORS, Budget, BudgetExceededError
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import NamedItem

_RULES = "x-kubernetes-validations"
_UNCHANGED = "self == oldSelf"
_EACH = "*"
_STEPS = 200_000
"""Limit for one schema; the largest CRDs have about ten thousand nodes."""


class Rejection(NamedTuple):
    """A node whose change the API server rejects, and the message of the rule."""

    path: FieldPath
    message: str


class _RuleSite(NamedTuple):
    """A node of a schema that has transition rules; a step is a property, `*`, or the key field of list items."""

    steps: tuple[str | tuple[str], ...]
    rules: tuple[dict[str, Any], ...]
    shape: Conversion


def find_rejections(schema: bytes, old: Node, new: Node) -> list[Rejection]:
    """Evaluate the transition rules of a schema; a node that only one side has is not compared."""
    sites, budget = _find_rule_sites(schema)
    budget.reset()
    try:
        return [rejection for site in sites for rejection in _evaluate(site, old, new)]
    except (BudgetExceededError, *MALFORMED_DATA_ERRORS):
        # `jobgen lint` reports what is wrong with the schema.
        return []


def _evaluate(site: _RuleSite, old: Node, new: Node) -> Iterator[Rejection]:
    for path, before, after in _select_nodes(site.steps, old, new, ()):
        if before is after or before is None or after is None:
            continue
        old_value, new_value = site.shape(before), site.shape(after)
        for rule in site.rules:
            if not _passes(rule["rule"], old_value, new_value):
                yield Rejection(path, str(rule.get("message") or f"failed rule: `{' '.join(rule['rule'].split())}`"))


def _passes(rule: str, old: object, new: object) -> bool:
    if " ".join(rule.split()) == _UNCHANGED:
        return bool(old == new)
    # Most rules are `self == oldSelf`; only the others need the CEL library.
    from jobgen.check.cel import Expression, available, compile_cel

    expression = None if available() else compile_cel(rule, ("self", "oldSelf"))
    return not isinstance(expression, Expression) or expression({"self": new, "oldSelf": old}) is not False


def _select_nodes(
    steps: tuple[str | tuple[str], ...], old: Node, new: Node, path: FieldPath
) -> Iterator[tuple[FieldPath, Node, Node]]:
    """The pairs of nodes at a path of the schema that both sides have."""
    if not steps:
        yield path, old, new
        return
    step, *rest = steps
    if isinstance(step, tuple):
        before, after = _index_items(step[0], old), _index_items(step[0], new)
        for key in before.keys() & after.keys():
            yield from _select_nodes(tuple(rest), before[key], after[key], (*path, NamedItem(step[0], key)))
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in (old.keys() & new.keys()) if step == _EACH else (step,):
            yield from _select_nodes(tuple(rest), old.get(key), new.get(key), (*path, str(key)))


def _index_items(key: str, items: Node) -> dict[str, Node]:
    found = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return {str(item[key]): item for item in found if key in item}


@lru_cache(maxsize=64)
def _find_rule_sites(schema: bytes) -> tuple[tuple[_RuleSite, ...], Budget]:
    budget = Budget(_STEPS)
    if b"oldSelf" not in schema:
        return (), budget
    try:
        root = json.loads(schema)
        return tuple(_walk_schema(root, root, (), (), budget)), budget
    except (BudgetExceededError, *MALFORMED_DATA_ERRORS):
        return (), budget


def _walk_schema(
    node: Any, root: Any, steps: tuple[str | tuple[str], ...], refs: tuple[str, ...], budget: Budget
) -> Iterator[_RuleSite]:
    if not isinstance(node, dict):
        return
    budget.spend()
    rules = tuple(rule for rule in node.get(_RULES, ()) if "oldSelf" in rule.get("rule", "") and not _is_optional(rule))
    if rules:
        yield _RuleSite(steps, rules, compile_conversion(node, root, budget))
    ref = node.get("$ref", "").rpartition("/")[2]
    if ref and ref not in refs:
        # Recursive types are not followed; a CRD cannot have one.
        yield from _walk_schema(root["$defs"][ref], root, steps, (*refs, ref), budget)
    for variant in node.get("anyOf", ())[:1]:
        yield from _walk_schema(variant, root, steps, refs, budget)
    for name, child in node.get("properties", {}).items():
        yield from _walk_schema(child, root, (*steps, name), refs, budget)
    yield from _walk_schema(node.get("additionalProperties"), root, (*steps, _EACH), refs, budget)
    keys = node.get("x-kubernetes-list-map-keys")
    if keys:
        # Items of other lists have no identity, so the API server does not compare them.
        yield from _walk_schema(node.get("items"), root, (*steps, (keys[0],)), refs, budget)


def _is_optional(rule: dict[str, Any]) -> bool:
    return bool(rule.get("optionalOldSelf"))
