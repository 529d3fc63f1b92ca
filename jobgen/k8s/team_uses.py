"""What an object uses that a team may own: namespaces, queues, service accounts, priority classes, volumes and kinds.

The whole object is searched by the names of fields, because other kinds and later versions have them in other places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from posixpath import normpath
from typing import Final

from jobgen.k8s.devices import is_device
from jobgen.k8s.embedded import (
    MAX_DEPTH,
    Parameters,
    fill,
    find_resource_text,
    is_creating,
    is_embedded,
    list_parameters,
    read_embedded,
)
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, find_nodes
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.path import parse_dotted
from jobgen.model.place import At, Place, find_at

NAMESPACES, QUEUES, ACCOUNTS = "namespaces", "queues", "serviceAccounts"
PRIORITIES, KINDS, LABELS = "priorityClasses", "kinds", "labels"
NODES, VOLUMES, PRIORITY_NUMBERS, IDENTITIES = "nodes", "volumes", "priorities", "cloudIdentities"
SELECTED_NAMESPACES, UNREAD, OWNERS = "selectedNamespaces", "unread", "owners"
DEVICES, TRAFFIC, TRACKING = "devices", "traffic", "tracking"
FINALIZERS, KEPT = "finalizers", "kept"
_FIELDS: Final = {
    **dict.fromkeys(("serviceAccount", "serviceAccountName"), ACCOUNTS),
    **dict.fromkeys(("priorityClass", "priorityClassName"), PRIORITIES),
    **dict.fromkeys(("queue", "queueName", "clusterQueue", "localQueue", "localQueueName"), QUEUES),
    "nodeName": NODES,
    "volumeName": VOLUMES,
}
_SUFFIXES: Final = (
    (("Namespace", "namespace"), NAMESPACES),
    (("ServiceAccountName",), ACCOUNTS),
    (("PriorityClassName",), PRIORITIES),
)
"""Ends of other names of such fields, as in `targetNamespace` or `taskServiceAccountName`."""
_NO_NAMES: Final = frozenset(("externalStorageNamespace", "metricNamespace"))
"""Fields that end so and name something else."""
_LISTS: Final = {
    **dict.fromkeys(("namespaces", "matchNames"), NAMESPACES),
    **dict.fromkeys(("serviceAccounts", "serviceAccountNames"), ACCOUNTS),
    **dict.fromkeys(("queues", "localQueues"), QUEUES),
    "priorityClasses": PRIORITIES,
}
"""Fields whose value is a list of names, or of mappings with the name."""
_REFERENCES: Final = {"serviceAccount": ACCOUNTS, "serviceAccountRef": ACCOUNTS, "priorityClassRef": PRIORITIES}
"""Fields whose value is a mapping with the name."""
_LABELS: Final = {
    "kueue.x-k8s.io/queue-name": QUEUES,
    "kueue.x-k8s.io/priority-class": PRIORITIES,
    "kueue.x-k8s.io/prebuilt-workload-name": OWNERS,
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
    "aadpodidbinding": IDENTITIES,  # aad-pod-identity of Azure
    "argocd.argoproj.io/tracking-id": TRACKING,
}
_NETWORKS: Final = "k8s.v1.cni.cncf.io/networks"
_network: Final = lazy_pattern(r"(?:^|,)\s*([a-z0-9-]+)/|\"namespace\"\s*:\s*\"([^\"]*)\"")
"""The namespaces of networks: before a slash, or in a list as JSON."""
_CDI: Final = "cdi.k8s.io/"
"""How annotations begin with which a container runtime gives a pod devices that it does not request."""
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
    place: Place
    qualifier: str = ""
    """The API group of a kind, or the key of a label or annotation."""


def find_uses(obj: Mapping[str, Plain], parameters: Parameters | None = None, depth: int = 0) -> list[Use]:
    """Return the names that an object uses, in any depth, and the kinds of the objects inside it, also in text."""
    found: list[Use] = []
    parameters = list_parameters(obj) if parameters is None else parameters
    below: list[Plain] = [obj]
    while below:
        node = below.pop()
        if isinstance(node, list):
            below += reversed(node)
        elif isinstance(node, dict):
            # The kind of an object, and its own name if that counts.
            metadata, kind, version = node.get("metadata"), as_text(node.get("kind")), as_text(node.get("apiVersion"))
            # An object inside another one can lack metadata; a reference has neither these nor a spec.
            if (isinstance(metadata, dict) or isinstance(node.get("spec"), dict)) and kind and version:
                found.append(Use(KINDS, kind, At(node, "kind"), version.rpartition("/")[0]))
                if kind in _OWN_NAMES and isinstance(metadata, dict) and as_text(metadata.get("name")):
                    found.append(Use(_OWN_NAMES[kind], as_text(metadata["name"]), At(metadata, "name")))
                found += find_traffic(node, kind, version.rpartition("/")[0])
                found += _find_kept(as_mapping(metadata))
            # `kubectl` creates the items of a list, which need no kind of their own.
            if kind.endswith("List") and len(kind) > len("List") and isinstance(node.get("items"), list):
                found.append(Use(KINDS, kind.removesuffix("List"), At(node, "kind"), version.rpartition("/")[0]))
            # Outside of pods, a priority is something else.
            if "containers" in node and as_integer(node.get("priority")) and not as_text(node.get("priorityClassName")):
                found.append(Use(PRIORITY_NUMBERS, str(as_integer(node["priority"])), At(node, "priority")))
            _add_fields(node, found, below, parameters, depth)
    return found


def _add_fields(
    node: dict[str, Plain], found: list[Use], below: list[Plain], parameters: Parameters, depth: int
) -> None:
    """Add the names that the fields of a mapping use, and the mappings and lists in it."""
    for key, value in reversed(node.items()):
        if not isinstance(value, (dict, list)):
            found += _read_field(At(node, key), parameters, depth)
        elif isinstance(value, list):
            found += _read_list(key, value, node, parameters)
            below.append(value)
        elif key == "sparkConf":
            for name, text in value.items():
                found += _find_spark_uses(str(name), as_text(text), At(value, name))
        elif key in _CHOSEN_KEYS:
            for label in value if key in ("labels", "annotations") else ():
                found += _read_label(key, At(value, label))
            below += value.values()
        else:
            found += _read_mapping(key, value, node, parameters, depth)
            below.append(value)


def _read_mapping(
    key: str, value: Mapping[str, Plain], node: Mapping[str, Plain], parameters: Parameters, depth: int
) -> Iterator[Use]:
    """Yield the names in a mapping that is a reference, selects namespaces, or creates an object."""
    if key in _REFERENCES and as_text(value.get("name")):
        yield Use(_REFERENCES[key], as_text(value["name"]), At(value, "name"))
    elif key == "namespaceSelector":
        yield from _read_selector(value, node)
    elif key == "namespaces" and isinstance(value.get("names"), list):
        yield from _name_namespaces(as_list(value["names"]))
    elif key == "resource" and "action" in value and is_creating(value, parameters):
        yield from _read_created(value, parameters, depth)


def _name_namespaces(names: Sequence[Plain]) -> Iterator[Use]:
    yield from (Use(NAMESPACES, as_text(name), At(names, at)) for at, name in enumerate(names) if as_text(name))


def _read_label(key: str, place: At) -> Iterator[Use]:
    """Yield what a label or annotation names."""
    text, label = as_text(place.node), str(place.key)
    if not text:
        return
    if label in _LABELS:
        yield Use(_LABELS[label], text, place, label)
    if label == _NETWORKS:
        yield from (Use(NAMESPACES, one or two, place, label) for one, two in _network.findall(text))
    if key == "labels":
        yield Use(LABELS, text, place, label)
    elif label.startswith(_CDI):
        yield Use(DEVICES, text, place, label)


def _read_list(key: str, items: list[Plain], node: Mapping[str, Plain], parameters: Parameters) -> Iterator[Use]:
    """Yield the names in a list."""
    what = _LISTS.get(key) or (NAMESPACES if key.endswith("Namespaces") else None)
    if what is not None:
        for at, item in enumerate(items):
            name = item.get("name") if isinstance(item, dict) else item
            if as_text(name):
                place = At(item, "name") if isinstance(item, dict) else At(items, at)
                yield Use(what, fill(as_text(name), parameters), place)
    elif key == "flags" and "action" in node:
        yield from _read_flags(items, parameters)
    elif key == "ownerReferences":
        yield from _read_owners(items)
    elif key == "env" and not _requests_devices(node):
        yield from _read_variables(items)
    elif key == "volumeMounts":
        yield from _read_mounts(items)


def _read_owners(items: list[Plain]) -> Iterator[Use]:
    for owner in map(as_mapping, items):
        if owner.get("controller") is True:
            yield Use(OWNERS, as_text(owner.get("name")), At(owner, "controller"), "ownerReferences")


def _read_mounts(items: list[Plain]) -> Iterator[Use]:
    """Yield the mounts whose paths name devices, for the runtime of NVIDIA."""
    for mount in map(as_mapping, items):
        path = as_text(mount.get("mountPath"))
        if _DEVICE_MOUNTS.match(f"{normpath('/' + path.lstrip('/'))}/"):
            yield Use(DEVICES, path, At(mount, "mountPath"), "mountPath")


def _read_variables(items: list[Plain]) -> Iterator[Use]:
    """Yield the variable with which a container runtime gives a container devices that it does not request."""
    for variable in map(as_mapping, items):
        is_hidden = as_text(variable.get("value")) in NO_DEVICES and "valueFrom" not in variable
        name = as_text(variable.get("name"))
        if name in VISIBLE_DEVICES and not is_hidden:
            yield Use(DEVICES, as_text(variable.get("value")), At(variable, "name"), name)


VISIBLE_DEVICES: Final = frozenset(
    f"{vendor}_VISIBLE_DEVICES" for vendor in ("AMD", "ASCEND", "CAMBRICON", "HABANA", "MTHREADS", "NVIDIA")
)
"""The variables with which runtimes of containers give these devices."""
_DEVICE_MOUNTS: Final = lazy_pattern(r"(?:/var)?/run/nvidia-container-devices/")
NO_DEVICES: Final = ("", "none", "void")


def _requests_devices(container: Mapping[str, Plain]) -> bool:
    """Return True if a container requests devices, or if another part of the object says what it requests."""
    known = [as_mapping(container.get(field)) for field in ("resources", "computeResources")]
    if "image" not in container and not any(known):
        return True
    names = {str(name) for each in known for side in ("limits", "requests") for name in as_mapping(each.get(side))}
    return any(map(is_device, names)) or any("claims" in each for each in known)


def _read_selector(selector: Mapping[str, Plain], node: Mapping[str, Plain]) -> Iterator[Use]:
    """Yield the namespaces that the selector of a monitor, or of the affinity of a pod, selects."""
    if selector.get("any") is True:
        yield Use(SELECTED_NAMESPACES, "any: true", At(selector, "any"))
    if "topologyKey" not in node:
        return
    # Without `namespaces` beside it, an empty selector selects all namespaces, as other labels can.
    named: list[At] = []
    if (only := find_at(selector, "matchLabels", _NAME_LABEL)) is not None and only.node is not None:
        named.append(only)
    for term in map(as_mapping, as_list(selector.get("matchExpressions"))):
        if as_text(term.get("key")) == _NAME_LABEL and as_text(term.get("operator")) == "In":
            values = as_list(term.get("values"))
            named += (At(values, at) for at in range(len(values)))
    yield from (Use(NAMESPACES, text, place) for place in named if (text := as_text(place.node)))
    if not named:
        yield Use(SELECTED_NAMESPACES, "namespaceSelector", At(node, "topologyKey"))


_NAME_LABEL: Final = "kubernetes.io/metadata.name"


def _read_flags(items: list[Plain], parameters: Parameters) -> Iterator[Use]:
    """Yield what the flags of kubectl name."""
    texts = [fill(as_text(each), parameters) for each in items]
    for position, text in enumerate(texts):
        place = At(items, position)
        name, has_value, value = text.partition("=")
        if name.startswith("-n") and len(name) > 2 and not name.startswith("--"):
            name, has_value, value = "-n", "=", text[2:].removeprefix("=")
        if not has_value:
            value = texts[position + 1] if position + 1 < len(texts) else ""
        if name in ("-n", "--namespace") and value:
            yield Use(NAMESPACES, value, place)
        elif name in ("-A", "--all-namespaces") and value != "false":
            yield Use(SELECTED_NAMESPACES, name, place)
        elif name == "--as" and value.startswith(_ACCOUNT_USER):
            namespace, _, account = value.removeprefix(_ACCOUNT_USER).partition(":")
            yield from (Use(NAMESPACES, namespace, place), Use(ACCOUNTS, account, place))


_ACCOUNT_USER: Final = "system:serviceaccount:"


def _read_created(resource: Mapping[str, Plain], parameters: Parameters, depth: int) -> Iterator[Use]:
    """Yield the text of an object that a Workflow creates if it cannot be read."""
    field, place = find_resource_text(resource)
    node = place.node
    text = fill(as_text(node), parameters)
    documents = read_embedded(text) if text and depth < MAX_DEPTH else None
    if node is not None and (documents is None or not all(as_text(each.get("kind")) for each in documents)):
        yield Use(UNREAD, field, At(resource, field) if isinstance(node, dict) else place)


def _read_field(place: At, parameters: Parameters, depth: int) -> Iterator[Use]:
    """Yield the name in a field, or the names in the objects that it has as text."""
    key, value = place.key, place.node
    what = _FIELDS.get(key)
    if what is None and key not in _NO_NAMES:
        what = next((each for ends, each in _SUFFIXES if key.endswith(ends)), None)
    if key == "adminAccess" and value is True:
        yield Use(DEVICES, "true", place, key)
    text = fill(as_text(value), parameters)
    if what is not None and text:
        yield Use(what, text, place)
    if depth < MAX_DEPTH and is_embedded(key, text):
        for document in read_embedded(text) or ():
            yield from (use._replace(place=place) for use in find_uses(document, parameters, depth + 1))


def _find_kept(metadata: Mapping[str, Plain]) -> Iterator[Use]:
    """Yield what keeps an object when it is deleted from Git and from the cluster."""
    annotations = as_mapping(metadata.get("annotations"))
    options = as_text(annotations.get("argocd.argoproj.io/sync-options")).lower().replace(" ", "").split(",")
    flux = as_text(annotations.get("kustomize.toolkit.fluxcd.io/prune")).lower()
    helm = as_text(annotations.get("helm.sh/resource-policy")).lower()
    is_kept = flux == "disabled" or "prune=false" in options
    if is_kept or helm == "keep":
        name = next(name for name in _KEEPING if name in annotations)
        yield Use(KEPT, as_text(annotations[name]), At(annotations, name), name)
    finalizers = as_list(metadata.get("finalizers"))
    for at, each in enumerate(finalizers) if is_kept else ():
        if as_text(each) not in _DELETING:
            yield Use(FINALIZERS, as_text(each), At(finalizers, at))


_KEEPING: Final = (
    "argocd.argoproj.io/sync-options",
    "kustomize.toolkit.fluxcd.io/prune",
    "helm.sh/resource-policy",
)
_DELETING: Final = ("foregroundDeletion", "orphan", "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection")
"""Finalizers that Kubernetes itself removes."""
_HOSTS: Final = {
    ("networking.istio.io", "VirtualService"): "hosts",
    ("networking.istio.io", "DestinationRule"): "host",
    ("networking.istio.io", "ServiceEntry"): "hosts",
    ("networking.k8s.io", "Ingress"): "rules.*.host",
    ("gateway.networking.k8s.io", "GRPCRoute"): "hostnames",
    ("gateway.networking.k8s.io", "HTTPRoute"): "hostnames",
    ("gateway.networking.k8s.io", "TLSRoute"): "hostnames",
    ("route.openshift.io", "Route"): "host",
    ("", "Service"): "externalIPs",
}
"""Where the spec of a kind has the hosts or addresses whose traffic it takes."""
EXTERNAL_NAME: Final = "externalName"
_SERVICE_HOST: Final = lazy_pattern(r"(?:[^.]+\.)?([^.]+)\.svc(?:\.|\Z)")
_MESH_WIDE: Final = lazy_pattern(r"\*\.(?:svc\.)?(?:cluster\.)?local\Z")


def find_traffic(obj: Mapping[str, Plain], kind: str, group: str) -> Iterator[Use]:
    """Yield the addresses whose traffic an object takes, and the namespaces of hosts; `*` is every namespace."""
    path = _HOSTS.get((group, kind))
    name = find_at(obj, "spec", "externalName") if (group, kind) == ("", "Service") else None
    if name is not None and (found := _SERVICE_HOST.match(as_text(name.node))):
        yield Use(TRAFFIC, found[1], name, EXTERNAL_NAME)
    *before, last = parse_dotted(path) if path else ("",)
    for holder in find_nodes(obj.get("spec"), before) if path else ():
        node = as_mapping(holder).get(str(last))
        own = At(holder, str(last))
        for host in [At(node, at) for at in range(len(node))] if isinstance(node, list) else (own,) if node else ():
            text = as_text(host.node)
            if kind == "Service" and text:
                yield Use(TRAFFIC, text, host, "externalIPs")
            elif _MESH_WIDE.match(text):
                yield Use(TRAFFIC, "*", host, text)
            elif found := _SERVICE_HOST.match(text):
                yield Use(TRAFFIC, found[1], host, text)
            elif group == "networking.istio.io" and text.count(".") == 1:
                # Istio also knows a service by its name and namespace alone.
                yield Use(TRAFFIC, text.partition(".")[2], host, text)


def _find_spark_uses(name: str, value: str, place: At) -> Iterator[Use]:
    """Yield what a setting of Spark names."""
    label = _SPARK_LABEL.match(name)
    if not value:
        return
    if name == "spark.kubernetes.namespace":
        yield Use(NAMESPACES, value, place)
    elif _SPARK_ACCOUNT.match(name):
        yield Use(ACCOUNTS, value, place)
    elif label and label[1] in _LABELS:
        yield Use(_LABELS[label[1]], value, place, label[1])
