"""Validate Endpoints."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import Validation, is_set, iter_items
from jobgen.check.admission.names import DNS_LABEL, DNS_SUBDOMAIN, is_dns_label, is_dns_subdomain
from jobgen.check.validation._addresses import describe_address_fault, describe_special_address, parse_address
from jobgen.check.validation.core._service_ports import validate_port_fields, validate_port_name
from jobgen.k8s.nodes import as_list, as_text
from jobgen.model.data import Node


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the addresses and ports of each subset."""
    for subset, node in iter_items("subsets", obj.get("subsets")):
        fields = [name for name in ("addresses", "notReadyAddresses") if as_list(subset.get(name))]
        if not fields:
            message = "a subset requires `addresses` or `notReadyAddresses`; set one of them"
            run.report("missing-field", message, node)
        for field in fields:
            for address, place in iter_items(field, subset[field]):
                _validate_address(address, place, run)
        ports = subset.get("ports")
        for port, place in iter_items("ports", ports):
            # Names may be equal.
            validate_port_name(port, place, set(), run, required=len(as_list(ports)) > 1)
            validate_port_fields(port, place, run)


def _validate_address(address: Mapping[str, Node], node: Node, run: Validation) -> None:
    text = as_text(address.get("ip"))
    found = parse_address(text)
    fault = describe_address_fault(text, run.release) or (describe_special_address(found) if found else "")
    if fault:
        run.report("invalid-host-name", fault, address.get("ip") or node)
    name = as_text(address.get("hostname"))
    if name and not is_dns_label(name):
        run.report("invalid-host-name", f"`{name}` is not a valid host name; {DNS_LABEL}", address["hostname"])
    if is_set(address.get("nodeName")) and not is_dns_subdomain(as_text(address["nodeName"])):
        message = f"`{as_text(address['nodeName'])}` is not a valid node name; {DNS_SUBDOMAIN}"
        run.report("invalid-object-name", message, address["nodeName"])
