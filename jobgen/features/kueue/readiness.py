"""Readiness of queues: their flavors, admission checks and topologies, as in the condition `Active` of Kueue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.kueue.assignment import PROVISIONING
from jobgen.features.kueue.objects import ClusterQueue, Flavor, as_list, as_mapping, name_of
from jobgen.k8s.kueue_integrations import MULTIKUEUE
from jobgen.model.named_tuple import NamedTuple

STOPPED = "Stopped"
"""The reason of a queue that its policy stops."""


class AdmissionCheck(NamedTuple):
    """An AdmissionCheck: its controller, and whether that has said that the check is active."""

    name: str
    controller: str
    is_active: bool
    config: str = ""
    """The object with its parameters."""


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
        yield Cause(STOPPED, "is stopped")
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
