"""Validate the CEL expressions of policies and webhooks."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, get_key, is_set, iter_items, report_missing
from jobgen.check.admission.names import LABEL_KEY, is_label_key
from jobgen.check.cel.admission_scope import AdmissionScope
from jobgen.k8s.nodes import as_list, as_text
from jobgen.model.data import Node, locatable
from jobgen.model.lazy_re import lazy_pattern

_MAX_CONDITIONS = 64
_IDENTIFIER = lazy_pattern("[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    """as break const continue else false for function if import in let loop namespace null package return true
    var void while""".split()
)


def validate_expression(
    owner: Mapping[str, Node], field: str, scope: AdmissionScope, parent: Node, run: Validation, *results: str
) -> None:
    """Validate that a field is an expression with one of some types."""
    text = as_text(owner.get(field))
    if not text.strip():
        run.report(
            "missing-field", f"`{field}` is empty; write an expression", locatable(owner.get(field), owner, parent)
        )
        return
    report_error(field, owner[field], scope.find_error(text, *results), run)


def report_error(field: str, node: Node, error: str, run: Validation) -> None:
    """Report an expression that does not compile."""
    if error:
        run.report("invalid-value", f"`{field}` does not compile: {error}", node)


def validate_conditions(owner: Mapping[str, Node], scope: AdmissionScope, run: Validation) -> None:
    """Validate the match conditions of a policy or a webhook; they cannot read variables."""
    conditions = owner.get("matchConditions")
    scope = scope.without(variables=True)
    count = len(as_list(conditions))
    if count > _MAX_CONDITIONS:
        message = f"`{count}` match conditions are too many; the limit is {_MAX_CONDITIONS}"
        run.report("out-of-range", message, as_list(conditions)[_MAX_CONDITIONS])
    seen: set[str] = set()
    for item, node in iter_items(get_key(owner, "matchConditions"), conditions):
        validate_expression(item, "expression", scope, node, run, "bool")
        name = as_text(item.get("name"))
        if not name:
            report_missing("a match condition", item, "name", node, run)
        elif not is_label_key(name):
            run.report("invalid-name", f"`{name}` is not a valid name of a match condition; {LABEL_KEY}", item["name"])
        elif name in seen:
            run.report("duplicate-item", f"there are two match conditions named `{name}`; rename one", item["name"])
        seen.add(name)


def validate_variables(spec: Mapping[str, Node], scope: AdmissionScope, run: Validation) -> None:
    """Validate the variables of a policy, and add them to the scope; each can read those above it."""
    for item, node in iter_items(get_key(spec, "variables"), spec.get("variables")):
        name, text = as_text(item.get("name")), as_text(item.get("expression"))
        if not name.strip():
            report_missing("a variable", item, "name", node, run)
        elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            message = f"`{name}` is not a valid name of a variable in CEL; use letters, digits and underscores"
            run.report("invalid-name", message, item["name"])
        if not text.strip():
            run.report("missing-field", "`expression` is empty; write an expression", item.get("expression") or node)
        else:
            report_error("expression", item["expression"], scope.add_variable(name, text), run)


def has_items(spec: Mapping[str, Node], field: str) -> bool:
    """Return whether a list is not empty."""
    return bool(as_list(spec.get(field)))


def make_scope(spec: Mapping[str, Node], *, has_variables: bool) -> AdmissionScope:
    """Return the scope of a policy's expressions."""
    return AdmissionScope(has_params=is_set(spec.get("paramKind")), has_variables=has_variables)
