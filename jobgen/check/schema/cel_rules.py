"""Evaluates the CEL rules of a CRD, `x-kubernetes-validations`, as the API server does when an object is created."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from jobgen.check.cel import (
    Bound,
    CompileError,
    EvaluationBudget,
    Expression,
    Failed,
    available,
    compile_cel,
    mentions,
    tree,
)
from jobgen.check.cel.engine import PREFIX
from jobgen.check.cel.type_checker import Scope
from jobgen.check.cel.values import NO_OVERLOAD
from jobgen.check.schema.cel_types import Conversion, compile_conversion, declare_types, escape_name, needs_types
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.model.budget import Budget
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.place import Derived, Entry, at_item, at_scalar, at_value
from jobgen.model.sentence import Words
from jobgen.schema.own_formats import Check

_NAME = "crd-rule-violated"
_RULES = "x-kubernetes-validations"
_NAMES = ("self", "oldSelf")
_STEP = lazy_pattern(r"\.?([A-Za-z_][A-Za-z0-9_]*)|\['((?:[^'\\]|\\.)*)'\]")
_TIME = lazy_pattern(r"\b(?:duration|timestamp|get(?:FullYear|Month|Date|DayOf\w+|Hours|(?:Millis|S)econds|Minutes))\b")
_SELF = lazy_pattern(r"\bself\b(?:\s*\.\s*([A-Za-z_]\w*)(?!\w*\s*\())?")
_MAX_MESSAGE_LENGTH = 5 * 1024


def with_cel_rules(
    check_value: Check,
    schema: dict[str, Any],
    root: dict[str, Any],
    rules_budget: EvaluationBudget,
    budget: Budget | None = None,
) -> Check:
    """A check that also evaluates the CEL rules of its schema node on a value that has passed.

    The rules of a whole object share a budget.
    """

    # Compiled for the first value, because most schemas are never used.
    @cache
    def compiled() -> tuple[Conversion, list[tuple[dict[str, Any], Expression]]]:
        # Rules about a change apply to a new object only with `optionalOldSelf`.
        applicable = [
            rule
            for rule in ([] if available() else _rules(schema))
            if rule.get("optionalOldSelf") or not mentions(rule["rule"], "oldSelf")
        ]
        declare = cache(partial(_declare_types, schema, root))
        found = [(rule, _expression(rule, declare(bool(rule.get("optionalOldSelf"))))) for rule in applicable]
        named = [name for text in _list_texts(applicable) for name in _SELF.findall(text)]
        whole, fields = compile_conversion(schema, root, budget), frozenset(named) if all(named) else None
        convert = whole if fields is None else lambda value: whole(_select_fields(value, fields))
        return convert, [(rule, known) for rule, known in found if isinstance(known, Expression)]

    def check(value: Plain, name: str, entry: Entry, problems: list[Problem]) -> None:
        before = len(problems)
        check_value(value, name, entry, problems)
        # The server evaluates rules only on values that match their schema.
        if value is not None and all(problem.rule == _NAME for problem in problems[before:]):
            if "x-jobgen-drops-status" in schema and isinstance(value, dict) and "status" in value:
                value = Derived({key: child for key, child in value.items() if key != "status"}, value)
            problems.extend(_violations(*compiled(), value, entry, rules_budget))

    return check


def _violations(
    convert: Conversion,
    rules: list[tuple[dict[str, Any], Expression]],
    value: Plain,
    entry: Entry,
    budget: EvaluationBudget,
) -> Iterator[Problem]:
    # What used up the budget is one finding.
    if not rules or budget.is_reported:
        return
    seen = Bound({"self": convert(value)}, budget)
    for rule, expression in rules:
        result = expression(seen)
        if result is True:
            continue
        if isinstance(result, Failed):
            # It fails only offline if a function is missing, or a time is a string here.
            is_about_times = result.is_due_to(NO_OVERLOAD) and _TIME.search(rule["rule"])
            if result.is_offline or is_about_times:
                continue
            message = f"the rule `{_to_line(rule['rule'])}` cannot be evaluated: {result.message}"
            if result.is_limit:
                message += f"; simplify the {budget.name_costliest()}, which took the most"
                yield _report(rule, message, value, entry)
                budget.is_reported = True
                return
        else:
            message = _message(rule, seen)
        # Imported late: most objects break no rule.
        from jobgen.check.schema.rule_words import explain_rule

        problem = _report(rule, message, value, entry)
        explained = explain_rule(message, value, entry)
        for words, place in explained:
            # Baselines know the problem by the text of the rule.
            at = problem if place is None else problem._replace(node=place, at=None)
            yield at._replace(sentence=words, evidence=(message,))
        if not explained:
            yield problem


def _select_fields(value: Plain, fields: frozenset[str]) -> Plain:
    """A value with only the fields that its rules read, so that less is converted."""
    if not isinstance(value, dict):
        return value
    return {key: child for key, child in value.items() if key in fields or escape_name(key) in fields}


def find_rule_errors(schema: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every rule of a schema that the API server refuses or that cannot be evaluated offline: the field, and why."""
    if available():
        return
    for node in _find_nodes(schema):
        for rule in _rules(node):
            yield from ((rule, *error) for error in find_errors_of_rule(rule, node, schema))


