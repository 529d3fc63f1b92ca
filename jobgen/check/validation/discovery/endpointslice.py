"""Validate EndpointSlices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobgen.check.admission.fields import (
    Validation,
    find_key,
    is_set,
    iter_items,
    iter_texts,
    report_missing,
    report_unsupported,
)
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_KEY,
    LABEL_VALUE,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
)
from jobgen.check.validation._addresses import (
    describe_address_fault,
    describe_special_address,
    is_canonical_address,
    parse_address,
)
from jobgen.check.validation.core._service_ports import PROTOCOLS
from jobgen.k8s.nodes import as_list, as_mapping, as_text
from jobgen.k8s.releases import Release
from jobgen.model.data import Node

_ADDRESS_TYPES = ("IPv4", "IPv6", "FQDN")
_VERSIONS = {"IPv4": 4, "IPv6": 6}
_MAX_ENDPOINTS, _MAX_ADDRESSES, _MAX_PORTS, _MAX_HINTS = 1000, 100, 20000, 8
_CANONICAL_SINCE: Release = (1, 33)
_NODE_HINTS_SINCE: Release = (1, 34)


def validate(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate the type of the addresses, the endpoints and the ports."""
    address_type = as_text(obj.get("addressType"))
    if not address_type:
        report_missing("an EndpointSlice", obj, "addressType", obj, run)
    elif address_type not in _ADDRESS_TYPES:
        report_unsupported("addressType", obj["addressType"], _ADDRESS_TYPES, run)
    if _has_at_most(_MAX_PORTS, "ports", obj, obj, run):
        _validate_ports(obj, run)
    if _has_at_most(_MAX_ENDPOINTS, "endpoints", obj, obj, run):
        for endpoint, node in iter_items("endpoints", obj.get("endpoints")):
            _validate_endpoint(endpoint, node, address_type, run)


def _has_at_most(limit: int, field: str, owner: Mapping[str, Node], parent: Node, run: Validation) -> bool:
    count = len(as_list(owner.get(field)))
    if count > limit:
        message = f"`{field}` has `{count}` items; it can have at most {limit}"
        run.report("out-of-range", message, find_key(owner, field, parent))
    return count <= limit


def _validate_ports(obj: Mapping[str, Node], run: Validation) -> None:
    """Validate names and protocols; numbers are not validated."""
    names: set[str] = set()
    for port, node in iter_items("ports", obj.get("ports")):
        name = as_text(port.get("name"))
        if name and not is_dns_label(name):
            run.report("invalid-port-name", f"`{name}` is not a valid name of a port; {DNS_LABEL}", port["name"])
        elif name in names:
            run.report("duplicate-item", f"two ports are named `{name}`; rename one of them", port.get("name") or node)
        names.add(name)
        if is_set(port.get("protocol")) and as_text(port["protocol"]) not in PROTOCOLS:
            report_unsupported("protocol", port["protocol"], PROTOCOLS, run)
        if is_set(port.get("appProtocol")) and not is_label_key(as_text(port["appProtocol"])):
            protocol = as_text(port["appProtocol"])
            run.report("invalid-value", f"`{protocol}` is not a valid protocol; {LABEL_KEY}", port["appProtocol"])


def _validate_endpoint(endpoint: Mapping[str, Node], node: Node, address_type: str, run: Validation) -> None:
    if not as_list(endpoint.get("addresses")):
        report_missing("an endpoint", endpoint, "addresses", node, run)
    _has_at_most(_MAX_ADDRESSES, "addresses", endpoint, node, run)
    for text, place in iter_texts(endpoint.get("addresses")):
        if fault := _describe_fault(text, address_type, run.release):
            run.report("invalid-host-name", fault, place)
    if is_set(endpoint.get("nodeName")):
        _validate_name(endpoint["nodeName"], "node name", is_dns_subdomain, DNS_SUBDOMAIN, run)
    if is_set(endpoint.get("hostname")):
        _validate_name(endpoint["hostname"], "host name", is_dns_label, DNS_LABEL, run)
    hints = as_mapping(endpoint.get("hints"))
    _validate_hints(hints, "forZones", is_label_value, LABEL_VALUE, run)
    if run.release >= _NODE_HINTS_SINCE:
        _validate_hints(hints, "forNodes", is_dns_subdomain, DNS_SUBDOMAIN, run)


def _describe_fault(text: str, address_type: str, release: Release) -> str:
    """Return what is wrong with an address, or an empty string; addresses of other types are not validated."""
    if address_type == "FQDN":
        name = text.removesuffix(".")
        is_valid = "." in name and is_dns_subdomain(name) and all(map(is_dns_label, name.split(".")))
        return "" if is_valid else f"`{text}` is not a domain name; write at least two labels, such as `example.com`"
    version, address = _VERSIONS.get(address_type), parse_address(text)
    if version is None:
        return ""
    fault = describe_address_fault(text, release)
    if fault or address is None:
        return fault
    if address.version != version:
        return f"`{text}` is not an address of `{address_type}`; write one, or change `addressType`"
    if version == 6 and release >= _CANONICAL_SINCE and not is_canonical_address(text):
        return f"`{text}` is not in canonical form; write `{address}`"
    return describe_special_address(address)


def _validate_name(node: Node, noun: str, is_valid: Callable[[str], bool], hint: str, run: Validation) -> None:
    if not is_valid(as_text(node)):
        run.report("invalid-object-name", f"`{as_text(node)}` is not a valid {noun}; {hint}", node)


def _validate_hints(
    hints: Mapping[str, Node], field: str, is_valid: Callable[[str], bool], hint: str, run: Validation
) -> None:
    """Validate the names of the zones or nodes that should use an endpoint."""
    if not _has_at_most(_MAX_HINTS, field, hints, hints, run):
        return
    seen: set[str] = set()
    for item, node in iter_items(field, hints.get(field)):
        name = as_text(item.get("name"))
        if name in seen:
            run.report("duplicate-item", f"`{field}` contains `{name}` twice; delete one of them", node)
        elif not is_valid(name):
            run.report("invalid-value", f"`{name}` is not a valid name in `{field}`; {hint}", item.get("name") or node)
        seen.add(name)
