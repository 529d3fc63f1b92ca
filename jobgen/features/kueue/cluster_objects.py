"""The objects of a cluster that decide about admission, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from jobgen.features.kueue.objects import (
    ClusterQueue,
    Cohort,
    Flavor,
    as_list,
    as_mapping,
    name_of,
    parse_cluster_queue,
    parse_cohort,
    parse_flavor,
)
from jobgen.features.kueue.preemption import DEFAULT_STRATEGIES, Rules
from jobgen.features.kueue.requests import CAPACITY, COUNTER, NO_SETTINGS, ResourceSettings, parse_settings
from jobgen.k8s.kueue_integrations import parse_release
from jobgen.model.named_tuple import NamedTuple

# The Kueue of a cluster: its version, its feature gates and their defaults, and its configuration.


class Gates(NamedTuple):
    """Feature gates of the cycle, with the defaults of Kueue 0.19."""

    partial_admission: bool = True
    sorts_by_priority: bool = True
    """PrioritySortingWithinCohort: among queues, the greater priority comes first."""
    prefers_preemptors: bool = False
    """PrioritizePreemptorWorkloads: what waits for its preemptions comes first."""
    prefers_non_borrowing: bool = True
    """FairSharingPrioritizeNonBorrowing: with fair sharing, what does not borrow comes first."""
    recomputes_overlap: bool = False
    """RecomputeAssignmentUponPreemptionTargetsOverlap: look again when another workload has the same targets."""
    concurrent_admission: bool = False
    """ConcurrentAdmission: a workload has a variant for each flavor."""
    orchestrated_preemption: bool = False
    """MultiKueueOrchestratedPreemption: preemption gates count."""
    elastic_jobs: bool = True
    """ElasticJobsViaWorkloadSlices: a workload can replace a smaller one of the same job."""
    parks_same_shape: bool = True
    """SchedulingEquivalenceHashing: what has the shape of a parked workload is parked with it."""
    preserves_progress: bool = True
    """FlavorFungibilityPreserveScanProgress: the next cycle goes on with the next flavor."""
    boosts_priority: bool = False
    """PriorityBoost: an annotation adds to the priority."""
    is_fungible: bool = True
    """FlavorFungibility: without it the first flavor that fits is taken."""
    recomputes_placement: bool = True
    """TASRecomputeAssignmentWithinSchedulingCycle: look for another placement when its place has been taken."""
    evicts_without_replacement: bool = True
    """TASFailedNodeReplacementFailFast: evict a workload if no other node can replace one that failed."""


_NAMES: Mapping[str, str] = {
    "PartialAdmission": "partial_admission",
    "PrioritySortingWithinCohort": "sorts_by_priority",
    "PrioritizePreemptorWorkloads": "prefers_preemptors",
    "FairSharingPrioritizeNonBorrowing": "prefers_non_borrowing",
    "RecomputeAssignmentUponPreemptionTargetsOverlap": "recomputes_overlap",
    "ConcurrentAdmission": "concurrent_admission",
    "MultiKueueOrchestratedPreemption": "orchestrated_preemption",
    "ElasticJobsViaWorkloadSlices": "elastic_jobs",
    "SchedulingEquivalenceHashing": "parks_same_shape",
    "PriorityBoost": "boosts_priority",
    "FlavorFungibility": "is_fungible",
    "FlavorFungibilityPreserveScanProgress": "preserves_progress",
    "TASRecomputeAssignmentWithinSchedulingCycle": "recomputes_placement",
    "TASFailedNodeReplacementFailFast": "evicts_without_replacement",
}

DEFAULT_GATES = Gates()


def parse_gates(switched: Mapping[str, Any]) -> Gates:
    """Return the gates where these differ from the defaults."""
    return DEFAULT_GATES._replace(**{_NAMES[name]: bool(value) for name, value in switched.items() if name in _NAMES})


Version = tuple[int, ...]

OLDEST: Final = (0, 8)
"""The first version that the table has; older ones decide as this one."""
_ANY_PATCH = 10**6


class Gate(NamedTuple):
    """The releases at which a gate begins or ceases to exist, and at which its default changes; both begin with off."""

    exists: str
    on: str = ""


GATES: Final[Mapping[str, Gate]] = {
    "ConcurrentAdmission": Gate("0.18"),
    "ConfigurableResourceTransformations": Gate("0.9 0.16", "0.10"),
    "DRAExtendedResources": Gate("0.17 0.19"),
    "DynamicResourceAllocation": Gate("0.14 0.19"),
    "ElasticJobsViaWorkloadSlices": Gate("0.13", "0.18"),
    "ElasticJobsViaWorkloadSlicesWithTAS": Gate("0.17"),
    "FairSharingPreemptWithinNominal": Gate("0.15.6 0.16.0 0.16.3", "0.15.6 0.16.0 0.16.3"),
    "FairSharingPrioritizeNonBorrowing": Gate("0.15.5 0.16.0 0.16.2", "0.15.5 0.16.0 0.16.2"),
    "FlavorFungibility": Gate("0.8", "0.8"),
    "FlavorFungibilityImplicitPreferenceDefault": Gate("0.13 0.16.0 0.16.4 0.17.0"),
    "FlavorFungibilityPreserveScanProgress": Gate("0.18.5 0.19.0 0.19.1", "0.18.5 0.19.0 0.19.1"),
    "HierarchicalCohorts": Gate("0.11.4", "0.9"),
    "KueueDRAIntegration": Gate("0.18", "0.18"),
    "KueueDRAIntegrationConsumableCapacity": Gate("0.19"),
    "KueueDRAIntegrationExtendedResource": Gate("0.18", "0.19"),
    "KueueDRAIntegrationPartitionableDevices": Gate("0.18", "0.19"),
    "KueueDRARejectWorkloadsWhenDRADisabled": Gate("0.18", "0.18"),
    "LendingLimit": Gate("0.8 0.19", "0.9"),
    "LocalQueueDefaulting": Gate("0.10 0.19", "0.12"),
    "ManagedJobsNamespaceSelectorAlwaysRespected": Gate("0.13", "0.15"),
    "MultiKueueOrchestratedPreemption": Gate("0.17"),
    "MultiplePreemptions": Gate("0.8 0.13", "0.9"),
    "PartialAdmission": Gate("0.8", "0.8"),
    "PrioritizePreemptorWorkloads": Gate("0.18.6 0.19.0 0.19.2"),
    "PrioritySortingWithinCohort": Gate("0.8", "0.8"),
    "QuotaCheckStrategy": Gate("0.18", "0.19"),
    "RecomputeAssignmentUponPreemptionTargetsOverlap": Gate("0.18.5 0.19.0 0.19.1"),
    "SchedulerTimestampPreemptionBuffer": Gate("0.15.6 0.16.0 0.16.3"),
    "SchedulingEquivalenceHashing": Gate("0.15.6 0.16.0 0.16.3", "0.15.6 0.15.7 0.16.3 0.16.4 0.18"),
    "TASBalancedPlacement": Gate("0.15"),
    "TASHandleOverlappingFlavors": Gate("0.16.9 0.17.0 0.17.4", "0.18"),
    "TASMultiLayerTopology": Gate("0.17", "0.19"),
    "TASProfileLeastFreeCapacity": Gate("0.11 0.17"),
    "TASProfileMixed": Gate("0.11", "0.15"),
    "TASProfileMostFreeCapacity": Gate("0.11 0.13"),
    "TASRecomputeAssignmentWithinSchedulingCycle": Gate("0.17.6 0.18.0 0.18.2", "0.17.6 0.18.0 0.18.2"),
    "TASRespectNodeAffinityPreferred": Gate("0.18"),
    "TopologyAwareScheduling": Gate("0.9", "0.14"),
    "WorkloadPriorityClassDefaulting": Gate("0.18"),
}
"""The gates that decide about admission, by name."""

NOT_SIMULATED: Final = frozenset(
    """ConcurrentAdmission MultiKueueOrchestratedPreemption MultiplePreemptions SchedulerTimestampPreemptionBuffer
    TASProfileLeastFreeCapacity TASProfileMostFreeCapacity""".split()
)
"""Gates whose other state than the default is not simulated."""

_RENAMED: Final[Mapping[str, str]] = {
    "DynamicResourceAllocation": "KueueDRAIntegration",
    "DRAExtendedResources": "KueueDRAIntegrationExtendedResource",
}
"""Gates that have another name since 0.18."""


def gates_at(version: Version, switched: Mapping[str, bool]) -> dict[str, bool]:
    """Return which gates are on in a version if these differ from its defaults. What it does not have is ignored."""
    found = {name: is_past(version, gate.on) for name, gate in GATES.items()}
    for name, value in switched.items():
        if has_gate(version, name):
            found[name] = value
            if name in _RENAMED and not has_gate(version, _RENAMED[name]):
                found[_RENAMED[name]] = value
    return found


def has_gate(version: Version, name: str) -> bool:
    """Return True if a version has a gate, as far as it decides about admission."""
    return name in GATES and is_past(version, GATES[name].exists)


def is_past(version: Version, switches: str) -> bool:
    """Return True if something is on that is switched on, off, and so on at these releases.

    A version without a patch is the last release of it.
    """
    exact = (max(version, OLDEST) + (_ANY_PATCH,) * 3)[:3]
    return sum(tuple(map(int, each.split("."))) <= exact for each in switches.split()) % 2 == 1


def list_gate_notes(version: Version, switched: Mapping[str, bool]) -> Iterator[str]:
    """Yield what the switched gates mean for a decision: those that do not exist, and those that are not simulated."""
    shown = ".".join(map(str, version))
    for name, value in sorted(switched.items()):
        if name not in GATES:
            continue
        if not has_gate(version, name):
            yield f"Kueue {shown} has no feature gate `{name}`, so it is ignored"
        elif name in NOT_SIMULATED and value != is_past(version, GATES[name].on):
            yield f"jobgen does not simulate feature gate `{name}` when it is {'on' if value else 'off'}"


CHARGED, IGNORED, REJECTED = "charged", "ignored", "rejected"
"""What becomes of the claims of pods."""

_ANNOTATIONS: Final[Mapping[Version, tuple[str, ...]]] = {
    (0, 11): ("kueue.x-k8s.io/podset-unconstrained-topology",),
    (0, 13): (
        "kueue.x-k8s.io/podset-group-name",
        "kueue.x-k8s.io/podset-slice-required-topology",
        "kueue.x-k8s.io/podset-slice-size",
    ),
    (0, 17): ("kueue.x-k8s.io/podset-slice-required-topology-constraints",),
}
"""Annotations of pods by the first version that knows them. The other ones are as old as topologies."""


def list_unknown_annotations(version: Version) -> frozenset[str]:
    """Return the annotations of pods that a version does not know yet."""
    return frozenset(name for since, names in _ANNOTATIONS.items() if version < since for name in names)


def adapt_queue(queue: ClusterQueue, version: Version, gates: Mapping[str, bool]) -> ClusterQueue:
    """Return a queue as a version of Kueue reads it."""
    borrow, preempt = "BorrowingOverPreemption", "PreemptionOverBorrowing"
    preference = queue.fungibility.preference
    if not preference or version < (0, 15):
        is_implied = gates["FlavorFungibilityImplicitPreferenceDefault"]
        preference = preempt if is_implied and queue.fungibility.when_can_borrow == "TryNextFlavor" else ""
    elif not is_past(version, "0.16.2"):
        # Until then, the two preferences mean each other.
        preference = {borrow: preempt, preempt: borrow}.get(preference, preference)
    if preference != queue.fungibility.preference:
        queue = queue._replace(fungibility=queue.fungibility._replace(preference=preference))
    if gates["LendingLimit"]:
        return queue
    return queue._replace(quotas={pair: each._replace(lending_limit=None) for pair, each in queue.quotas.items()})


def adapt_cohorts(cohorts: Iterable[Cohort], version: Version, gates: Mapping[str, bool]) -> list[Cohort]:
    """Return the cohorts as a version of Kueue reads them. Without objects, cohorts have neither parents nor quota."""
    if not gates["HierarchicalCohorts"]:
        return []
    if version >= (0, 11):
        return list(cohorts)
    return [each._replace(weight=1.0) for each in cohorts]


def treat_claims(gates: Mapping[str, bool]) -> str:
    """Return what becomes of the claims of pods. Without their feature gate, Kueue ignores them until 0.18."""
    if gates["KueueDRAIntegration"]:
        return CHARGED
    return REJECTED if gates["KueueDRARejectWorkloadsWhenDRADisabled"] else IGNORED


def adapt_settings(settings: ResourceSettings, version: Version, gates: Mapping[str, bool]) -> ResourceSettings:
    """Return the settings for requests as a version of Kueue reads them."""
    is_read = {COUNTER: gates["KueueDRAIntegrationPartitionableDevices"]}
    is_read[CAPACITY] = gates["KueueDRAIntegrationConsumableCapacity"]
    kept = {
        name: tuple(each for each in found if is_read[each.kind]) for name, found in settings.devices.sources.items()
    }
    devices = settings.devices._replace(sources=kept, accepts_selectors=version >= (0, 18))
    settings = settings._replace(devices=devices)
    if not gates["ConfigurableResourceTransformations"]:
        return settings._replace(transformations=())
    if version >= (0, 16):
        return settings
    return settings._replace(transformations=tuple(each._replace(multiply_by="") for each in settings.transformations))


NEWEST = (0, 19)
MAX_NODES = 50_000
"""The nodes of a large cluster, and no more than take seconds."""


class NodeGroup(NamedTuple):
    """Equal nodes of a cluster, in short."""

    flavor: str
    size: int
    labels: Mapping[str, str]
    capacity: Mapping[str, Any]


class Configuration(NamedTuple):
    """What an overlay declares under `cluster.kueue`."""

    version: tuple[int, ...] = NEWEST
    rules: Rules = Rules()
    manages_unqueued: bool = False
    """True if it manages jobs that name no queue."""
    namespace_selector: Mapping[str, Any] | None = None
    frameworks: frozenset[str] | None = None
    """The integrations that are on; None if those that the version enables."""
    resources: ResourceSettings = NO_SETTINGS
    nodes: tuple[NodeGroup, ...] = ()
    remarks: tuple[str, ...] = ()
    """What of it is not simulated."""
    gates: Mapping[str, bool] = gates_at(NEWEST, {})
    """The feature gates that decide about admission, and whether they are on."""
    switched: Mapping[str, bool] = {}
    """The feature gates that differ from the defaults of the version."""
    ignored: tuple[str, ...] = ()
    """The declared parts of the configuration that the version ignores."""
    checks: Mapping[str, str] = {}
    """The declared answers of admission checks: `Ready`, `Pending`, `Retry` or `Rejected`."""
    external_kinds: tuple[str, ...] = ()
    """Kinds that MultiKueue sends to worker clusters because the configuration lists them."""


def parse_configuration(
    block: Mapping[str, Any], version: str = "", enabled: Iterable[str] | None = None
) -> Configuration:
    """Parse `cluster.kueue`; `version` is that of the cluster's operators, and `enabled` are its `featureGates`.

    If the block has `featureGates`, they are all that differs from the defaults; else the gates of the cluster count.
    """
    found = parse_release(version) or NEWEST
    own = block.get("featureGates")
    switched = {str(name): value for name, value in as_mapping(own).items() if isinstance(value, bool)}
    if own is None:
        switched = {str(name): True for name in enabled or ()}
    gates = gates_at(found, switched)
    resources = as_mapping(block.get("resources"))
    settings = parse_settings(resources)
    adapted = adapt_settings(settings, found, gates)
    ignores_undeclared = resources.get("quotaCheckStrategy") == "IgnoreUndeclared"
    frameworks = block.get("frameworks")
    selector = block.get("managedJobsNamespaceSelector")
    nodes, total = _parse_nodes(block.get("nodes"))
    too_many = f"`nodes` has {total} nodes, of which only the first {MAX_NODES} are simulated"
    return Configuration(
        version=found,
        rules=Rules(
            is_fair=block.get("fairSharing") is True,
            strategies=tuple(map(str, as_list(block.get("preemptionStrategies")))) or DEFAULT_STRATEGIES,
            within_nominal=gates["FairSharingPreemptWithinNominal"],
            ignores_undeclared=ignores_undeclared and gates["QuotaCheckStrategy"],
        ),
        manages_unqueued=block.get("managedJobsWithoutQueueName") is True,
        namespace_selector=selector if isinstance(selector, dict) else None,
        frameworks=None if frameworks is None else frozenset(map(str, as_list(frameworks))),
        resources=adapted,
        nodes=nodes,
        remarks=(too_many,) if total > MAX_NODES else (),
        gates=gates,
        switched=switched,
        ignored=tuple(_list_ignored(settings, adapted, gates, ignores_undeclared=ignores_undeclared)),
        checks={str(name): str(answer) for name, answer in as_mapping(block.get("admissionChecks")).items()},
        external_kinds=tuple(
            str(name).partition(".")[0]
            for name in as_list(as_mapping(block.get("multiKueue")).get("externalFrameworks"))
        ),
    )


def _list_ignored(
    settings: ResourceSettings, adapted: ResourceSettings, gates: Mapping[str, bool], *, ignores_undeclared: bool
) -> Iterator[str]:
    """Yield the declared settings for requests that a version does not read."""
    if len(settings.transformations) != len(adapted.transformations):
        yield "`transformations`"
    elif settings.transformations != adapted.transformations:
        yield "`multiplyBy` of transformations"
    if ignores_undeclared and not gates["QuotaCheckStrategy"]:
        yield "`quotaCheckStrategy`"
    if settings.devices.resources and treat_claims(gates) == IGNORED:
        yield "claims of devices"


def _parse_nodes(several: Any) -> tuple[tuple[NodeGroup, ...], int]:
    """Return groups with at most as many nodes in all as can be simulated in seconds, and how many are declared."""
    groups: list[NodeGroup] = []
    total = 0
    for raw in map(as_mapping, as_list(several)):
        count = raw.get("count")
        size = max(count, 0) if type(count) is int else 0
        labels = {str(key): str(value) for key, value in as_mapping(raw.get("labels")).items()}
        left = max(0, MAX_NODES - total)
        groups.append(NodeGroup(str(raw.get("flavor") or ""), min(size, left), labels, as_mapping(raw.get("capacity"))))
        total += size
    return tuple(groups), total


def build_nodes(groups: tuple[NodeGroup, ...], flavor_labels: Mapping[str, Mapping[str, str]]) -> Iterator[Any]:
    """Build the Node objects of groups: each has the labels of its flavor, those of the group, and its own name."""
    for number, group in enumerate(groups):
        for index in range(group.size):
            name = f"{group.flavor or 'node'}-{number}-{index}"
            labels = {"kubernetes.io/hostname": name, **flavor_labels.get(group.flavor, {}), **group.labels}
            yield {
                "metadata": {"name": name, "labels": labels},
                # A node has room for 110 pods, unless its kubelet is configured otherwise.
                "status": {
                    "allocatable": {"pods": "110", **group.capacity},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }


_KUEUE = "kueue.x-k8s.io"
_GROUPS: Mapping[str, str] = {
    **dict.fromkeys("AdmissionCheck ClusterQueue Cohort LocalQueue ResourceFlavor Topology".split(), _KUEUE),
    **dict.fromkeys(("MultiKueueCluster", "MultiKueueConfig", "WorkloadPriorityClass"), _KUEUE),
    **dict.fromkeys(("LimitRange", "Namespace", "Node", "Pod"), ""),
    "RuntimeClass": "node.k8s.io",
    "PriorityClass": "scheduling.k8s.io",
    **dict.fromkeys(("DeviceClass", "ResourceClaimTemplate", "ResourceSlice"), "resource.k8s.io"),
    **dict.fromkeys(("ClusterTrainingRuntime", "TrainingRuntime"), "trainer.kubeflow.org"),
}
"""The kinds that decide about admission, and the group of each."""

DECIDING_KINDS = frozenset(_GROUPS)

_OWN_KINDS = frozenset(("ClusterQueue", "LocalQueue", "ResourceFlavor", "WorkloadPriorityClass"))
"""Kinds that only Kueue has."""

MAX_DEPTH = 200
"""The number of cohorts above each other that are simulated with fair sharing. Real clusters have a handful."""


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

    def list_namespaces(self) -> dict[str, Mapping[str, str]]:
        """Return the labels of namespaces. Kubernetes labels each with its name."""
        return {
            name: {"kubernetes.io/metadata.name": name, **as_mapping(as_mapping(each.get("metadata")).get("labels"))}
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
        version = str(obj.get("apiVersion") or "")
        if group != get_group(obj):
            # Other APIs have topologies and cohorts of their own.
            if kind in _OWN_KINDS or (group == _KUEUE and not version):
                shown = f"its `apiVersion` is `{version[:100]}`" if version else "it has no `apiVersion`"
                unread.append(f"{kind} `{name}` is not read: {shown}; write `{_KUEUE}/v1beta2`")
        elif name:
            namespace = str(as_mapping(obj.get("metadata")).get("namespace") or "")
            found.setdefault(kind, {}).setdefault((namespace, name), obj)
        elif group == _KUEUE:
            unread.append(f"a {kind} without a name is not read")
    by_kind = {kind: tuple(several.values()) for kind, several in found.items()}
    return ClusterObjects(by_kind, configuration, tuple(dict.fromkeys(unread)))


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
