"""The CEL rules of a CRD: `x-kubernetes-validations`, judged as the API server judges them on creation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from jobgen.check.cel import Bound, CompileError, Expression, Failed, available, bind, compile_cel, mentions
from jobgen.check.cel.values import NO_OVERLOAD
from jobgen.check.schema.cel_values import Shape, escaped, shape
from jobgen.check.schema.own_formats import to_blame
from jobgen.model.data import Data, value_of
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import Budget

Check = Callable[[Data, str, Data, list[Problem]], None]
"""Judges a value: the value, its name, the node to blame if it has no place, the problems so far."""

_NAME = "crd-rule-violated"
_RULES = "x-kubernetes-validations"
_NAMES = ("self", "oldSelf")
_STEP = lazy_pattern(r"\.?([A-Za-z_][A-Za-z0-9_]*)|\['((?:[^'\\]|\\.)*)'\]")
_TIME = lazy_pattern(r"\b(?:duration|timestamp|get(?:FullYear|Month|Date|DayOf\w+|Hours|(?:Millis|S)econds|Minutes))\b")
_SELF = lazy_pattern(r"\bself\b(?:\s*\.\s*([A-Za-z_]\w*)(?!\w*\s*\())?")
_LONGEST_MESSAGE = 5 * 1024


def ruled(judge: Check, schema: dict[str, Any], root: dict[str, Any], budget: Budget | None = None) -> Check:
    """A check, and what the rules of its schema node say of a value that has passed it."""

    # Most schemas are never asked, so nothing is compiled before the first value comes.
    @cache
    def compiled() -> tuple[Shape, list[tuple[dict[str, Any], Expression]]]:
        judged = [] if available() else [rule for rule in _rules(schema) if _is_judged(rule)]
        found = [(rule, _expression(rule)) for rule in judged]
        whole, fields = shape(schema, root, budget), _fields_of(judged)
        shaped = whole if fields is None else lambda value: whole(_only(value, fields))
        return shaped, [(rule, known) for rule, known in found if isinstance(known, Expression)]

    def check(value: Data, name: str, blame: Data, problems: list[Problem]) -> None:
        before = len(problems)
        judge(value, name, blame, problems)
        # Rules are run on what has passed all schemas, and then all of them are.
        if value_of(value) is not None and all(problem.rule == _NAME for problem in problems[before:]):
            # An item that is a mapping has no key that leads to it, and a place of its own.
            is_item = name.endswith("]") and isinstance(value, dict)
            problems.extend(_violations(*compiled(), value, (value or blame) if is_item else blame))

    return check


def _violations(
    shaped: Shape, rules: list[tuple[dict[str, Any], Expression]], value: Data, blame: Data
) -> Iterator[Problem]:
    if not rules:
        return
    seen = bind({"self": shaped(value)})
    for rule, expression in rules:
        result = expression(seen)
        if result is True or (isinstance(result, Failed) and _is_ours(rule, result)):
            continue
        message = _unknown(rule, result) if isinstance(result, Failed) else _message(rule, seen)
        yield Problem(_NAME, message, _blamed(rule, value, blame), category="schema")


def _fields_of(rules: list[dict[str, Any]]) -> frozenset[str] | None:
    """The fields of a value that its rules may read; None if one of them may read all."""
    texts = [text for rule in rules for text in (rule["rule"], rule.get("messageExpression")) if isinstance(text, str)]
    named = [name for text in texts for name in _SELF.findall(text)]
    return frozenset(named) if all(named) else None


def _only(value: Data, fields: frozenset[str]) -> Data:
    """A value with no more than its rules read: of a large object that is often a name."""
    if not isinstance(value, dict):
        return value
    return {key: child for key, child in value.items() if key in fields or escaped(key) in fields}


def rules_in(schema: Data) -> Iterator[dict[str, Any]]:
    """Every rule that stands anywhere in a schema."""
    if isinstance(schema, dict):
        yield from _rules(schema)
    for child in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from rules_in(child)


def fault(rule: dict[str, Any]) -> str:
    """Why a rule is not evaluated here, or nothing."""
    found = available() or _expression(rule)
    return found.message if isinstance(found, CompileError) else found if isinstance(found, str) else ""


def _rules(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules of a node; what is not of their shape is none, and no server would have taken it."""
    listed = schema.get(_RULES)
    found = listed if isinstance(listed, list) else []
    return [rule for rule in found if isinstance(rule, dict) and isinstance(rule.get("rule"), str)]


def _is_judged(rule: dict[str, Any]) -> bool:
    """Rules about a change say nothing of what is new, unless they say that they do."""
    return bool(rule.get("optionalOldSelf")) or not mentions(rule["rule"], "oldSelf")


def _expression(rule: dict[str, Any]) -> Expression | CompileError:
    return compile_cel(rule["rule"], _NAMES, absent=("oldSelf",) if rule.get("optionalOldSelf") else ())


def _is_ours(rule: dict[str, Any], failed: Failed) -> bool:
    """Whether a rule fails here only: over what cannot be done offline, or since times are strings to us."""
    return "offline" in failed.message or (failed.message.startswith(NO_OVERLOAD) and bool(_TIME.search(rule["rule"])))


def _unknown(rule: dict[str, Any], failed: Failed) -> str:
    return f"the rule `{_line(rule['rule'])}` cannot be evaluated: {failed.message}"


def _message(rule: dict[str, Any], seen: Bound) -> str:
    """What the rule says: its message for this value, its message, or itself."""
    if rule.get("messageExpression"):
        absent = ("oldSelf",) if rule.get("optionalOldSelf") else ()
        expression = compile_cel(rule["messageExpression"], _NAMES, returns="string", absent=absent)
        said = expression(seen) if isinstance(expression, Expression) else None
        if isinstance(said, str) and said.strip() and "\n" not in said and len(said) <= _LONGEST_MESSAGE:
            return said.strip()
    return str(rule.get("message") or "").strip() or f"failed rule: `{_line(rule['rule'])}`"


def _line(rule: str) -> str:
    return " ".join(rule.split())


def _blamed(rule: dict[str, Any], value: Data, blame: Data) -> Data:
    """The node that the rule's `fieldPath` names, as far as it is there; else that of the rule."""
    for name, quoted in _STEP.findall(rule.get("fieldPath") or ""):
        wanted = name or re.sub(r"\\(.)", r"\1", quoted)
        key = next((key for key in value if key == wanted), None) if isinstance(value, dict) else None
        if key is None:
            break
        value, blame = value[key], key
    return to_blame(value, blame)
