"""Workloads: the pod sets that are admitted together, and the admission that they have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.quota import FlavorResource, Usage
from jobgen.features.kueue.requests import (
    NO_SETTINGS,
    Amounts,
    Exact,
    ResourceSettings,
    charge_pod,
    multiply,
    read_amounts,
    sum_pod_requests,
)
from jobgen.model.named_tuple import NamedTuple

_MOST_DOMAINS = 100_000
"""The greatest number of domains in a slice that the API allows."""

Domains = tuple[tuple[tuple[str, ...], int], ...]
"""Values of the levels, and the number of pods there."""


def parse_domains(assignment: Mapping[str, Any]) -> Domains:
    """Parse the domains of a `topologyAssignment`. What is incomplete is left out."""
    slices = as_list(assignment.get("slices"))
    if slices:
        return tuple(domain for each in slices for domain in _expand_slice(as_mapping(each)))
    domains = map(as_mapping, as_list(assignment.get("domains")))
    parts = ((tuple(map(str, as_list(each.get("values")))), _as_count(each.get("count"))) for each in domains)
    return tuple(part for part in parts if part[0])


def _expand_slice(part: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], int]]:
    levels = list(map(as_mapping, as_list(part.get("valuesPerLevel"))))
    counts = as_mapping(part.get("podCounts"))
    for index in range(min(_as_count(part.get("domainCount")), _MOST_DOMAINS)):
        values: list[str] = []
        for level in levels:
            individual = as_mapping(level.get("individual"))
            root = _get(individual.get("roots"), index)
            if "universal" in level:
                values.append(str(level["universal"]))
            elif root is not None:
                values.append(f"{individual.get('prefix') or ''}{root}{individual.get('suffix') or ''}")
        count = counts.get("universal", _get(counts.get("individual"), index))
        if len(values) < len(levels) or not isinstance(count, int):
            return
        yield tuple(values), count


def _get(items: Any, index: int) -> Any:
    found = as_list(items)
    return found[index] if index < len(found) else None


def _as_count(value: Any) -> int:
    return value if isinstance(value, int) else 0


GATED_BY = "kueue.x-k8s.io/admission-gated-by"
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"

_EARLIEST = "1970-01-01T00:00:00Z"
"""When quota was reserved, if the condition does not say."""


class TopologyRequest(NamedTuple):
    """Where the pods of a pod set must be placed together."""

    required: str = ""
    preferred: str = ""
    unconstrained: bool = False
    slices: tuple[tuple[str, int], ...] = ()
    """Levels and sizes of slices, the outermost first."""
    group: str = ""

    @property
    def is_explicit(self) -> bool:
        """Return True if it asks for a placement; a group alone does not."""
        return bool(self.required or self.preferred or self.unconstrained or self.slices)

    def has_levels(self, levels: Collection[str]) -> bool:
        """Return True if it asks for a placement, and levels of a topology include all that it names."""
        named = (self.required or self.preferred, *(level for level, _ in self.slices))
        return self.is_explicit and all(level in levels for level in named if level)


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one template."""

    name: str
    count: int
    requests: Amounts
    """What one pod is charged."""
    spec: Mapping[str, Any]
    """The pod spec, for selectors and tolerations."""
    min_count: int | None = None
    topology: TopologyRequest | None = None
    exact: Exact | None = None
    """The requests of one pod before they are charged, for placement."""

    @property
    def asks_for_placement(self) -> bool:
        """Return True if its pods must be placed in a topology."""
        return self.topology is not None and self.topology.is_explicit

    def total(self, count: int | None = None) -> Amounts:
        """Return what all pods are charged, or this many of them."""
        return multiply(self.requests, self.count if count is None else count)


@dataclass(frozen=True, slots=True)
class PodSetAdmission:
    """What a pod set has been admitted with."""

    name: str
    count: int
    flavors: Mapping[str, str]
    usage: Amounts
    domains: Domains = ()
    """Where its pods are: values of the levels, and the number of pods."""
    levels: tuple[str, ...] = ()
    """The levels of a placement; none if its pods have no placement."""
    delayed: str = ""
    """`Pending` or `Ready` if its pods are placed after admission checks."""


