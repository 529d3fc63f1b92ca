"""Policies and bindings from their documents, bare or marked; what the API server would refuse is a problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.check.policy.code import IDENTIFIER, RESERVED, PolicyExpression, names_in, refusal
from jobgen.check.policy.format import format_faults
from jobgen.check.policy.match import MatchResources, Selector, parse_match, parse_selector
from jobgen.model.data import Data, untraced, value_of
from jobgen.model.finding import Problem, Severity

GROUP = "admissionregistration.k8s.io"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
_MOST_CONDITIONS, _MOST_ANNOTATIONS = 64, 20


class Validation(NamedTuple):
    """What must be true, and what is said where it is not."""

    code: PolicyExpression
    message: str
    tells: PolicyExpression | None


class Policy(NamedTuple):
    """A policy, compiled."""

    name: str
    match: MatchResources
    conditions: tuple[PolicyExpression, ...]
    variables: dict[str, PolicyExpression]
    validations: tuple[Validation, ...]
    ignores_errors: bool
    param_kind: tuple[str, str] | None
    reads: frozenset[str]


class _Terms(NamedTuple):
    """What an expression is held to: nothing if it is proven, else not to read names that are hidden from it."""

    proven: bool
    names: tuple[str, ...]


class ParamRef(NamedTuple):
    """Which params a binding hands to its policy."""

    name: str
    namespace: str
    selector: Selector
    denies: bool


class Binding(NamedTuple):
    """A binding: what of a policy's matches is meant, and how grave it is."""

    name: str
    policy: str
    severity: Severity
    match: MatchResources
    params: ParamRef | None


def is_policy(document: Data) -> bool:
    """Whether a document is a policy or a binding, in any version that has them."""
    group, _, version = str(value_of(document.get("apiVersion"))).rpartition("/")
    return group == GROUP and version.startswith("v1") and value_of(document.get("kind")) in (POLICY, BINDING)


def _refused(message: str, node: Data, rule: str = "invalid-policy") -> Problem:
    return Problem(rule, message, node, category="policy")


def parse_policy(document: Data, problems: list[Problem], *, proven: bool = False) -> Policy | None:
    """The policy of a document, or None with the problems that the API server would refuse it for.

    The expressions of a policy that is `proven` to be good are not compiled before they are run.
    """
    found = format_faults(document, POLICY)
    spec = document.get("spec")
    if found:
        problems += found
        return None
    found += _policy_faults(spec)
    terms = _Terms(proven, () if "paramKind" in spec else ("params",))
    conditions = [
        _compiled(item, "expression", {}, "bool", _Terms(proven, (*terms.names, "variables")), found)
        for item in spec.get("matchConditions", ())
    ]
    variables: dict[str, PolicyExpression | None] = {}
    for item in spec.get("variables", ()):
        variables[str(value_of(item["name"]))] = _compiled(item, "expression", variables, "any", terms, found)
    validations = [_validation(item, variables, terms, found) for item in spec.get("validations", ())]
    for item in spec.get("auditAnnotations", ()):
        _compiled(item, "valueExpression", variables, "any", terms, found)
    problems += found
    if found:
        return None
    raw = untraced(spec)
    kind = raw.get("paramKind")
    codes = [
        *conditions,
        *variables.values(),
        *(code for item in validations if item for code in (item.code, item.tells)),
    ]
    return Policy(
        name=str(value_of(document["metadata"]["name"])),
        match=parse_match(raw["matchConstraints"]),
        conditions=tuple(code for code in conditions if code),
        variables={name: code for name, code in variables.items() if code},
        validations=tuple(validation for validation in validations if validation),
        ignores_errors=raw.get("failurePolicy") == "Ignore",
        param_kind=(kind["apiVersion"], kind["kind"]) if kind else None,
        reads=frozenset(name for code in codes if code for name in code.names),
    )


def _validation(
    item: Data, variables: dict[str, PolicyExpression | None], terms: _Terms, found: list[Problem]
) -> Validation | None:
    code = _compiled(item, "expression", variables, "bool", terms, found)
    tells = None
    if str(value_of(item.get("messageExpression", ""))).strip():
        tells = _compiled(item, "messageExpression", variables, "string", terms, found)
    message = str(value_of(item.get("message", ""))).strip()
    if "\n" in message or "\r" in message:
        found.append(_refused("`message` must be one line", item["message"]))
    return Validation(code, message, tells) if code else None


def _compiled(
    item: Data,
    field: str,
    variables: dict[str, PolicyExpression | None],
    returns: str,
    terms: _Terms,
    found: list[Problem],
) -> PolicyExpression | None:
    """An expression of a policy; or None with the problem that it has."""
    text = str(value_of(item[field]))
    names = names_in(text)
    if "authorizer" in names:
        message = "`authorizer` is known to the cluster alone, so the policy is not evaluated here"
        problem = _refused(message, item[field], "policy-not-evaluated")
        found.append(problem._replace(severity=Severity.WARNING))
        return None
    wrong = next((name for name in terms.names if name in names), "")
    if not text.strip():
        found.append(_refused(f"`{field}` is empty", item[field]))
        return None
    why = _HIDDEN.get(wrong) or ("" if terms.proven else refusal(text, variables, returns))
    if why:
        found.append(_refused(f"`{field}` does not compile: {why}", item[field]))
        return None
    return PolicyExpression(text, variables, returns)


