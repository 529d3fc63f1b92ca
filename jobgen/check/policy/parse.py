"""Parses policies and bindings; what the API server would refuse is a problem."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from jobgen.check.cel.together import NAMES, Shared
from jobgen.check.policy.expressions import PolicyExpression, find_limit
from jobgen.check.policy.match import MatchResources, Selector, parse_match, parse_selector
from jobgen.check.validation import validate_object
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place, identify
from jobgen.model.sentence import Sentence, Words
from jobgen.schema.own_formats import compile_schema

GROUP = "admissionregistration.k8s.io"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
MUTATING, MUTATING_BINDING = "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"


class Validation(NamedTuple):
    """An expression that must be true, and the message if it is not."""

    expression: PolicyExpression
    message: str
    message_expression: PolicyExpression | None


class Judgment(NamedTuple):
    """The expressions of a policy that decide about an object, in the form in which those of all policies are joined.

    An expression that must be evaluated by itself is None.
    """

    joined: tuple[Shared, ...]
    conditions: tuple[Shared | None, ...]
    validations: tuple[Shared | None, ...]

    def passes(self, verdicts: Mapping[Shared, bool]) -> bool:
        """Return True if an object passes for sure: a condition is false, or everything is true."""
        for condition in self.conditions:
            if condition and condition in verdicts and not verdicts[condition]:
                return True
        for expression in (*self.conditions, *self.validations):
            if not expression or expression not in verdicts or not verdicts[expression]:
                return False
        return True


class Policy:
    """A policy with its parsed expressions. What they read is found out when it is first needed."""

    def __init__(
        self,
        *,
        name: str,
        match: MatchResources,
        conditions: tuple[PolicyExpression, ...],
        variables: dict[str, PolicyExpression],
        validations: tuple[Validation, ...],
        ignores_errors: bool,
        param_kind: tuple[str, str] | None,
        annotations: tuple[PolicyExpression, ...] = (),
        reads_all: bool = False,
    ) -> None:
        self.name = name
        self.match = match
        self.conditions = conditions
        self.variables = variables
        self.validations = validations
        self.ignores_errors = ignores_errors
        self.param_kind = param_kind
        self.annotations = annotations
        """Values for the audit log; the request fails with one that cannot be evaluated."""
        self._reads_all = reads_all
        """True if it has expressions beside these, which may read everything."""
        self._judgments: dict[int, Judgment] = {}

    @cached_property
    def reads(self) -> frozenset[str]:
        """What its expressions read."""
        return frozenset(NAMES if self._reads_all else (name for each in self.expressions for name in each.names))

    @property
    def expressions(self) -> list[PolicyExpression]:
        """All its expressions."""
        of_validations = [each for item in self.validations for each in (item.expression, item.message_expression)]
        every = (*self.conditions, *self.variables.values(), *of_validations, *self.annotations)
        return [each for each in every if each]

    def list_texts(self) -> list[str]:
        """The texts of its expressions, as they are written and as they are evaluated."""
        return [text for each in self.expressions for text in each.list_texts()]

    def judge(self, params: int) -> Judgment:
        """The expressions that decide about an object, with the number of their params."""
        found = self._judgments.get(params)
        if found is None:
            conditions = tuple(each.share(params) for each in self.conditions)
            validations = tuple(each.expression.share(params) for each in self.validations)
            joined = tuple(each for each in (*conditions, *validations) if each)
            if self.has_early_conditions:
                conditions = (None,) * len(conditions)
            found = self._judgments[params] = Judgment(joined, conditions, validations)
        return found

    @cached_property
    def has_early_conditions(self) -> bool:
        """Return True if a condition reads the namespace, which is not known yet when conditions are evaluated."""
        return any("namespaceObject" in each.names for each in self.conditions)


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


def is_policy(document: Mapping[str, Plain]) -> bool:
    """Return True if a document is a policy or a binding of any version."""
    return _is_one_of(document, (POLICY, BINDING))


def is_mutating(document: Mapping[str, Plain]) -> bool:
    """Return True if a document is a mutating policy or its binding."""
    return _is_one_of(document, (MUTATING, MUTATING_BINDING))


def _is_one_of(document: Mapping[str, Plain], kinds: tuple[str, ...]) -> bool:
    group, _, version = str(document.get("apiVersion")).rpartition("/")
    return group == GROUP and version in ("v1", "v1beta1", "v1alpha1") and document.get("kind") in kinds


def _refuse(message: Words, node: Place, rule: str = "invalid-policy") -> Problem:
    return Problem(rule, message, node, category="policy")


def parse_policy(
    document: Mapping[str, Any],
    problems: list[Problem],
    *,
    is_trusted: bool = False,
    release: Release = NEWEST_RELEASE,
) -> Policy | None:
    """The policy of a document, or None with the problems that the API server would refuse it for.

    A trusted policy is not checked, and its expressions are compiled only when they are evaluated.
    """
    found = [] if is_trusted else _find_schema_errors(document, POLICY)
    spec = document.get("spec")
    if found:
        problems += found
        return None
    assert isinstance(spec, dict), "the schema requires it"
    found += [] if is_trusted else find_errors(document, release)
    # What has a problem already is not checked; None if nothing is.
    faulty = None if is_trusted else frozenset(identify(problem.node) for problem in found)
    conditions = [
        _parse_expression(item, "expression", {}, "bool", faulty, found) for item in spec.get("matchConditions", ())
    ]
    variables: dict[str, PolicyExpression | None] = {}
    for item in spec.get("variables", ()):
        variables[str(item["name"])] = _parse_expression(item, "expression", variables, "any", faulty, found)
    validations = [_parse_validation(item, variables, faulty, found) for item in spec.get("validations", ())]
    annotations = [
        _parse_expression(item, "valueExpression", variables, "any", faulty, found)
        for item in spec.get("auditAnnotations", ())
    ]
    problems += found
    if found:
        return None
    kind = spec.get("paramKind")
    return Policy(
        name=str(document["metadata"]["name"]),
        match=parse_match(spec["matchConstraints"]),
        conditions=tuple(each for each in conditions if each),
        variables={name: each for name, each in variables.items() if each},
        validations=tuple(validation for validation in validations if validation),
        ignores_errors=spec.get("failurePolicy") == "Ignore",
        param_kind=(kind["apiVersion"], kind["kind"]) if kind else None,
        annotations=tuple(each for each in annotations if each),
    )


def _parse_validation(
    item: dict[str, Any],
    variables: dict[str, PolicyExpression | None],
    faulty: frozenset[object] | None,
    found: list[Problem],
) -> Validation | None:
    expression = _parse_expression(item, "expression", variables, "bool", faulty, found)
    message_expression = None
    if str(item.get("messageExpression", "")).strip():
        message_expression = _parse_expression(item, "messageExpression", variables, "string", faulty, found)
    message = str(item.get("message", "")).strip()
    return Validation(expression, message, message_expression) if expression else None


def _parse_expression(
    item: dict[str, Any],
    field: str,
    variables: dict[str, PolicyExpression | None],
    returns: str,
    faulty: frozenset[object] | None,
    found: list[Problem],
) -> PolicyExpression | None:
    text = str(item[field])
    if faulty and identify(At(item, field)) in faulty:
        return None
    reason = "" if faulty is None else find_limit(text, variables, returns)
    if reason:
        problem = _refuse(Sentence("the policy is not evaluated: {}", reason), At(item, field), "policy-not-evaluated")
        found.append(problem._replace(severity=Severity.WARNING))
        return None
    return PolicyExpression(text, variables, returns)


def find_errors(document: Mapping[str, Any], release: Release = NEWEST_RELEASE) -> list[Problem]:
    """What the schema accepts and the API server of a release refuses."""
    problems = validate_object(document, release)
    return [problem._replace(rule="invalid-policy", category="policy") for problem in problems]


def parse_binding(document: Mapping[str, Any], problems: list[Problem], *, is_trusted: bool = False) -> Binding | None:
    """The binding of a document, or None with the problems that the API server would refuse it for."""
    found = [] if is_trusted else _find_schema_errors(document, BINDING) or find_errors(document)
    problems += found
    if found:
        return None
    actions = document["spec"]["validationActions"]
    # The strongest action counts.
    weaker = Severity.WARNING if "Warn" in actions else Severity.INFO
    return make_binding(document, Severity.ERROR if "Deny" in actions else weaker)


def make_binding(document: Mapping[str, Any], severity: Severity) -> Binding:
    """The binding of a document that its schema has accepted."""
    spec: Any = document["spec"]
    param = spec.get("paramRef") or None
    return Binding(
        name=str(document["metadata"]["name"]),
        policy=spec["policyName"],
        severity=severity,
        match=parse_match(spec.get("matchResources") or {}),
        params=param
        and ParamRef(
            name=param.get("name", ""),
            namespace=param.get("namespace", ""),
            selector=parse_selector(param.get("selector")),
            denies=param.get("parameterNotFoundAction") == "Deny",
        ),
    )


_TEXT: dict[str, Any] = {"type": "string"}
_STRINGS: dict[str, Any] = {"type": "array", "items": _TEXT}


def _mapping(title: str, required: tuple[str, ...] = (), **fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": title,
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _one_of(*values: str) -> dict[str, Any]:
    return {"enum": list(values)}


_SELECTOR = _mapping(
    "a selector",
    matchLabels={"type": "object", "additionalProperties": _TEXT},
    matchExpressions=_list(
        _mapping(
            "a selector expression",
            ("key", "operator"),
            key=_TEXT,
            operator=_one_of("In", "NotIn", "Exists", "DoesNotExist"),
            values=_STRINGS,
        )
    ),
)
_RULES = _list(
    _mapping(
        "a resource rule",
        ("apiGroups", "apiVersions", "operations", "resources"),
        apiGroups=_STRINGS,
        apiVersions=_STRINGS,
        operations=_list(_one_of("CREATE", "UPDATE", "DELETE", "CONNECT", "*")),
        resources=_STRINGS,
        resourceNames=_STRINGS,
        scope=_one_of("*", "Namespaced", "Cluster"),
    )
)
_MATCH = _mapping(
    "a match",
    resourceRules=_RULES,
    excludeResourceRules=_RULES,
    namespaceSelector=_SELECTOR,
    objectSelector=_SELECTOR,
    matchPolicy=_one_of("Equivalent", "Exact"),
)
_NAMED = ("name", "expression")
_VALIDATIONS = _list(
    _mapping(
        "a validation",
        ("expression",),
        expression=_TEXT,
        message=_TEXT,
        messageExpression=_TEXT,
        reason=_one_of("Forbidden", "Invalid", "RequestEntityTooLarge"),
    )
)
_POLICY = _mapping(
    "the spec of a policy",
    ("matchConstraints",),
    failurePolicy=_one_of("Fail", "Ignore"),
    matchConstraints=_MATCH,
    matchConditions=_list(_mapping("a match condition", _NAMED, name=_TEXT, expression=_TEXT)),
    variables=_list(_mapping("a variable", _NAMED, name=_TEXT, expression=_TEXT)),
    validations=_VALIDATIONS,
    auditAnnotations=_list(
        _mapping("an audit annotation", ("key", "valueExpression"), key=_TEXT, valueExpression=_TEXT)
    ),
    paramKind=_mapping("`paramKind`", ("apiVersion", "kind"), apiVersion=_TEXT, kind=_TEXT),
)
_BINDING = _mapping(
    "the spec of a binding",
    ("policyName", "validationActions"),
    policyName=_TEXT,
    paramRef=_mapping(
        "`paramRef`",
        ("parameterNotFoundAction",),
        name=_TEXT,
        namespace=_TEXT,
        selector=_SELECTOR,
        parameterNotFoundAction=_one_of("Allow", "Deny"),
    ),
    matchResources=_MATCH,
    validationActions=_list(_one_of("Deny", "Warn", "Audit")),
)


def _object(title: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"title": "`metadata`", "type": "object", "properties": {"name": _TEXT}, "required": ["name"]}
    return _mapping(title, ("metadata", "spec"), apiVersion=_TEXT, kind=_TEXT, metadata=metadata, spec=spec, status={})


_SCHEMAS = {POLICY: _object("a policy", _POLICY), BINDING: _object("a binding", _BINDING)}
_CHECKS = {name: compile_schema(name, _SCHEMAS) for name in _SCHEMAS}


def _find_schema_errors(document: Mapping[str, Plain], kind: str) -> list[Problem]:
    problems: list[Problem] = []
    _CHECKS[kind](document, kind, None, problems)
    return [problem._replace(rule="invalid-policy", category="policy") for problem in problems]
