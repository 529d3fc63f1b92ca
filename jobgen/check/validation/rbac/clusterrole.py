"""Validate ClusterRoles."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, iter_items, require_fields
from jobgen.check.admission.names import PATH_SEGMENT_NAME
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.check.validation.rbac._rules import validate_rules
from jobgen.model.data import Node

NAME_FORMAT = PATH_SEGMENT_NAME


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the rules, and the selectors of ClusterRoles whose rules this one gets."""
    validate_rules(obj, run, namespaced=False)
    aggregation = obj.get("aggregationRule")
    if not isinstance(aggregation, dict):
        return
    key = find_key(obj, "aggregationRule", obj)
    require_fields("`aggregationRule`", aggregation, ("clusterRoleSelectors",), key, run)
    for selector, _ in iter_items("clusterRoleSelectors", aggregation.get("clusterRoleSelectors")):
        validate_label_selector("clusterRoleSelectors", selector, aggregation, run)
