"""IP addresses and networks in CEL, as Go's `net/netip` reads them."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes

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


TAG = "url"
_SCHEME = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPE = lazy_pattern(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED_PATH = lazy_pattern(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]%/]*")
_USER = lazy_pattern(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
# A `%` begins an escape of a byte beyond ASCII.
_HOST = lazy_pattern(
    r"(?:[A-Za-z0-9!$&'()*+,;=<>\"\-_.~]|[^\x00-\x7f]|%[89A-Fa-f][0-9A-Fa-f])*(?::[0-9]*)?"
    r"|\[[0-9A-Fa-f:.]+(?:%25[^\]/?#@\s]*)?\](?::[0-9]*)?"
)


class Url(NamedTuple):
    """The parts of a URL that CEL can read."""

    scheme: str
    host: str
    path: str
    query: str


def url(text: object) -> bytes:
    """`url(string)`."""
    (found,) = strings(text)
    parse(found)
    return tagged(TAG, found)


def is_url(text: object) -> bool:
    """`isURL(string)`."""
    return not fault(*strings(text))


def fault(text: str) -> str:
    """Why a text is not a URL; empty if it is."""
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return ""


def scheme(value: object) -> str:
    """`url.getScheme()`."""
    return parse(untagged(value, TAG)).scheme


def host(value: object) -> str:
    """`url.getHost()`: with its port."""
    return parse(untagged(value, TAG)).host


def hostname(value: object) -> str:
    """`url.getHostname()`: without port and brackets."""
    found = host(value)
    if found.startswith("["):
        return found[1:].partition("]")[0]
    return found.rpartition(":")[0] if ":" in found else found


def port(value: object) -> str:
    """`url.getPort()`."""
    found = host(value)
    return found.rpartition(":")[2] if ":" in found.rpartition("]")[2] else ""


def path(value: object) -> str:
    """`url.getEscapedPath()`."""
    return parse(untagged(value, TAG)).path


def query(value: object) -> dict[str, list[str]]:
    """`url.getQuery()`."""
    found: dict[str, list[str]] = {}
    for key, item in parse_qsl(parse(untagged(value, TAG)).query, keep_blank_values=True):
        found.setdefault(key, []).append(item)
    return found


@lru_cache(maxsize=1024)
def parse(text: str) -> Url:
    """Parse a URL as Kubernetes does: one that Go accepts in a request; raise for others."""
    _parse(text, is_request=True)
    body, _, fragment = text.partition("#")
    if _ESCAPE.search(fragment):
        raise ValueError(f"`{text}` is not a URL: a `%` in it begins no escape")
    return _parse(body, is_request=False)


def request_fault(text: str) -> str:
    """Why a text is not the URL of a request, as in the format `uri`; empty if it is."""
    try:
        _parse(text, is_request=True)
    except ValueError as error:
        return str(error)
    return ""


def _parse(text: str, *, is_request: bool) -> Url:
    if not text or any(char < " " or char == "\x7f" for char in text):
        raise ValueError(f"`{text}` is not a URL: it is empty or has control characters in it")
    if text.startswith(":"):
        raise ValueError(f"`{text}` is not a URL: it has no scheme")
    if text == "*":
        return Url("", "", "*", "")
    match = _SCHEME.match(text)
    scheme, rest = (match[1].lower(), text[match.end() :]) if match else ("", text)
    rest, _, asked = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme:
            raise ValueError(f"`{text}` is not an absolute URL")
        # A path without a slash is opaque.
        return Url(scheme, "", "", asked)
    may_have_host = scheme or (not is_request and not rest.startswith("///"))
    where, path = _authority(rest) if may_have_host and rest.startswith("//") else ("", rest)
    if _ESCAPE.search(path):
        raise ValueError(f"`{text}` is not a URL: a `%` in it begins no escape")
    return Url(scheme, where, _escaped_path(path), asked)


def _authority(rest: str) -> tuple[str, str]:
    where, slash, path = rest[2:].partition("/")
    user, _, found = where.rpartition("@")
    if not _USER.fullmatch(user) or _ESCAPE.search(user):
        raise ValueError(f"`{user}` is not the user of a URL")
    if not (_HOST.fullmatch(found) and (not found.startswith("[") or _is_ipv6(found))):
        raise ValueError(f"`{found}` is not the host of a URL")
    return unquote(found), slash + path


def _is_ipv6(host: str) -> bool:
    """Return True if the part of a host in brackets is an IPv6 address, with or without a zone."""
    address, percent, zone = host[1:].rpartition("]")[0].partition("%25")
    try:
        IPv6Address(address)
    except ValueError:
        return False
    return bool(zone) or not percent


def _escaped_path(path: str) -> str:
    """The path as it is if it is escaped correctly, else escaped."""
    if _ESCAPED_PATH.fullmatch(path):
        return path
    return quote(unquote_to_bytes(path), safe="$&+,/:;=@~")
