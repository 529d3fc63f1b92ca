"""Validate the names of CSI drivers."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, report_missing
from jobgen.check.admission.names import is_dns_subdomain
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node

_MAX_LENGTH = 63


def validate_driver_name(what: str, owner: Mapping[str, Node], field: str, parent: Node, run: Validation) -> None:
    """Validate the required name of a driver."""
    name = as_text(owner.get(field))
    if not name:
        report_missing(what, owner, field, parent, run)
    elif len(name.encode()) > _MAX_LENGTH or not is_dns_subdomain(name.lower()):
        message = f"`{name}` is not a valid driver name; use a domain name with at most {_MAX_LENGTH} characters"
        run.report("invalid-value", message, owner[field])
