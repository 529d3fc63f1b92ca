"""The functions of CEL in Kubernetes, by library and release, for the type checker."""

from __future__ import annotations

import re
from functools import lru_cache

from jobgen.k8s.kinds import NEWEST_RELEASE, Release, format_release
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

# In the order of Go: the first overload that fits decides what the items of `[]` are.
_COMPARABLE = "int uint double bool duration timestamp string bytes".split()
_NUMBERS = "int uint double".split()
FORMATS = (
    "dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix dns1123SubdomainPrefix "
    "dns1035LabelPrefix labelValue uri uuid byte date datetime"
).split()


class Type(NamedTuple):
    """A type; the name of a type parameter begins with `~`."""

    name: str
    params: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.params))}>" if self.params else self.name


class Overload(NamedTuple):
    """One form of a function."""

    is_method: bool
    takes: tuple[Type, ...]
    """The types of its arguments; the first is that of the receiver of a method."""
    gives: Type


class Library(NamedTuple):
    """Functions that Kubernetes adds together."""

    name: str
    since: Release
    """The release of the environment that has it; a new policy is compiled one release before that of the server."""
    text: str
    macros: str = ""
    """The extension of the parser with its macros."""
    cel: Release = (1, 28)
    """The first server whose version of cel-go has it."""


def _each(kinds: list[str], form: str) -> str:
    return "; ".join(form.format(kind) for kind in kinds)


