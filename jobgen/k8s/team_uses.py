"""What an object uses that a team may own: namespaces, queues, service accounts, priority classes and kinds.

The whole object is searched by the names of fields, because other kinds and later versions have them in other places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node

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


def find_uses(obj: Mapping[str, Node]) -> list[Use]:
    """Return the names that an object uses, in any depth, and the kinds of the objects inside it."""
    found: list[Use] = []
    below: list[Node] = [obj]
    while below:
        node = below.pop()
        if isinstance(node, list):
            below += reversed(node)
        elif isinstance(node, dict):
            if isinstance(node.get("metadata"), dict) and as_text(node.get("kind")) and as_text(node.get("apiVersion")):
                found += _find_identity_uses(node)
            _add_fields(node, found, below)
    return found


def _add_fields(node: dict[str, Node], found: list[Use], below: list[Node]) -> None:
    """Add the names that the fields of a mapping use, and the mappings and lists in it."""
    for key, value in reversed(node.items()):
        if not isinstance(value, (dict, list)):
            what = _FIELDS.get(key)
            # A reference names a namespace in `namespace`, or in a field such as `targetNamespace`.
            if what is None and (key == "namespace" or key.endswith("Namespace")):
                what = NAMESPACES
            if what is not None and as_text(value):
                found.append(Use(what, as_text(value), value))
        elif isinstance(value, dict) and key in _CHOSEN_KEYS:
            if key in ("labels", "annotations"):
                found += _find_label_uses(value, is_label=key == "labels")
            below += value.values()
        else:
            name = value.get("name") if isinstance(value, dict) and key in _REFERENCES else None
            if as_text(name):
                found.append(Use(_REFERENCES[key], as_text(name), name))
            below.append(value)


def _find_identity_uses(obj: Mapping[str, Node]) -> Iterator[Use]:
    """Yield the kind of an object, and its own name if that counts."""
    metadata, kind = as_mapping(obj["metadata"]), as_text(obj["kind"])
    yield Use(KINDS, kind, obj["kind"], as_text(obj["apiVersion"]).rpartition("/")[0])
    if kind in _OWN_NAMES and as_text(metadata.get("name")):
        yield Use(_OWN_NAMES[kind], as_text(metadata["name"]), metadata["name"])


def _find_label_uses(labels: Mapping[str, Node], *, is_label: bool) -> Iterator[Use]:
    for key, value in labels.items():
        if as_text(value) and key in _LABELS:
            yield Use(_LABELS[key], as_text(value), value)
        if as_text(value) and is_label:
            yield Use(LABELS, as_text(value), value, str(key))