_HIDDEN = {
    "params": "there is no `params` without a `paramKind`",
    "variables": "match conditions come before `variables`, and cannot read them",
}


def _policy_faults(spec: Data) -> Iterator[Problem]:
    """What the format allows and the API server does not."""
    match = spec["matchConstraints"]
    if not match.get("resourceRules"):
        yield _refused("a policy needs `resourceRules`: which resources it is for", spec["matchConstraints"])
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        yield _refused("a policy needs `validations` or `auditAnnotations`", spec)
    conditions, annotations = spec.get("matchConditions", ()), spec.get("auditAnnotations", ())
    if len(conditions) > _MOST_CONDITIONS:
        message = f"`{len(conditions)}` match conditions are too many; the limit is {_MOST_CONDITIONS}"
        yield _refused(message, conditions[_MOST_CONDITIONS])
    if len(annotations) > _MOST_ANNOTATIONS:
        message = f"`{len(annotations)}` audit annotations are too many; the limit is {_MOST_ANNOTATIONS}"
        yield _refused(message, annotations[_MOST_ANNOTATIONS])
    for field, word in (("matchConditions", "match condition"), ("variables", "variable")):
        yield from _repeated([item["name"] for item in spec.get(field, ())], word)
    for item in spec.get("variables", ()):
        name = str(value_of(item["name"]))
        if not IDENTIFIER.match(name) or name in RESERVED:
            yield _refused(f"`{name}` cannot be the name of a variable in CEL", item["name"])
    yield from _match_faults(match)


def _repeated(names: list[Data], word: str) -> Iterator[Problem]:
    count: Counter[str] = Counter()
    for name in names:
        count[str(value_of(name))] += 1
        if count[str(value_of(name))] == 2:
            yield _refused(f"there are two {word}s named `{value_of(name)}`", name)


def _match_faults(match: Data) -> Iterator[Problem]:
    for rule in (*match.get("resourceRules", ()), *match.get("excludeResourceRules", ())):
        for field in ("apiGroups", "apiVersions", "operations", "resources"):
            words = [value_of(word) for word in rule[field]]
            if not words:
                yield _refused(f"a rule for resources needs at least one of `{field}`", rule)
            if "*" in words and len(words) > 1 and field != "resources":
                yield _refused(f"`*` in `{field}` stands alone or not at all", rule[field][words.index("*")])
    for field in ("namespaceSelector", "objectSelector"):
        yield from _selector_faults(match.get(field, {}))


def _selector_faults(selector: Data) -> Iterator[Problem]:
    for item in selector.get("matchExpressions", ()):
        operator, values = value_of(item["operator"]), item.get("values", ())
        if operator in ("In", "NotIn") and not values:
            yield _refused(f"`{operator}` needs `values`", item["operator"])
        if operator in ("Exists", "DoesNotExist") and values:
            yield _refused(f"`{operator}` takes no `values`", item["operator"])


def parse_binding(document: Data, problems: list[Problem]) -> Binding | None:
    """The binding of a document, or None with the problems that the API server would refuse it for."""
    found = format_faults(document, BINDING)
    if not found:
        found += _binding_faults(document["spec"])
    problems += found
    if found:
        return None
    spec = untraced(document["spec"])
    return Binding(
        name=str(value_of(document["metadata"]["name"])),
        policy=spec["policyName"],
        severity=_severity(spec["validationActions"]),
        match=parse_match(spec.get("matchResources", {})),
        params=_param_ref(spec["paramRef"]) if "paramRef" in spec else None,
    )


def _binding_faults(spec: Data) -> Iterator[Problem]:
    actions = [value_of(action) for action in spec["validationActions"]]
    if not actions:
        yield _refused("a binding needs at least one of `Deny`, `Warn` and `Audit`", spec)
    if {"Deny", "Warn"} <= set(actions):
        last = max(actions.index("Deny"), actions.index("Warn"))
        yield _refused("`Deny` and `Warn` exclude each other: a denial is told anyway", spec["validationActions"][last])
    yield from _repeated(spec["validationActions"], "action")
    yield from _match_faults(spec.get("matchResources", {}))
    params = spec.get("paramRef")
    if params is not None and ("name" in params) == ("selector" in params):
        yield _refused("`paramRef` needs either `name` or `selector`", params)
    if params is not None:
        yield from _selector_faults(params.get("selector", {}))


def _severity(actions: list[str]) -> Severity:
    """The strongest of a binding's actions."""
    if "Deny" in actions:
        return Severity.ERROR
    return Severity.WARNING if "Warn" in actions else Severity.INFO


def _param_ref(spec: Data) -> ParamRef:
    return ParamRef(
        name=spec.get("name", ""),
        namespace=spec.get("namespace", ""),
        selector=parse_selector(spec.get("selector")),
        denies=spec["parameterNotFoundAction"] == "Deny",
    )
