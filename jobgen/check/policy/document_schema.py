"""The schema of policies and bindings, as the API server validates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.model.data import Node
from jobgen.model.finding import Problem
from jobgen.schema.own_formats import compile_schema

_TEXT: dict[str, Any] = {"type": "string"}
_STRINGS: dict[str, Any] = {"type": "array", "items": _TEXT}
_LABELS: dict[str, Any] = {"type": "object", "additionalProperties": _TEXT}


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
    matchLabels=_LABELS,
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
_CONDITIONS = _list(_mapping("a match condition", _NAMED, name=_TEXT, expression=_TEXT))
_VARIABLES = _list(_mapping("a variable", _NAMED, name=_TEXT, expression=_TEXT))
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
    matchConditions=_CONDITIONS,
    variables=_VARIABLES,
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


_SCHEMAS = {
    "ValidatingAdmissionPolicy": _object("a policy", _POLICY),
    "ValidatingAdmissionPolicyBinding": _object("a binding", _BINDING),
}
_CHECKS = {name: compile_schema(name, _SCHEMAS) for name in _SCHEMAS}


def find_schema_errors(document: Mapping[str, Node], kind: str) -> list[Problem]:
    """What the schema of its kind refuses in a policy or a binding."""
    problems: list[Problem] = []
    _CHECKS[kind](document, kind, document, problems)
    return [problem._replace(rule="invalid-policy", category="policy") for problem in problems]
