"""The objects of a cluster that decide about admission, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from jobgen.features.kueue.configuration import Configuration, adapt_cohorts, adapt_queue, build_nodes
from jobgen.features.kueue.objects import (
    ClusterQueue,
    Cohort,
    Flavor,
    as_mapping,
    name_of,
    parse_cluster_queue,
    parse_cohort,
    parse_flavor,
    parse_topologies,
)

_KUEUE = "kueue.x-k8s.io"
_GROUPS: Mapping[str, str] = {
    **dict.fromkeys("AdmissionCheck ClusterQueue Cohort LocalQueue ResourceFlavor Topology".split(), _KUEUE),
    "WorkloadPriorityClass": _KUEUE,
    **dict.fromkeys(("LimitRange", "Namespace", "Node", "Pod"), ""),
    "RuntimeClass": "node.k8s.io",
    "PriorityClass": "scheduling.k8s.io",
    **dict.fromkeys(("DeviceClass", "ResourceClaimTemplate"), "resource.k8s.io"),
    **dict.fromkeys(("ClusterTrainingRuntime", "TrainingRuntime"), "trainer.kubeflow.org"),
}
"""The kinds that decide about admission, and the group of each."""

DECIDING_KINDS = frozenset(_GROUPS)

_OWN_KINDS = frozenset(("ClusterQueue", "LocalQueue", "ResourceFlavor", "WorkloadPriorityClass"))
"""Kinds that only Kueue has."""

MAX_DEPTH = 200
"""The number of cohorts above each other that are simulated with fair sharing. Real clusters have a handful."""

_NAME_LABEL = "kubernetes.io/metadata.name"

Object = Mapping[str, Any]
Key = tuple[str, str]
"""Namespace and name of an object."""


class ClusterObjects(NamedTuple):
    """Everything that decides about admission, apart from the jobs."""

    by_kind: Mapping[str, tuple[Object, ...]]
    configuration: Configuration = Configuration()
    unread: tuple[str, ...] = ()
    """Objects that are named like those that decide, but are not read, and why."""

    def list_objects(self, kind: str) -> tuple[Object, ...]:
        """Return the objects of a kind."""
        return self.by_kind.get(kind, ())

    def list_cohorts(self) -> list[Cohort]:
        """Return the cohorts as the version of Kueue reads them."""
        deep = set(self.list_deep_cohorts())
        return [each._replace(parent="") if each.name in deep else each for each in self._adapt_cohorts()]

    def list_deep_cohorts(self) -> list[str]:
        """Return the cohorts whose parents are not simulated, because there are too many of them above each other.

        Fair sharing compares shares at every level, for every workload, which takes long in a deep tree.
        """
        if not self.configuration.rules.is_fair:
            return []
        return sorted(find_deep({each.name: each.parent for each in self._adapt_cohorts()}))

    def _adapt_cohorts(self) -> list[Cohort]:
        cohorts = map(parse_cohort, self.list_objects("Cohort"))
        return adapt_cohorts(cohorts, self.configuration.version, self.configuration.gates)

    def list_queues(self) -> list[ClusterQueue]:
        """Return the ClusterQueues as the version of Kueue reads them."""
        version, gates = self.configuration.version, self.configuration.gates
        queues = map(parse_cluster_queue, self.list_objects("ClusterQueue"))
        return [adapt_queue(each, version, gates) for each in queues]

    def list_flavors(self) -> list[Flavor]:
        """Return the flavors."""
        return list(map(parse_flavor, self.list_objects("ResourceFlavor")))

    def list_levels(self) -> dict[str, tuple[str, ...]]:
        """Return the levels of each topology, the highest first."""
        return parse_topologies(self.list_objects("Topology"))

    def list_namespaces(self) -> dict[str, Mapping[str, str]]:
        """Return the labels of namespaces. Kubernetes labels each with its name."""
        return {
            name: {_NAME_LABEL: name, **as_mapping(as_mapping(each.get("metadata")).get("labels"))}
            for each in self.list_objects("Namespace")
            for name in (name_of(each),)
        }

    def list_nodes(self) -> list[Object]:
        """Return the nodes: the objects, and those that the configuration lists in short."""
        labels = {flavor.name: flavor.labels for flavor in self.list_flavors()}
        return [*self.list_objects("Node"), *build_nodes(self.configuration.nodes, labels)]


def group_objects(objects: Iterable[Object], configuration: Configuration) -> ClusterObjects:
    """Sort objects by kind. Of two objects with the same name, the first counts; what decides nothing is left out."""
    found: dict[str, dict[Key, Object]] = {}
    unread: list[str] = []
    for obj in objects:
        kind = str(obj.get("kind", ""))
        group = _GROUPS.get(kind)
        if group is None:
            continue
        name = name_of(obj)
        if group != get_group(obj):
            unread += _explain_unread(obj, kind, name)
        elif name:
            namespace = str(as_mapping(obj.get("metadata")).get("namespace") or "")
            found.setdefault(kind, {}).setdefault((namespace, name), obj)
        elif group == _KUEUE:
            unread.append(f"a {kind} without a name is not read")
    by_kind = {kind: tuple(several.values()) for kind, several in found.items()}
    return ClusterObjects(by_kind, configuration, tuple(dict.fromkeys(unread)))


def _explain_unread(obj: Object, kind: str, name: str) -> Iterator[str]:
    """Explain that an object is not one of Kueue. Other APIs have topologies and cohorts of their own."""
    version = str(obj.get("apiVersion") or "")
    if kind in _OWN_KINDS or (_GROUPS[kind] == _KUEUE and not version):
        shown = f"its `apiVersion` is `{version[:100]}`" if version else "it has no `apiVersion`"
        yield f"{kind} `{name}` is not read: {shown}; write `{_KUEUE}/v1beta2`"


def find_deep(parents: Mapping[str, str]) -> set[str]:
    """Return the cohorts at the greatest depth that is simulated, and at multiples of it; a cycle has no depth."""
    depths: dict[str, int] = {}
    for start in parents:
        chain: dict[str, None] = {}
        name = start
        while name and name not in depths and name not in chain:
            chain[name] = None
            name = parents.get(name, "")
        if name in chain:
            depths.update(dict.fromkeys(chain, 1))
            continue
        depth = depths.get(name, 0)
        for each in reversed(chain):
            depth += 1
            depths[each] = depth
    return {name for name, depth in depths.items() if depth % MAX_DEPTH == 0 and parents.get(name)}


def get_group(obj: Object) -> str:
    """Return the API group of an object; empty for the core group."""
    return str(obj.get("apiVersion", "")).rpartition("/")[0]
