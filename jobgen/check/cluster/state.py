"""The objects of a cluster that decide about others, from the repository and from the exported state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from jobgen.check.pod_security.checks import Level, list_levels
from jobgen.k8s.kinds import CLUSTER_SCOPED, Release, parse_release, qualify_kind
from jobgen.k8s.nodes import as_integer, as_list, as_mapping, as_text, get_path
from jobgen.k8s.object_paths import is_app_wrapper, list_wrapped_objects
from jobgen.model.data import Plain
from jobgen.model.features import find_parts
from jobgen.model.limits import MAX_LIMITING_AMOUNTS, MAX_LIMITING_OBJECTS, MAX_QUOTA_AMOUNTS
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.origins import NO_ORIGINS, Origins
from jobgen.model.place import At, find_at
from jobgen.spec.overlay import Cluster


class PartState(Protocol):
    """What is known of one cluster: the second argument of rules of the scope of a part."""

    def list_exported(self) -> Sequence[Mapping[str, Plain]]:
        """Return the objects of the exported state that these rules check."""


Others = Mapping[str, tuple[Cluster, Sequence[Mapping[str, Plain]]]]
"""Other clusters by name, each with its exported objects."""


class StatePart(NamedTuple):
    """A part of the state of clusters."""

    scope: str
    kinds: frozenset[str]
    """A cluster has this part if an object of one of these kinds is known."""
    list_kinds: Callable[[], frozenset[str]]
    """Return the kinds of objects that it needs as a whole."""
    build: Callable[[Cluster, Sequence[Mapping[str, Plain]], Sequence[Mapping[str, Plain]], Others], PartState]
    """Build it from exported objects, objects of the repository, which replace them, and those of other clusters."""
    find_others: Callable[[Any, Cluster], Mapping[str, Cluster]] = lambda *_: {}
    """Return the other clusters of a project whose exported state it needs, by name."""
    uncertain: frozenset[str] = frozenset()
    """Rules whose findings are warnings if only the objects of one file are known."""
    joined: frozenset[str] = frozenset()
    """Kinds whose objects belong to one cluster also where they are in several files, unless one is there twice."""
    find_used: Callable[[str], Iterable[str]] = lambda _: ()
    """Return the names of objects of these kinds that a file may use, from its text."""


def list_state_parts() -> list[StatePart]:
    """Return the parts that the features of this installation add."""
    return find_parts("cluster.state")


CLUSTER_KINDS = CLUSTER_SCOPED | {"Queue"}
"""Kinds whose objects have no namespace here; a Queue is that of Volcano."""

Name = tuple[str, str, str]
"""Kind, namespace and name of an object; the namespace of kinds without one is empty.

