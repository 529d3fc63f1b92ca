"""Validate CSIStorageCapacities."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, report_missing, validate_string
from jobgen.check.admission.names import DNS_SUBDOMAIN, is_dns_subdomain
from jobgen.check.admission.scheduling import validate_label_selector
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node, value_of
from jobgen.model.quantity import decode_milli

_validate_class_name = validate_string("invalid-object-name", "object name", is_dns_subdomain, DNS_SUBDOMAIN)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the nodes, the class and the amount of storage."""
    validate_label_selector("nodeTopology", obj.get("nodeTopology"), obj, run)
    if not as_text(obj.get("storageClassName")):
        report_missing("a CSIStorageCapacity", obj, "storageClassName", obj, run)
    _validate_class_name("storageClassName", obj.get("storageClassName"), obj, run)
    if (decode_milli(obj.get("capacity")) or 0) < 0:
        message = f"`capacity` must be at least 0, got `{value_of(obj['capacity'])}`"
        run.report("negative-quantity", message, obj["capacity"])
