"""What the checks of operators share: a check with the versions that it applies to, and frequent kinds of checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from jobgen.check.admission.fields import join_names
from jobgen.check.admission.names import is_dns_subdomain
from jobgen.check.rules import ERROR, Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import did_you_mean, find_key, suggest_value
from jobgen.spec.kinds import VersionRange, parse_version

REJECTED = "rejected-by-operator"
NEVER_STARTS = "never-starts"
CHILD_REJECTED = "rejected-child"
GATE_OFF = "feature-gate-off"
ADMITS_NOTHING = "admits-nothing"

MAX_INT32 = 2**31 - 1
# What the API server keeps of `generateName`, and an example of what it appends.
_GENERATED_PREFIX, _GENERATED_SUFFIX = 58, "aaaaa"

_http_path = lazy_pattern(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")

Violations: TypeAlias = Iterator[Violation]
FindViolations: TypeAlias = Callable[[Manifest], Iterable[Violation]]


class Check(NamedTuple):
    """A check of one kind: the rule that reports it, and the versions of the operator that make it."""

    rule: str
    find: FindViolations
    since: str = ""
    until: str = ""

    def applies_to(self, version: str) -> bool:
        """Return whether a version of the operator makes this check; without one, the newest is meant."""
        if not version:
            return not self.until
        return VersionRange(self.since, self.until).contains(version)


Checks: TypeAlias = Mapping[str, tuple[Check, ...]]
"""The checks of a module, by kind."""


def is_since(manifest: Manifest, operator: str, since: str) -> bool:
    """Return whether the declared version of an operator is `since` or later; without one, the newest is meant."""
    declared = str(manifest.cluster.operators.get(operator, ""))
    return not declared or is_version_since(declared, since)


def is_version_since(text: str, since: str) -> bool:
    """Return whether a version is `since` or later."""
    return parse_version(text) >= parse_version(since)


def full_name(manifest: Manifest) -> str:
    """Return the name of an object, or one that the API server may generate for it."""
    prefix = as_text(manifest.metadata.get("generateName"))
    return manifest.name or (prefix and f"{prefix[:_GENERATED_PREFIX]}{_GENERATED_SUFFIX}")


def name_node(manifest: Manifest) -> Node:
    """Return the node that names an object."""
    given = manifest.metadata.get("name")
    return given if as_text(given) else manifest.metadata.get("generateName")


def field_node(owner: Mapping[str, Node], name: str) -> Node:
    """Return the node to report for a field: its value if that is a scalar, else its key."""
    value = owner.get(name)
    return find_key(owner, name) if value is None or isinstance(value, (dict, list)) else value


def is_gate_on(manifest: Manifest, gate: str) -> bool:
    """Return whether the environment declares that a feature gate is on; Kueue has `featureGates` of its own, too."""
    cluster = manifest.cluster
    return gate in (cluster.feature_gates or ()) or as_mapping(cluster.kueue.get("featureGates")).get(gate) is True


def require_gate(manifest: Manifest, gate: str, what: str, node: Node) -> Violations:
    """Yield a violation if a feature gate is not declared to be on: an error if the environment declares gates."""
    if is_gate_on(manifest, gate):
        return
    if manifest.cluster.feature_gates is None:
        message = f"{what} requires the feature gate `{gate}`, which is off by default; if it is on, declare it in"
        yield Violation(node, f"{message} `cluster.featureGates`")
    else:
        message = f"{what} requires the feature gate `{gate}`, which `cluster.featureGates` does not list; remove it"
        yield Violation(node, f"{message}, or turn the gate on", severity=ERROR)


Bounds: TypeAlias = Mapping[str, tuple[int, int | None]]
"""The lowest and the highest value of numbers, by the path of their field."""


def check_bounds(bounds: Bounds) -> FindViolations:
    """Return a check of numbers at paths of keys."""
    paths = [(path.split("."), *limits) for path, limits in bounds.items()]

    def find(manifest: Manifest) -> Violations:
        for (*steps, name), low, high in paths:
            holder = get_path(manifest.object, *steps)
            if isinstance(holder, dict) and name in holder:
                yield from out_of_bounds(name, holder[name], low, high)

    return find


def out_of_bounds(name: str, node: Node, low: int, high: int | None = None) -> Violations:
    """Yield a violation if a number is out of bounds."""
    found = as_integer(node)
    if found is None:
        return
    if found < low:
        yield Violation(node, f"`{name}` must be at least {low}, got `{found}`")
    elif high is not None and found > high:
        yield Violation(node, f"`{name}` must be at most {high}, got `{found}`")


def not_one_of(name: str, node: Node, known: list[str], *, allow_empty: bool = True) -> Violations:
    """Yield a violation if a text is not one of those that the operator knows."""
    found = value_of(node)
    if not isinstance(found, str) or found in known or (allow_empty and not found):
        return
    message = f"`{name}` is `{found}`, but must be {join_names(known, 'or')}{did_you_mean(found, known)}"
    fix_steps, safe = suggest_value(node, known)
    yield Violation(node, message, fix_steps=fix_steps, safe=safe)


def is_domain_prefixed_path(text: str) -> bool:
    """Return whether a text is a domain and a path, such as `example.com/controller`."""
    domain, _, path = text.partition("/")
    return bool(path) and is_dns_subdomain(domain) and _http_path.fullmatch(path) is not None