The kind of another group than the one that is known by this name has its group.
"""


def replace_exported(
    exported: Iterable[Mapping[str, Plain]], own: Iterable[Mapping[str, Plain]]
) -> list[Mapping[str, Plain]]:
    """Return the exported objects and those of the repository, which replace them."""
    known: dict[Name | int, Mapping[str, Plain]] = {_get_key(obj): obj for obj in exported}
    seen: dict[Name | int, Mapping[str, Plain]] = {}
    for obj in own:
        name = _get_key(obj)
        if seen.setdefault(name, obj) == obj:
            known[name] = obj
        else:
            known.pop(name, None)
    return list(known.values())


def name_object(obj: Mapping[str, Plain]) -> Name:
    """Return the kind, namespace and name of an object."""
    metadata = as_mapping(obj.get("metadata"))
    kind = qualify_kind(as_text(obj.get("apiVersion")), as_text(obj.get("kind")))
    namespace = "" if kind in CLUSTER_KINDS else as_text(metadata.get("namespace"))
    return kind, namespace, as_text(metadata.get("name"))


def show_name(obj: Mapping[str, Plain]) -> str:
    """Return the name of an object for messages; the beginning of one that the API server generates."""
    return name_object(obj)[2] or as_text(as_mapping(obj.get("metadata")).get("generateName"))


def _get_key(obj: Mapping[str, Plain]) -> Name | int:
    """Return what identifies an object. One without a name gets its own from the API server, so it is like no other."""
    name = name_object(obj)
    return name if name[2] else id(obj)


_DECIDING_KINDS = frozenset(
    """ClusterTrainingRuntime DeviceClass LimitRange Namespace PriorityClass Queue ResourceClaimTemplate ResourceQuota
    StorageClass TrainingRuntime""".split()
)

RUNTIME_KINDS = ("ClusterTrainingRuntime", "TrainingRuntime")
GANG_KINDS = frozenset(
    "CronJob JAXJob Job MPIJob PaddleJob PodGroup PyTorchJob RayCluster RayJob TFJob XGBoostJob".split()
)
"""Kinds whose pods a queue of Volcano can admit together."""
KEYED_KINDS = frozenset(("ConfigMap", "Secret"))
"""Kinds whose keys other objects refer to."""

NAMED_KINDS = KEYED_KINDS | {"PersistentVolumeClaim", "ServiceAccount"}
"""Kinds whose names are compared with those that are known, also if more objects may exist."""

CONFIG_KINDS = frozenset(("ConfigMap", "ExternalSecret", "SealedSecret", "Secret"))
"""Kinds whose objects say which keys a ConfigMap or a Secret has."""

_ADDING = ("Merge", "None")
"""How External Secrets treats a Secret that something else creates."""

_CREATING_KINDS = frozenset(("AppWrapper", "Certificate", "ExternalSecret", "Profile", "SealedSecret", "StatefulSet"))
"""Kinds from whose objects controllers create objects that others refer to."""


class Doubt(Protocol):
    """What is not known of the objects of a cluster."""

    def may_define(self, name: Name) -> bool:
        """Return True if something that could not be read may define an object."""


class ClusterState(NamedTuple):
    """What is known of a cluster."""

    cluster: Cluster
    release: Release
    levels: Mapping[str, tuple[tuple[Level, At], ...]]
    """The Pod Security levels of namespaces, each with the place of its label."""
    limit_ranges: Mapping[str, tuple[Mapping[str, Plain], ...]]
    quotas: Mapping[str, tuple[Mapping[str, Plain], ...]]
    keys: Mapping[Name, frozenset[str] | None]
    """All known objects; the keys of ConfigMaps and Secrets if they are known."""
    keyed_namespaces: frozenset[str] = frozenset()
    """The namespaces that have ConfigMaps or Secrets, or claims and accounts whose names are compared."""
    injecting: Mapping[str, tuple[str, At]] = MappingProxyType({})
    """The namespaces whose service mesh adds a proxy to all pods: its name, and the place that says so."""
    priorities: Mapping[str, Mapping[str, Plain]] = MappingProxyType({})
    """The known PriorityClasses."""
    default_priority: str = ""
    default_storage: str = ""
    claim_templates: Mapping[tuple[str, str], Mapping[str, Plain]] = MappingProxyType({})
    device_resources: Mapping[str, str] = MappingProxyType({})
    runtimes: Mapping[Name, Mapping[str, Plain]] = MappingProxyType({})
    volcano_queues: Mapping[str, Mapping[str, Plain]] = MappingProxyType({})
    names: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType({})
    """The names of all known objects, by kind and namespace; of ConfigMaps and Secrets only, without `complete`."""
    places: Mapping[tuple[str, str], str] = MappingProxyType({})
    """The first namespace that has one of these objects, by kind and name."""
    claims: Mapping[tuple[str, str], int] = MappingProxyType({})
    """The claims of StatefulSets, by namespace and name without number: how many there are."""
    left_out: tuple[Mapping[str, Plain], ...] = ()
    """Limit ranges and quotas beyond the number that is applied in a namespace."""
    objects: Mapping[str, Sequence[Mapping[str, Plain]]] = MappingProxyType({})
    """All known objects that are read as a whole, by kind."""
    parts: Mapping[str, PartState] = MappingProxyType({})
    """What features know of the cluster, by the scope of the rules that receive it."""
    unread: Doubt | None = None
    """The documents of the repository that could not be rendered; None if there are none."""
    origins: Origins = NO_ORIGINS
    """Where its objects were read."""

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces that restrict their objects."""
        return frozenset((*self.levels, *self.limit_ranges, *self.quotas, *self.injecting)) | self.keyed_namespaces

    @property
    def decided_kinds(self) -> frozenset[str]:
        """The kinds of objects that runtimes and queues decide about, in all namespaces."""
        return frozenset(("TrainJob",) if self.runtimes else ()) | (GANG_KINDS if self.volcano_queues else frozenset())

    def has_object(self, name: Name) -> bool:
        """Return True if an object is known, or a claim that a StatefulSet creates."""
        if name in self.keys:
            return True
        prefix, _, number = name[2].rpartition("-")
        is_number = len(number) < 10 and number.isdecimal() and str(int(number)) == number
        return name[0] == "PersistentVolumeClaim" and is_number and int(number) < self.claims.get((name[1], prefix), 0)