def find_errors_of_rule(
    rule: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], release: Release = NEWEST_RELEASE
) -> Iterator[tuple[str, str]]:
    """Why the API server of a release refuses the expressions of a rule: the name of the field, and the reason."""
    is_optional = bool(rule.get("optionalOldSelf"))
    types = declare_types(schema, root, _list_texts(_rules(schema)), ("oldSelf",) if is_optional else ())
    types = types and types._replace(server=release)
    for field, returns in (("rule", "bool"), ("messageExpression", "string")):
        text = rule.get(field)
        if isinstance(text, str) and text.strip():
            found = _compile(text, returns, types, is_optional=is_optional)
            if isinstance(found, CompileError):
                yield field, found.message
            elif _is_too_expensive(text, returns, schema, is_optional=is_optional):
                yield field, "it can cost more than the API server allows; limit lists with `maxItems`, and maps too"


def _is_too_expensive(text: str, returns: str, schema: dict[str, Any], *, is_optional: bool) -> bool:
    if "(" not in text:
        return False
    # Without types: the engine adds conversions to typed expressions.
    found = _compile(text, returns, None, is_optional=is_optional)
    known = {"self": schema, "oldSelf": schema}
    return isinstance(found, Expression) and estimate_cost(tree.read_root(found.serialized), known) > MAX_RULE_COST


def _find_nodes(schema: Plain) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict) and schema.get(_RULES):
        yield schema
    for child in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _find_nodes(child)


def _list_texts(rules: list[dict[str, Any]]) -> list[str]:
    """The expressions of rules; those of a node together need one declaration of types."""
    return [text for rule in rules for text in (rule["rule"], rule.get("messageExpression")) if isinstance(text, str)]


def _declare_types(schema: dict[str, Any], root: dict[str, Any], is_optional: bool) -> Scope | None:
    """The types for the evaluation of rules, if they make a difference."""
    types = declare_types(schema, root, _list_texts(_rules(schema)), ("oldSelf",) if is_optional else ())
    return types if types is not None and needs_types(types) else None


