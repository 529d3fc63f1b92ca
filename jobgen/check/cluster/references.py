"""References of objects to other objects by name, and those that lead nowhere."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.cluster.state import CLUSTER_KINDS, NAMED_KINDS, ClusterState, Name, name_object
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.k8s.kueue import DOMAIN, QUEUE_LABEL
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Node, value_of
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import find_meant
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.suggest import did_you_mean

_ALWAYS = {
    "ClusterRole": frozenset(("admin", "cluster-admin", "edit", "view")),
    "ConfigMap": frozenset(("kube-root-ca.crt",)),
    "Namespace": frozenset(("default", "kube-node-lease", "kube-public", "kube-system")),
    "PriorityClass": frozenset(("system-cluster-critical", "system-node-critical")),
    "Queue": frozenset(("default", "root")),
    "ServiceAccount": frozenset(("default",)),
}
"""Objects that every cluster, or every namespace, has."""

_HASH = lazy_pattern(r"-[2456789bcdfghkmt]{10}\Z")

_MAX_NEIGHBORS = 8
"""The names before and after a misspelled one, in alphabetical order, that it is compared with."""

_MAX_KEYS = 100
"""The keys that an object may have for a suggestion."""

_TRAINER_RUNTIMES = ("deepspeed-", "jax-", "mlx-", "torch-", "torchtune-", "xgboost-")


class Reference(NamedTuple):
    """A reference to an object, or to a key of it."""

    kind: str
    node: Node
    key: Node = None
    namespace: str | None = None
    """The namespace of the object; None for that of the object that refers to it."""


class BrokenReference(NamedTuple):
    """A reference to an object, or to a key, that does not exist."""

    node: Node
    message: str
    meant: str = ""
    """The key that was certainly meant, or the name that was probably meant."""
    is_certain: bool = True
    """False if the object may exist somewhere else."""
    related: tuple[tuple[Node, str], ...] = ()


def find_broken_references(manifest: Manifest, state: ClusterState) -> Iterator[BrokenReference]:
    """Find references to objects that do not exist, of kinds that the repository holds completely.

    The keys of a ConfigMap or Secret that the repository has are known in any case, and so is a name that is one slip
    away from that of one, or that only another namespace has.
    """
    wanted = frozenset(state.cluster.complete)
    seen: set[int] = set()
    for reference in list_references(manifest):
        name = as_text(reference.node)
        if not name or reference.kind not in wanted | NAMED_KINDS or _exists_always(reference.kind, name):
            continue
        namespace = manifest.namespace if reference.namespace is None else reference.namespace
        found = (reference.kind, "" if reference.kind in CLUSTER_KINDS else namespace, name)
        # What applies the files may add the namespace.
        bare = (reference.kind, "", name)
        is_certain = reference.kind not in NAMED_KINDS or state.has_object(found) or not state.has_object(bare)
        found = found if is_certain else bare
        if not state.has_object(found):
            if reference.kind in wanted and id(reference.node) not in seen:
                yield BrokenReference(reference.node, _explain_missing(*found, state))
            elif reference.kind in NAMED_KINDS and id(reference.node) not in seen:
                yield from _find_misspelled(reference.node, found, state)
            seen.add(id(reference.node))
            continue
        keys, key = state.keys.get(found), as_text(reference.key)
        if key and keys is not None and key not in keys:
            known = sorted(keys) if len(keys) <= _MAX_KEYS else ()
            hint = _suggest(key, known) or "; correct the key, or add it"
            message = f"{reference.kind} `{_HASH.sub('', name)}` has no key `{key}`{hint}"
            yield BrokenReference(reference.key, message, find_meant(key, known), is_certain, _relate(found, state))


def _find_misspelled(node: Node, wanted: Name, state: ClusterState) -> Iterator[BrokenReference]:
    """Find the object that is probably meant by a name that none of its kind in the namespace has."""
    kind, namespace, name = wanted
    start, known = f"the repository has no {kind} `{name}` in namespace `{namespace}`", state.names.get(wanted[:2], ())
    start = start if namespace else f"the repository has no {kind} `{name}`"
    # The names that kustomize generates end with a hash, and it replaces only right ones.
    own = {_HASH.sub("", each): each for each in known}
    meant = find_meant(name, own)
    if meant:
        related = _relate((kind, namespace, own[meant]), state)
        yield BrokenReference(node, f"{start}; did you mean `{meant}`?", meant, False, related)
    elif namespace and (other := state.places.get((kind, name))) and not _is_added(kind, namespace, state):
        message = f"{start}; the one in namespace `{other}` cannot be used from here"
        yield BrokenReference(node, message, "", False, _relate((kind, other, name), state))


def _is_added(kind: str, namespace: str, state: ClusterState) -> bool:
    """Return True if something copies Secrets into a namespace, or may do so: the files have none of them."""
    return (kind, namespace) not in state.names


def _relate(name: Name, state: ClusterState) -> tuple[tuple[Node, str], ...]:
    """Return where an object is, if it is read as a whole."""
    found = next((obj for obj in state.objects.get(name[0], ()) if name_object(obj) == name), None)
    return ((get_path(found, "metadata", "name"), f"the {name[0]}"),) if found else ()


def _exists_always(kind: str, name: str) -> bool:
    # Trainer installs runtimes of its own.
    prefixes = {"ClusterRole": ("system:",), "ClusterTrainingRuntime": _TRAINER_RUNTIMES}.get(kind, ())
    return name.startswith(prefixes) or name in _ALWAYS.get(kind, ())


def _explain_missing(kind: str, namespace: str, name: str, state: ClusterState) -> str:
    place = f" in namespace `{namespace}`" if namespace else ""
    other = state.places.get((kind, name))
    if other:
        return f"there is no {kind} `{name}`{place}; the one in namespace `{other}` cannot be used from here"
    hint = _suggest(name, state.names.get((kind, namespace), ())) or "; correct the name, or add the object"
    return f"there is no {kind} `{name}`{place}{hint}"


def _suggest(word: str, known: Sequence[str]) -> str:
    """Suggest one of the sorted names next to a word: comparing it with thousands of names takes long."""
    place = bisect_left(known, word)
    return did_you_mean(word, list(known[max(place - _MAX_NEIGHBORS, 0) : place + _MAX_NEIGHBORS]))


def list_references(manifest: Manifest) -> Iterator[Reference]:
    """Yield the references of an object and of its pods."""
    kind, spec = manifest.kind_name, manifest.spec
    if kind not in CLUSTER_SCOPED:
        yield Reference("Namespace", manifest.metadata.get("namespace"))
    yield Reference("LocalQueue", manifest.labels.get(QUEUE_LABEL))
    yield Reference("WorkloadPriorityClass", manifest.labels.get(DOMAIN + "priority-class"))
    yield Reference("PriorityClass", get_path(manifest.run_policy, "schedulingPolicy", "priorityClass"))
    yield Reference("Queue", get_path(manifest.run_policy, "schedulingPolicy", "queue"))
    if as_text(manifest.object.get("apiVersion")).startswith("batch.volcano.sh/"):
        yield Reference("PriorityClass", spec.get("priorityClassName"))
        yield Reference("Queue", spec.get("queue"))
    for named, path in _PATHS.get(kind, ()):
        yield from (Reference(named, node) for node in _follow(manifest.object, path.split("[]")))
    yield from _LISTED_BY_KIND[kind](manifest) if kind in _LISTED_BY_KIND else ()
    for pod in manifest.pods:
        yield from _list_of_pod(pod)


_PATHS = {
    "ClusterQueue": (
        ("ResourceFlavor", "spec.resourceGroups[].flavors[].name"),
        ("AdmissionCheck", "spec.admissionChecks[]"),
        ("AdmissionCheck", "spec.admissionChecksStrategy.admissionChecks[].name"),
    ),
    "Ingress": (("Secret", "spec.tls[].secretName"),),
    "LocalQueue": (("ClusterQueue", "spec.clusterQueue"),),
    "PersistentVolumeClaim": (("StorageClass", "spec.storageClassName"),),
    "ResourceFlavor": (("Topology", "spec.topologyName"),),
    "ServiceAccount": (("Secret", "imagePullSecrets[].name"),),
    "StatefulSet": (("StorageClass", "spec.volumeClaimTemplates[].spec.storageClassName"),),
}
"""Where objects of a kind name objects of other kinds; `[]` is each item of a list."""


def _follow(node: Node, path: Sequence[str]) -> Iterator[Node]:
    """Yield the nodes at a path, whose parts lead from list to list."""
    found = get_path(node, *filter(None, path[0].split(".")))
    if len(path) == 1:
        yield found
    for item in as_list(found) if len(path) > 1 else ():
        yield from _follow(item, path[1:])


def _list_of_train_job(manifest: Manifest) -> Iterator[Reference]:
    reference = as_mapping(manifest.spec.get("runtimeRef"))
    yield Reference(as_text(reference.get("kind")) or "ClusterTrainingRuntime", reference.get("name"))


def _list_of_device_claim(manifest: Manifest) -> Iterator[Reference]:
    spec: Node = manifest.spec if manifest.kind_name == "ResourceClaim" else manifest.spec.get("spec")
    for request in iter_mappings(get_path(spec, "devices", "requests")):
        for part in (request, as_mapping(request.get("exactly")), *iter_mappings(request.get("firstAvailable"))):
            yield Reference("DeviceClass", part.get("deviceClassName"))


def _list_of_binding(manifest: Manifest) -> Iterator[Reference]:
    role = as_mapping(manifest.object.get("roleRef"))
    yield Reference(as_text(role.get("kind")), role.get("name"))
    for subject in iter_mappings(manifest.object.get("subjects")):
        if as_text(subject.get("kind")) == "ServiceAccount":
            namespace = as_text(subject.get("namespace")) or None
            yield Reference("ServiceAccount", subject.get("name"), namespace=namespace)


_LISTED_BY_KIND = {
    "ClusterRoleBinding": _list_of_binding,
    "ResourceClaim": _list_of_device_claim,
    "ResourceClaimTemplate": _list_of_device_claim,
    "RoleBinding": _list_of_binding,
    "TrainJob": _list_of_train_job,
}


def _list_of_pod(pod: Pod) -> Iterator[Reference]:
    spec = pod.spec
    account = "serviceAccountName" if as_text(spec.get("serviceAccountName")) else "serviceAccount"
    yield Reference("ServiceAccount", spec.get(account))
    yield Reference("PriorityClass", spec.get("priorityClassName"))
    yield Reference("RuntimeClass", spec.get("runtimeClassName"))
    for secret in iter_mappings(spec.get("imagePullSecrets")):
        yield Reference("Secret", secret.get("name"))
    for claim in iter_mappings(spec.get("resourceClaims")):
        yield Reference("ResourceClaim", claim.get("resourceClaimName"))
        yield Reference("ResourceClaimTemplate", claim.get("resourceClaimTemplateName"))
    # The claims of a StatefulSet, which its pods may also list as volumes.
    templates = iter_mappings(pod.manifest.spec.get("volumeClaimTemplates"))
    own = frozenset(as_text(get_path(claim, "metadata", "name")) for claim in templates)
    for volume in pod.volumes:
        yield from _list_of_volume(volume, own)
    for container in (*pod.containers, *pod.init_containers):
        sources = [(as_mapping(entry.get("valueFrom")), "KeyRef") for entry in iter_mappings(container.data.get("env"))]
        sources += [(entry, "Ref") for entry in iter_mappings(container.data.get("envFrom"))]
        for source, suffix in sources:
            for kind, name in (("ConfigMap", "configMap"), ("Secret", "secret")):
                reference = as_mapping(source.get(f"{name}{suffix}"))
                if value_of(reference.get("optional")) is not True:
                    yield Reference(kind, reference.get("name"), reference.get("key") if suffix == "KeyRef" else None)


def _list_of_volume(volume: Mapping[str, Node], own_claims: frozenset[str]) -> Iterator[Reference]:
    yield from _list_keys("ConfigMap", as_mapping(volume.get("configMap")), "name")
    yield from _list_keys("Secret", as_mapping(volume.get("secret")), "secretName")
    if as_text(volume.get("name")) not in own_claims:
        yield Reference("PersistentVolumeClaim", get_path(volume, "persistentVolumeClaim", "claimName"))
    yield Reference("StorageClass", get_path(volume, "ephemeral", "volumeClaimTemplate", "spec", "storageClassName"))
    for source in iter_mappings(get_path(volume, "projected", "sources")):
        yield from _list_keys("ConfigMap", as_mapping(source.get("configMap")), "name")
        yield from _list_keys("Secret", as_mapping(source.get("secret")), "name")


def _list_keys(kind: str, source: Mapping[str, Node], field: str) -> Iterator[Reference]:
    """Yield the reference of a volume, and one for each key that it mounts; none if the object is optional."""
    if source and value_of(source.get("optional")) is not True:
        keys: Sequence[Node] = [item.get("key") for item in iter_mappings(source.get("items"))]
        for key in keys or [None]:
            yield Reference(kind, source.get(field), key)