_LESS = _each("bool int uint double string bytes timestamp duration".split(), "({0}, {0}) bool")
_LESS_NUMBERS = "; ".join(f"({one}, {other}) bool" for one in _NUMBERS for other in _NUMBERS if one != other)
_TIME = "timestamp.() int; timestamp.(string) int"
_BOTH = f"{_TIME}; duration.() int"
_CLOCK = "getHours getMinutes getSeconds getMilliseconds".split()
_CALENDAR = "getFullYear getMonth getDayOfYear getDayOfMonth getDate getDayOfWeek".split()
_STANDARD = f"""
    _?_:_: (bool, ~T, ~T) ~T
    _&&_: (bool, bool) bool
    _||_: (bool, bool) bool
    !_: (bool) bool
    @not_strictly_false: (bool) bool
    _==_: (~T, ~T) bool
    _!=_: (~T, ~T) bool
    _<_: {_LESS}
    _<=_: {_LESS}
    _>_: {_LESS}
    _>=_: {_LESS}
    _+_: (bytes, bytes) bytes; (double, double) double; (duration, duration) duration; \
(duration, timestamp) timestamp; (timestamp, duration) timestamp; (int, int) int; \
(list<~T>, list<~T>) list<~T>; (string, string) string; (uint, uint) uint
    _-_: (double, double) double; (duration, duration) duration; (int, int) int; (timestamp, duration) timestamp; \
(timestamp, timestamp) duration; (uint, uint) uint
    _*_: {_each(["double", "int", "uint"], "({0}, {0}) {0}")}
    _/_: {_each(["double", "int", "uint"], "({0}, {0}) {0}")}
    _%_: {_each(["int", "uint"], "({0}, {0}) {0}")}
    -_: (double) double; (int) int
    _[_]: (list<~T>, int) ~T; (map<~K, ~V>, ~K) ~V
    @in: (~T, list<~T>) bool; (~K, map<~K, ~V>) bool
    size: {_each(["bytes", "list<~T>", "map<~K, ~V>", "string"], "({0}) int; {0}.() int")}
    type: (~T) type<~T>
    dyn: (~T) dyn
    bool: (bool) bool; (string) bool
    bytes: (bytes) bytes; (string) bytes
    double: {_each("double int string uint".split(), "({0}) double")}
    duration: {_each("duration int string".split(), "({0}) duration")}
    int: {_each("int double duration string timestamp uint".split(), "({0}) int")}
    string: {_each("string bool bytes double duration int timestamp uint".split(), "({0}) string")}
    timestamp: {_each("timestamp int string".split(), "({0}) timestamp")}
    uint: {_each("uint double int string".split(), "({0}) uint")}
    contains: string.(string) bool
    endsWith: string.(string) bool
    startsWith: string.(string) bool
    matches: (string, string) bool; string.(string) bool
    {"".join(f"{name}: {_TIME}{chr(10)}" for name in _CALENDAR)}
    {"".join(f"{name}: {_BOTH}{chr(10)}" for name in _CLOCK)}

    indexOf: list<~T>.(~T) int
    lastIndexOf: list<~T>.(~T) int
    min: {_each(_COMPARABLE, "list<{0}>.() {0}")}
    max: {_each(_COMPARABLE, "list<{0}>.() {0}")}
    isSorted: {_each(_COMPARABLE, "list<{0}>.() bool")}
    sum: {_each([*_NUMBERS, "duration"], "list<{0}>.() {0}")}
    find: string.(string) string
    findAll: string.(string) list<string>; string.(string, int) list<string>
    url: (string) kubernetes.URL
    isURL: (string) bool
    getScheme: kubernetes.URL.() string
    getHost: kubernetes.URL.() string
    getHostname: kubernetes.URL.() string
    getPort: kubernetes.URL.() string
    getEscapedPath: kubernetes.URL.() string
    getQuery: kubernetes.URL.() map<string, list<string>>
"""
_STRINGS = """
    charAt: string.(int) string
    indexOf: string.(string) int; string.(string, int) int
    lastIndexOf: string.(string) int; string.(string, int) int
    lowerAscii: string.() string
    upperAscii: string.() string
    replace: string.(string, string) string; string.(string, string, int) string
    split: string.(string) list<string>; string.(string, int) list<string>
    substring: string.(int) string; string.(int, int) string
    trim: string.() string
    join: list<string>.() string; list<string>.(string) string
"""
_AUTHORIZATION = """
    path: AUTHZ.Authorizer.(string) AUTHZ.PathCheck
    group: AUTHZ.Authorizer.(string) AUTHZ.GroupCheck
    serviceAccount: AUTHZ.Authorizer.(string, string) AUTHZ.Authorizer
    resource: AUTHZ.GroupCheck.(string) AUTHZ.ResourceCheck
    subresource: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
    namespace: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
    name: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
    check: AUTHZ.PathCheck.(string) AUTHZ.Decision; AUTHZ.ResourceCheck.(string) AUTHZ.Decision
    allowed: AUTHZ.Decision.() bool
    reason: AUTHZ.Decision.() string
    errored: AUTHZ.Decision.() bool
    error: AUTHZ.Decision.() string
"""
_OPTIONALS = """
    optional.of: (~T) optional_type<~T>
    optional.ofNonZeroValue: (~T) optional_type<~T>
    optional.none: () optional_type<~T>
    value: optional_type<~T>.() ~T
    hasValue: optional_type<~T>.() bool
    or: optional_type<~T>.(optional_type<~T>) optional_type<~T>
    orValue: optional_type<~T>.(~T) ~T
    _[?_]: (list<~V>, int) optional_type<~V>; (optional_type<list<~V>>, int) optional_type<~V>; \
(map<~K, ~V>, ~K) optional_type<~V>; (optional_type<map<~K, ~V>>, ~K) optional_type<~V>
    _[_]: (optional_type<list<~V>>, int) optional_type<~V>; (optional_type<map<~K, ~V>>, ~K) optional_type<~V>
"""
_QUANTITY = """
    quantity: (string) kubernetes.Quantity
    isQuantity: (string) bool
    sign: (kubernetes.Quantity) int
    isInteger: kubernetes.Quantity.() bool
    asInteger: kubernetes.Quantity.() int
    asApproximateFloat: kubernetes.Quantity.() double
    add: kubernetes.Quantity.(kubernetes.Quantity) kubernetes.Quantity; kubernetes.Quantity.(int) kubernetes.Quantity
    sub: kubernetes.Quantity.(kubernetes.Quantity) kubernetes.Quantity; kubernetes.Quantity.(int) kubernetes.Quantity
    compareTo: kubernetes.Quantity.(kubernetes.Quantity) int
    isLessThan: kubernetes.Quantity.(kubernetes.Quantity) bool
    isGreaterThan: kubernetes.Quantity.(kubernetes.Quantity) bool
"""
_NETWORK = """
    ip: (string) net.IP
    isIP: (string) bool
    ip.isCanonical: (string) bool
    family: net.IP.() int
    isUnspecified: net.IP.() bool
    isLoopback: net.IP.() bool
    isLinkLocalMulticast: net.IP.() bool
    isLinkLocalUnicast: net.IP.() bool
    isGlobalUnicast: net.IP.() bool
    string: (net.IP) string
"""
_CIDR = """
    cidr: (string) net.CIDR
    isCIDR: (string) bool
    containsIP: net.CIDR.(string) bool; net.CIDR.(net.IP) bool
    containsCIDR: net.CIDR.(string) bool; net.CIDR.(net.CIDR) bool
    ip: net.CIDR.() net.IP
    prefixLength: net.CIDR.() int
    masked: net.CIDR.() net.CIDR
    string: (net.CIDR) string
"""
_SEMVER = """
    semver: (string) kubernetes.Semver; (string, bool) kubernetes.Semver
    isSemver: (string) bool; (string, bool) bool
    major: kubernetes.Semver.() int
    minor: kubernetes.Semver.() int
    patch: kubernetes.Semver.() int
    compareTo: kubernetes.Semver.(kubernetes.Semver) int
    isLessThan: kubernetes.Semver.(kubernetes.Semver) bool
    isGreaterThan: kubernetes.Semver.(kubernetes.Semver) bool
"""
_LISTS = f"""
    slice: list<~T>.(int, int) list<~T>
    flatten: list<list<~T>>.() list<~T>; list<dyn>.(int) list<dyn>
    sort: {_each(_COMPARABLE, "list<{0}>.() list<{0}>")}
    @sortByAssociatedKeys: {_each(_COMPARABLE, "list<~T>.(list<{0}>) list<~T>")}
    lists.range: (int) list<int>
    reverse: list<~T>.() list<~T>
    distinct: list<~T>.() list<~T>
"""
_FORMATS = """
    format.named: (string) optional_type<kubernetes.NamedFormat>
    validate: kubernetes.NamedFormat.(string) optional_type<list<string>>
""" + "".join(f"    format.{name}: () kubernetes.NamedFormat\n" for name in FORMATS)
_SETS = "".join(f"    sets.{name}: (list<~T>, list<~T>) bool\n" for name in ("contains", "equivalent", "intersects"))
_UNWRAP = """
    optional.unwrap: (list<optional_type<~T>>) list<~T>
    unwrapOpt: list<optional_type<~T>>.() list<~T>
    first: list<~T>.() optional_type<~T>
    last: list<~T>.() optional_type<~T>
"""
_SELECTORS = """
    fieldSelector: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
    labelSelector: AUTHZ.ResourceCheck.(string) AUTHZ.ResourceCheck
"""
_ENTRIES = """
    cel.@mapInsert: (map<~K, ~V>, ~K, ~V) map<~K, ~V>; (map<~K, ~V>, map<~K, ~V>) map<~K, ~V>
"""

