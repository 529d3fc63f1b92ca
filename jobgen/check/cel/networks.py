"""IP addresses and networks in CEL, as Go's `net/netip` reads them."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from jobgen.check.cel.values import NO_OVERLOAD, strings, tag_of, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern

IP, CIDR = "ip", "cidr"
_BITS = lazy_pattern(r"0|[1-9][0-9]{0,2}")
_LINK_LOCAL_GROUP = IPv4Network("224.0.0.0/24")


def ip(value: object) -> bytes:
    """`ip(string)`, and `cidr.ip()`."""
    if tag_of(value) == CIDR:
        return tagged(IP, untagged(value, CIDR).partition("/")[0])
    return tagged(IP, str(_parsed(*strings(value))))


def is_ip(text: object) -> bool:
    """`isIP(string)`."""
    return _holds(_parsed, *strings(text))


def is_canonical(text: object) -> bool:
    """`ip.isCanonical(string)`."""
    return str(_parsed(*strings(text))) == text


def family(value: object) -> int:
    """`ip.family()`."""
    return _address(value).version


def is_unspecified(value: object) -> bool:
    """`ip.isUnspecified()`."""
    return _address(value).is_unspecified


def is_loopback(value: object) -> bool:
    """`ip.isLoopback()`."""
    return _address(value).is_loopback


def is_link_local_multicast(value: object) -> bool:
    """`ip.isLinkLocalMulticast()`."""
    address = _address(value)
    if isinstance(address, IPv4Address):
        return address in _LINK_LOCAL_GROUP
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 2


def is_link_local_unicast(value: object) -> bool:
    """`ip.isLinkLocalUnicast()`."""
    return _address(value).is_link_local


def is_global_unicast(value: object) -> bool:
    """`ip.isGlobalUnicast()`."""
    found = _address(value)
    local = found.is_unspecified or found.is_loopback or found.is_multicast or found.is_link_local
    return not local and str(found) != "255.255.255.255"


def cidr(text: object) -> bytes:
    """`cidr(string)`."""
    return tagged(CIDR, _prefix(*strings(text)))


def is_cidr(text: object) -> bool:
    """`isCIDR(string)`."""
    return _holds(_prefix, *strings(text))


def contains_ip(network: object, other: object) -> bool:
    """`cidr.containsIP(string|ip)`."""
    address = _address(ip(other) if type(other) is str else other)
    return address in _network(network)


def contains_cidr(network: object, other: object) -> bool:
    """`cidr.containsCIDR(string|cidr)`."""
    ours, theirs = _network(network), _network(cidr(other) if type(other) is str else other)
    return ours.version == theirs.version and ours.overlaps(theirs) and ours.prefixlen <= theirs.prefixlen


def prefix_length(network: object) -> int:
    """`cidr.prefixLength()`."""
    return _network(network).prefixlen


def masked(network: object) -> bytes:
    """`cidr.masked()`."""
    return tagged(CIDR, str(_network(network)))


def shown(value: object) -> str:
    """`string(ip)` and `string(cidr)`."""
    if tag_of(value) not in (IP, CIDR):
        raise TypeError(NO_OVERLOAD)
    return untagged(value, tag_of(value))


def _holds(parse: object, text: str) -> bool:
    try:
        parse(text)  # type: ignore[operator]
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def _parsed(text: str) -> IPv4Address | IPv6Address:
    found = ip_address(text) if text.isascii() else None
    if found is None or "%" in text:
        raise ValueError(f"`{text}` is not an IP address without a zone")
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        raise ValueError(f"IPv4-mapped IPv6 address `{text}` is not allowed")
    return found


def _prefix(text: str) -> str:
    """The network as Go prints it; bits beyond its mask are kept."""
    address, slash, bits = text.partition("/")
    found = _parsed(address)
    if not slash or not _BITS.fullmatch(bits) or int(bits) > found.max_prefixlen:
        raise ValueError(f"`{text}` is not a network: `{bits}` is no prefix length")
    return f"{found}/{bits}"


def _address(value: object) -> IPv4Address | IPv6Address:
    return _parsed(untagged(value, IP))


def _network(value: object) -> IPv4Network | IPv6Network:
    return ip_network(untagged(value, CIDR), strict=False)
