"""Names that kustomize leaves as they were: it knows in which fields of Kubernetes' kinds names stand, and no others.

A prefix, a suffix or the hash of a generator renames an object; a custom resource then still names the old one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.kustomize.kustomization import text_of
from jobgen.kustomize.resource import NO_NAMESPACE, Resource
from jobgen.model.budget import Work, charge
from jobgen.model.data import Node, value_of
from jobgen.model.finding import Problem, Severity, add_article
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.sentence import Sentence

RULE = "unrenamed-reference"
_QUEUE = "kueue.x-k8s.io/queue-name"
# The fields with names, by the field around them; an empty one may be anywhere.
_FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("configMap", "name"): ("ConfigMap",),
    ("configMapKeyRef", "name"): ("ConfigMap",),
    ("configMapRef", "name"): ("ConfigMap",),
    ("imagePullSecrets", "name"): ("Secret",),
    ("persistentVolumeClaim", "claimName"): ("PersistentVolumeClaim",),
    ("runtimeRef", "name"): ("TrainingRuntime", "ClusterTrainingRuntime"),
    ("secret", "name"): ("Secret",),
    ("secret", "secretName"): ("Secret",),
    ("secretKeyRef", "name"): ("Secret",),
    ("secretRef", "name"): ("Secret",),
    ("", "priorityClassName"): ("PriorityClass",),
    ("", "resourceClaimTemplateName"): ("ResourceClaimTemplate",),
    ("", "serviceAccountName"): ("ServiceAccount",),
    ("", "subdomain"): ("Service",),
    ("", _QUEUE): ("LocalQueue",),
}
_NAMES = frozenset(name for _, name in _FIELDS)
_OPAQUE = frozenset(("ConfigMap", "CustomResourceDefinition", "Secret"))


class _Use(NamedTuple):
    """A field with the name of an object."""

    resource: Resource
    path: str
    kinds: tuple[str, ...]
    node: Node


def find_lost_references(resources: Sequence[Resource]) -> Iterator[Problem]:
    """Yield the fields with the name that an object of the build had before it was renamed: one for each object."""
    renamed: dict[tuple[str, str], list[Resource]] = defaultdict(list)
    for resource in resources:
        for before in {name for _, name, _ in resource.previous} - {resource.name}:
            renamed[resource.kind, before].append(resource)
    if not renamed:
        return
    current = {(each.kind, each.name) for each in resources}
    seen: set[tuple[int, str]] = set()
    for use in (use for each in resources if each.kind not in _OPAQUE for use in _find_uses(each)):
        name = text_of(use.node)
        for kind in use.kinds:
            found = [each for each in renamed.get((kind, name), ()) if _may_name(use.resource, each)]
            if len(found) != 1 or (kind, name) in current or (id(found[0]), use.resource.kind) in seen:
                continue
            seen.add((id(found[0]), use.resource.kind))
            yield _report(use, kind, name, found[0])


def _may_name(user: Resource, other: Resource) -> bool:
    """Return True if an object can refer to another: both are in one namespace, or one has none."""
    return NO_NAMESPACE in (user.id.namespace, other.id.namespace) or user.id.namespace == other.id.namespace


def _find_uses(resource: Resource) -> Iterator[_Use]:
    """Yield the fields of an object that hold names, in their order."""
    stack: list[tuple[str, Any]] = [("", resource.node)]
    while stack:
        around, node = stack.pop()
        if isinstance(node, list):
            charge(Work.BUILD, len(node))
            stack += ((around, item) for item in reversed(node))
        elif isinstance(node, dict):
            charge(Work.BUILD, len(node))
            is_optional = value_of(node.get("optional")) is True
            for key in _NAMES.intersection(node) if not is_optional else ():
                kinds = _FIELDS.get((around, key)) or _FIELDS.get(("", key))
                if kinds and not isinstance(node[key], (dict, list)):
                    path = f"{around}.{key}" if (around, key) in _FIELDS else key
                    yield _Use(resource, path, kinds, node[key])
            stack += ((str(key), value) for key, value in reversed(node.items()) if isinstance(value, (dict, list)))


def _report(use: _Use, kind: str, name: str, renamed: Resource) -> Problem:
    where = f"`{use.path}` of {add_article(use.resource.kind)}"
    effect = f"so that it names no {kind} of the build"
    note = f"it is called `{renamed.name}`"
    if renamed.needs_hash and not renamed.prefixes and not renamed.suffixes:
        message = Sentence(
            "the {} `{}` is generated as `{}`, and kustomize does not change {}, {}",
            kind,
            name,
            renamed.name,
            where,
            effect,
        )
        advice = "set `generatorOptions: {disableNameSuffixHash: true}`, or add a `nameReference` in `configurations`"
    else:
        # Each overlay has a prefix of its own, and all of them have one fault.
        message = Sentence("kustomize renames the {} `{}`, but does not change {}, {}", kind, name, where, effect)
        advice = "add a `nameReference` in `configurations`, or patch the field"
    related = ((renamed.metadata.get("name"), note),)
    return Problem(RULE, Sentence("{}; {}", message, advice), use.node, related, "gitops", Severity.WARNING)
