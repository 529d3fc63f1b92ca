"""IP addresses, networks and URLs in CEL, as Go's `net/netip` reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes

from jobgen.check.cel.values import NO_OVERLOAD, strings, tag_of, tagged, untagged
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_IP, _CIDR = "ip", "cidr"
_BITS = lazy_pattern(r"0|[1-9][0-9]{0,2}")
_LINK_LOCAL_GROUP = IPv4Network("224.0.0.0/24")


def _ip(value: object) -> bytes:
    """`ip(string)`, and `cidr.ip()`."""
    if tag_of(value) == _CIDR:
        return tagged(_IP, untagged(value, _CIDR).partition("/")[0])
    return tagged(_IP, str(_parsed(*strings(value))))


def _is_link_local_multicast(value: object) -> bool:
    address = _address(value)
    if isinstance(address, IPv4Address):
        return address in _LINK_LOCAL_GROUP
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 2


def _is_global_unicast(value: object) -> bool:
    found = _address(value)
    local = found.is_unspecified or found.is_loopback or found.is_multicast or found.is_link_local
    return not local and str(found) != "255.255.255.255"


def _cidr(text: object) -> bytes:
    return tagged(_CIDR, _prefix(*strings(text)))


def _contains_cidr(network: object, other: object) -> bool:
    ours, theirs = _network(network), _network(_cidr(other) if type(other) is str else other)
    return ours.version == theirs.version and ours.overlaps(theirs) and ours.prefixlen <= theirs.prefixlen


def _shown(value: object) -> str:
    if tag_of(value) not in (_IP, _CIDR):
        raise TypeError(NO_OVERLOAD)
    return untagged(value, tag_of(value))


def _find_fault(parse: Callable[[str], object], text: str) -> str:
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return ""


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
        raise ValueError(f"`{text}` is not a network: `{bits}` is not a prefix length")
    return f"{found}/{bits}"


def _address(value: object) -> IPv4Address | IPv6Address:
    return _parsed(untagged(value, _IP))


def _network(value: object) -> IPv4Network | IPv6Network:
    return ip_network(untagged(value, _CIDR), strict=False)


_URL = "url"
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


def fault(text: str) -> str:
    """Why a text is not a URL; empty if it is."""
    return _find_fault(parse, text)


def _url(text: object) -> bytes:
    (found,) = strings(text)
    parse(found)
    return tagged(_URL, found)


def _read_url(value: object) -> Url:
    return parse(untagged(value, _URL))


def _hostname(value: object) -> str:
    """`url.getHostname()`: without port and brackets."""
    found = _read_url(value).host
    if found.startswith("["):
        return found[1:].partition("]")[0]
    return found.rpartition(":")[0] if ":" in found else found


def _port(value: object) -> str:
    found = _read_url(value).host
    return found.rpartition(":")[2] if ":" in found.rpartition("]")[2] else ""


def _query(value: object) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, item in parse_qsl(_read_url(value).query, keep_blank_values=True):
        found.setdefault(key, []).append(item)
    return found


@lru_cache(maxsize=1024)
def parse(text: str) -> Url:
    """Parse a URL as Kubernetes does: one that Go accepts in a request; raise for others."""
    _parse(text, is_request=True)
    body, _, fragment = text.partition("#")
    if _ESCAPE.search(fragment):
        raise ValueError(f"`{text}` is not a URL: a `%` in it does not start an escape")
    return _parse(body, is_request=False)


def request_fault(text: str) -> str:
    """Why a text is not the URL of a request, as in the format `uri`; empty if it is."""
    return _find_fault(lambda asked: _parse(asked, is_request=True), text)


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
        raise ValueError(f"`{text}` is not a URL: a `%` in it does not start an escape")
    if not _ESCAPED_PATH.fullmatch(path):
        path = quote(unquote_to_bytes(path), safe="$&+,/:;=@~")
    return Url(scheme, where, path, asked)


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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ip": _ip,
    "isIP": lambda text: not _find_fault(_parsed, *strings(text)),
    "ip.isCanonical": lambda text: str(_parsed(*strings(text))) == text,
    "family": lambda value: _address(value).version,
    "isUnspecified": lambda value: _address(value).is_unspecified,
    "isLoopback": lambda value: _address(value).is_loopback,
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": lambda value: _address(value).is_link_local,
    "isGlobalUnicast": _is_global_unicast,
    "cidr": _cidr,
    "isCIDR": lambda text: not _find_fault(_prefix, *strings(text)),
    "containsIP": lambda network, other: _address(_ip(other) if type(other) is str else other) in _network(network),
    "containsCIDR": _contains_cidr,
    "prefixLength": lambda network: _network(network).prefixlen,
    "masked": lambda network: tagged(_CIDR, str(_network(network))),
    "string": _shown,
    "url": _url,
    "isURL": lambda text: not fault(*strings(text)),
    "getScheme": lambda value: _read_url(value).scheme,
    "getHost": lambda value: _read_url(value).host,
    "getHostname": _hostname,
    "getPort": _port,
    "getEscapedPath": lambda value: _read_url(value).path,
    "getQuery": _query,
}
