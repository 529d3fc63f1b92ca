"""What an object uses that a team may own: namespaces, queues, service accounts, priority classes and kinds.

The whole object is searched by the names of fields, because other kinds and later versions have them in other places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, value_of

NAMESPACES, QUEUES, ACCOUNTS, PRIORITIES, KINDS, LABELS = (
    "namespaces",
    "queues",
    "serviceAccounts",
    "priorityClasses",
    "kinds",
    "labels",
)
_FIELDS: Final = {
    "serviceAccount": ACCOUNTS,
    "serviceAccountName": ACCOUNTS,
    "priorityClass": PRIORITIES,
    "priorityClassName": PRIORITIES,
    "queue": QUEUES,
    "queueName": QUEUES,
    "clusterQueue": QUEUES,
}
_REFERENCES: Final = {"serviceAccount": ACCOUNTS, "serviceAccountRef": ACCOUNTS, "priorityClassRef": PRIORITIES}
"""Fields whose value is a mapping with the name."""
_LABELS: Final = {
    "kueue.x-k8s.io/queue-name": QUEUES,
    "kueue.x-k8s.io/priority-class": PRIORITIES,
    "scheduling.volcano.sh/queue-name": QUEUES,
    "volcano.sh/queue-name": QUEUES,
    "yunikorn.apache.org/queue": QUEUES,
    "queue": QUEUES,  # YuniKorn
    "kai.scheduler/queue": QUEUES,
    "runai/queue": QUEUES,
    "quota.scheduling.koordinator.sh/name": QUEUES,
    "ray.io/priority-class-name": PRIORITIES,
    "priorityClassName": PRIORITIES,  # KAI
    "kubernetes.io/service-account.name": ACCOUNTS,  # a Secret with the token of the account
}
_OWN_NAMES: Final = {"ServiceAccount": ACCOUNTS, "LocalQueue": QUEUES}
"""Kinds whose own names count, because to create one is to use it."""
_CHOSEN_KEYS: Final = frozenset(
    """annotations binaryData data labels limits matchLabels nodeSelector parameters rayStartParams requests stringData
    volumeAttributes""".split()
)
"""Mappings whose keys are chosen by users, so that they are no fields."""


class Use(NamedTuple):
    """A name that an object uses."""

    what: str
    """One of the lists of a team, or `labels`."""
    value: str
    node: Node
    qualifier: str = ""
    """The API group of a kind, or the key of a label."""


def find_uses(obj: Mapping[str, Node]) -> Iterator[Use]:
    """Yield the names that an object uses, in any depth, and the kinds of the objects inside it."""
    below: list[Node] = [obj]
    while below:
        node = below.pop()
        if isinstance(node, list):
            below += reversed(node)
        elif isinstance(node, dict):
            if isinstance(node.get("metadata"), dict) and as_text(node.get("kind")) and as_text(node.get("apiVersion")):
                yield from _find_identity_uses(node)
            yield from _find_namespaces(node)
            yield from _find_field_uses(node)
            below += (child for key, value in reversed(node.items()) for child in _list_below(key, value))


def _list_below(key: str, value: Node) -> Iterable[Node]:
    return value.values() if key in _CHOSEN_KEYS and isinstance(value, dict) else (value,)


def _find_namespaces(node: Mapping[str, Node]) -> Iterator[Use]:
    """Yield the namespaces that a reference names: `namespace`, or a field such as `targetNamespace`."""
    for key, value in node.items():
        if (key == "namespace" or key.endswith("Namespace")) and as_text(value):
            yield Use(NAMESPACES, as_text(value), value)


def _find_identity_uses(obj: Mapping[str, Node]) -> Iterator[Use]:
    """Yield the kind of an object, and its own name if that counts."""
    metadata, kind = as_mapping(obj["metadata"]), as_text(obj["kind"])
    yield Use(KINDS, kind, obj["kind"], as_text(obj["apiVersion"]).rpartition("/")[0])
    if kind in _OWN_NAMES and as_text(metadata.get("name")):
        yield Use(_OWN_NAMES[kind], as_text(metadata["name"]), metadata["name"])


def _find_field_uses(node: Mapping[str, Node]) -> Iterator[Use]:
    for key, what in _FIELDS.items():
        if key in node and isinstance(value_of(node[key]), str) and value_of(node[key]):
            yield Use(what, as_text(node[key]), node[key])
    for key, what in _REFERENCES.items():
        name = as_mapping(node.get(key)).get("name")
        if as_text(name):
            yield Use(what, as_text(name), name)
    for field in ("labels", "annotations"):
        for key, value in as_mapping(node.get(field)).items():
            if as_text(value) and key in _LABELS:
                yield Use(_LABELS[key], as_text(value), value)
            if as_text(value) and field == "labels":
                yield Use(LABELS, as_text(value), value, str(key))
