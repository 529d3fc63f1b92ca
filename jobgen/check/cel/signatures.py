"""The signatures of the functions that Kubernetes 1.36 adds to CEL, for the type checker."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jobgen.model.lazy_re import lazy_pattern

_COMPARABLE = "int uint double bool duration timestamp string bytes".split()
_NUMBERS = "int uint double".split()
FORMATS = (
    "dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix dns1123SubdomainPrefix "
    "dns1035LabelPrefix labelValue uri uuid byte date datetime"
).split()

# Quantities, versions and similar types have these names in the checker; at run time they are tagged bytes.
_TEXT = """
    charAt: string.(int) string
    indexOf: string.(string) int; string.(string, int) int; list<~T>.(~T) int
    lastIndexOf: string.(string) int; string.(string, int) int; list<~T>.(~T) int
    lowerAscii: string.() string
    upperAscii: string.() string
    replace: string.(string, string) string; string.(string, string, int) string
    split: string.(string) list<string>; string.(string, int) list<string>
    substring: string.(int) string; string.(int, int) string
    trim: string.() string
    format: string.(list<dyn>) string
    strings.quote: (string) string
    join: list<string>.() string; list<string>.(string) string
    unwrapOpt: list<optional_type<~T>>.() list<~T>
    optional.unwrap: (list<optional_type<~T>>) list<~T>
    find: string.(string) string
    findAll: string.(string) list<string>; string.(string, int) list<string>

    quantity: (string) kubernetes.Quantity
    isQuantity: (string) bool
    sign: (kubernetes.Quantity) int
    isInteger: kubernetes.Quantity.() bool
    asInteger: kubernetes.Quantity.() int
    asApproximateFloat: kubernetes.Quantity.() double
    add: kubernetes.Quantity.(kubernetes.Quantity) kubernetes.Quantity; kubernetes.Quantity.(int) kubernetes.Quantity
    sub: kubernetes.Quantity.(kubernetes.Quantity) kubernetes.Quantity; kubernetes.Quantity.(int) kubernetes.Quantity
    compareTo: kubernetes.Quantity.(kubernetes.Quantity) int; kubernetes.Semver.(kubernetes.Semver) int
    isLessThan: kubernetes.Quantity.(kubernetes.Quantity) bool; kubernetes.Semver.(kubernetes.Semver) bool
    isGreaterThan: kubernetes.Quantity.(kubernetes.Quantity) bool; kubernetes.Semver.(kubernetes.Semver) bool

    semver: (string) kubernetes.Semver; (string, bool) kubernetes.Semver
    isSemver: (string) bool; (string, bool) bool
    major: kubernetes.Semver.() int
    minor: kubernetes.Semver.() int
    patch: kubernetes.Semver.() int

    url: (string) kubernetes.URL
    isURL: (string) bool
    getScheme: kubernetes.URL.() string
    getHost: kubernetes.URL.() string
    getHostname: kubernetes.URL.() string
    getPort: kubernetes.URL.() string
    getEscapedPath: kubernetes.URL.() string
    getQuery: kubernetes.URL.() map<string, list<string>>

    ip: (string) net.IP; net.CIDR.() net.IP
    isIP: (string) bool
    ip.isCanonical: (string) bool
    family: net.IP.() int
    isUnspecified: net.IP.() bool
    isLoopback: net.IP.() bool
    isLinkLocalMulticast: net.IP.() bool
    isLinkLocalUnicast: net.IP.() bool
    isGlobalUnicast: net.IP.() bool
    cidr: (string) net.CIDR
    isCIDR: (string) bool
    containsIP: net.CIDR.(string) bool; net.CIDR.(net.IP) bool
    containsCIDR: net.CIDR.(string) bool; net.CIDR.(net.CIDR) bool
    prefixLength: net.CIDR.() int
    masked: net.CIDR.() net.CIDR

    format.named: (string) optional_type<kubernetes.NamedFormat>
    validate: kubernetes.NamedFormat.(string) optional_type<list<string>>

    path: AUTHZ.Authorizer.(string) AUTHZ.PathCheck
    group: AUTHZ.Authorizer.(string) AUTHZ.GroupCheck
    serviceAccount: AUTHZ.Authorizer.(string, string) AUTHZ.Authorizer
    resource: AUTHZ.GroupCheck.(string) AUTHZ.ResourceCheck
    subresource: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
    namespace: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
    name: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
    fieldSelector: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
    labelSelector: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
    check: AUTHZ.PathCheck.(string) AUTHZ.Decision; AUTHZ.ResourceCheck.(string) AUTHZ.Decision
    allowed: AUTHZ.Decision.() bool
    reason: AUTHZ.Decision.() string
    errored: AUTHZ.Decision.() bool
    error: AUTHZ.Decision.() string
