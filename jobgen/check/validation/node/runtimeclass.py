"""Validate RuntimeClasses."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, iter_items, report_missing
from jobgen.check.admission.metadata import validate_labels
from jobgen.check.admission.names import DNS_LABEL, is_dns_label
from jobgen.check.admission.resources import validate_overhead
from jobgen.check.admission.scheduling import validate_tolerations
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Node

_TOLERATION_KEYS = ("key", "operator", "value", "effect")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the handler, the overhead of its pods, and the nodes that they run on."""
    handler = as_text(obj.get("handler"))
    if not handler:
        report_missing("a RuntimeClass", obj, "handler", obj, run)
    elif not is_dns_label(handler):
        run.report("invalid-value", f"`{handler}` is not a valid handler; {DNS_LABEL}", obj["handler"])
    validate_overhead("podFixed", get_path(obj, "overhead", "podFixed"), obj, run)
    scheduling = as_mapping(obj.get("scheduling"))
    validate_labels("nodeSelector", scheduling.get("nodeSelector"), scheduling, run)
    tolerations = scheduling.get("tolerations")
    validate_tolerations("tolerations", tolerations, scheduling, run)
    seen: set[tuple[str, ...]] = set()
    for item, node in iter_items("tolerations", tolerations):
        found = tuple(as_text(item.get(key)) for key in _TOLERATION_KEYS)
        if found in seen:
            run.report("duplicate-item", "two tolerations are equal; delete one of them", node)
        seen.add(found)
