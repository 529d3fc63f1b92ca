"""Match the selector of a workload with the labels of its pods, as Kubernetes does."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, iter_mappings
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.model.data import Node, value_of


def validate_selector(key: str, value: Node, owner: Mapping[str, Node], run: Validation) -> bool:
    """Validate a label selector and return whether it is valid."""
    count = len(run.problems)
    validate_label_selector(key, value, owner, run)
    return isinstance(value, dict) and len(run.problems) == count


def find_unmatched(selector: Mapping[str, Node], labels: Mapping[str, Node]) -> Node:
    """Return the node of the first requirement of a valid selector that the labels do not meet, or None."""
    for key, value in as_mapping(selector.get("matchLabels")).items():
        if key not in labels or _read_label(labels[key]) != _read_label(value):
            return key
    for item in iter_mappings(selector.get("matchExpressions")):
        if not _matches_requirement(item, labels):
            return item.get("key")
    return None


def _matches_requirement(item: Mapping[str, Node], labels: Mapping[str, Node]) -> bool:
    key, operator = as_text(item.get("key")), as_text(item.get("operator"))
    is_present = key in labels
    if operator in ("Exists", "DoesNotExist"):
        return is_present is (operator == "Exists")
    is_listed = is_present and _read_label(labels[key]) in map(_read_label, as_list(item.get("values")))
    return is_listed if operator == "In" else not is_listed


def _read_label(value: Node) -> object:
    """Return the value of a label; null is an empty string."""
    found: object = value_of(value)
    return "" if found is None else found
