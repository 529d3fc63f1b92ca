"""Which requests a policy or a binding means: rules for resources, and selectors as far as labels are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from jobgen.model.data import Data

NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that every namespace has."""

# Who asks is not known offline: somebody without special rights.
_SOMEBODY = {"username": "", "uid": "", "groups": ["system:authenticated"], "extra": {}}


class Request(NamedTuple):
    """What a rule may ask about the creation of an object; a namespace is "" where the kind has none."""

    group: str
    version: str
    kind: str
    resource: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    namespace_labels: Mapping[str, str] | None

    def as_data(self) -> dict[str, Any]:
        """The request as expressions see it."""
        kind = {"group": self.group, "version": self.version, "kind": self.kind}
        resource = {"group": self.group, "version": self.version, "resource": self.resource}
        return {
            "uid": "",
            "kind": kind,
            "resource": resource,
            "subResource": "",
            "requestKind": kind,
            "requestResource": resource,
            "requestSubResource": "",
            "name": self.name,
            "namespace": self.namespace,
            "operation": "CREATE",
            "userInfo": _SOMEBODY,
            "dryRun": False,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        }


class ResourceRule(NamedTuple):
    """A rule for resources."""

    groups: frozenset[str]
    versions: frozenset[str]
    operations: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    scope: str

    def means(self, group: str, version: str, resource: str, *, exact: bool) -> bool:
        """Whether the creation of objects of such a resource is meant, whatever they are called."""
        return (
            bool(self.operations & {"*", "CREATE"})
            and bool(self.groups & {"*", group})
            and (not exact or bool(self.versions & {"*", version}))
            and bool(self.resources & {"*", "*/*", resource})
        )

    def takes(self, request: Request) -> bool:
        """Whether an object of a resource that is meant is meant itself."""
        scope = "Namespaced" if request.namespace else "Cluster"
        return self.scope in ("*", scope) and (not self.names or request.name in self.names)


class Requirement(NamedTuple):
    """One condition on a label."""

    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy it; a label that is not there is in no set."""
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
    """All that a policy or a binding says about what it means; no rules mean everything."""

    rules: tuple[ResourceRule, ...] = ()
    excluded: tuple[ResourceRule, ...] = ()
    namespaces: Selector = ()
    objects: Selector = ()
    exact: bool = False

    def means(self, group: str, version: str, resource: str) -> bool:
        """Whether objects of such a resource can be meant at all."""
        means = [rule.means(group, version, resource, exact=self.exact) for rule in self.rules]
        return not means or any(means)

    @property
    def takes_all(self) -> bool:
        """Whether every object of a resource that is meant is meant itself."""
        by_name = any(rule.names or rule.scope != "*" for rule in self.rules)
        return not (by_name or self.excluded or self.namespaces or self.objects)

    def takes(self, request: Request) -> bool:
        """Whether this very object is meant."""
        if self.rules and not self._any(self.rules, request):
            return False
        if self.excluded and self._any(self.excluded, request):
            return False
        return all(wanted.holds(request.labels) for wanted in self.objects) and (
            not self.namespaces or self._in_namespace(request)
        )

    def _any(self, rules: tuple[ResourceRule, ...], request: Request) -> bool:
        group, version, resource = request.group, request.version, request.resource
        return any(rule.means(group, version, resource, exact=self.exact) and rule.takes(request) for rule in rules)

    def _in_namespace(self, request: Request) -> bool:
        """Where a namespace's labels are not known, what asks for them is taken to hold: better warned than sorry."""
        if request.group == "" and request.kind == "Namespace":
            return all(wanted.holds({NAME_LABEL: request.name, **request.labels}) for wanted in self.namespaces)
        if not request.namespace:
            return True
        known = request.namespace_labels
        labels = {**(known or {}), NAME_LABEL: request.namespace}
        return all(wanted.holds(labels) for wanted in self.namespaces if known is not None or wanted.key == NAME_LABEL)


def parse_match(block: Data) -> MatchResources:
    """The match of a plain `matchConstraints` or `matchResources`."""
    return MatchResources(
        rules=tuple(map(_rule, block.get("resourceRules") or ())),
        excluded=tuple(map(_rule, block.get("excludeResourceRules") or ())),
        namespaces=parse_selector(block.get("namespaceSelector")),
        objects=parse_selector(block.get("objectSelector")),
        exact=block.get("matchPolicy") == "Exact",
    )


def parse_selector(block: Data) -> Selector:
    """The requirements of a plain label selector."""
    block = block or {}
    labels = (Requirement(key, "In", frozenset((value,))) for key, value in (block.get("matchLabels") or {}).items())
    expressions = (
        Requirement(item["key"], item["operator"], frozenset(item.get("values") or ()))
        for item in block.get("matchExpressions") or ()
    )
    return (*labels, *expressions)


def _rule(block: Data) -> ResourceRule:
    return ResourceRule(
        groups=frozenset(block["apiGroups"]),
        versions=frozenset(block["apiVersions"]),
        operations=frozenset(block["operations"]),
        resources=frozenset(block["resources"]),
        names=frozenset(block.get("resourceNames") or ()),
        scope=block.get("scope") or "*",
    )


def plural(kind: str) -> str:
    """The resource of a kind, as Kubernetes guesses it where nobody says."""
    word = kind.lower()
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