class _WorkloadFields(NamedTuple):
    """The fields of a workload."""

    key: str
    queue: str
    pod_sets: tuple[PodSet, ...]
    priority: int = 0
    created: str = ""
    uid: str = ""
    namespace: str = ""
    cluster_queue: str = ""
    """The ClusterQueue that has reserved quota for it."""
    admission: tuple[PodSetAdmission, ...] = ()
    reserved: str = ""
    """When quota was reserved."""
    is_evicted: bool = False
    is_active: bool = True
    queued: str = ""
    """When it was queued, if not at its creation."""
    annotations: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    checks: tuple[tuple[str, str], ...] = ()
    """Its admission checks, and the state of each."""
    has_closed_gate: bool = False
    """True if a preemption gate is closed: it may not preempt yet."""
    parent: str = ""
    """The UID of the workload of which this is a variant for one flavor."""
    is_held: bool = False
    """True if it may not be queued: it has finished, or something holds it back."""
    waits_until: str = ""
    """When it may be tried again after an eviction."""
    is_admitted: bool = False
    """True if it runs: quota is reserved, and all admission checks are ready."""
    cluster: str = ""
    """The worker cluster of MultiKueue that runs it."""
    updates: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """What ready admission checks add to the pods of pod sets."""
    unhealthy_nodes: tuple[str, ...] = ()
    """Nodes of its placement that have failed."""
    is_single_pod: bool = False
    """True if it belongs to one plain pod, which cannot move to another node."""


class Workload(_WorkloadFields):
    """A workload: a job as Kueue sees it."""

    # Without `__slots__`, so that what follows from the fields is computed once.

    @property
    def has_unhealthy_placement(self) -> bool:
        """Return True if it runs on a node that has failed."""
        if not self.unhealthy_nodes or not self.is_admitted:
            return False
        hosts = {value for each in self.admission for values, _ in each.domains for value in values[-1:]}
        return not hosts.isdisjoint(self.unhealthy_nodes)

    @property
    def needs_second_pass(self) -> bool:
        """Return True if it has quota, but its pods need a place: for the first time, or instead of a failed node."""
        if self.is_held or self.is_evicted or not self.reserved:
            return False
        is_pending = any(each.delayed == "Pending" and not each.levels for each in self.admission)
        is_ready = bool(self.checks) and all(state == "Ready" for _, state in self.checks)
        return (is_pending and is_ready and not self.is_admitted) or self.has_unhealthy_placement

    @cached_property
    def pairs(self) -> frozenset[FlavorResource]:
        """The flavors that it was admitted with, for each resource."""
        return frozenset(
            FlavorResource(flavor, resource) for each in self.admission for resource, flavor in each.flavors.items()
        )

    @cached_property
    def usage(self) -> Mapping[FlavorResource, int]:
        """What it uses of each flavor."""
        found: Usage = {}
        for each in self.admission:
            for resource, amount in each.usage.items():
                flavor = each.flavors.get(resource)
                if flavor is not None:
                    pair = FlavorResource(flavor, resource)
                    found[pair] = found.get(pair, 0) + amount
        return found

    @cached_property
    def timestamp(self) -> str:
        """When it was queued, as text that sorts by time, also with fractions of seconds."""
        return (self.queued or self.created).removesuffix("Z")