def _rules(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules of a node, without malformed ones, which no server accepts."""
    listed = schema.get(_RULES)
    found = listed if isinstance(listed, list) else []
    return [rule for rule in found if isinstance(rule, dict) and isinstance(rule.get("rule"), str)]


def _expression(rule: dict[str, Any], types: Scope | None) -> Expression | CompileError:
    is_optional = bool(rule.get("optionalOldSelf"))
    found = _compile(rule["rule"], "bool", types, is_optional=is_optional)
    if isinstance(found, Expression) or types is None:
        return found
    # No server has a rule with an error in its types, but what else it says may hold.
    return _compile(rule["rule"], "bool", None, is_optional=is_optional)


def _compile(text: str, returns: str, types: Scope | None, *, is_optional: bool) -> Expression | CompileError:
    return compile_cel(text, _NAMES, returns=returns, absent=("oldSelf",) if is_optional else (), types=types)


def _message(rule: dict[str, Any], seen: Bound) -> str:
    if rule.get("messageExpression"):
        expression = _compile(rule["messageExpression"], "string", None, is_optional=bool(rule.get("optionalOldSelf")))
        text = expression(seen) if isinstance(expression, Expression) else None
        if isinstance(text, str) and text.strip() and "\n" not in text and len(text) <= _MAX_MESSAGE_LENGTH:
            return text.strip()
    return str(rule.get("message") or "").strip() or f"failed rule: `{_to_line(rule['rule'])}`"


def _to_line(rule: str) -> str:
    return " ".join(rule.split())


def _report(rule: dict[str, Any], message: Words, value: Plain, entry: Entry) -> Problem:
    """Report a value that breaks a rule at the rule's `fieldPath`, as far as it exists."""
    is_own = True
    for name, quoted in _STEP.findall(rule.get("fieldPath") or ""):
        wanted = name or re.sub(r"\\(.)", r"\1", quoted)
        if not isinstance(value, dict) or wanted not in value:
            break
        value, entry, is_own = value[wanted], (value, wanted, entry), False
    if is_own and isinstance(value, dict) and at_item(value, entry) is not None:
        # An item of a list has no key.
        return Problem(_NAME, message, value or at_value(value, entry), category="schema")
    return Problem(_NAME, message, at_scalar(value, entry), category="schema", at=at_item(value, entry))


MAX_RULE_COST = 10_000_000
_STEP_COST, _LIST_COST, _MAPPING_COST = 3, 10, 30
_MAX_REQUEST = 3 * 1024 * 1024
_LEAST_SIZES = {"boolean": 4, "integer": 1, "number": 1}
_FIELD_SIZE, _ENTRY_SIZE = 6, 8
_Schemas = Mapping[str, Mapping[str, Any]]


def estimate_cost(node: tree.Node, known: _Schemas) -> int:
    """Return the least cost of an expression; `known` are the schemas of its variables."""
    if isinstance(node, tree.Fold):
        schema = _find_schema(node.range, known)
        names = (node.second_variable, node.variable) if node.second_variable else (node.variable, "")
        inner = {**known, node.result_name: {}, names[1]: {}, names[0]: _find_item(schema)}
        body = sum(estimate_cost(part, inner) for part in (node.condition, node.step))
        return estimate_cost(node.range, known) + _find_size(schema) * (body + _STEP_COST)
    if isinstance(node, tree.Call) and node.name.startswith(PREFIX):
        # The engine converts the arguments of its own functions, with loops that the rule does not have.
        return 0
    costs = [estimate_cost(child, known) for child in tree.children(node)]
    if isinstance(node, tree.Call) and node.name == "_?_:_":
        return costs[0] + max(costs[1:])
    own = _LIST_COST if isinstance(node, tree.Sequence) else _MAPPING_COST if isinstance(node, tree.Struct) else 0
    return own + sum(costs)


def _find_schema(node: tree.Node, known: _Schemas) -> Mapping[str, Any]:
    if isinstance(node, tree.Ident):
        return known.get(node.name, {})
    if isinstance(node, tree.Select) and not node.test:
        owner = _find_schema(node.operand, known)
        field = (owner.get("properties") or {}).get(node.field)
        return field if isinstance(field, dict) else _find_item(owner)
    if isinstance(node, tree.Call) and node.name == "_[_]":
        return _find_item(_find_schema(node.args[0], known))
    return {}


def _find_item(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the items of a list, or of the values of a map."""
    found = schema.get("items" if _find_type(schema) == "array" else "additionalProperties")
    return found if isinstance(found, dict) else {}


def _find_size(schema: Mapping[str, Any]) -> int:
    """Return the largest number of items or entries: the limit, or how many fit into a request."""
    is_list = _find_type(schema) == "array"
    if not is_list and not isinstance(schema.get("additionalProperties"), dict):
        return 1
    limit = schema.get("maxItems" if is_list else "maxProperties")
    if type(limit) is int and limit >= 0:
        return limit
    return (_MAX_REQUEST - 2) // (_find_least_size(_find_item(schema)) + (1 if is_list else _ENTRY_SIZE))


def _find_least_size(schema: Mapping[str, Any]) -> int:
    """Return how many bytes the shortest value has in JSON."""
    properties, required = schema.get("properties"), schema.get("required")
    fields = properties if isinstance(properties, dict) else {}
    needed = [name for name in required if name in fields] if isinstance(required, list) else []
    return _LEAST_SIZES.get(_find_type(schema), 2) + sum(
        len(name) + _FIELD_SIZE + _find_least_size(fields[name]) for name in needed if isinstance(fields[name], dict)
    )


def _find_type(schema: Mapping[str, Any]) -> str:
    found = schema.get("type")
    return str(found[0] if isinstance(found, list) and found else found)
