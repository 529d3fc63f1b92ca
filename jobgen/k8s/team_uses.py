"""What an object uses that a team may own: namespaces, queues, service accounts, priority classes and kinds.

The whole object is searched by the names of fields, because other kinds and later versions have them in other places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node, value_of

NAMESPACES, QUEUES, ACCOUNTS, PRIORITIES, KINDS = (
    "namespaces",
    "queues",
    "serviceAccounts",
    "priorityClasses",
    "kinds",
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
_LABELS: Final = {
    "kueue.x-k8s.io/queue-name": QUEUES,
    "kueue.x-k8s.io/priority-class": PRIORITIES,
    "scheduling.volcano.sh/queue-name": QUEUES,
    "volcano.sh/queue-name": QUEUES,
    "yunikorn.apache.org/queue": QUEUES,
}
_OWN_NAMES: Final = {"ServiceAccount": ACCOUNTS, "LocalQueue": QUEUES}
"""Kinds whose own names count, because to create one is to use it."""
_TEXTS: Final = frozenset(("data", "stringData", "binaryData"))
"""Mappings whose keys are chosen by users."""


class Use(NamedTuple):
    """A name that an object uses."""

    what: str
    """One of the lists of a team."""
    value: str
    node: Node
    group: str = ""
    """The API group of a kind."""


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
            elif as_text(node.get("namespace")) and ("name" in node or "kind" in node):
                yield Use(NAMESPACES, as_text(node["namespace"]), node["namespace"])
            yield from _find_field_uses(node)
            below += (child for key, child in reversed(node.items()) if key not in _TEXTS)


def _find_identity_uses(obj: Mapping[str, Node]) -> Iterator[Use]:
    """Yield the kind of an object, its namespace, and its own name if that counts."""
    metadata, kind = as_mapping(obj["metadata"]), as_text(obj["kind"])
    yield Use(KINDS, kind, obj["kind"], as_text(obj["apiVersion"]).rpartition("/")[0])
    if as_text(metadata.get("namespace")):
        yield Use(NAMESPACES, as_text(metadata["namespace"]), metadata["namespace"])
    if kind in _OWN_NAMES and as_text(metadata.get("name")):
        yield Use(_OWN_NAMES[kind], as_text(metadata["name"]), metadata["name"])


def _find_field_uses(node: Mapping[str, Node]) -> Iterator[Use]:
    for key, what in _FIELDS.items():
        if key in node and isinstance(value_of(node[key]), str) and value_of(node[key]):
            yield Use(what, as_text(node[key]), node[key])
    for field in ("labels", "annotations"):
        values = as_mapping(node.get(field))
        for key in _LABELS.keys() & values.keys() if values else ():
            if as_text(values[key]):
                yield Use(_LABELS[key], as_text(values[key]), values[key])
