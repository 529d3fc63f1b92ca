"""What Kubernetes takes as a name, a label or a key; a word once judged is remembered."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from jobgen.model.lazy_re import lazy_pattern

DNS_LABEL = "use at most 63 of `a-z`, `0-9` and `-`, with a letter or digit at both ends"
DNS_SUBDOMAIN = "use at most 253 of `a-z`, `0-9`, `-` and `.`, with a letter or digit around each `.` and at both ends"
LABEL_KEY = "use at most 63 letters, digits, `-`, `_` and `.`, letters or digits at both ends, behind a domain and `/`"
LABEL_VALUE = "use at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"
PORT_NAME = "use at most 15 of `a-z`, `0-9` and single `-` inside, with at least one letter"
ENV_NAME = "use printable ASCII without `=`"
CONFIG_KEY = "use at most 253 letters, digits, `-`, `_` and `.`, not beginning with `..`"

_remembered = lru_cache(maxsize=8192)

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LOOSE_LABEL = r"_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?"
_SYSCTL = r"[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?"
_dns_label = lazy_pattern(_LABEL)
_dns_subdomain = lazy_pattern(rf"{_LABEL}(?:\.{_LABEL})*")
_search_domain = lazy_pattern(rf"{_LOOSE_LABEL}(?:\.{_LOOSE_LABEL})*")
_sysctl = lazy_pattern(rf"(?:{_SYSCTL}[./])*{_SYSCTL}")
_label_name = lazy_pattern(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_port_name = lazy_pattern(r"[a-z0-9](?:-?[a-z0-9])*")
_env_name = lazy_pattern(r"[ -<>-~]+")
_config_key = lazy_pattern(r"[-._a-zA-Z0-9]+")
_header = lazy_pattern(r"[-A-Za-z0-9]+")


@_remembered
def is_dns_label(text: str) -> bool:
    """The name of a container, a volume, a namespace."""
    return len(text) <= 63 and _dns_label.fullmatch(text) is not None


@_remembered
def is_dns_subdomain(text: str) -> bool:
    """The name of most objects."""
    return len(text) <= 253 and _dns_subdomain.fullmatch(text) is not None


@_remembered
def is_search_domain(text: str) -> bool:
    """A domain in a DNS search list: underscores and a last dot are fine there."""
    bare = text.removesuffix(".")
    return text == "." or (len(bare) <= 253 and _search_domain.fullmatch(bare) is not None)


@_remembered
def is_label_key(text: str) -> bool:
    """A label's key, and whatever else is a qualified name."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_dns_subdomain(prefix)) and len(name) <= 63 and _label_name.fullmatch(name) is not None


@_remembered
def is_annotation_key(text: str) -> bool:
    """An annotation's key: like a label's, but capitals are fine everywhere."""
    return is_label_key(text.lower())


@_remembered
def is_label_value(text: str) -> bool:
    """A label's value."""
    return not text or (len(text) <= 63 and _label_name.fullmatch(text) is not None)


@_remembered
def is_port_name(text: str) -> bool:
    """The name of a port, as IANA spells services."""
    return len(text) <= 15 and _port_name.fullmatch(text) is not None and not text.replace("-", "").isdigit()


@_remembered
def is_env_name(text: str) -> bool:
    """The name of an environment variable, by the relaxed rule of Kubernetes 1.34 and later."""
    return _env_name.fullmatch(text) is not None


@_remembered
def is_config_key(text: str) -> bool:
    """A key in a ConfigMap or a Secret."""
    return len(text) <= 253 and text != "." and not text.startswith("..") and _config_key.fullmatch(text) is not None


def is_referred_subdomain(text: str) -> bool:
    """A name in `envFrom`, where a last `-` is let through if what stands two before it is fine."""
    return is_dns_subdomain(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def is_header(text: str) -> bool:
    """The name of an HTTP header."""
    return _header.fullmatch(text) is not None


def is_sysctl(text: str) -> bool:
    """The name of a kernel parameter, with `.` or `/` between its parts."""
    return len(text) <= 253 and _sysctl.fullmatch(text) is not None


def is_ip(text: str) -> bool:
    """An IP address, without a zone, leading zeros, or IPv4 inside IPv6."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not isinstance(address, IPv6Address) or (address.scope_id is None and address.ipv4_mapped is None)


def climbs(path: str) -> bool:
    """Whether a path has a `..` in it."""
    return ".." in path and ".." in path.split("/")
