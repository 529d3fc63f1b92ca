"""Kueue's objects as values: queues, cohorts, flavors, topologies and workloads, read from plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobgen.features.kueue.quota import UNLIMITED, FlavorResource, Quota, to_amount, to_multiples
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_quantity

STRICT_FIFO = "StrictFIFO"


class Preemption(NamedTuple):
    """Whom a ClusterQueue may preempt."""

    within_queue: str = "Never"
    reclaim: str = "Never"
    borrow: str = "Never"
    max_priority: int | None = None
    """The greatest priority of workloads that are preempted while borrowing."""


class Fungibility(NamedTuple):
    """When a ClusterQueue tries the next flavor."""

    when_can_borrow: str = "MayStopSearch"
    when_can_preempt: str = "TryNextFlavor"
    preference: str = ""


class ResourceGroup(NamedTuple):
    """Resources that get the same flavor, and the flavors in order."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


class ClusterQueue(NamedTuple):
    """A ClusterQueue."""

    name: str
    cohort: str
    groups: tuple[ResourceGroup, ...]
    quotas: Mapping[FlavorResource, Quota]
    preemption: Preemption
    fungibility: Fungibility
    strategy: str
    namespace_selector: Any
    stop_policy: str
    weight: float
    checks: tuple[tuple[str, tuple[str, ...]], ...]
    """Admission checks, and the flavors that each is for; none means all."""
    is_usage_based: bool = False
    spec: Any = None

    def find_group(self, resource: str) -> ResourceGroup | None:
        """Return the group that covers a resource."""
        for group in self.groups:
            if resource in group.resources:
                return group
        return None


class Cohort(NamedTuple):
    """A Cohort."""

    name: str
    parent: str
    quotas: Mapping[FlavorResource, Quota]
    weight: float


class Flavor(NamedTuple):
    """A ResourceFlavor."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    tolerations: tuple[Mapping[str, Any], ...]
    topology: str


def as_mapping(node: Any) -> Mapping[str, Any]:
    """Return a mapping, or an empty one."""
    return node if isinstance(node, dict) else {}


def as_list(node: Any) -> list[Any]:
    """Return a list, or an empty one."""
    return node if isinstance(node, list) else []


def name_of(obj: Mapping[str, Any]) -> str:
    """Return the name of an object."""
    return str(as_mapping(obj.get("metadata")).get("name") or "")


def find_namespace(obj: Mapping[str, Any]) -> str:
    """Return the namespace of an object; `default` if it names none."""
    return str(as_mapping(obj.get("metadata")).get("namespace") or "default")


def parse_cluster_queue(obj: Mapping[str, Any]) -> ClusterQueue:
    """Parse a ClusterQueue of v1beta1 or v1beta2."""
    spec = as_mapping(obj.get("spec"))
    preemption = as_mapping(spec.get("preemption"))
    borrow = as_mapping(preemption.get("borrowWithinCohort"))
    threshold = borrow.get("maxPriorityThreshold")
    return ClusterQueue(
        name=name_of(obj),
        cohort=str(spec.get("cohortName") or spec.get("cohort") or ""),
        groups=tuple(
            ResourceGroup(
                tuple(map(str, as_list(group.get("coveredResources")))),
                tuple(str(flavor.get("name", "")) for flavor in map(as_mapping, as_list(group.get("flavors")))),
            )
            for group in map(as_mapping, as_list(spec.get("resourceGroups")))
        ),
        quotas=dict(_list_quotas(spec.get("resourceGroups"))),
        preemption=Preemption(
            str(preemption.get("withinClusterQueue") or "Never"),
            str(preemption.get("reclaimWithinCohort") or "Never"),
            str(borrow.get("policy") or "Never"),
            threshold if type(threshold) is int else None,
        ),
        fungibility=parse_fungibility(as_mapping(spec.get("flavorFungibility"))),
        strategy=str(spec.get("queueingStrategy") or "BestEffortFIFO"),
        namespace_selector=spec.get("namespaceSelector"),
        stop_policy=str(spec.get("stopPolicy") or "None"),
        weight=_parse_weight(spec),
        checks=tuple(_list_checks(spec)),
        is_usage_based=as_mapping(spec.get("admissionScope")).get("admissionMode") == "UsageBasedAdmissionFairSharing",
        spec=spec,
    )


def parse_cohort(obj: Mapping[str, Any]) -> Cohort:
    """Parse a Cohort."""
    spec = as_mapping(obj.get("spec"))
    parent = str(spec.get("parentName") or spec.get("parent") or "")
    return Cohort(name_of(obj), parent, dict(_list_quotas(spec.get("resourceGroups"))), _parse_weight(spec))


def parse_flavor(obj: Mapping[str, Any]) -> Flavor:
    """Parse a ResourceFlavor."""
    spec = as_mapping(obj.get("spec"))
    return Flavor(
        name=name_of(obj),
        labels={str(key): str(value) for key, value in as_mapping(spec.get("nodeLabels")).items()},
        taints=tuple(map(as_mapping, as_list(spec.get("nodeTaints")))),
        tolerations=tuple(map(as_mapping, as_list(spec.get("tolerations")))),
        topology=str(spec.get("topologyName") or ""),
    )


def _list_quotas(groups: Any) -> Iterable[tuple[FlavorResource, Quota]]:
    for group in map(as_mapping, as_list(groups)):
        for flavor in map(as_mapping, as_list(group.get("flavors"))):
            for each in map(as_mapping, as_list(flavor.get("resources"))):
                resource = str(each.get("name", ""))
                limits = (
                    None if each.get(key) is None else to_amount(resource, each[key])
                    for key in ("borrowingLimit", "lendingLimit")
                )
                quota = Quota(to_amount(resource, each.get("nominalQuota")), *limits)
                yield FlavorResource(str(flavor.get("name", "")), resource), quota


def parse_fungibility(spec: Mapping[str, Any]) -> Fungibility:
    """Parse `flavorFungibility`."""
    words = (spec.get("whenCanBorrow") or "MayStopSearch", spec.get("whenCanPreempt") or "TryNextFlavor")
    # Older versions of the API have other words for it.
    borrow, preempt = ("MayStopSearch" if word in ("Borrow", "Preempt") else str(word) for word in words)
    return Fungibility(borrow, preempt, str(spec.get("preference") or ""))


def _parse_weight(spec: Mapping[str, Any]) -> float:
    weight = as_mapping(spec.get("fairSharing")).get("weight")
    found = None if weight is None else parse_quantity(str(weight))
    if found is None:
        return 1.0
    most = UNLIMITED * 10**9
    return max(-most, min(to_multiples(found, -9), most)) / 10**9


def _list_checks(spec: Mapping[str, Any]) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name in as_list(spec.get("admissionChecks")):
        yield str(name), ()
    strategy = as_mapping(spec.get("admissionChecksStrategy"))
    for rule in map(as_mapping, as_list(strategy.get("admissionChecks"))):
        yield str(rule.get("name", "")), tuple(map(str, as_list(rule.get("onFlavors"))))


def parse_topologies(objects: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return the levels of Topology objects by name, the highest first."""
    return {
        name_of(each): tuple(
            str(as_mapping(level).get("nodeLabel", "")) for level in as_list(as_mapping(each.get("spec")).get("levels"))
        )
        for each in objects
    }