def list_kinds_to_read(parts: Iterable[StatePart], *, with_references: bool) -> frozenset[str]:
    """Return the kinds of objects that the state needs as a whole; of others, it needs the names."""
    kinds = _DECIDING_KINDS | CONFIG_KINDS | (_CREATING_KINDS if with_references else frozenset())
    return kinds.union(*(part.list_kinds() for part in parts))


def build_state(
    cluster: Cluster,
    exported: Iterable[Mapping[str, Plain]],
    own: Iterable[Mapping[str, Plain]],
    names: Iterable[Name],
    origins: Origins = NO_ORIGINS,
) -> ClusterState:
    """Build the state from exported objects, objects of the repository, which replace them, and names of others.

    An object that the repository has twice, and not the same, may be meant for different clusters: it does not count.
    """
    known = replace_exported(exported, own)
    keys: dict[Name, frozenset[str] | None] = dict.fromkeys(names)
    defined: dict[Name, frozenset[str] | None] = {}
    found: dict[str, list[Mapping[str, Plain]]] = {}
    for obj in known:
        for name, some in _list_names(obj).items():
            others = defined.get(name, some)
            # Two objects can make one Secret: it has the keys of both.
            defined[name] = None if some is None or others is None else some | others
        found.setdefault(name_object(obj)[0], []).append(obj)
    keys.update(defined)
    levels: dict[str, tuple[tuple[Level, At], ...]] = {}
    injecting = {name_object(obj)[2]: mesh for obj in found.get("Namespace", ()) if (mesh := _find_mesh(obj))}
    for obj in found.get("Namespace", ()):
        labels = as_mapping(get_path(obj, "metadata", "labels"))
        listed = tuple((level, At(labels, level.label)) for level in list_levels(labels))
        if listed:
            levels[name_object(obj)[2]] = listed
    priorities = (obj for obj in found.get("PriorityClass", ()) if obj.get("globalDefault") is True)
    by_default = ("metadata", "annotations", "storageclass.kubernetes.io/is-default-class")
    storages = (obj for obj in found.get("StorageClass", ()) if as_text(get_path(obj, *by_default)) == "true")
    devices = found.get("DeviceClass", ())
    left_out: list[Mapping[str, Plain]] = []
    followed = keys if cluster.complete else [name for name in keys if name[0] in NAMED_KINDS]
    return ClusterState(
        cluster,
        parse_release(cluster.kubernetes),
        levels,
        _group_by_namespace(found.get("LimitRange", ()), MAX_LIMITING_AMOUNTS, left_out),
        _group_by_namespace(found.get("ResourceQuota", ()), MAX_QUOTA_AMOUNTS, left_out),
        keys,
        keyed_namespaces=frozenset(name[1] for name in keys if name[0] in NAMED_KINDS),
        injecting=injecting,
        priorities={name_object(obj)[2]: obj for obj in found.get("PriorityClass", ())},
        default_priority=next((name_object(obj)[2] for obj in priorities), ""),
        default_storage=next((name_object(obj)[2] for obj in storages), ""),
        claim_templates={name_object(obj)[1:]: obj for obj in found.get("ResourceClaimTemplate", ())},
        device_resources={
            name_object(obj)[2]: as_text(get_path(obj, "spec", "extendedResourceName")) for obj in devices
        },
        runtimes={name_object(obj): obj for kind in RUNTIME_KINDS for obj in found.get(kind, ())},
        volcano_queues={name_object(obj)[2]: obj for obj in found.get("Queue", ())},
        names=_index_names(followed),
        places={(kind, name): place for kind, place, name in sorted(followed, reverse=True) if place},
        claims={key: count for obj in known for key, count in _count_claims(obj)},
        left_out=tuple(left_out),
        objects=found,
        origins=origins,
    )


_MESHES = {
    ("labels", "istio-injection"): ("Istio", "enabled"),
    ("labels", "istio.io/rev"): ("Istio", ""),
    ("annotations", "linkerd.io/inject"): ("Linkerd", "enabled"),
}
"""Labels and annotations of namespaces with which a service mesh adds a proxy to pods, and their values, if fixed."""


def _find_mesh(namespace: Mapping[str, Plain]) -> tuple[str, At] | None:
    """Return the service mesh that adds a proxy to the pods of a namespace, and the place that says so."""
    for path, (mesh, wanted) in _MESHES.items():
        place = find_at(namespace, "metadata", *path)
        found = as_text(place.node) if place is not None else ""
        if place is not None and found and found == (wanted or found):
            is_off = as_text(get_path(namespace, "metadata", "labels", "istio-injection")) == "disabled"
            return None if is_off and mesh == "Istio" else (mesh, place)
    return None