# Each from k8s.io/apiserver/pkg/cel/environment/base.go; what a library itself got later, from its version of cel-go.
LIBRARIES = (
    Library("standard", (1, 0), _STANDARD),
    Library("strings", (1, 0), _STRINGS),
    Library("authorization", (1, 27), _AUTHORIZATION),
    Library("optionals", (1, 28), _OPTIONALS, macros="optional"),
    Library(
        "comparisons of numbers",
        (1, 28),
        "".join(f"{name}: {_LESS_NUMBERS}\n" for name in ("_<_", "_<=_", "_>_", "_>=_")),
    ),
    Library("quantity", (1, 28), _QUANTITY),
    Library("strings 2", (1, 29), "format: string.(list<dyn>) string\nstrings.quote: (string) string"),
    Library("sets", (1, 29), _SETS),
    Library("ip", (1, 30), _NETWORK),
    Library("cidr", (1, 30), _CIDR),
    Library("format", (1, 31), _FORMATS),
    Library("authorization selectors", (1, 31), _SELECTORS),
    Library("loops with two variables", (1, 32), _ENTRIES, macros="two-var-comprehensions"),
    Library("semver", (1, 33), _SEMVER),
    Library("lists", (1, 34), _LISTS, macros="lists"),
    # The library of optionals has no version there, so it has what its version of cel-go has.
    Library("optionals 2", (1, 28), _UNWRAP, cel=(1, 33)),
)

_OVERLOAD = lazy_pattern(r"(?:([\w.<>~, ]+)\.)?\(([^)]*)\) (.+)")
TYPE_CONSTANTS = ("net.IP", "net.CIDR")
"""Types of Kubernetes that an expression can name."""


def list_libraries(server: Release = NEWEST_RELEASE) -> list[Library]:
    """The libraries that a new expression can use: those of the release before, so that a rollback is possible."""
    environment = (server[0], server[1] - 1)
    return [each for each in LIBRARIES if each.since <= environment and each.cel <= server]


@lru_cache(maxsize=16)
def declare_functions(server: Release = NEWEST_RELEASE) -> dict[str, tuple[Overload, ...]]:
    """The functions that a new expression can use in a server of a release, by name."""
    found: dict[str, tuple[Overload, ...]] = {}
    for library in list_libraries(server):
        for line in library.text.replace("AUTHZ", "kubernetes.authorization").splitlines():
            if line.strip():
                name, _, text = line.strip().partition(": ")
                found[name] = (*found.get(name, ()), *list_overloads(text))
    return found


def explain_missing(name: str, server: Release) -> str:
    """Since when new expressions can use a function that a server does not have, in words; empty if never."""
    known = list_libraries(server)
    for each in LIBRARIES:
        if each not in known and re.search(rf"(?m)^\s*{re.escape(name)}: |^{re.escape(name)}$", each.text):
            since = max((each.since[0], each.since[1] + 1), each.cel)
            return f", which new expressions can use since Kubernetes {format_release(since)}"
    return ""


def list_overloads(text: str) -> tuple[Overload, ...]:
    """The overloads of a function, from their signatures."""
    found = []
    for overload in text.split("; "):
        match = _OVERLOAD.fullmatch(overload)
        assert match, f"a signature of ours: {overload}"
        target, args, result = match.groups()
        takes = tuple(type_named(each) for each in ((target,) if target else ()) + tuple(_split(args)))
        found.append(Overload(bool(target), takes, type_named(result)))
    return tuple(found)


@lru_cache(maxsize=4096)
def type_named(text: str) -> Type:
    """A type in the notation of signatures, such as `map<string, int>`."""
    name, _, inner = text.partition("<")
    return Type(name, tuple(type_named(part) for part in _split(inner[:-1])))


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
