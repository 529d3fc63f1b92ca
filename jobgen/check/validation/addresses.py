"""Validate IP addresses and CIDRs as the API server reads them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from jobgen.check.admission.names import is_ip_address
from jobgen.k8s.kinds import Release
from jobgen.model.lazy_re import lazy_pattern

Address: TypeAlias = "IPv4Address | IPv6Address"
Network: TypeAlias = "IPv4Network | IPv6Network"

_STRICT_SINCE: Release = (1, 36)
_prefix_length = lazy_pattern(r"0|[1-9][0-9]{0,2}")
_leading_zeros = lazy_pattern(r"(?<![0-9.])0+(?=[0-9])|(?<=\.)0+(?=[0-9])")


def parse_cidr(text: str) -> Network | None:
    """Return the network of a CIDR; leading zeros and bits after the prefix are ignored."""
    address, slash, length = text.rpartition("/")
    length = length.lstrip("0") or "0"
    if not slash or not _prefix_length.fullmatch(length) or not is_sloppy_address(address):
        return None
    try:
        return ip_network(f"{_remove_zeros(address)}/{length}", strict=False)
    except ValueError:
        return None


def is_sloppy_address(text: str) -> bool:
    """Return True if a text is an IP address, apart from leading zeros."""
    try:
        address = ip_address(_remove_zeros(text))
    except ValueError:
        return False
    return getattr(address, "scope_id", None) is None


def is_canonical_address(text: str) -> bool:
    """Return True if a text is an IP address in its canonical form."""
    return is_ip_address(text) and str(ip_address(text)) == text


def parse_address(text: str) -> Address | None:
    """Return an IP address, without its leading zeros; IPv4 inside IPv6 is IPv4, as it is to Kubernetes."""
    if not is_sloppy_address(text):
        return None
    address = ip_address(_remove_zeros(text))
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def describe_address_fault(text: str, release: Release) -> str:
    """Return what is wrong with an IP address, or an empty string."""
    address = parse_address(text)
    if address is None and text.lower() == "none":
        return f"`{text}` is not a valid IP address; write `None` for a headless Service"
    if address is None:
        return f"`{text}` is not a valid IP address; write it like `10.9.8.7` or `2001:db8::1`"
    if release >= _STRICT_SINCE and not is_ip_address(text):
        return f"`{text}` has leading zeros or is an IPv4 address inside IPv6; write `{address}`"
    return ""


def describe_special_address(address: Address) -> str:
    """Return why an address cannot be that of an endpoint, or an empty string."""
    if isinstance(address, IPv4Address):
        is_link_local_multicast = address in IPv4Network("224.0.0.0/24")
    else:
        is_link_local_multicast = address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02
    if address.is_unspecified:
        kind = "the unspecified address"
    elif address.is_loopback:
        kind = "a loopback address"
    elif address.is_link_local:
        kind = "a link-local address"
    elif is_link_local_multicast:
        kind = "a link-local multicast address"
    else:
        return ""
    return f"`{address}` is {kind}, which is not valid here; use another address"


def describe_cidr_fault(text: str, release: Release, *, canonical: bool = False) -> str:
    """Return what is wrong with a CIDR, or an empty string."""
    network = parse_cidr(text)
    if network is None:
        return f"`{text}` is not a valid CIDR; write an address and a prefix length, such as `10.9.8.0/24`"
    if release < _STRICT_SINCE and not canonical:
        return ""
    address, _, length = text.rpartition("/")
    if not _prefix_length.fullmatch(length) or not is_ip_address(address):
        return f"`{text}` has leading zeros or an IPv4 address inside IPv6; write `{network}`"
    if ip_address(address) != network.network_address:
        return f"`{text}` has bits set after the prefix; write `{network}`"
    if canonical and str(network) != text:
        return f"`{text}` is not in canonical form; write `{network}`"
    return ""


def _remove_zeros(address: str) -> str:
    return _leading_zeros.sub("", address) if ":" not in address else address
