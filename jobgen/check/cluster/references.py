"""References of objects to other objects by name, and those that lead nowhere."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from jobgen.check.admission.fields import iter_mappings
from jobgen.check.cluster.state import CLUSTER_KINDS, NAMED_KINDS, ClusterState, Name, name_object
from jobgen.k8s.kinds import CLUSTER_SCOPED
from jobgen.k8s.kueue import DOMAIN, QUEUE_LABEL
from jobgen.k8s.nodes import as_list, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.data import Plain
from jobgen.model.finding import Problem
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import find_meant
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place, find_at, identify
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

_COPYING = ("reflector", "replicator", "kubed", "sync", "cloneset", "replicate", "copy")
"""What labels and annotations are called with which controllers copy an object to other namespaces."""

_HASH = lazy_pattern(r"-[2456789bcdfghkmt]{10}\Z")

_MAX_NEIGHBORS = 8
"""The names before and after a misspelled one, in alphabetical order, that it is compared with."""

_MAX_KEYS = 100
"""The keys that an object may have for a suggestion."""

_TRAINER_RUNTIMES = ("deepspeed-", "jax-", "mlx-", "torch-", "torchtune-", "xgboost-")


class Reference(NamedTuple):
    """A reference to an object, or to a key of it: the mapping or list that has the name, and where."""

    kind: str
    holder: Any
    field: Any
    item: Mapping[str, Plain] | None = None
    """What has the `key` of the object, if the reference is to one."""
    owner: Mapping[str, Plain] | None = None
    """What has the `namespace` of the object; without one, it is that of the object that refers to it."""
    variable: str = ""
    """The environment variable whose value is that of the key."""

    @property
    def name(self) -> str:
        """The name of the object; empty if there is none."""
        holder = self.holder
        return as_text(holder.get(self.field) if isinstance(holder, dict) else holder[self.field])


class BrokenReference(NamedTuple):
    """A reference to an object, or to a key, that does not exist."""

    node: At
    message: str
    meant: str = ""
    """The key that was certainly meant, or the name that was probably meant."""
    is_certain: bool = True
    """False if the object may exist somewhere else."""
    related: tuple[tuple[Place, str], ...] = ()
    finish: Callable[[Problem, bool], Problem | None] | None = None
    """See `Problem.finish`."""


def find_broken_references(manifest: Manifest, state: ClusterState) -> Iterator[BrokenReference]:
    """Find references to objects that do not exist, of kinds that the repository holds completely.

    The keys of a ConfigMap or Secret that the repository has are known in any case, and so is a name that is one slip
    away from that of one, or that only another namespace has. What a document that could not be rendered may define is
    not compared.
    """
    wanted = frozenset(state.cluster.complete)
    read = wanted | NAMED_KINDS
    seen: set[object] = set()
    for reference in list_references(manifest):
        name = reference.name if reference.kind in read else ""
        if not name or _exists_always(reference.kind, name):
            continue
        namespace = (as_text(reference.owner.get("namespace")) if reference.owner else "") or manifest.namespace
        found = (reference.kind, "" if reference.kind in CLUSTER_KINDS else namespace, name)
        # What applies the files may add the namespace.
        bare = (reference.kind, "", name)
        is_certain = reference.kind not in NAMED_KINDS or state.has_object(found) or not state.has_object(bare)
        found = found if is_certain else bare
        if not state.has_object(found):
            place = At(reference.holder, reference.field)
            if state.unread is not None and state.unread.may_define(found):
                continue
            if reference.kind in wanted and identify(place) not in seen:
                yield BrokenReference(place, _explain_missing(*found, state))
            elif reference.kind in NAMED_KINDS and identify(place) not in seen:
                yield from _find_misspelled(reference, place, found, state)
            seen.add(identify(place))
            continue
        keys, key = state.keys.get(found), as_text(reference.item.get("key")) if reference.item else ""
        if key and keys is not None and key not in keys:
            # Another document may make the same object, with more keys.
            if state.unread is not None and state.unread.may_define(found):
                continue
            known = sorted(keys) if len(keys) <= _MAX_KEYS else ()
            hint = _suggest(key, known) or "; correct the key, or add it"
            meant = find_meant(key, known)
            if reference.variable in keys and key.isupper() and not reference.variable.isupper():
                hint, meant = f", but a key `{reference.variable}`, which is the variable here; swap the two", ""
            message = f"{reference.kind} `{_HASH.sub('', name)}` has no key `{key}`{hint}"
            place = At(reference.item, "key")
            yield BrokenReference(place, message, meant, is_certain, _relate(found, state))


def _find_misspelled(reference: Reference, place: At, wanted: Name, state: ClusterState) -> Iterator[BrokenReference]:
    """Find the object that is probably meant by a name that none of its kind in the namespace has."""
    kind, namespace, name = wanted
    start, known = f"the repository has no {kind} `{name}` in namespace `{namespace}`", state.names.get(wanted[:2], ())
    start = start if namespace else f"the repository has no {kind} `{name}`"
    # The names that kustomize generates end with a hash, and it replaces only right ones.
    own = {_HASH.sub("", each): each for each in known}
    meant = find_meant(name, own)
    # Those of kustomize have the namespace of what applies them, if their kustomization has none.
    bare = {_HASH.sub("", each): each for each in state.names.get((kind, ""), ())} if namespace and not meant else {}
    if meant:
        related = _relate((kind, namespace, own[meant]), state)
        yield BrokenReference(place, f"{start}; did you mean `{meant}`?", meant, False, related)
    elif meant := find_meant(name, bare):
        found = (kind, "", bare[meant])
        folder = _find_folder(_find_object(found, state), state)
        finish = None if folder is None else partial(_keep_beside, folder)
        yield BrokenReference(place, f"{start}; did you mean `{meant}`?", meant, False, _relate(found, state), finish)
    elif namespace and (other := state.places.get((kind, name))):
        is_compared = (kind, namespace) in state.names
        folder = None if is_compared else _find_folder(_find_object((kind, other, name), state), state)
        if is_compared or folder is not None:
            finish = None if folder is None else partial(_keep_beside, folder)
            message, related = f"{kind} `{name}` is in namespace `{other}`", _relate((kind, other, name), state)
            if reference.owner is not None and as_text(reference.owner.get("namespace")):
                message += f", and the binding names `{namespace}`, so it grants nothing; write `namespace: {other}`"
                yield BrokenReference(At(reference.owner, "namespace"), message, "", False, related, finish)
            else:
                message += f", and cannot be used in namespace `{namespace}`; write the same namespace in both"
                yield BrokenReference(place, message, "", False, related, finish)


def _find_folder(found: Mapping[str, Plain], state: ClusterState) -> str | None:
    """Return the folder of an object; None if it is not known, or if something copies it to other namespaces."""
    metadata = as_mapping(found.get("metadata"))
    location = state.origins.find_location(find_at(metadata, "name"))
    marks = (*as_mapping(metadata.get("annotations")), *as_mapping(metadata.get("labels")))
    if location is None or any(word in mark for mark in marks for word in _COPYING):
        return None
    return location.file.rpartition("/")[0]


def _keep_beside(folder: str, problem: Problem, is_spec: bool) -> Problem | None:
    """Keep a problem of a reference in the folder of an object: folders are often those of environments.

    Each has its namespace.
    """
    own = problem.location
    return problem if own is None or own.file.rpartition("/")[0] == folder else None


def _find_object(name: Name, state: ClusterState) -> Mapping[str, Plain]:
    """Return an object that is read as a whole; an empty one if it is not."""
    return next((obj for obj in state.objects.get(name[0], ()) if name_object(obj) == name), {})


def _relate(name: Name, state: ClusterState) -> tuple[tuple[Place, str], ...]:
    """Return where an object is, if it is read as a whole."""
    found = _find_object(name, state)
    # A part of it, such as the keys of a ConfigMap, has no location.
    place = find_at(found, "metadata", "name") if found else None
    return ((place, f"the {name[0]}"),) if state.origins.find_location(place) else ()


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
        yield Reference("Namespace", manifest.metadata, "namespace")
    yield Reference("LocalQueue", manifest.labels, QUEUE_LABEL)
    yield Reference("WorkloadPriorityClass", manifest.labels, DOMAIN + "priority-class")
    policy = as_mapping(manifest.run_policy.get("schedulingPolicy"))
    yield Reference("PriorityClass", policy, "priorityClass")
    yield Reference("Queue", policy, "queue")
    if as_text(manifest.object.get("apiVersion")).startswith("batch.volcano.sh/"):
        yield Reference("PriorityClass", spec, "priorityClassName")
        yield Reference("Queue", spec, "queue")
    for named, path in _PATHS.get(kind, ()):
        yield from (Reference(named, *place) for place in _follow(manifest.object, path.split("[]")))
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


def _follow(node: Plain, path: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Yield where the nodes at a path are, whose parts lead from list to list: what holds each, and its key."""
    steps = [*filter(None, path[0].split("."))]
    if len(path) == 1:
        holder = get_path(node, *steps[:-1])
        if isinstance(holder, dict):
            yield holder, steps[-1]
        return
    items = as_list(get_path(node, *steps))
    for index, item in enumerate(items):
        if path[1:] == [""]:
            yield items, index
        else:
            yield from _follow(item, path[1:])