def parse_workload(
    obj: Mapping[str, Any], settings: ResourceSettings = NO_SETTINGS, *, reclaims: bool = True
) -> Workload:
    """Parse a Workload object. Pods that have finished do not count, unless the gate ReclaimablePods is off."""
    metadata, spec, status = (as_mapping(obj.get(name)) for name in ("metadata", "spec", "status"))
    pod_sets = [_parse_pod_set(each, settings) for each in map(as_mapping, as_list(spec.get("podSets")))]
    sizes = {each.name: each.count for each in pod_sets}
    left = _subtract_finished(sizes, status) if reclaims else sizes
    namespace = str(metadata.get("namespace", ""))
    conditions = {str(each.get("type")): each for each in map(as_mapping, as_list(status.get("conditions")))}
    admission = as_mapping(status.get("admission"))
    checks = list(map(as_mapping, as_list(status.get("admissionChecks"))))
    reserved = _find_true(conditions, "QuotaReserved")
    owners = list(map(as_mapping, as_list(metadata.get("ownerReferences"))))
    annotations = as_mapping(metadata.get("annotations"))
    requeued = as_mapping(status.get("requeueState")).get("requeueAt")
    gates, states = (map(as_mapping, as_list(part.get("preemptionGates"))) for part in (spec, status))
    positions = {str(each.get("name")): each.get("position") for each in states}
    return Workload(
        key=f"{namespace}/{metadata.get('name', '')}",
        queue=str(spec.get("queueName", "")),
        pod_sets=tuple(pod_sets if left is sizes else (replace(each, count=left[each.name]) for each in pod_sets)),
        priority=_as_count(spec.get("priority")),
        created=str(metadata.get("creationTimestamp", "")),
        uid=str(metadata.get("uid", "")),
        namespace=namespace,
        cluster_queue=str(admission.get("clusterQueue", "")),
        admission=tuple(
            _parse_admission(each, sizes, left) for each in map(as_mapping, as_list(admission.get("podSetAssignments")))
        ),
        # Without an admission it has no quota, whatever the condition says.
        reserved=str(reserved.get("lastTransitionTime") or _EARLIEST) if reserved and admission else "",
        is_evicted=_find_true(conditions, "Evicted") is not None,
        is_active=spec.get("active") is not False,
        queued=find_queue_time(conditions),
        annotations=annotations,
        labels=as_mapping(metadata.get("labels")),
        checks=tuple((str(each.get("name", "")), str(each.get("state", ""))) for each in checks),
        # A gate without a position is closed.
        has_closed_gate=any(positions.get(str(each.get("name")), "Closed") == "Closed" for each in gates),
        parent=next((str(each.get("uid", "")) for each in owners if _is_workload(each)), ""),
        is_held=_is_held(annotations, conditions),
        # What is not requeued waits longer than any time.
        waits_until="~" if conditions.get("Requeued", {}).get("status") == "False" else str(requeued or ""),
        is_admitted=_find_true(conditions, "Admitted") is not None,
        cluster=str(status.get("clusterName") or ""),
        updates=tuple(
            (str(update.get("name", "")), update)
            for check in checks
            if check.get("state") == "Ready"
            for update in map(as_mapping, as_list(check.get("podSetUpdates")))
        ),
        unhealthy_nodes=tuple(str(as_mapping(each).get("name", "")) for each in as_list(status.get("unhealthyNodes"))),
        is_single_pod=_is_single_pod(annotations, owners),
    )


def _is_workload(owner: Mapping[str, Any]) -> bool:
    return owner.get("kind") == "Workload" and str(owner.get("apiVersion", "")).startswith("kueue.x-k8s.io/")


def _is_single_pod(annotations: Mapping[str, Any], owners: Sequence[Mapping[str, Any]]) -> bool:
    is_group = annotations.get("kueue.x-k8s.io/is-group-workload") == "true"
    return not is_group and [(each.get("apiVersion"), each.get("kind")) for each in owners] == [("v1", "Pod")]


def _is_held(annotations: Mapping[str, Any], conditions: Mapping[str, Mapping[str, Any]]) -> bool:
    reserved = conditions.get("QuotaReserved", {})
    return bool(
        annotations.get(GATED_BY)
        or _find_true(conditions, "Finished")
        or _find_true(conditions, "WaitingForReplacementPods")
        or (reserved.get("status") == "False" and reserved.get("reason") == "OnHold")
    )


