"""Validate the rules of Roles and ClusterRoles."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, is_empty, iter_items, require_fields
from jobgen.model.data import Node

_RESOURCE_FIELDS = ("apiGroups", "resources", "resourceNames")


def validate_rules(obj: Mapping[str, Node], run: Validation, *, namespaced: bool) -> None:
    """Validate that each rule has verbs, and either resources or, in a ClusterRole, URLs."""
    for rule, node in iter_items("rules", obj.get("rules")):
        require_fields("a rule", rule, ("verbs",), node, run)
        if is_empty(rule.get("nonResourceURLs")):
            require_fields("a rule", rule, ("apiGroups", "resources"), node, run)
            continue
        if namespaced:
            message = "`nonResourceURLs` cannot be in a Role, which has a namespace; use a ClusterRole"
            run.report("invalid-form", message, rule["nonResourceURLs"])
        for field in _RESOURCE_FIELDS:
            if not is_empty(rule.get(field)):
                message = f"a rule cannot have both `nonResourceURLs` and `{field}`; write two rules"
                run.report("invalid-form", message, rule["nonResourceURLs"])
                break
