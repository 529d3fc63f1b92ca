"""Validate IP addresses and CIDRs as the API server reads them."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from jobgen.check.admission.names import is_ip_address
from jobgen.k8s.releases import Release
from jobgen.model.lazy_re import lazy_pattern

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
    """Return whether a text is an IP address if leading zeros are ignored."""
    try:
        address = ip_address(_remove_zeros(text))
    except ValueError:
        return False
    return getattr(address, "scope_id", None) is None


def is_canonical_address(text: str) -> bool:
    """Return whether a text is an IP address in its canonical form."""
    return is_ip_address(text) and str(ip_address(text)) == text


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
