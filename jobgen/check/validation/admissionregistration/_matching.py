"""Validate which requests a policy, a binding or a webhook matches."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    get_key,
    is_set,
    iter_items,
    iter_texts,
    report_missing,
    report_unsupported,
    require_fields,
    validate_each,
    validate_enum,
    validate_fields,
)
from jobgen.check.admission.names import PATH_SEGMENT, is_path_segment
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.k8s.nodes import as_list, as_mapping
from jobgen.model.data import Node

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
_LISTS = ("apiGroups", "apiVersions", "operations")
SELECTORS = {"namespaceSelector": validate_label_selector, "objectSelector": validate_label_selector}
validate_failure_policy = validate_enum("Fail", "Ignore")
validate_match_policy = validate_enum("Equivalent", "Exact")


def validate_match(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> None:
    """Validate the `matchConstraints` of a policy or the `matchResources` of a binding."""
    match = as_mapping(value)
    validate_fields(match, {**SELECTORS, "matchPolicy": validate_match_policy}, run)
    for field in ("resourceRules", "excludeResourceRules"):
        for rule, node in iter_items(get_key(match, field), match.get(field)):
            _validate_names(rule, run)
            validate_rule(rule, node, run)


def require_match(spec: Mapping[str, Node], run: Validation) -> None:
    """Report a policy that says nothing of what it matches."""
    match = as_mapping(spec.get("matchConstraints"))
    if not is_set(spec.get("matchConstraints")):
        report_missing("a policy", spec, "matchConstraints", get_key(spec, "spec"), run)
    elif not as_list(match.get("resourceRules")):
        message = "`matchConstraints` requires `resourceRules`; list the resources that the policy applies to"
        run.report("missing-field", message, find_key(match, "resourceRules", get_key(spec, "matchConstraints")))


def validate_mutating_operations(match: Node, run: Validation) -> None:
    """Report operations that cannot be changed."""
    rules = as_mapping(match).get("resourceRules")
    for rule, _ in iter_items("resourceRules", rules):
        for found, node in iter_texts(rule.get("operations")):
            if found == "DELETE":
                report_unsupported("operations", node, _MUTATING_OPERATIONS, run)


def validate_rule(rule: Mapping[str, Node], node: Node, run: Validation) -> None:
    """Validate a rule: its groups, versions, operations, resources and scope."""
    require_fields("a rule", rule, (*_LISTS, "resources"), node, run)
    for field in _LISTS:
        values = list(iter_texts(rule.get(field)))
        if len(values) > 1 and any(found == "*" for found, _ in values):
            message = f"`*` in `{field}` stands for all values; remove it or the others"
            run.report("invalid-value", message, next(item for found, item in values if found == "*"))
    for found, item in iter_texts(rule.get("apiVersions")):
        if not found:
            run.report("missing-field", "a version in `apiVersions` is empty; write a version or `*`", item or node)
    validate_each(validate_enum(*_OPERATIONS))("operations", rule.get("operations"), rule, run)
    _validate_resources(rule, node, run)
    if is_set(rule.get("scope")):
        validate_enum("*", "Cluster", "Namespaced")("scope", rule["scope"], rule, run)


def _validate_resources(rule: Mapping[str, Node], node: Node, run: Validation) -> None:
    values = list(iter_texts(rule.get("resources")))
    texts = [found for found, _ in values]
    owners: set[str] = set()
    subresources: set[str] = set()
    for found, item in values:
        owner, slash, subresource = found.partition("/")
        if not found:
            run.report("missing-field", "a resource in `resources` is empty; write its name or `*`", item or node)
        if not slash:
            continue
        if owner in owners:
            run.report("invalid-value", f"`{found}` is part of `{owner}/*`; remove one of them", item)
        if subresource in subresources:
            run.report("invalid-value", f"`{found}` is part of `*/{subresource}`; remove one of them", item)
        owners |= {owner} if subresource == "*" else set()
        subresources |= {subresource} if owner == "*" else set()
    if len(values) > 1 and "*/*" in texts:
        message = "`*/*` in `resources` stands for all resources; remove it or the others"
        run.report("invalid-value", message, values[texts.index("*/*")][1])
    plain = [found for found in texts if found and "/" not in found]
    # The API server looks only at the last resource without a subresource.
    if "*" in plain and plain[-1] != "*":
        message = "`*` in `resources` stands for all resources without subresources; remove it or the others"
        run.report("invalid-value", message, values[texts.index("*")][1])


def _validate_names(rule: Mapping[str, Node], run: Validation) -> None:
    seen: set[str] = set()
    for found, item in iter_texts(rule.get("resourceNames")):
        if not is_path_segment(found):
            run.report("invalid-name", f"`{found}` is not a valid name of a resource; {PATH_SEGMENT}", item)
        if found in seen:
            run.report("duplicate-item", f"`{found}` is twice in `resourceNames`; remove one of them", item)
        seen.add(found)
