"""Which requests a policy or a binding matches: resource rules, and selectors as far as labels are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.k8s.kinds import BUILTIN_GROUPS
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.schema.shipped_kinds import find_custom_versions, find_versions

NAME_LABEL = "kubernetes.io/metadata.name"

# The user is not known offline: one without special rights is assumed. Go leaves out what is empty.
_USER: dict[str, Plain] = {"username": "jobgen", "uid": "jobgen", "groups": ["system:authenticated"]}
_OPTIONS: dict[str, Plain] = {
    "apiVersion": "meta.k8s.io/v1",
    "kind": "CreateOptions",
    "fieldManager": "jobgen",
    "fieldValidation": "Strict",
}


class Request(NamedTuple):
    """The request to create an object; `namespace` is empty if the kind has none."""

    group: str
    version: str
    kind: str
    resource: str
    namespace: str
    name: str
    labels: Mapping[str, Plain]
    namespace_labels: Mapping[str, Plain] | None
    converted: str = ""
    """The version to which the API server converts the object for a policy; empty if it does not."""

    def as_data(self) -> dict[str, Plain]:
        """The request as expressions read it."""
        sent, read = {"version": self.version}, {"version": self.converted or self.version}
        kind, resource = {"group": self.group, "kind": self.kind}, {"group": self.group, "resource": self.resource}
        data: dict[str, Plain] = {
            "kind": {**kind, **read},
            "resource": {**resource, **read},
            "requestKind": {**kind, **sent},
            "requestResource": {**resource, **sent},
            "name": self.name,
            "namespace": self.namespace,
            "operation": "CREATE",
            "userInfo": _USER,
            "dryRun": False,
            "options": _OPTIONS,
        }
        return {name: value for name, value in data.items() if value != ""}


class ResourceRule(NamedTuple):
    """A resource rule of a match."""

    groups: frozenset[str]
    versions: frozenset[str]
    operations: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    scope: str

    def find_version(self, group: str, version: str, resource: str, *, is_exact: bool) -> str:
        """The version in which the rule reads a new object of such a resource; empty if it does not match any."""
        is_named = self.groups & {"*", group} and self.resources & {"*", "*/*", resource}
        if not is_named or not self.operations & {"*", "CREATE"}:
            return ""
        if self.versions & {"*", version}:
            return version
        served = (known for known in sorted(self.versions) if _is_served(group, known, resource))
        return "" if is_exact else next(served, "")


class Requirement(NamedTuple):
    """One condition on a label."""

    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: Mapping[str, Plain]) -> bool:
        """Return True if the labels satisfy it; a missing label is in no set."""
        match self.operator:
            case "In":
                return self.key in labels and labels[self.key] in self.values
            case "NotIn":
                return self.key not in labels or labels[self.key] not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


Selector = tuple[Requirement, ...]


class MatchResources(NamedTuple):
    """The `matchConstraints` of a policy or the `matchResources` of a binding; without rules, it matches everything."""

    rules: tuple[ResourceRule, ...] = ()
    excluded: tuple[ResourceRule, ...] = ()
    namespaces: Selector = ()
    objects: Selector = ()
    is_exact: bool = False

    def matches_resource(self, group: str, version: str, resource: str) -> bool:
        """Return True if objects of a resource can match at all."""
        found = [rule.find_version(group, version, resource, is_exact=self.is_exact) for rule in self.rules]
        return not found or any(found)

    def find_version(self, group: str, version: str, resource: str) -> str:
        """The version of an object that the policy reads: its own, or that of a rule for another one."""
        found = [rule.find_version(group, version, resource, is_exact=False) for rule in self.rules]
        return version if version in found else next((each for each in found if each), version)

    @property
    def matches_all(self) -> bool:
        """Return True if every object of a matched resource matches."""
        by_name = any(rule.names or rule.scope != "*" for rule in self.rules)
        return not (by_name or self.excluded or self.namespaces or self.objects)

    def matches(self, request: Request) -> bool:
        """Return True if the request for one object matches."""
        if self.rules and not self._matches_any(self.rules, request):
            return False
        if self.excluded and self._matches_any(self.excluded, request):
            return False
        return all(wanted.matches(request.labels) for wanted in self.objects) and (
            not self.namespaces or self._matches_namespace(request)
        )

    def _matches_any(self, rules: tuple[ResourceRule, ...], request: Request) -> bool:
        group, version, resource = request.group, request.version, request.resource
        scope = "Namespaced" if request.namespace else "Cluster"
        return any(
            rule.find_version(group, version, resource, is_exact=self.is_exact)
            and rule.scope in ("*", scope)
            and (not rule.names or request.name in rule.names)
            for rule in rules
        )

    def _matches_namespace(self, request: Request) -> bool:
        """Return True if the namespace matches; a requirement on labels that are not known is taken to match."""
        if request.group == "" and request.kind == "Namespace":
            return all(wanted.matches({NAME_LABEL: request.name, **request.labels}) for wanted in self.namespaces)
        if not request.namespace:
            return True
        known = request.namespace_labels
        labels = {**(known or {}), NAME_LABEL: request.namespace}
        return all(
            wanted.matches(labels) for wanted in self.namespaces if known is not None or wanted.key == NAME_LABEL
        )


def parse_match(block: Any) -> MatchResources:
    """Parse a `matchConstraints` or `matchResources` block that its schema has accepted."""
    return MatchResources(
        rules=tuple(map(_parse_rule, block.get("resourceRules") or ())),
        excluded=tuple(map(_parse_rule, block.get("excludeResourceRules") or ())),
        namespaces=parse_selector(block.get("namespaceSelector")),
        objects=parse_selector(block.get("objectSelector")),
        is_exact=block.get("matchPolicy") == "Exact",
    )


def parse_selector(block: Any) -> Selector:
    """Parse a label selector that its schema has accepted."""
    block = block or {}
    labels = (Requirement(key, "In", frozenset((value,))) for key, value in (block.get("matchLabels") or {}).items())
    expressions = (
        Requirement(item["key"], item["operator"], frozenset(item.get("values") or ()))
        for item in block.get("matchExpressions") or ()
    )
    return (*labels, *expressions)


def _parse_rule(block: Any) -> ResourceRule:
    return ResourceRule(
        groups=frozenset(block["apiGroups"]),
        versions=frozenset(block["apiVersions"]),
        operations=frozenset(block["operations"]),
        resources=frozenset(block["resources"]),
        names=frozenset(block.get("resourceNames") or ()),
        scope=block.get("scope") or "*",
    )


def _is_served(group: str, version: str, resource: str) -> bool:
    """Return True if an API server may serve a version of a resource; of one that jobgen does not know, any."""
    if group in BUILTIN_GROUPS:
        return (f"{group}/{version}" if group else version) in find_versions(group)
    known = find_custom_versions(group, resource)
    return not known or version in known


def pluralize_kind(kind: str) -> str:
    """The resource of a kind, as Kubernetes derives it if it is not known."""
    word = kind.lower()
    if word.endswith("endpoints"):
        return word
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
