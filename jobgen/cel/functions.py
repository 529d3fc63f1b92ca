"""Every function that is run in Python, by the name that it has in CEL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobgen.cel import formats, lists, networks, patterns, quantities, urls, versions
from jobgen.cel.values import tag_of


def _compare(one: object, other: object) -> int:
    return versions.compare(one, other) if tag_of(one) == versions.TAG else quantities.compare(one, other)


TABLE: dict[str, Callable[..., Any]] = {
    "quantity": quantities.quantity,
    "isQuantity": quantities.is_quantity,
    "sign": quantities.sign,
    "isInteger": quantities.is_integer,
    "asInteger": quantities.as_integer,
    "asApproximateFloat": quantities.as_float,
    "add": quantities.add,
    "sub": quantities.sub,
    "compareTo": _compare,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "isSorted": lists.is_sorted,
    "sum": lists.total,
    "min": lists.least,
    "max": lists.most,
    "indexOf": lists.index_of,
    "lastIndexOf": lists.last_index_of,
    "lists.range": lists.count_up,
    "cel.@mapInsert": lists.insert,
    "matches": patterns.matches,
    "find": patterns.find,
    "findAll": patterns.find_all,
    "url": urls.url,
    "isURL": urls.is_url,
    "getScheme": urls.scheme,
    "getHost": urls.host,
    "getHostname": urls.hostname,
    "getPort": urls.port,
    "getEscapedPath": urls.path,
    "getQuery": urls.query,
    "ip": networks.ip,
    "isIP": networks.is_ip,
    "ip.isCanonical": networks.is_canonical,
    "family": networks.family,
    "isUnspecified": networks.is_unspecified,
    "isLoopback": networks.is_loopback,
    "isLinkLocalMulticast": networks.is_link_local_multicast,
    "isLinkLocalUnicast": networks.is_link_local_unicast,
    "isGlobalUnicast": networks.is_global_unicast,
    "cidr": networks.cidr,
    "isCIDR": networks.is_cidr,
    "containsIP": networks.contains_ip,
    "containsCIDR": networks.contains_cidr,
    "prefixLength": networks.prefix_length,
    "masked": networks.masked,
    "string": networks.shown,
    "semver": versions.semver,
    "isSemver": versions.is_semver,
    "major": versions.major,
    "minor": versions.minor,
    "patch": versions.patch,
    "format.named": formats.named,
    "validate": formats.validate,
}