def _list_of_train_job(manifest: Manifest) -> Iterator[Reference]:
    reference = as_mapping(manifest.spec.get("runtimeRef"))
    yield Reference(as_text(reference.get("kind")) or "ClusterTrainingRuntime", reference, "name")


def _list_of_device_claim(manifest: Manifest) -> Iterator[Reference]:
    spec: Plain = manifest.spec if manifest.kind_name == "ResourceClaim" else manifest.spec.get("spec")
    for request in iter_mappings(get_path(spec, "devices", "requests")):
        for part in (request, as_mapping(request.get("exactly")), *iter_mappings(request.get("firstAvailable"))):
            yield Reference("DeviceClass", part, "deviceClassName")


def _list_of_binding(manifest: Manifest) -> Iterator[Reference]:
    role = as_mapping(manifest.object.get("roleRef"))
    yield Reference(as_text(role.get("kind")), role, "name")
    for subject in iter_mappings(manifest.object.get("subjects")):
        if as_text(subject.get("kind")) == "ServiceAccount":
            yield Reference("ServiceAccount", subject, "name", owner=subject)


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
    yield Reference("ServiceAccount", spec, account)
    yield Reference("PriorityClass", spec, "priorityClassName")
    yield Reference("RuntimeClass", spec, "runtimeClassName")
    for secret in iter_mappings(spec.get("imagePullSecrets")):
        yield Reference("Secret", secret, "name")
    for claim in iter_mappings(spec.get("resourceClaims")):
        yield Reference("ResourceClaim", claim, "resourceClaimName")
        yield Reference("ResourceClaimTemplate", claim, "resourceClaimTemplateName")
    # The claims of a StatefulSet, which its pods may also list as volumes.
    templates = iter_mappings(pod.manifest.spec.get("volumeClaimTemplates"))
    own = frozenset(as_text(get_path(claim, "metadata", "name")) for claim in templates)
    for volume in pod.volumes:
        yield from _list_of_volume(volume, own)
    for container in (*pod.containers, *pod.init_containers):
        sources = [
            (as_mapping(entry.get("valueFrom")), "KeyRef", as_text(entry.get("name")))
            for entry in iter_mappings(container.data.get("env"))
        ]
        sources += [(entry, "Ref", "") for entry in iter_mappings(container.data.get("envFrom"))]
        for source, suffix, variable in sources:
            for kind, name in (("ConfigMap", "configMap"), ("Secret", "secret")):
                reference = as_mapping(source.get(f"{name}{suffix}"))
                if reference.get("optional") is not True:
                    item = reference if suffix == "KeyRef" else None
                    yield Reference(kind, reference, "name", item, variable=variable)


def _list_of_volume(volume: Mapping[str, Plain], own_claims: frozenset[str]) -> Iterator[Reference]:
    yield from _list_keys("ConfigMap", as_mapping(volume.get("configMap")), "name")
    yield from _list_keys("Secret", as_mapping(volume.get("secret")), "secretName")
    if as_text(volume.get("name")) not in own_claims:
        yield Reference("PersistentVolumeClaim", as_mapping(volume.get("persistentVolumeClaim")), "claimName")
    claim = as_mapping(get_path(volume, "ephemeral", "volumeClaimTemplate", "spec"))
    yield Reference("StorageClass", claim, "storageClassName")
    for source in iter_mappings(get_path(volume, "projected", "sources")):
        yield from _list_keys("ConfigMap", as_mapping(source.get("configMap")), "name")
        yield from _list_keys("Secret", as_mapping(source.get("secret")), "name")


def _list_keys(kind: str, source: Mapping[str, Plain], field: str) -> Iterator[Reference]:
    """Yield the reference of a volume, and one for each key that it mounts; none if the object is optional."""
    if source and source.get("optional") is not True:
        items = list(iter_mappings(source.get("items")))
        yield from (Reference(kind, source, field, item) for item in items)
        if not items:
            yield Reference(kind, source, field)
