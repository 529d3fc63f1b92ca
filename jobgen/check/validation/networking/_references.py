"""Validate references to objects of any kind in Ingresses, IngressClasses and IPAddresses."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, is_set, require_fields
from jobgen.check.admission.names import DNS_SUBDOMAIN, PATH_SEGMENT, is_dns_subdomain, is_path_segment
from jobgen.k8s.nodes import as_text
from jobgen.model.data import Node


def validate_reference(
    what: str, reference: Mapping[str, Node], names: tuple[str, ...], node: Node, run: Validation
) -> None:
    """Validate a group, and the fields with these names, which are required and segments of a path."""
    require_fields(what, reference, names, node, run)
    if is_set(reference.get("apiGroup")) and not is_dns_subdomain(as_text(reference["apiGroup"])):
        report_group(reference["apiGroup"], run)
    for name in names:
        report_segment(reference.get(name), run)


def report_group(node: Node, run: Validation) -> None:
    """Report a text that is not an API group."""
    run.report("invalid-value", f"`{as_text(node)}` is not a valid API group; {DNS_SUBDOMAIN}", node)


def report_segment(node: Node, run: Validation) -> None:
    """Report a name that is not a segment of a path."""
    found = as_text(node)
    if not is_path_segment(found):
        run.report("invalid-object-name", f"`{found}` is not a valid name; {PATH_SEGMENT}", node)