def _group_by_namespace(
    objects: Iterable[Mapping[str, Plain]], most: int, left_out: list[Mapping[str, Plain]]
) -> dict[str, tuple[Mapping[str, Plain], ...]]:
    """The objects of each namespace, as long as they have no more amounts together than `most`."""
    found: dict[str, list[Mapping[str, Plain]]] = {}
    amounts: dict[str, int] = {}
    for obj in objects:
        namespace = name_object(obj)[1]
        several = found.setdefault(namespace, [])
        items = map(as_mapping, as_list(get_path(obj, "spec", "limits")))
        count = sum(len(as_mapping(field)) for item in items for field in item.values())
        amounts[namespace] = amounts.get(namespace, 0) + count + len(as_mapping(get_path(obj, "spec", "hard")))
        is_applied = len(several) < MAX_LIMITING_OBJECTS and amounts[namespace] <= most
        (several if is_applied else left_out).append(obj)
    return {namespace: tuple(several) for namespace, several in found.items()}


def _index_names(keys: Iterable[Name]) -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], list[str]] = {}
    for kind, namespace, name in sorted(keys):
        found.setdefault((kind, namespace), []).append(name)
    return {key: tuple(names) for key, names in found.items()}


def _list_names(obj: Mapping[str, Plain]) -> dict[Name, frozenset[str] | None]:
    """The objects that exist because of an object: itself, and those that a controller creates from it."""
    kind, namespace, name = name_object(obj)
    spec = as_mapping(obj.get("spec"))
    found: dict[Name, frozenset[str] | None] = {(kind, namespace, name): None}
    if kind in KEYED_KINDS:
        fields = (obj.get("data"), obj.get("stringData"), obj.get("binaryData"))
        keys = frozenset(str(key) for field in fields for key in as_mapping(field))
        # Something else fills an object that is empty here.
        found[(kind, namespace, name)] = keys or None
    elif is_app_wrapper(obj):
        for _, inner in list_wrapped_objects(obj):
            found.update(_list_names(inner))
    elif kind in ("ExternalSecret", "SealedSecret"):
        target = as_text(as_mapping(spec.get("target")).get("name"))
        list_keys = _list_external_keys if kind == "ExternalSecret" else _list_sealed_keys
        found["Secret", namespace, target or name] = list_keys(spec)
    elif kind == "Profile":
        # Kubeflow creates the namespace of a user, with two accounts.
        found["Namespace", "", name] = None
        found.update({("ServiceAccount", name, f"default-{role}"): None for role in ("editor", "viewer")})
    elif kind == "Certificate":
        found["Secret", namespace, as_text(spec.get("secretName"))] = None
    return found


def _list_external_keys(spec: Mapping[str, Plain]) -> frozenset[str] | None:
    """The keys that External Secrets writes; None if the store, another template or another Secret adds some."""
    target = as_mapping(spec.get("target"))
    template = as_mapping(target.get("template"))
    if spec.get("dataFrom") or template.get("templateFrom") or as_text(target.get("creationPolicy")) in _ADDING:
        return None
    own = (as_text(as_mapping(item).get("secretKey")) for item in as_list(spec.get("data")))
    return frozenset((*own, *map(str, as_mapping(template.get("data"))))) or None


def _list_sealed_keys(spec: Mapping[str, Plain]) -> frozenset[str] | None:
    """The keys of a SealedSecret; None for the old form, which encrypts them, too."""
    sealed = as_mapping(spec.get("encryptedData"))
    return frozenset(map(str, (*sealed, *as_mapping(get_path(spec, "template", "data"))))) if sealed else None


def _count_claims(obj: Mapping[str, Plain]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the claims that StatefulSets create: the namespace and name without number, and how many there are."""
    kind, namespace, name = name_object(obj)
    if is_app_wrapper(obj):
        for _, inner in list_wrapped_objects(obj):
            yield from _count_claims(inner)
    elif kind == "StatefulSet":
        replicas = as_integer(get_path(obj, "spec", "replicas"))
        for claim in as_list(get_path(obj, "spec", "volumeClaimTemplates")):
            prefix = as_text(get_path(as_mapping(claim), "metadata", "name"))
            yield (namespace, f"{prefix}-{name}"), 1 if replicas is None else replicas
