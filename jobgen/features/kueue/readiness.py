"""Readiness of ClusterQueues: whether a queue admits workloads at all, and why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobgen.features.kueue.objects import ClusterQueue, Flavor, as_list, as_mapping, name_of
from jobgen.model.named_tuple import NamedTuple

READY, STOPPED, FLAVOR_NOT_FOUND, TOPOLOGY_NOT_FOUND = "Ready", "Stopped", "FlavorNotFound", "TopologyNotFound"
CHECK_NOT_FOUND, CHECK_INACTIVE = "AdmissionCheckNotFound", "AdmissionCheckInactive"
SEVERAL_MULTIKUEUE = "MultipleMultiKueueAdmissionChecks"
MULTIKUEUE_PER_FLAVOR = "MultiKueueAdmissionCheckAppliedPerFlavor"
MULTIKUEUE_WITH_PROVISIONING = "MultiKueueWithProvisioningRequest"
COHORT_CYCLE = "CohortCycle"
"""Not a reason of Kueue, which reports `Unknown` for the queues of a cycle."""

_UNKNOWN = "Unknown"
_MULTIKUEUE, _PROVISIONING = "kueue.x-k8s.io/multikueue", "kueue.x-k8s.io/provisioning-request"


class AdmissionCheck(NamedTuple):
    """An AdmissionCheck: its controller, and whether that has said that the check is active."""

    name: str
    controller: str
    is_active: bool


class Cause(NamedTuple):
    """One reason why a queue admits nothing."""

    reason: str
    message: str


class Readiness(NamedTuple):
    """Whether a queue admits workloads, with the reason and message of its condition `Active`."""

    is_active: bool
    reason: str
    message: str
    causes: tuple[Cause, ...] = ()
    is_scheduled: bool = True
    """Whether the scheduler considers the queue; it does not without a topology, even if the queue is active."""


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
    return AdmissionCheck(name_of(obj), controller, is_active)


def check_readiness(queue: ClusterQueue, context: QueueContext) -> Readiness:
    """Return whether a queue admits workloads, and why not."""
    if queue.cohort in context.cyclic:
        # Kueue stops reading a queue when it finds the cycle, so no other cause is known.
        cause = Cause(COHORT_CYCLE, f"the parents of cohort {queue.cohort} form a cycle")
        return Readiness(False, _UNKNOWN, "Can't admit new workloads.", (cause,), is_scheduled=False)
    found = _find_checks(queue, context)
    causes = [*_list_object_causes(queue, found, context), *_list_check_causes(queue, found)]
    missing = list(_list_topology_causes(queue, context))
    # With MultiKueue the pods run in another cluster, which has the topology.
    if causes or (missing and not _select(found, _MULTIKUEUE)):
        causes += missing
        text = ", ".join(cause.message for cause in causes)
        return Readiness(False, causes[0].reason, f"Can't admit new workloads: {text}.", tuple(causes), False)
    return Readiness(True, READY, "Can admit new workloads", is_scheduled=not missing)


def _find_checks(queue: ClusterQueue, context: QueueContext) -> list[AdmissionCheck]:
    names = sorted({name for name, _ in queue.checks})
    return [context.checks[name] for name in names if name in context.checks]


def _select(checks: list[AdmissionCheck], controller: str) -> list[str]:
    return [check.name for check in checks if check.controller == controller]


def _list_object_causes(queue: ClusterQueue, found: list[AdmissionCheck], context: QueueContext) -> Iterator[Cause]:
    """Yield what stops the queue, and the objects that are missing or inactive."""
    if queue.stop_policy != "None":
        yield Cause(STOPPED, "is stopped")
    flavors = [name for group in queue.groups for name in group.flavors if name not in context.flavors]
    if flavors:
        yield Cause(FLAVOR_NOT_FOUND, f"references missing ResourceFlavor(s): {','.join(flavors)}")
    missing = sorted({name for name, _ in queue.checks} - context.checks.keys())
    if missing:
        yield Cause(CHECK_NOT_FOUND, f"references missing AdmissionCheck(s): {','.join(missing)}")
    inactive = [check.name for check in found if not check.is_active]
    if inactive:
        yield Cause(CHECK_INACTIVE, f"references inactive AdmissionCheck(s): {','.join(inactive)}")


def _list_check_causes(queue: ClusterQueue, found: list[AdmissionCheck]) -> Iterator[Cause]:
    """Yield admission checks that do not work together."""
    remote, provisioning = _select(found, _MULTIKUEUE), _select(found, _PROVISIONING)
    shown = ",".join(remote)
    if len(remote) > 1:
        text = f"Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: {shown}"
        yield Cause(SEVERAL_MULTIKUEUE, text)
    every = {name for group in queue.groups for name in group.flavors}
    limited = {name for name, flavors in dict(queue.checks).items() if flavors and set(flavors) != every}
    partial = [name for name in remote if name in limited]
    if partial:
        text = f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(partial)}"
        yield Cause(MULTIKUEUE_PER_FLAVOR, text)
    if remote and provisioning:
        both = f"{shown}, {','.join(provisioning)}"
        text = f"Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: {both}"
        yield Cause(MULTIKUEUE_WITH_PROVISIONING, text)


def _list_topology_causes(queue: ClusterQueue, context: QueueContext) -> Iterator[Cause]:
    if not context.uses_topologies:
        return
    for name in dict.fromkeys(name for group in queue.groups for name in group.flavors):
        topology = context.flavors[name].topology if name in context.flavors else ""
        if topology and topology not in context.topologies:
            yield Cause(TOPOLOGY_NOT_FOUND, f'there is no Topology "{topology}" for TAS flavor "{name}"')
