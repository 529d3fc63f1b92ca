"""The formats of names, labels and keys in Kubernetes, with hints for messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

_ENDS = "starting and ending with a letter or digit"
DNS_LABEL = f"use at most 63 characters from `a-z`, `0-9` and `-`, {_ENDS}"
DNS_LABEL_1035 = (
    "use at most 63 characters from `a-z`, `0-9` and `-`, starting with a letter and ending with a letter or digit"
)
PATH_SEGMENT = "use any characters except `/` and `%`, but not `.` or `..`"
DNS_SUBDOMAIN = (
    "use at most 253 characters from `a-z`, `0-9`, `-` and `.`, with a letter or digit around each `.` and at both ends"
)
LABEL_KEY = f"use at most 63 letters, digits, `-`, `_` and `.`, {_ENDS}, after an optional domain and `/`"
LABEL_VALUE = f"use at most 63 letters, digits, `-`, `_` and `.`, {_ENDS}"
PORT_NAME = "use at most 15 characters from `a-z`, `0-9` and single `-` inside, with at least one letter"
ENV_NAME = "use printable ASCII characters except `=`"
STRICT_ENV_NAME = "use letters, digits, `_`, `-` and `.`, not starting with a digit or `..`"
CONFIG_KEY = (
    "use at most 253 letters, digits, `-`, `_` and `.`, but neither a single dot nor a name that starts with `..`"
)

MAX_SUBDOMAIN = 253
"""The maximum length of the names of most objects."""
_cache_result = lru_cache(maxsize=8192)

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SEARCH_LABEL = r"_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?"
_search_domain = lazy_pattern(rf"{_SEARCH_LABEL}(?:\.{_SEARCH_LABEL})*")
_label_name = lazy_pattern(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def _matcher(pattern: str, longest: int = 1 << 30) -> Callable[[str], bool]:
    """Return a cached function that says whether a text matches a pattern as a whole and is not too long."""
    compiled = lazy_pattern(pattern)
    return _cache_result(lambda text: len(text) <= longest and compiled.fullmatch(text) is not None)


is_dns_label = _matcher(_LABEL, 63)
"""True if a text can be the name of a container, a volume or a namespace."""
is_dns_subdomain = _matcher(rf"{_LABEL}(?:\.{_LABEL})*", MAX_SUBDOMAIN)
"""True if a text can be the name of an object of most kinds."""
is_path_segment = _matcher(r"(?!\.\.?\Z)[^/%]*")
"""True if a text can be the name of a role, which may have any character that a path segment may have."""
is_env_name = _matcher(r"[ -<>-~]+")
"""True if a text can be the name of a variable, by the relaxed rule of Kubernetes 1.32 and later."""
is_config_key = _matcher(r"(?!\.\.|\.\Z)[-._a-zA-Z0-9]+", 253)
"""True if a text can be a key of a ConfigMap or a Secret."""
_is_service_name = _matcher(r"[a-z0-9](?:-?[a-z0-9])*", 15)
_is_http_path = _matcher(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
is_header_name = _matcher(r"[-A-Za-z0-9]+")
"""True if a text can be the name of an HTTP header."""
is_sysctl_name = _matcher(r"(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?", 253)
"""True if a text can be the name of a kernel parameter, with `.` or `/` between its parts."""


@_cache_result
def is_dns_label_1035(text: str) -> bool:
    """Return True if a text can be the name of a Service before Kubernetes 1.34: a label that starts with a letter."""
    return is_dns_label(text) and not text[0].isdigit()


@_cache_result
def is_search_domain(text: str) -> bool:
    """Return True if a text can be in a DNS search list, where underscores and a trailing dot are valid."""
    domain = text.removesuffix(".")
    return text == "." or (len(domain) <= 253 and _search_domain.fullmatch(domain) is not None)


@_cache_result
def is_label_key(text: str) -> bool:
    """Return True if a text can be the key of a label, which is a qualified name."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_dns_subdomain(prefix)) and len(name) <= 63 and _label_name.fullmatch(name) is not None


@_cache_result
def is_annotation_key(text: str) -> bool:
    """Return True if a text can be the key of an annotation: a label key, with uppercase letters anywhere."""
    return is_label_key(text.lower())


@_cache_result
def is_label_value(text: str) -> bool:
    """Return True if a text can be the value of a label."""
    return not text or (len(text) <= 63 and _label_name.fullmatch(text) is not None)


def is_port_name(text: str) -> bool:
    """Return True if a text can be the name of a port, which is an IANA service name."""
    return _is_service_name(text) and not text.replace("-", "").isdigit()


@_cache_result
def is_strict_env_name(text: str) -> bool:
    """Return True if a text can be the name of a variable before Kubernetes 1.32."""
    return is_config_key(text) and not text[0].isdigit()


def mask_trailing_dash(text: str) -> str:
    """Replace the last two bytes by `a` if the last is a dash, as Kubernetes does before it validates a prefix."""
    if len(text) < 2 or not text.endswith("-"):
        return text
    return text.encode(errors="replace")[:-2].decode(errors="replace") + "a"


def is_ip_address(text: str) -> bool:
    """Return True if a text is an IP address, without a zone, leading zeros, or IPv4 inside IPv6."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not isinstance(address, IPv6Address) or (address.scope_id is None and address.ipv4_mapped is None)


def is_driver_name(text: str) -> bool:
    """Return True if a text can be the name of a driver of volumes or devices, which may have uppercase letters."""
    return len(text.encode(errors="replace")) <= 63 and is_dns_subdomain(text.lower())


def has_backsteps(path: str) -> bool:
    """Return True if a path contains a `..` step."""
    return ".." in path and ".." in path.split("/")


def generate_name(prefix: str) -> str:
    """Return a name as the API server generates it: the prefix, which it may cut, and five characters."""
    return f"{prefix[:58]}aaaaa"


def is_domain_prefixed_path(text: str) -> bool:
    """Return True if a text is a domain and a path, such as `example.com/controller`."""
    domain, _, path = text.partition("/")
    return is_dns_subdomain(domain) and _is_http_path(path)


class NameFormat(NamedTuple):
    """The format of the names of a kind's objects, with a hint for messages."""

    is_valid: Callable[[str], bool]
    hint: str
    is_prefix: Callable[[str], bool] | None = None
    """A test of `generateName`, where it differs from that of a name with its last dash replaced."""

    names_only: bool = False
    """True if the API server validates the name, which may be generated, and not `generateName`."""

    def accepts_prefix(self, text: str, *, named: bool = False) -> bool:
        """Return True if a text can be `generateName`, and without a name, whether the generated name is valid."""
        is_prefix = self.is_prefix or (lambda prefix: self.is_valid(mask_trailing_dash(prefix)))
        is_segment = "/" not in text and "%" not in text
        return (is_segment if self.names_only else is_prefix(text)) and (named or self.is_valid(generate_name(text)))


SUBDOMAIN_NAME = NameFormat(is_dns_subdomain, DNS_SUBDOMAIN)
GENERATED_NAME = NameFormat(is_dns_subdomain, DNS_SUBDOMAIN, names_only=True)
LABEL_NAME = NameFormat(is_dns_label, DNS_LABEL)
LABEL_1035_NAME = NameFormat(is_dns_label_1035, DNS_LABEL_1035)
PATH_SEGMENT_NAME = NameFormat(is_path_segment, PATH_SEGMENT, lambda text: is_path_segment(f"{text}a"))