""".replace("AUTHZ", "kubernetes.authorization")
_OVERLOAD = lazy_pattern(r"(?:([\w.<>~, ]+)\.)?\(([^)]*)\) (.+)")
TYPE_CONSTANTS = ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL")
# Standard functions that Kubernetes has for more types than the engine: removed there and declared here.
WIDENED = ("string", "_<_", "_<=_", "_>_", "_>=_")


@cache
def declarations() -> tuple[dict[str, Any], ...]:
    """The functions in the format of an environment's configuration."""
    lines = dict(line.strip().split(": ", 1) for line in _TEXT.splitlines() if line.strip())
    lines |= {f"format.{name}": "() kubernetes.NamedFormat" for name in FORMATS}
    lines |= {name: _each(_COMPARABLE, "list<{0}>.() {0}") for name in ("min", "max")}
    lines["isSorted"] = _each(_COMPARABLE, "list<{0}>.() bool")
    lines["sum"] = _each([*_NUMBERS, "duration"], "list<{0}>.() {0}")
    lines["string"] = _each([*_COMPARABLE, "net.IP", "net.CIDR"], "({0}) string")
    numeric = "; ".join(_each(_NUMBERS, f"({{0}}, {other}) bool") for other in _NUMBERS)
    others = _each([kind for kind in _COMPARABLE if kind not in _NUMBERS], "({0}, {0}) bool")
    lines |= dict.fromkeys(WIDENED[1:], f"{numeric}; {others}")
    return tuple({"name": name, "overloads": list_overloads(name, text)} for name, text in lines.items())


def _each(kinds: list[str], form: str) -> str:
    return "; ".join(form.format(kind) for kind in kinds)


def list_overloads(name: str, text: str) -> list[dict[str, Any]]:
    """The overloads of a function, from their signatures, in the format of an environment's configuration."""
    found = []
    for index, overload in enumerate(text.split("; ")):
        match = _OVERLOAD.fullmatch(overload)
        assert match, f"a signature of ours: {overload}"
        target, args, result = match.groups()
        listed = [type_named(arg) for arg in _split(args)]
        head: dict[str, Any] = {"id": f"{name}_{index}", "args": listed, "return": type_named(result)}
        found.append({**head, "target": type_named(target)} if target else head)
    return found


def type_named(text: str) -> dict[str, Any]:
    """A type, such as `map<string, int>`, in the format of an environment's configuration."""
    name, _, inner = text.partition("<")
    if name.startswith("~"):
        return {"type_name": name[1:], "is_type_param": True}
    if not inner:
        return {"type_name": name}
    return {"type_name": name, "params": [type_named(part) for part in _split(inner[:-1])]}


def _split(text: str) -> list[str]:
    """The types in a list of them; a comma inside of `<>` belongs to a type."""
    parts, depth = [""], 0
    for piece in re.split(r"(, |[<>])", text):
        depth += {"<": 1, ">": -1}.get(piece, 0)
        if piece == ", " and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return parts if text else []
