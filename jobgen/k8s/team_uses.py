"""What an object uses that a team may own: namespaces, queues, service accounts, priority classes, volumes and kinds.

The whole object is searched by the names of fields, because other kinds and later versions have them in other places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from jobgen.k8s.nodes import as_integer, as_text
from jobgen.model.data import Node

NAMESPACES, QUEUES, ACCOUNTS = "namespaces", "queues", "serviceAccounts"
PRIORITIES, KINDS, LABELS = "priorityClasses", "kinds", "labels"
NODES, VOLUMES, PRIORITY_NUMBERS, IDENTITIES = "nodes", "volumes", "priorities", "cloudIdentities"
_FIELDS: Final = {
    **dict.fromkeys(("serviceAccount", "serviceAccountName"), ACCOUNTS),
    **dict.fromkeys(("priorityClass", "priorityClassName"), PRIORITIES),
    **dict.fromkeys(("queue", "queueName", "clusterQueue"), QUEUES),
    "nodeName": NODES,
    "volumeName": VOLUMES,
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
    "eks.amazonaws.com/role-arn": IDENTITIES,
    "iam.amazonaws.com/role": IDENTITIES,  # kube2iam
    "iam.gke.io/gcp-service-account": IDENTITIES,
    "azure.workload.identity/client-id": IDENTITIES,
    "pod-identity.alibabacloud.com/role-name": IDENTITIES,
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
    """One of the lists of a team, or one of the other names above."""
    value: str
    node: Node
    qualifier: str = ""
    """The API group of a kind, or the key of a label or annotation."""


def find_uses(obj: Mapping[str, Node]) -> list[Use]:
    """Return the names that an object uses, in any depth, and the kinds of the objects inside it."""
    found: list[Use] = []
    below: list[Node] = [obj]
    while below:
        node = below.pop()
        if isinstance(node, list):
            below += reversed(node)
        elif isinstance(node, dict):
            # The kind of an object, and its own name if that counts.
            metadata, kind, version = node.get("metadata"), as_text(node.get("kind")), as_text(node.get("apiVersion"))
            if isinstance(metadata, dict) and kind and version:
                found.append(Use(KINDS, kind, node["kind"], version.rpartition("/")[0]))
                if kind in _OWN_NAMES and as_text(metadata.get("name")):
                    found.append(Use(_OWN_NAMES[kind], as_text(metadata["name"]), metadata["name"]))
            # Outside of pods, a priority is something else.
            if "containers" in node and as_integer(node.get("priority")) and not as_text(node.get("priorityClassName")):
                found.append(Use(PRIORITY_NUMBERS, str(as_integer(node["priority"])), node["priority"]))
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
            for label, text in value.items() if key in ("labels", "annotations") else ():
                if as_text(text) and label in _LABELS:
                    found.append(Use(_LABELS[label], as_text(text), text, str(label)))
                if as_text(text) and key == "labels":
                    found.append(Use(LABELS, as_text(text), text, str(label)))
            below += value.values()
        else:
            name = value.get("name") if isinstance(value, dict) and key in _REFERENCES else None
            if as_text(name):
                found.append(Use(_REFERENCES[key], as_text(name), name))
            below.append(value)
