"""Validate FlowSchemas."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_empty,
    is_set,
    iter_items,
    iter_texts,
    report_missing,
    report_unsupported,
    require_fields,
    validate_enum,
    validate_number,
)
from jobgen.check.admission.names import DNS_LABEL, DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text
from jobgen.model.data import Node, value_of

_MAX_PRECEDENCE = 10000
_ALL = "*"
_METHODS = ("ByNamespace", "ByUser")
_VERBS = ("get", "list", "create", "update", "delete", "deletecollection", "patch", "watch", "proxy", _ALL)
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_validate_precedence = validate_number(1, _MAX_PRECEDENCE, allow_zero=True)
_validate_verb = validate_enum(*_VERBS)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the precedence, the priority level, and the rules with their subjects."""
    spec, key = run.spec, find_key(obj, "spec", obj)
    _validate_precedence("matchingPrecedence", spec.get("matchingPrecedence"), spec, run)
    if as_integer(spec.get("matchingPrecedence")) == 1 and as_text(run.metadata.get("name")) != "exempt":
        message = "`matchingPrecedence: 1` is reserved for the FlowSchema `exempt`; use at least 2"
        run.report("out-of-range", message, spec["matchingPrecedence"])
    method = spec.get("distinguisherMethod")
    if isinstance(method, dict) and as_text(method.get("type")) not in _METHODS:
        if is_empty(method.get("type")):
            report_missing("`distinguisherMethod`", method, "type", find_key(spec, "distinguisherMethod", key), run)
        else:
            report_unsupported("type", method["type"], _METHODS, run)
    _validate_level(as_mapping(spec.get("priorityLevelConfiguration")), spec, key, run)
    for rule, node in iter_items("rules", spec.get("rules")):
        _validate_rule(rule, node, run)


def _validate_level(level: Mapping[str, Node], spec: Mapping[str, Node], key: Node, run: Validation) -> None:
    node = find_key(spec, "priorityLevelConfiguration", key)
    require_fields("`priorityLevelConfiguration`", level, ("name",), node, run)
    _validate_name(level, "name", "name of a PriorityLevelConfiguration", run)


def _validate_name(owner: Mapping[str, Node], field: str, what: str, run: Validation) -> None:
    found = as_text(owner.get(field))
    if found and not is_dns_subdomain(found):
        run.report("invalid-object-name", f"`{found}` is not a valid {what}; {DNS_SUBDOMAIN}", owner[field])


def _validate_rule(rule: Mapping[str, Node], node: Node, run: Validation) -> None:
    require_fields("a rule", rule, ("subjects",), node, run)
    for subject, place in iter_items("subjects", rule.get("subjects")):
        _validate_subject(subject, place, run)
    if is_empty(rule.get("resourceRules")) and is_empty(rule.get("nonResourceRules")):
        message = "a rule requires `resourceRules` or `nonResourceRules`; set one of them"
        run.report("missing-field", message, node)
    for item, place in iter_items("resourceRules", rule.get("resourceRules")):
        require_fields("a resource rule", item, ("verbs", "apiGroups", "resources"), place, run)
        _validate_verbs(item, run)
        for field in ("apiGroups", "resources"):
            _validate_wildcard(item, field, run)
        _validate_namespaces(item, place, run)
    for item, place in iter_items("nonResourceRules", rule.get("nonResourceRules")):
        require_fields("a rule for URLs", item, ("verbs", "nonResourceURLs"), place, run)
        _validate_verbs(item, run)
        if not _validate_wildcard(item, "nonResourceURLs", run):
            for text, url in iter_texts(item.get("nonResourceURLs")):
                _validate_url(text, url, run)


def _validate_subject(subject: Mapping[str, Node], node: Node, run: Validation) -> None:
    kind = as_text(subject.get("kind"))
    if kind not in _SUBJECTS:
        if kind:
            report_unsupported("kind", subject["kind"], tuple(_SUBJECTS), run)
        else:
            report_missing("a subject", subject, "kind", node, run)
        return
    for other, field in _SUBJECTS.items():
        if other != kind and is_set(subject.get(field)):
            message = f"`{field}` cannot be set if `kind` is `{kind}`; delete it"
            run.report("invalid-form", message, find_key(subject, field, node))
    field = _SUBJECTS[kind]
    named = subject.get(field)
    if not isinstance(named, dict):
        report_missing(f"a subject of kind `{kind}`", subject, field, node, run)
        return
    required = ("name", "namespace") if kind == "ServiceAccount" else ("name",)
    require_fields(f"`{field}`", named, required, find_key(subject, field, node), run)
    if kind == "ServiceAccount":
        if as_text(named.get("name")) != _ALL:
            _validate_name(named, "name", "name of a ServiceAccount", run)
        _validate_namespace(named.get("namespace"), run)


def _validate_namespace(node: Node, run: Validation) -> None:
    found = as_text(node)
    if found and not is_dns_label(found):
        run.report("invalid-object-name", f"`{found}` is not a valid namespace name; {DNS_LABEL}", node)


def _validate_wildcard(owner: Mapping[str, Node], field: str, run: Validation) -> bool:
    """Report other items beside `*`, and return whether the list has it."""
    items = as_list(owner.get(field))
    has_wildcard = any(value_of(item) == _ALL for item in items)
    if has_wildcard and len(items) > 1:
        run.report("invalid-value", f"`{field}` has other items beside `*`; delete them", find_key(owner, field, owner))
    return has_wildcard


def _validate_verbs(rule: Mapping[str, Node], run: Validation) -> None:
    if not _validate_wildcard(rule, "verbs", run):
        for item in as_list(rule.get("verbs")):
            _validate_verb("verbs", item, rule, run)


def _validate_namespaces(rule: Mapping[str, Node], node: Node, run: Validation) -> None:
    if is_empty(rule.get("namespaces")):
        if value_of(rule.get("clusterScope")) is not True:
            message = "a resource rule requires `namespaces`, or `clusterScope: true`; set one of them"
            run.report("missing-field", message, find_key(rule, "namespaces", node))
    elif not _validate_wildcard(rule, "namespaces", run):
        for item in as_list(rule.get("namespaces")):
            _validate_namespace(item, run)


def _validate_url(text: str, node: Node, run: Validation) -> None:
    has_wildcard = "*" in text.removesuffix("*") or (text.endswith("*") and not text.endswith("/*"))
    if not text.startswith("/") or " " in text or "//" in text or has_wildcard:
        message = f"`{text}` is not a valid URL; write a path, such as `/healthz` or `/healthz/*`"
        run.report("invalid-value", message, node)
