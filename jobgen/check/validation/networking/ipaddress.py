"""Validate IPAddresses, whose name is the address."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, find_key, report_missing
from jobgen.check.admission.names import NameFormat, is_dns_subdomain
from jobgen.check.validation._addresses import is_canonical_address
from jobgen.check.validation.networking._references import report_group, report_segment, validate_reference
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node

NAME_FORMAT = NameFormat(is_canonical_address, "write an IP address in its canonical form, such as `10.9.8.7`")


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the reference to the object that has the address."""
    key, parent = find_key(obj, "spec", obj), run.spec.get("parentRef")
    if not isinstance(parent, dict):
        report_missing("an IPAddress", run.spec, "parentRef", key, run)
        return
    validate_reference("`parentRef`", parent, ("resource", "name"), find_key(run.spec, "parentRef", key), run)
    if (group := as_text(parent.get("group"))) and not is_dns_subdomain(group):
        report_group(parent["group"], run)
    report_segment(parent.get("namespace"), run)
