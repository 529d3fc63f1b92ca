"""Every function that is implemented in Python, by its name in CEL."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from jobgen.check.cel.values import tag_of


def _late(module: str, name: str) -> Callable[..., Any]:
    """A function whose module is imported on its first call: most runs call few of them."""
    function: Callable[..., Any] | None = None

    def call(*values: Any) -> Any:
        nonlocal function
        if function is None:
            function = getattr(import_module(f"jobgen.check.cel.{module}"), name)
        return function(*values)

    return call


def _compare(one: object, other: object) -> int:
    from jobgen.check.cel import quantities, versions

    return versions.compare(one, other) if tag_of(one) == versions.TAG else quantities.compare(one, other)


TABLE: dict[str, Callable[..., Any]] = {
    "quantity": _late("quantities", "quantity"),
    "isQuantity": _late("quantities", "is_quantity"),
    "sign": _late("quantities", "sign"),
    "isInteger": _late("quantities", "is_integer"),
    "asInteger": _late("quantities", "as_integer"),
    "asApproximateFloat": _late("quantities", "as_float"),
    "add": _late("quantities", "add"),
    "sub": _late("quantities", "sub"),
    "compareTo": _compare,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "isSorted": _late("lists", "is_sorted"),
    "sum": _late("lists", "total"),
    "min": _late("lists", "least"),
    "max": _late("lists", "most"),
    "getMilliseconds": _late("lists", "count_milliseconds"),
    "min@text": _late("lists", "least_as_text"),
    "max@text": _late("lists", "most_as_text"),
    "sum@text": _late("lists", "total_as_text"),
    "@sameShape": _late("shapes", "same"),
    "@joinShape": _late("shapes", "join"),
    "indexOf": _late("lists", "index_of"),
    "lastIndexOf": _late("lists", "last_index_of"),
    "lists.range": _late("lists", "count_up"),
    "cel.@mapInsert": _late("lists", "insert"),
    "matches": _late("patterns", "matches"),
    "find": _late("patterns", "find"),
    "findAll": _late("patterns", "find_all"),
    "url": _late("urls", "url"),
    "isURL": _late("urls", "is_url"),
    "getScheme": _late("urls", "scheme"),
    "getHost": _late("urls", "host"),
    "getHostname": _late("urls", "hostname"),
    "getPort": _late("urls", "port"),
    "getEscapedPath": _late("urls", "path"),
    "getQuery": _late("urls", "query"),
    "ip": _late("networks", "ip"),
    "isIP": _late("networks", "is_ip"),
    "ip.isCanonical": _late("networks", "is_canonical"),
    "family": _late("networks", "family"),
    "isUnspecified": _late("networks", "is_unspecified"),
    "isLoopback": _late("networks", "is_loopback"),
    "isLinkLocalMulticast": _late("networks", "is_link_local_multicast"),
    "isLinkLocalUnicast": _late("networks", "is_link_local_unicast"),
    "isGlobalUnicast": _late("networks", "is_global_unicast"),
    "cidr": _late("networks", "cidr"),
    "isCIDR": _late("networks", "is_cidr"),
    "containsIP": _late("networks", "contains_ip"),
    "containsCIDR": _late("networks", "contains_cidr"),
    "prefixLength": _late("networks", "prefix_length"),
    "masked": _late("networks", "masked"),
    "string": _late("networks", "shown"),
    "semver": _late("versions", "semver"),
    "isSemver": _late("versions", "is_semver"),
    "major": _late("versions", "major"),
    "minor": _late("versions", "minor"),
    "patch": _late("versions", "patch"),
    "jsonpatch.escapeKey": _late("text", "escape_key"),
    "substring": _late("text", "substring"),
    "@inOrder": _late("lists", "in_order"),
    "@withType": _late("text", "with_type"),
    "format": _late("text_format", "format_text"),
    "format.named": _late("formats", "named"),
    "validate": _late("formats", "validate"),
    "path": _late("permissions", "ask_path"),
    "group": _late("permissions", "ask_group"),
    "serviceAccount": _late("permissions", "ask_account"),
    "resource": _late("permissions", "ask_resource"),
    **dict.fromkeys("subresource namespace name fieldSelector labelSelector".split(), _late("permissions", "narrow")),
    "check": _late("permissions", "check"),
    "allowed": _late("permissions", "is_allowed"),
    "errored": _late("permissions", "has_failed"),
    **dict.fromkeys(("reason", "error"), _late("permissions", "explain")),
}
