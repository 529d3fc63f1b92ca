"""Parses policies and bindings, with or without locations; what the API server would refuse is a problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.check.cel.values import OFFLINE
from jobgen.check.policy.document_schema import find_schema_errors
from jobgen.check.policy.expressions import (
    IDENTIFIER,
    RESERVED,
    PolicyExpression,
    find_expression_error,
    find_names,
)
from jobgen.check.policy.match import MatchResources, Selector, parse_match, parse_selector
from jobgen.model.data import Node, untraced, value_of
from jobgen.model.finding import Problem, Severity

GROUP = "admissionregistration.k8s.io"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
_VERSIONS = ("v1", "v1beta1", "v1alpha1")
_MAX_CONDITIONS, _MAX_ANNOTATIONS = 64, 20


class Validation(NamedTuple):
    """An expression that must be true, and the message if it is not."""

    expression: PolicyExpression
    message: str
    message_expression: PolicyExpression | None


class Policy(NamedTuple):
    """A policy with its parsed expressions."""

    name: str
    match: MatchResources
    conditions: tuple[PolicyExpression, ...]
    variables: dict[str, PolicyExpression]
    validations: tuple[Validation, ...]
    ignores_errors: bool
    param_kind: tuple[str, str] | None
    reads: frozenset[str]


class _ExpressionRules(NamedTuple):
    """How to check an expression: not at all if its policy is trusted, and which names it cannot read."""

    is_trusted: bool
    hidden_names: tuple[str, ...]


class ParamRef(NamedTuple):
    """Which params a binding passes to its policy."""

    name: str
    namespace: str
    selector: Selector
    denies: bool


class Binding(NamedTuple):
    """A binding: which requests it restricts its policy to, and with which severity."""

    name: str
    policy: str
    severity: Severity
    match: MatchResources
    params: ParamRef | None


def is_policy(document: Mapping[str, Node]) -> bool:
    """Whether a document is a policy or a binding of any version."""
    group, _, version = str(value_of(document.get("apiVersion"))).rpartition("/")
    return group == GROUP and version in _VERSIONS and value_of(document.get("kind")) in (POLICY, BINDING)


def _refuse(message: str, node: Node, rule: str = "invalid-policy") -> Problem:
    return Problem(rule, message, node, category="policy")


def parse_policy(document: Mapping[str, Any], problems: list[Problem], *, is_trusted: bool = False) -> Policy | None:
    """The policy of a document, or None with the problems that the API server would refuse it for.

    The expressions of a trusted policy are not checked, and compiled only when they are evaluated.
    """
    found = find_schema_errors(document, POLICY)
    spec = document.get("spec")
    if found:
        problems += found
        return None
    assert isinstance(spec, dict), "the schema requires it"
    found += _find_policy_errors(spec)
    rules = _ExpressionRules(is_trusted, () if "paramKind" in spec else ("params",))
    conditions = [
        _parse_expression(
            item, "expression", {}, "bool", _ExpressionRules(is_trusted, (*rules.hidden_names, "variables")), found
        )
        for item in spec.get("matchConditions", ())
    ]
    variables: dict[str, PolicyExpression | None] = {}
    for item in spec.get("variables", ()):
        variables[str(value_of(item["name"]))] = _parse_expression(item, "expression", variables, "any", rules, found)
    validations = [_parse_validation(item, variables, rules, found) for item in spec.get("validations", ())]
    for item in spec.get("auditAnnotations", ()):
        value = _parse_expression(item, "valueExpression", variables, "any", rules, found)
        if value is not None and not is_trusted and value.is_optional:
            message = "`valueExpression` does not compile: must evaluate to string or null but got an optional"
            found.append(_refuse(message, item["valueExpression"]))
    problems += found
    if found:
        return None
    raw: Any = untraced(spec)
    kind = raw.get("paramKind")
    expressions = [
        *conditions,
        *variables.values(),
        *(each for item in validations if item for each in (item.expression, item.message_expression)),
    ]
    return Policy(
        name=str(value_of(document["metadata"]["name"])),
        match=parse_match(raw["matchConstraints"]),
        conditions=tuple(each for each in conditions if each),
        variables={name: each for name, each in variables.items() if each},
        validations=tuple(validation for validation in validations if validation),
        ignores_errors=raw.get("failurePolicy") == "Ignore",
        param_kind=(kind["apiVersion"], kind["kind"]) if kind else None,
        reads=frozenset(name for each in expressions if each for name in each.names),
    )


def _parse_validation(
    item: dict[str, Any], variables: dict[str, PolicyExpression | None], rules: _ExpressionRules, found: list[Problem]
) -> Validation | None:
    expression = _parse_expression(item, "expression", variables, "bool", rules, found)
    message_expression = None
    if str(value_of(item.get("messageExpression", ""))).strip():
        message_expression = _parse_expression(item, "messageExpression", variables, "string", rules, found)
    message = str(value_of(item.get("message", ""))).strip()
    if "\n" in message or "\r" in message:
        found.append(_refuse("`message` must be one line", item["message"]))
    return Validation(expression, message, message_expression) if expression else None


def _parse_expression(
    item: dict[str, Any],
    field: str,
    variables: dict[str, PolicyExpression | None],
    returns: str,
    rules: _ExpressionRules,
    found: list[Problem],
) -> PolicyExpression | None:
    """An expression of a policy, or None with its problem."""
    text = str(value_of(item[field]))
    names = find_names(text)
    if "authorizer" in names:
        message = "`authorizer` is known only in the cluster, so the policy is not evaluated"
        problem = _refuse(message, item[field], "policy-not-evaluated")
        found.append(problem._replace(severity=Severity.WARNING))
        return None
    hidden = next((name for name in rules.hidden_names if name in names), "")
    if not text.strip():
        found.append(_refuse(f"`{field}` is empty", item[field]))
        return None
    reason = _HIDDEN.get(hidden) or ("" if rules.is_trusted else find_expression_error(text, variables, returns))
    if OFFLINE in reason:
        problem = _refuse(f"the policy is not evaluated: {reason}", item[field], "policy-not-evaluated")
        found.append(problem._replace(severity=Severity.WARNING))
        return None
    if reason:
        found.append(_refuse(f"`{field}` does not compile: {reason}", item[field]))
        return None
    return PolicyExpression(text, variables, returns)


_HIDDEN = {
    "params": "there is no `params` without a `paramKind`",
    "variables": "match conditions are evaluated before `variables` and cannot read them",
}


def _find_policy_errors(spec: dict[str, Any]) -> Iterator[Problem]:
    """What the schema accepts and the API server refuses."""
    match = spec["matchConstraints"]
    if not match.get("resourceRules"):
        yield _refuse(
            "the policy has no `resourceRules`; list the resources that it applies to",
            spec["matchConstraints"],
        )
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        yield _refuse("the policy has neither `validations` nor `auditAnnotations`; add one of them", spec)
    conditions, annotations = spec.get("matchConditions", ()), spec.get("auditAnnotations", ())
    if len(conditions) > _MAX_CONDITIONS:
        message = f"`{len(conditions)}` match conditions are too many; the limit is {_MAX_CONDITIONS}"
        yield _refuse(message, conditions[_MAX_CONDITIONS])
    if len(annotations) > _MAX_ANNOTATIONS:
        message = f"`{len(annotations)}` audit annotations are too many; the limit is {_MAX_ANNOTATIONS}"
        yield _refuse(message, annotations[_MAX_ANNOTATIONS])
    for field, noun in (("matchConditions", "match condition"), ("variables", "variable")):
        yield from _find_duplicates([item["name"] for item in spec.get(field, ())], noun)
    for item in spec.get("variables", ()):
        name = str(value_of(item["name"]))
        if not IDENTIFIER.match(name) or name in RESERVED:
            yield _refuse(
                f"`{name}` is not a valid name of a variable in CEL; use letters, digits and underscores", item["name"]
            )
    yield from _find_match_errors(match)


def _find_duplicates(names: Sequence[Node], noun: str) -> Iterator[Problem]:
    count: Counter[str] = Counter()
    for name in names:
        count[str(value_of(name))] += 1
        if count[str(value_of(name))] == 2:
            yield _refuse(f"there are two {noun}s named `{value_of(name)}`", name)


def _find_match_errors(match: dict[str, Any]) -> Iterator[Problem]:
    for rule in (*match.get("resourceRules", ()), *match.get("excludeResourceRules", ())):
        for field in ("apiGroups", "apiVersions", "operations", "resources"):
            values = [value_of(value) for value in rule[field]]
            if not values:
                yield _refuse(f"`{field}` of a resource rule is empty; list at least one", rule)
            if "*" in values and len(values) > 1 and field != "resources":
                yield _refuse(
                    f"`*` in `{field}` excludes other values; remove one or the other", rule[field][values.index("*")]
                )
    for field in ("namespaceSelector", "objectSelector"):
        yield from _find_selector_errors(match.get(field, {}))


def _find_selector_errors(selector: dict[str, Any]) -> Iterator[Problem]:
    for item in selector.get("matchExpressions", ()):
        operator, values = value_of(item["operator"]), item.get("values", ())
        if operator in ("In", "NotIn") and not values:
            yield _refuse(f"`{operator}` requires `values`", item["operator"])
        if operator in ("Exists", "DoesNotExist") and values:
            yield _refuse(f"`{operator}` does not accept `values`; remove them", item["operator"])


def parse_binding(document: Mapping[str, Any], problems: list[Problem]) -> Binding | None:
    """The binding of a document, or None with the problems that the API server would refuse it for."""
    found = find_schema_errors(document, BINDING)
    if not found:
        found += _find_binding_errors(document["spec"])
    problems += found
    if found:
        return None
    spec: Any = untraced(document["spec"])
    return Binding(
        name=str(value_of(document["metadata"]["name"])),
        policy=spec["policyName"],
        severity=_to_severity(spec["validationActions"]),
        match=parse_match(spec.get("matchResources", {})),
        params=_parse_param_ref(spec["paramRef"]) if "paramRef" in spec else None,
    )


def _find_binding_errors(spec: dict[str, Any]) -> Iterator[Problem]:
    actions = [value_of(action) for action in spec["validationActions"]]
    if not actions:
        yield _refuse("the binding has no actions; list at least one of `Deny`, `Warn` and `Audit`", spec)
    if {"Deny", "Warn"} <= set(actions):
        last = max(actions.index("Deny"), actions.index("Warn"))
        yield _refuse(
            "`Deny` and `Warn` exclude each other, because a denial is shown anyway; remove one",
            spec["validationActions"][last],
        )
    yield from _find_duplicates(spec["validationActions"], "action")
    yield from _find_match_errors(spec.get("matchResources", {}))
    params = spec.get("paramRef")
    if params is not None and ("name" in params) == ("selector" in params):
        yield _refuse("`paramRef` must have either `name` or `selector`", params)
    if params is not None:
        yield from _find_selector_errors(params.get("selector", {}))


def _to_severity(actions: list[str]) -> Severity:
    """The strongest of a binding's actions."""
    if "Deny" in actions:
        return Severity.ERROR
    return Severity.WARNING if "Warn" in actions else Severity.INFO


def _parse_param_ref(spec: Any) -> ParamRef:
    return ParamRef(
        name=spec.get("name", ""),
        namespace=spec.get("namespace", ""),
        selector=parse_selector(spec.get("selector")),
        denies=spec["parameterNotFoundAction"] == "Deny",
    )
