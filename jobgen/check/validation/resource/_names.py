"""Validate the names of drivers, attributes, pools and requests, and the sizes of lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobgen.check.admission.fields import Validation, find_key, iter_items, require_fields, validate_string
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
from jobgen.k8s.nodes import as_list, as_text
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern

_MAX_DRIVER_BYTES = 63
_MAX_ID_BYTES = 32
QUALIFIED_NAME = "write a domain and a name of at most 32 letters, digits and `_`, such as `gpu.example.com/model`"
POOL_NAME = "write DNS subdomains with `/` between them"
_identifier = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")

validate_device_name = validate_string("invalid-value", "name", is_dns_label, DNS_LABEL, allow_empty=False)
validate_class_name = validate_string("invalid-object-name", "name of a DeviceClass", is_dns_subdomain, DNS_SUBDOMAIN)
validate_node_name = validate_string("invalid-object-name", "node name", is_dns_subdomain, DNS_SUBDOMAIN)
validate_taint_key = validate_string("invalid-label", "label key", is_label_key, LABEL_KEY)
validate_taint_value = validate_string("invalid-label", "label value", is_label_value, LABEL_VALUE)


def require_name(what: str, owner: Mapping[str, Node], field: str, node: Node, run: Validation) -> None:
    """Validate a required field that is a DNS label."""
    require_fields(what, owner, (field,), node, run)
    if as_text(owner.get(field)):
        validate_device_name(field, owner[field], owner, run)


def is_driver_name(text: str) -> bool:
    """Return whether a text can be the name of a driver, which may have uppercase letters."""
    return len(text.encode(errors="replace")) <= _MAX_DRIVER_BYTES and is_dns_subdomain(text.lower())


def require_driver(what: str, owner: Mapping[str, Node], node: Node, run: Validation) -> None:
    """Validate the required field `driver`."""
    require_fields(what, owner, ("driver",), node, run)
    found = as_text(owner.get("driver"))
    if found and not is_driver_name(found):
        message = f"`{found}` is not a valid driver name of at most {_MAX_DRIVER_BYTES} characters; {DNS_SUBDOMAIN}"
        run.report("invalid-value", message, owner["driver"])


def is_qualified_name(text: str, *, needs_domain: bool = False) -> bool:
    """Return whether a text can be the name of an attribute or a capacity: an identifier after an optional domain."""
    parts = text.split("/")
    if len(parts) > 2:
        # The API server does not look at such names.
        return True
    if len(parts) == 2 and not is_driver_name(parts[0]):
        return False
    is_identifier = len(parts[-1]) <= _MAX_ID_BYTES and _identifier.fullmatch(parts[-1]) is not None
    return is_identifier and (len(parts) == 2 or not needs_domain)


def is_pool_name(text: str) -> bool:
    """Return whether a text can be the name of a pool: DNS subdomains, with `/` between them."""
    return len(text) <= 253 and all(map(is_dns_subdomain, text.split("/")))


def iter_limited(
    owner: Mapping[str, Node], field: str, most: int, run: Validation
) -> Iterator[tuple[Mapping[str, Node], Node]]:
    """Yield the items of a list; the API server does not validate the items of a list that is too long."""
    if has_size(owner, field, most, run):
        yield from iter_items(find_key(owner, field, field), owner.get(field))


def has_size(owner: Mapping[str, Node], field: str, most: int, run: Validation) -> bool:
    """Return whether a list has at most this many items, and report one that has more."""
    count = len(as_list(owner.get(field)))
    if count > most:
        message = f"`{field}` has `{count}` items; it can have at most {most}"
        run.report("out-of-range", message, find_key(owner, field, owner))
    return count <= most


def report_duplicate(name: str, field: str, node: Node, run: Validation) -> None:
    """Report the second item of a list that has this name."""
    run.report("duplicate-item", f"two items of `{field}` are `{name}`; rename or delete one of them", node)
