"""What an object uses that a team may own: namespaces, queues, service accounts, priority classes, volumes and kinds.

The whole object is searched by the names of fields, because other kinds and later versions have them in other places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobgen.k8s.embedded import MAX_DEPTH, Parameters, fill, is_embedded, list_parameters, read_embedded
from jobgen.k8s.nodes import as_integer, as_text
from jobgen.model.data import Node
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

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
_SPARK_LABEL: Final = lazy_pattern(r"spark\.kubernetes\.(?:driver|executor)\.(?:label|annotation)\.(.+)")
_SPARK_ACCOUNT: Final = lazy_pattern(r"spark\.kubernetes\.authenticate\.(?:\w+\.)*serviceAccountName\Z")


class Use(NamedTuple):
    """A name that an object uses."""

    what: str
    """One of the lists of a team, or one of the other names above."""
    value: str
    node: Node
    qualifier: str = ""
    """The API group of a kind, or the key of a label or annotation."""


def find_uses(obj: Mapping[str, Node], parameters: Parameters | None = None, depth: int = 0) -> list[Use]:
    """Return the names that an object uses, in any depth, and the kinds of the objects inside it, also in text."""
    found: list[Use] = []
    parameters = list_parameters(obj) if parameters is None else parameters
    below: list[Node] = [obj]
    while below:
        node = below.pop()
        if isinstance(node, list):
            below += reversed(node)
        elif isinstance(node, dict):
            # The kind of an object, and its own name if that counts.
            metadata, kind, version = node.get("metadata"), as_text(node.get("kind")), as_text(node.get("apiVersion"))
            # An object inside another one can lack metadata; a reference has neither these nor a spec.
            if (isinstance(metadata, dict) or isinstance(node.get("spec"), dict)) and kind and version:
                found.append(Use(KINDS, kind, node["kind"], version.rpartition("/")[0]))
                if kind in _OWN_NAMES and isinstance(metadata, dict) and as_text(metadata.get("name")):
                    found.append(Use(_OWN_NAMES[kind], as_text(metadata["name"]), metadata["name"]))
            # Outside of pods, a priority is something else.
            if "containers" in node and as_integer(node.get("priority")) and not as_text(node.get("priorityClassName")):
                found.append(Use(PRIORITY_NUMBERS, str(as_integer(node["priority"])), node["priority"]))
            _add_fields(node, found, below, parameters, depth)
    return found


def _add_fields(node: dict[str, Node], found: list[Use], below: list[Node], parameters: Parameters, depth: int) -> None:
    """Add the names that the fields of a mapping use, and the mappings and lists in it."""
    for key, value in reversed(node.items()):
        if not isinstance(value, (dict, list)):
            found += _read_field(key, value, parameters, depth)
        elif isinstance(value, dict) and key == "sparkConf":
            for name, text in value.items():
                found += _find_spark_uses(str(name), as_text(text), text)
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


def _read_field(key: str, value: Node, parameters: Parameters, depth: int) -> Iterator[Use]:
    """Yield the name in a field, or the names in the objects that it has as text."""
    what = _FIELDS.get(key)
    # A reference names a namespace in `namespace`, or in a field such as `targetNamespace`.
    if what is None and (key == "namespace" or key.endswith("Namespace")):
        what = NAMESPACES
    text = fill(as_text(value), parameters)
    if what is not None and text:
        yield Use(what, text, value)
    if depth < MAX_DEPTH and is_embedded(key, text):
        for document in read_embedded(text) or ():
            yield from (use._replace(node=value) for use in find_uses(document, parameters, depth + 1))


def _find_spark_uses(name: str, value: str, node: Node) -> Iterator[Use]:
    """Yield what a setting of Spark names."""
    label = _SPARK_LABEL.match(name)
    if not value:
        return
    if name == "spark.kubernetes.namespace":
        yield Use(NAMESPACES, value, node)
    elif _SPARK_ACCOUNT.match(name):
        yield Use(ACCOUNTS, value, node)
    elif label and label[1] in _LABELS:
        yield Use(_LABELS[label[1]], value, node, label[1])