def _find_true(conditions: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    found = conditions.get(name)
    return found if found is not None and found.get("status") == "True" else None


def find_queue_time(
    conditions: Mapping[str, Mapping[str, Any]], strategy: str = "Eviction", *, sorts_by_priority: bool = True
) -> str:
    """Return when a workload was queued again, empty if its creation counts.

    That is when a check failed; when its pods were not ready in time, unless the strategy is `Creation`; and without
    the gate PrioritySortingWithinCohort, just after it was preempted by a workload that borrows.
    """
    evicted = _find_true(conditions, "Evicted") or {}
    reasons = ("PodsReadyTimeout", "AdmissionCheck") if strategy == "Eviction" else ("AdmissionCheck",)
    if evicted.get("reason") in reasons:
        return str(evicted.get("lastTransitionTime", ""))
    preempted = _find_true(conditions, "Preempted") or {}
    if not sorts_by_priority and preempted.get("reason") == "InCohortReclaimWhileBorrowing":
        return str(preempted.get("lastTransitionTime", "")).removesuffix("Z") + ".001Z"
    return ""


def _parse_pod_set(raw: Mapping[str, Any], settings: ResourceSettings) -> PodSet:
    spec = as_mapping(as_mapping(raw.get("template")).get("spec"))
    exact = sum_pod_requests(spec)
    topology = raw.get("topologyRequest")
    return PodSet(
        name=str(raw.get("name", "")),
        count=_as_count(raw.get("count", 1)),
        requests=charge_pod(exact, settings),
        spec=spec,
        min_count=raw.get("minCount"),
        topology=parse_topology(topology) if isinstance(topology, dict) else None,
        exact=exact,
    )


def parse_topology(raw: Mapping[str, Any]) -> TopologyRequest:
    """Parse a `topologyRequest`. Slices without a size get 0, with which nothing is placed."""
    constraints = [
        (str(each.get("topology", "")), _as_count(each.get("size")))
        for each in map(as_mapping, as_list(raw.get("podsetSliceRequiredTopologyConstraints")))
    ]
    level, size = raw.get("podSetSliceRequiredTopology"), raw.get("podSetSliceSize")
    if level and not constraints:
        constraints = [(str(level), _as_count(size))]
    return TopologyRequest(
        str(raw.get("required") or ""),
        str(raw.get("preferred") or ""),
        bool(raw.get("unconstrained")),
        tuple(constraints),
        str(raw.get("podSetGroupName") or ""),
    )


def _subtract_finished(sizes: Mapping[str, int], status: Mapping[str, Any]) -> Mapping[str, int]:
    """Subtract the pods that have finished, so that others can use their quota."""
    finished = {
        each.get("name"): _as_count(each.get("count"))
        for each in map(as_mapping, as_list(status.get("reclaimablePods")))
    }
    return {name: size - min(finished.get(name, 0), size) for name, size in sizes.items()} if finished else sizes


def _parse_admission(raw: Mapping[str, Any], sizes: Mapping[str, int], left: Mapping[str, int]) -> PodSetAdmission:
    flavors = {str(name): str(flavor) for name, flavor in as_mapping(raw.get("flavors")).items()}
    placement = as_mapping(raw.get("topologyAssignment"))
    domains = parse_domains(placement)
    usage = read_amounts(as_mapping(raw.get("resourceUsage")))
    levels = tuple(map(str, as_list(placement.get("levels"))))
    delayed = str(raw.get("delayedTopologyRequest") or "")
    name, given = str(raw.get("name", "")), raw.get("count")
    count = sizes.get(name, 0) if given is None else _as_count(given)
    if left.get(name, count) < count:
        usage = {resource: amount // count * left[name] for resource, amount in usage.items()}
        count = left[name]
    return PodSetAdmission(name, count, flavors, usage, domains, levels, delayed)


def list_updates(workload: Workload, pod_set: PodSet) -> list[Mapping[str, Any]]:
    """List what the ready checks of a workload add to a pod set."""
    return [update for name, update in workload.updates if name == pod_set.name]


def merge_updates(workload: Workload, pod_set: PodSet) -> Mapping[str, Any]:
    """Return the pod spec with all that ready checks add to it."""
    spec = pod_set.spec
    for update in list_updates(workload, pod_set):
        selector = {**as_mapping(spec.get("nodeSelector")), **as_mapping(update.get("nodeSelector"))}
        tolerations = [*as_list(spec.get("tolerations")), *as_list(update.get("tolerations"))]
        spec = {**spec, "nodeSelector": selector, "tolerations": tolerations}
    return spec


def find_conflict(workload: Workload, pod_set: PodSet) -> str:
    """Say which update changes a node selector instead of adding to it; empty if none does."""
    selector = dict(as_mapping(pod_set.spec.get("nodeSelector")))
    for update in list_updates(workload, pod_set):
        for key, value in as_mapping(update.get("nodeSelector")).items():
            if selector.setdefault(key, value) != value:
                return (
                    f"invalid podSetUpdate for PodSet {pod_set.name}, error: invalid admission check PodSetUpdate: "
                    f"conflict for nodeSelector: conflict for key={key}, value1={selector[key]}, value2={value}"
                )
    return ""
