"""What is known of a cluster when jobs are admitted: its queues, whether they are ready, and what they can ever admit.

Files rarely show all of a cluster. Where an object is missing that an export easily leaves out, the context assumes the
best, and says so in `assumptions`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Final, Protocol

from jobgen.check.operators.kueue import describe_faults
from jobgen.features.kueue.assign_flavors import Planner
from jobgen.features.kueue.assignment import PROVISIONING, TOPOLOGY_FAILED, Mode, Topologies
from jobgen.features.kueue.cluster_objects import (
    MAX_DEPTH,
    NEWEST,
    OLDEST,
    ClusterObjects,
    Key,
    Version,
    adapt_cohorts,
    list_gate_notes,
    list_unknown_annotations,
    parse_gates,
)
from jobgen.features.kueue.cycle import Scheduler
from jobgen.features.kueue.match import matches_selector
from jobgen.features.kueue.objects import (
    ClusterQueue,
    Cohort,
    Flavor,
    as_list,
    as_mapping,
    find_namespace,
    name_of,
    parse_cluster_queue,
    parse_cohort,
    parse_topologies,
)
from jobgen.features.kueue.obstacles import Obstacle, explain_no_fit
from jobgen.features.kueue.queue_order import find_shape
from jobgen.features.kueue.quota import find_cycles
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.topology.snapshot import build_snapshots
from jobgen.features.kueue.topology.tree import Node, parse_nodes, read_gates, sum_other_pods
from jobgen.features.kueue.workloads import PodSet, Workload
from jobgen.k8s.kueue import DOMAIN
from jobgen.k8s.kueue_integrations import MULTIKUEUE
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import parse_quantity
from jobgen.model.suggest import find_closest, list_alternatives

_STOPPED = "Stopped"
READY, RETRY, REJECTED = "Ready", "Retry", "Rejected"
"""Answers of admission checks; another one is `Pending`."""


class Dispatch(Protocol):
    """Sends workloads to worker clusters."""

    def dispatch(self, context: AdmissionContext, decision: Any) -> Any:
        """Add to a decision of `answers.decide` what worker clusters decide."""

    def follow(self, context: AdmissionContext, jobs: Any) -> Any:
        """Follow the workloads of jobs in worker clusters while time passes."""

    def locate(self, obj: Any) -> Any:
        """Return a Workload of a capture that says which worker cluster runs it, if that is known."""

    def list_workers(self) -> Any:
        """Return the worker clusters that are known, by name."""


class AdmissionCheck(NamedTuple):
    """An AdmissionCheck: its controller, and whether that has said that the check is active."""

    name: str
    controller: str
    is_active: bool
    config: str = ""
    """The object with its parameters."""


class Refusal(NamedTuple):
    """An admission check that is not ready."""

    check: str
    answer: str
    """`Pending`, `Retry` or `Rejected`."""

    @property
    def keeps_quota(self) -> bool:
        """Return True if the workload keeps its quota."""
        return self.answer not in (RETRY, REJECTED)

    def explain(self) -> str:
        """Return what becomes of the workload."""
        if self.answer == REJECTED:
            return f"admission check `{self.check}` rejects it, and Kueue deactivates it"
        if self.answer == RETRY:
            return (
                f"admission check `{self.check}` answers `{RETRY}`, so Kueue takes its quota back and tries again later"
            )
        return f"admission check `{self.check}` is pending; meanwhile it keeps its quota"


class Cause(NamedTuple):
    """One reason why a queue admits nothing."""

    reason: str
    message: str


class Readiness(NamedTuple):
    """True if a queue admits workloads, with the reason and message of its condition `Active`."""

    is_active: bool
    reason: str
    message: str
    causes: tuple[Cause, ...] = ()
    is_scheduled: bool = True
    """True if the scheduler considers the queue; it does not without a topology, even if the queue is active."""


class QueueContext(NamedTuple):
    """The objects that the readiness of queues depends on."""

    flavors: Mapping[str, Flavor]
    checks: Mapping[str, AdmissionCheck]
    topologies: frozenset[str]
    cyclic: frozenset[str] = frozenset()
    """The cohorts whose chain of parents never ends."""
    uses_topologies: bool = True
    """The gate TopologyAwareScheduling."""


def parse_admission_check(obj: Mapping[str, Any]) -> AdmissionCheck:
    """Parse an AdmissionCheck."""
    controller = str(as_mapping(obj.get("spec")).get("controllerName") or "")
    conditions = map(as_mapping, as_list(as_mapping(obj.get("status")).get("conditions")))
    is_active = any(each.get("type") == "Active" and each.get("status") == "True" for each in conditions)
    config = str(as_mapping(as_mapping(obj.get("spec")).get("parameters")).get("name") or "")
    return AdmissionCheck(name_of(obj), controller, is_active, config)


def check_clusters(config: Mapping[str, Any] | None, clusters: Mapping[str, Mapping[str, Any]]) -> tuple[bool, str]:
    """Return if a check of MultiKueue is active, and the reason: it is if any cluster of its config is usable.

    `clusters` are the MultiKueueClusters by name.
    """
    if config is None:
        return False, "BadConfig"
    names = list(map(str, as_list(as_mapping(config.get("spec")).get("clusters"))))
    usable = [name for name in names if name in clusters and is_connected(clusters[name])]
    if len(usable) == len(names):
        return True, "Active"
    return bool(usable), "SomeActiveClusters" if usable else "NoUsableClusters"


def is_connected(cluster: Mapping[str, Any]) -> bool:
    """Return True if a MultiKueueCluster is active; one without a status is."""
    conditions = map(as_mapping, as_list(as_mapping(cluster.get("status")).get("conditions")))
    return next((each.get("status") == "True" for each in conditions if each.get("type") == "Active"), True)


def check_readiness(queue: ClusterQueue, context: QueueContext) -> Readiness:
    """Return the readiness of a queue: if it admits workloads, and why not."""
    if queue.cohort in context.cyclic:
        # Kueue stops reading a queue when it finds the cycle, so no other cause is known. It has no reason for it.
        cause = Cause("CohortCycle", f"the parents of cohort {queue.cohort} form a cycle")
        return Readiness(False, "Unknown", "Can't admit new workloads.", (cause,), is_scheduled=False)
    names = sorted({name for name, _ in queue.checks})
    found = [context.checks[name] for name in names if name in context.checks]
    remote = [check.name for check in found if check.controller == MULTIKUEUE]
    causes = [*_list_object_causes(queue, found, context), *_list_check_causes(queue, found, remote)]
    missing: list[Cause] = []
    for name in dict.fromkeys(name for group in queue.groups for name in group.flavors):
        topology = context.flavors[name].topology if context.uses_topologies and name in context.flavors else ""
        if topology and topology not in context.topologies:
            missing.append(Cause("TopologyNotFound", f'there is no Topology "{topology}" for TAS flavor "{name}"'))
    # With MultiKueue the pods run in another cluster, which has the topology.
    if causes or (missing and not remote):
        causes += missing
        text = ", ".join(cause.message for cause in causes)
        return Readiness(False, causes[0].reason, f"Can't admit new workloads: {text}.", tuple(causes), False)
    return Readiness(True, "Ready", "Can admit new workloads", is_scheduled=not missing)


def _list_object_causes(queue: ClusterQueue, found: list[AdmissionCheck], context: QueueContext) -> Iterator[Cause]:
    """Yield what stops the queue, and the objects that are missing or inactive."""
    if queue.stop_policy != "None":
        yield Cause(_STOPPED, "is stopped")
    flavors = [name for group in queue.groups for name in group.flavors if name not in context.flavors]
    if flavors:
        yield Cause("FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(flavors)}")
    missing = sorted({name for name, _ in queue.checks} - context.checks.keys())
    if missing:
        yield Cause("AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {','.join(missing)}")
    inactive = [check.name for check in found if not check.is_active]
    if inactive:
        yield Cause("AdmissionCheckInactive", f"references inactive AdmissionCheck(s): {','.join(inactive)}")


def _list_check_causes(queue: ClusterQueue, found: list[AdmissionCheck], remote: list[str]) -> Iterator[Cause]:
    """Yield admission checks that do not work together; `remote` are those of MultiKueue."""
    shown = ",".join(remote)
    if len(remote) > 1:
        text = f"Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: {shown}"
        yield Cause("MultipleMultiKueueAdmissionChecks", text)
    every = {name for group in queue.groups for name in group.flavors}
    limited = {name for name, flavors in dict(queue.checks).items() if flavors and set(flavors) != every}
    partial = [name for name in remote if name in limited]
    if partial:
        text = f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(partial)}"
        yield Cause("MultiKueueAdmissionCheckAppliedPerFlavor", text)
    provisioning = [check.name for check in found if check.controller == PROVISIONING]
    if remote and provisioning:
        both = f"{shown}, {','.join(provisioning)}"
        text = f"Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: {both}"
        yield Cause("MultiKueueWithProvisioningRequest", text)


Object = Mapping[str, Any]

_DRAINS = "HoldAndDrain"
_STOP = ("None", "Hold", _DRAINS)
_WORDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "ClusterQueue": {"stopPolicy": _STOP, "queueingStrategy": ("BestEffortFIFO", "StrictFIFO")},
    "LocalQueue": {"stopPolicy": _STOP},
}
"""Fields of a spec that have one of a few values."""
_MAX_SHOWN, _MAX_ERROR = 60, 400
MAX_REMARKS: Final = 20
_MOST_NAMES: Final = 5


def list_problems(kind: str, obj: Object) -> Iterator[str]:
    """Yield why the API server or Kueue refuses an object."""
    spec = obj.get("spec")
    if spec is not None and not isinstance(spec, dict):
        yield "`spec` must be a mapping"
        return
    for field, words in _WORDS.get(kind, {}).items():
        value = as_mapping(spec).get(field)
        if value is not None and value not in words:
            yield f"`{field}` is `{_show(value)}`, and must be one of {', '.join(f'`{word}`' for word in words)}"
    if kind in ("WorkloadPriorityClass", "PriorityClass") and type(obj.get("value")) is not int:
        yield f"`value` is `{_show(json.dumps(obj.get('value'), default=str))}`, and must be a whole number"
    if kind in ("ClusterQueue", "Cohort"):
        yield from _list_unreadable(as_mapping(spec))
    yield from (_show(each, _MAX_ERROR) for each in describe_faults(kind, obj))


def _list_unreadable(spec: Object) -> Iterator[str]:
    """Yield quotas that are no quantities, and resources without a quota."""
    groups = spec.get("resourceGroups")
    if groups is not None and not isinstance(groups, list):
        yield "`resourceGroups` must be a list"
    for group in map(as_mapping, as_list(groups)):
        covered = list(map(str, as_list(group.get("coveredResources"))))
        for flavor in map(as_mapping, as_list(group.get("flavors"))):
            quotas = list(map(as_mapping, as_list(flavor.get("resources"))))
            fields = ("nominalQuota", "borrowingLimit", "lendingLimit")
            for quota, field in ((quota, field) for quota in quotas for field in fields):
                value = quota.get(field)
                if value is None and field != "nominalQuota":
                    continue
                if value is None or type(value) is bool or parse_quantity(str(value)) is None:
                    yield f"`{field}` of `{_show(quota.get('name'))}` is `{_show(value)}`, which is not a quantity"
            if missing := sorted(set(covered) - {str(each.get("name")) for each in quotas}):
                yield f"flavor `{_show(flavor.get('name'))}` has no quota of `{_show(missing[0])}`"


def _show(value: Any, most: int = _MAX_SHOWN) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}…"


class Difference(NamedTuple):
    """What versions before `until` decide differently, without a feature gate. It is not simulated."""

    topic: str
    """Which clusters it concerns."""
    until: Version
    text: str


PARENTS, FAIR, FAIR_PARENTS, FLAVORS, TOPOLOGY = "parents", "fair", "fair-parents", "flavors", "topology"

DIFFERENCES: Final = (
    Difference(PARENTS, (0, 12), "preemption where a cohort has a parent"),
    Difference(PARENTS, (0, 14), "which flavor to borrow where a cohort has a parent"),
    Difference(FAIR_PARENTS, (0, 11), "fair sharing where a cohort has a parent"),
    Difference(FAIR, (0, 14), "what fair sharing preempts, and how it rounds shares"),
    Difference(FLAVORS, (0, 13), "which flavor to preempt in"),
    Difference(FLAVORS, (0, 19), "node selectors with a label that another flavor has"),
    Difference(TOPOLOGY, (0, 11), "the choice of domains, preemption for them, and pods without an annotation"),
    Difference(TOPOLOGY, (0, 15), "pods without a required or preferred level"),
    Difference(TOPOLOGY, (0, 19), "ties between domains, and resources without quota that nodes lack"),
)
"""The differences that the release notes of Kueue state (`CHANGELOG/`). docs/kueue.md has the same table."""


def list_version_notes(cluster: ClusterObjects) -> Iterator[str]:
    """Yield what to know about decisions of the declared version for these objects."""
    configuration = cluster.configuration
    version = configuration.version
    shown = show_version(version)
    if version[:2] > NEWEST:
        yield f"Kueue {shown} is newer than the versions that jobgen knows; jobgen decides like {show_version(NEWEST)}"
    if version < OLDEST:
        yield f"Kueue {shown} is older than the versions that jobgen knows; jobgen decides like {show_version(OLDEST)}"
    yield from list_gate_notes(version, configuration.switched)
    written = list(map(parse_cluster_queue, cluster.list_objects("ClusterQueue")))
    read = cluster.list_queues()
    ignored = [*_list_ignored(cluster, written, read), *configuration.ignored]
    if ignored:
        yield f"Kueue {shown} ignores {', '.join(ignored)}"
    preferences = [
        (one.fungibility.preference, other.fungibility.preference) for one, other in zip(written, read, strict=True)
    ]
    if any(one and other and one != other for one, other in preferences):
        yield f"Kueue {shown} swaps the values of `flavorFungibility.preference`"
    has_parents = any(each.parent for each in cluster.list_cohorts())
    topics = {
        PARENTS: has_parents,
        FAIR: configuration.rules.is_fair,
        FAIR_PARENTS: configuration.rules.is_fair and has_parents,
        FLAVORS: any(len(group.flavors) > 1 for each in written for group in each.groups),
        TOPOLOGY: configuration.gates["TopologyAwareScheduling"]
        and any(each.topology for each in cluster.list_flavors()),
    }
    differences = [each.text for each in DIFFERENCES if version[:2] < each.until and topics[each.topic]]
    if differences:
        yield f"jobgen does not simulate what Kueue {shown} decides differently: {'; '.join(differences)}"


def _list_ignored(
    cluster: ClusterObjects, written: Sequence[ClusterQueue], read: Sequence[ClusterQueue]
) -> Iterator[str]:
    """Yield the fields and annotations that stand in the objects, and that the version does not read."""
    version, gates = cluster.configuration.version, cluster.configuration.gates
    if not gates["LendingLimit"] and any(each.lending_limit is not None for q in written for each in q.quotas.values()):
        yield "`lendingLimit`"
    if any(
        one.fungibility.preference and not other.fungibility.preference
        for one, other in zip(written, read, strict=True)
    ):
        yield "`flavorFungibility.preference`"
    cohorts = list(map(parse_cohort, cluster.list_objects("Cohort")))
    if not gates["HierarchicalCohorts"] and cohorts:
        yield "Cohort objects"
    elif cohorts != adapt_cohorts(cohorts, version, gates):
        yield "`fairSharing` of cohorts"
    if any(each.topology for each in cluster.list_flavors()):
        if gates["TopologyAwareScheduling"]:
            yield from (f"`{name}`" for name in sorted(list_unknown_annotations(version)))
        else:
            yield "topologies (feature gate `TopologyAwareScheduling`)"


def show_version(version: Version) -> str:
    """Return a version as text."""
    return ".".join(map(str, version))


def _explain_stop(policy: Any) -> str:
    what = "is drained: Kueue stops what runs and admits nothing" if policy == _DRAINS else "is stopped"
    return f"{what} (`stopPolicy: {policy}`)" if policy else what


class AdmissionContext:
    """The queues of a cluster, before any workload; `namespaces` are those of the jobs."""

    def __init__(self, cluster: ClusterObjects, namespaces: Sequence[str] = ()) -> None:
        self.cluster = cluster
        self.local_queues = {
            (find_namespace(each), name_of(each)): as_mapping(each.get("spec"))
            for each in cluster.list_objects("LocalQueue")
        }
        flavors = cluster.list_flavors()
        if not flavors:
            names = {name for each in self.queues.values() for group in each.groups for name in group.flavors}
            flavors = [Flavor(name, {}, (), (), "") for name in sorted(names)]
        elif self.ignores_topology or not cluster.configuration.gates["TopologyAwareScheduling"]:
            flavors = [each._replace(topology="") for each in flavors]
        self.flavors = {each.name: each for each in flavors}
        known = cluster.list_namespaces()
        self.labels: dict[str, Mapping[str, str] | None] = {**dict.fromkeys(namespaces), **known}
        """The labels of namespaces; None if they are not known."""
        self._obstacles: dict[tuple[Any, ...], Obstacle | None] = {}
        self._planner = Planner()
        self.dispatcher: Dispatch | None = None
        """Sends what is admitted to worker clusters, if there are any."""
        self.outside: tuple[Any, ...] = ()
        """What runs and is no job of the repository, as jobs of `answers` with one workload each."""
        self.finished: tuple[str, ...] = ()
        """Jobs of the repository whose Workloads have finished, according to the files."""

    def replace_outside(self, jobs: Sequence[Any]) -> AdmissionContext:
        """Return the context with only these jobs from outside of the repository."""
        found = copy(self)
        found.outside = tuple(jobs)
        return found

    def replace_queues(
        self, queues: Mapping[str, ClusterQueue], cohorts: Sequence[Cohort] | None = None
    ) -> AdmissionContext:
        """Return the context with only these queues and cohorts, which can have other quota."""
        found = copy(self)
        found.cohorts = self.cohorts if cohorts is None else list(cohorts)
        for name in ("_empty", "readiness", "held_queues"):
            vars(found).pop(name, None)
        vars(found).update(queues=dict(queues), _obstacles={}, _planner=Planner())
        return found

    @cached_property
    def cohorts(self) -> list[Cohort]:
        """The Cohorts."""
        return self.cluster.list_cohorts()

    @cached_property
    def queues(self) -> dict[str, ClusterQueue]:
        """The ClusterQueues by name."""
        return {each.name: each for each in self.cluster.list_queues()}

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed because the files do not show it."""
        return (*self.list_remarks(), *self._list_missing(), *list_version_notes(self.cluster))

    def list_remarks(self) -> Iterator[str]:
        """Yield what is not simulated as it is written."""
        found = [*self.cluster.unread, *self.cluster.configuration.remarks]
        for kind, objects in self.cluster.by_kind.items():
            first_problems = ((name_of(obj), next(list_problems(kind, obj), "")) for obj in objects)
            found += (f"{kind} `{name}` is not valid: {problem}" for name, problem in first_problems if problem)
        found += (
            f"Cohort `{name}` is below {MAX_DEPTH - 1} others; its parents are not simulated"
            for name in self.cluster.list_deep_cohorts()
        )
        yield from found[:MAX_REMARKS]
        if len(found) > MAX_REMARKS:
            yield f"{len(found) - MAX_REMARKS} more objects are not read, or not valid"

    def _list_missing(self) -> Iterator[str]:
        if self.finished:
            names = ", ".join(f"`{name}`" for name in self.finished[:_MOST_NAMES])
            more = f" and {len(self.finished) - _MOST_NAMES} more" if len(self.finished) > _MOST_NAMES else ""
            yield f"finished in the capture, but decided about as if started again: {names}{more}"
        if not self.cluster.list_objects("ResourceFlavor") and self.queues:
            yield "no ResourceFlavor is among the files; every flavor is assumed to exist, without labels and taints"
        unknown = sorted(name for name, labels in self.labels.items() if labels is None)
        if unknown and any(each.namespace_selector != {} for each in self.queues.values()):
            shown = ", ".join(f"`{name}`" for name in unknown)
            yield f"the labels of {shown} are not among the files; every queue is assumed to select these namespaces"
        declared = {*self.cluster.configuration.checks, *(self.remote_checks if self.dispatcher else ())}
        checks = sorted({name for each in self.queues.values() for name, _ in each.checks} - declared)
        if checks:
            shown = ", ".join(f"`{name}`" for name in checks)
            yield f"admission checks are not simulated; {shown} {'is' if len(checks) == 1 else 'are'} assumed to pass"
        named = {name for each in self.queues.values() for name, _ in each.checks}
        if strange := sorted(self.cluster.configuration.checks.keys() - named if self.queues else ()):
            shown = ", ".join(f"`{name}`" for name in strange)
            yield f"no ClusterQueue has the admission check {shown}, whose answer `admissionChecks` declares"
        measured = any(self.cluster.configuration.resources.devices.sources.values())
        if measured and not self.cluster.list_objects("ResourceSlice"):
            yield "no ResourceSlice is among the files; devices that count by counters or capacity use no quota"
        if self.ignores_topology:
            yield "no nodes are among the files; every placement in a topology is assumed to be possible"

    @cached_property
    def ignores_topology(self) -> bool:
        """Return True if placements are not simulated, because no node is known."""
        is_on = self.cluster.configuration.gates["TopologyAwareScheduling"]
        return is_on and any(each.topology for each in self.cluster.list_flavors()) and not self.cluster.list_nodes()

    @cached_property
    def readiness(self) -> dict[str, Readiness]:
        """The readiness of each ClusterQueue: if it admits workloads."""
        parents = {each.name: each.parent for each in self.cluster.list_cohorts()}
        context = QueueContext(
            self.flavors,
            {each.name: each for each in self.checks},
            frozenset(map(name_of, self.cluster.list_objects("Topology"))),
            frozenset(find_cycles(parents)),
        )
        return {name: check_readiness(queue, context) for name, queue in self.queues.items()}

    @cached_property
    def checks(self) -> tuple[AdmissionCheck, ...]:
        """The admission checks. One without a status, or without an object, is assumed to be active."""
        objects = {name_of(each): each for each in self.cluster.list_objects("AdmissionCheck")}
        configs, clusters = (
            {name_of(each): each for each in self.cluster.list_objects(kind)}
            for kind in ("MultiKueueConfig", "MultiKueueCluster")
        )
        checks: list[AdmissionCheck] = []
        for name in sorted({name for each in self.queues.values() for name, _ in each.checks}):
            found = objects.get(name, {})
            check = parse_admission_check(found)._replace(name=name)
            if not as_mapping(found.get("status")).get("conditions"):
                is_known = check.controller == MULTIKUEUE and configs and clusters
                is_active = check_clusters(configs.get(check.config), clusters)[0] if is_known else True
                check = check._replace(is_active=is_active)
            checks.append(check)
        return tuple(checks)

    @cached_property
    def remote_checks(self) -> Mapping[str, str]:
        """The admission checks of MultiKueue, and the MultiKueueConfig of each."""
        return {each.name: each.config for each in self.checks if each.controller == MULTIKUEUE}

    def find_remote_check(self, queue: str) -> str | None:
        """Return the admission check of MultiKueue of a ClusterQueue; None if its jobs run in this cluster."""
        names = (name for name, _ in self.queues[queue].checks) if queue in self.queues else ()
        return next((name for name in names if name in self.remote_checks), None)

    def find_refusal(self, workload: Workload) -> Refusal | None:
        """Return the declared answer that keeps a workload with quota from its start; None if there is none."""
        answers, queue = self.cluster.configuration.checks, self.queues.get(workload.cluster_queue)
        if not answers or queue is None:
            return None
        flavors = {pair.flavor for pair in workload.pairs}
        found = [
            Refusal(name, answers[name])
            for name, only in queue.checks
            if answers.get(name, READY) != READY and (not only or not flavors.isdisjoint(only))
        ]
        # A rejection is final, and a retry takes the quota back, whatever the others say.
        return min(found, key=lambda each: (each.answer != REJECTED, each.answer != RETRY), default=None)

    def build_scheduler(self) -> Scheduler:
        """Return a scheduler in which no workload is admitted."""
        cluster, gates = self.cluster, self.cluster.configuration.gates
        snapshot = Snapshot(self.queues.values(), self.cohorts, self.flavors.values())
        levels = {} if self.ignores_topology else parse_topologies(cluster.list_objects("Topology"))
        flavors = self.flavors.values()
        if any(each.topology for each in flavors):
            pods = sum_other_pods(cluster.list_objects("Pod"))
            topologies = build_snapshots(flavors, levels, self._nodes, other_pods=pods, gates=read_gates(gates))
            snapshot.topologies = Topologies(topologies)
        return Scheduler(
            snapshot,
            cluster.configuration.rules,
            levels,
            self.labels,
            local_queues={key: queue for key in self.local_queues if (queue := self._find_active_queue(key))},
            inactive=frozenset(
                name for name, each in self.readiness.items() if not each.is_scheduled or not each.is_active
            ),
            controllers={each.name: each.controller for each in self.checks},
            gates=parse_gates(gates),
            planner=self._planner,
        )

    @cached_property
    def _nodes(self) -> list[Node]:
        return parse_nodes(self.cluster.list_nodes())

    @cached_property
    def held_local_queues(self) -> dict[Key, str]:
        """The LocalQueues that admit nothing, but do not stop what runs, and the ClusterQueue of each."""
        held = ((key, spec) for key, spec in self.local_queues.items() if spec.get("stopPolicy") == "Hold")
        return {key: str(spec.get("clusterQueue") or "") for key, spec in held}

    @cached_property
    def held_queues(self) -> frozenset[str]:
        """The ClusterQueues that admit nothing only because they are held; what runs in them goes on."""
        return frozenset(
            name
            for name, each in self.readiness.items()
            if self.queues[name].stop_policy == "Hold" and {cause.reason for cause in each.causes} == {_STOPPED}
        )

    def _find_active_queue(self, key: Key) -> str:
        spec = self.local_queues.get(key, {})
        return str(spec.get("clusterQueue") or "") if (spec.get("stopPolicy") or "None") == "None" else ""

    @cached_property
    def _empty(self) -> Scheduler:
        return self.build_scheduler()

    def find_cluster_queue(self, workload: Workload) -> str:
        """Return the ClusterQueue of a workload; empty if its LocalQueue is not known."""
        return str(self.local_queues.get((workload.namespace, workload.queue), {}).get("clusterQueue") or "")

    def is_drained(self, workload: Workload) -> bool:
        """Return True if the queue of a workload evicts what runs. A queue that only holds does not."""
        local = self.local_queues.get((workload.namespace, workload.queue), {})
        queue = self.queues.get(workload.cluster_queue or self.find_cluster_queue(workload))
        return _DRAINS in (local.get("stopPolicy"), queue.stop_policy if queue is not None else "")

    def stop(self, workload: Workload) -> Workload:
        """Return a workload without its quota if it has some, and Kueue evicts it at once."""
        if not workload.reserved or (workload.is_active and not self.is_drained(workload)):
            return workload
        return workload._replace(cluster_queue="", admission=(), reserved="", is_admitted=False)

    def find_obstacle(self, workload: Workload) -> Obstacle | None:
        """Return why a workload is never admitted, however empty the cluster is; None if it can be.

        The answer depends on nothing else that is queued, and is found once for all workloads of the same shape.
        """
        queued = workload._replace(priority=0, admission=(), reserved="")
        own = frozenset((name, str(value)) for name, value in queued.annotations.items() if name.startswith(DOMAIN))
        key = (queued.namespace, queued.queue, own, find_shape(queued))
        if key not in self._obstacles:
            self._obstacles[key] = self._explain_obstacle(queued)
        return self._obstacles[key]

    def _explain_obstacle(self, workload: Workload) -> Obstacle | None:
        found = self._find_queue_obstacle(workload)
        if found is not None:
            return found
        queue = self.queues[self.find_cluster_queue(workload)]
        labels = self.labels.get(workload.namespace)
        if not matches_selector(queue.namespace_selector, labels):
            message = f"ClusterQueue `{queue.name}` does not select namespace `{workload.namespace}`"
            change = "label the namespace to match `namespaceSelector` of the queue, or use another queue"
            if queue.namespace_selector is None:
                change = "set `namespaceSelector: {}` in the queue to select every namespace"
            return Obstacle("namespace", message, change)
        if self._empty.nominator.can_ever_fit(workload, queue.name):
            return self._explain_rejection(queue)
        assignment, _ = self._empty.assign(workload, queue.name)
        if assignment.mode is not Mode.NO_FIT:
            return self._explain_rejection(queue)
        if assignment.no_fit == TOPOLOGY_FAILED and self._has_later_places(workload, queue):
            return None
        if self.cluster.configuration.remarks or self.cluster.list_deep_cohorts():
            # Nodes or cohorts are left out of the simulation, so what lacks in it may be there.
            return None
        ignores = self.cluster.configuration.rules.ignores_undeclared
        return explain_no_fit(workload, queue, assignment, self._empty.snapshot, ignores_undeclared=ignores)

    def _explain_rejection(self, queue: ClusterQueue) -> Obstacle | None:
        """Explain that an admission check rejects every workload of a queue."""
        answers, every = self.cluster.configuration.checks, {name for group in queue.groups for name in group.flavors}
        for name, only in queue.checks:
            if answers.get(name) == REJECTED and (not only or every <= set(only)):
                change = f"change what `{name}` rejects, or use a queue without this check"
                return Obstacle("check", Refusal(name, REJECTED).explain(), change)
        return None

    def _has_later_places(self, workload: Workload, queue: ClusterQueue) -> bool:
        """Return True if pods have places in flavors that Kueue tries only while others use the quota of the first.

        If pods cannot be placed in a flavor that has quota, Kueue tries no later one.
        """
        scheduler, queues = self._empty, self._empty.snapshot.queues
        together: dict[str, list[PodSet]] = {}
        for each in workload.pod_sets:
            together.setdefault((each.topology.group if each.topology else "") or each.name, []).append(each)

        def has_place(several: Sequence[PodSet], left: ClusterQueue) -> bool:
            scheduler.snapshot.queues = {**queues, queue.name: left}
            found, _ = scheduler.assign(workload._replace(pod_sets=tuple(several)), queue.name)
            attempts = (attempt for each in found.pod_sets for attempt in each.attempts)
            failed = {each.flavor for each in attempts if each.no_fit == TOPOLOGY_FAILED}
            if found.mode is not Mode.NO_FIT or not failed:
                return found.mode is not Mode.NO_FIT
            others = (tuple(name for name in each.flavors if name not in failed) for each in left.groups)
            groups = tuple(each._replace(flavors=names) for each, names in zip(left.groups, others, strict=True))
            return has_place(several, left._replace(groups=groups))

        try:
            return all(has_place(several, queue) for several in together.values())
        finally:
            scheduler.snapshot.queues = queues

    def _find_queue_obstacle(self, workload: Workload) -> Obstacle | None:
        key = (workload.namespace, workload.queue)
        if key not in self.local_queues:
            message = f"there is no LocalQueue `{workload.queue}` in namespace `{workload.namespace}`"
            names = sorted(name for namespace, name in self.local_queues if namespace == workload.namespace)
            if not names:
                return Obstacle("queue", message, "create the LocalQueue, or use a namespace that has one")
            close = find_closest(workload.queue, names)
            others = list_alternatives(f"`{name}`" for name in names[:5])
            return Obstacle("queue", message, f"did you mean `{close}`?" if close else f"use {others}")
        name = self.find_cluster_queue(workload)
        if not self._find_active_queue(key):
            message = f"LocalQueue `{workload.queue}` {_explain_stop(self.local_queues[key].get('stopPolicy'))}"
            return Obstacle("queue", message, "set its `stopPolicy` to `None`, or use another queue")
        if name not in self.queues:
            message = f"LocalQueue `{workload.queue}` refers to ClusterQueue `{name}`, which does not exist"
            close = find_closest(name, list(self.queues))
            advice = f"did you mean `{close}` there?" if close else "create the ClusterQueue, or use another queue"
            return Obstacle("queue", message, advice)
        readiness = self.readiness[name]
        if readiness.is_active and readiness.is_scheduled:
            return None
        if any(cause.reason == _STOPPED for cause in readiness.causes):
            message = f"ClusterQueue `{name}` {_explain_stop(self.queues[name].stop_policy)}"
            return Obstacle("queue", message, "set its `stopPolicy` to `None`, or use another queue")
        causes = "; ".join(cause.message for cause in readiness.causes)
        message = f"ClusterQueue `{name}` admits nothing: {causes}"
        return Obstacle("queue", message, "correct the queue, or use another one")
