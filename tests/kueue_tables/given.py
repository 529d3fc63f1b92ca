"""What the cases of several tables give: the state of queues, amounts, feature gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.features.kueue.assignment import NO_TOPOLOGIES, PodSetAssignment, Topologies
from jobgen.features.kueue.objects import (
    as_list,
    as_mapping,
    name_of,
    parse_cluster_queue,
    parse_cohort,
    parse_flavor,
    parse_topologies,
)
from jobgen.features.kueue.preemption import DEFAULT_STRATEGIES, Rules
from jobgen.features.kueue.quota import CPU, UNLIMITED, FlavorResource, Usage, add, to_amount
from jobgen.features.kueue.snapshot import Snapshot
from jobgen.features.kueue.topology.snapshot import build_snapshots
from jobgen.features.kueue.topology.tree import parse_nodes, read_gates, sum_other_pods
from jobgen.features.kueue.workloads import PodSet, PodSetAdmission, parse_workload

Given = Mapping[str, Any]


def read_snapshot(given: Mapping[str, Any]) -> Snapshot:
    """Read queues, cohorts and flavors from plain objects."""
    return Snapshot(
        map(parse_cluster_queue, given.get("clusterQueues", ())),
        map(parse_cohort, given.get("cohorts", ())),
        map(parse_flavor, given.get("resourceFlavors", ())),
    )


def read_state(given: Given) -> Snapshot:
    """Read queues, cohorts, flavors and topologies with their usage: `usage` by queue, and admitted `workloads`."""
    snapshot = read_snapshot(given)
    snapshot.topologies = read_topologies(given, snapshot)
    for queue, usage in as_mapping(given.get("usage")).items():
        snapshot.add_usage(queue, read_usage(usage))
    for obj in as_list(given.get("workloads")):
        snapshot.admit(parse_workload(obj))
    return snapshot


def read_topologies(given: Given, snapshot: Snapshot) -> Topologies:
    """Read the topologies of flavors: their levels, the nodes, and pods that run there outside of Kueue."""
    levels = parse_topologies(as_list(given.get("topologies")))
    if not levels:
        return NO_TOPOLOGIES
    return Topologies(
        build_snapshots(
            snapshot.flavors.values(),
            levels,
            parse_nodes(as_list(given.get("nodes"))),
            other_pods=sum_other_pods(as_list(given.get("pods"))),
            gates=read_gates(as_mapping(given.get("featureGates"))),
        )
    )


def read_controllers(given: Given) -> dict[str, str]:
    """Read the controllers of admission checks by name."""
    return {
        name_of(obj): str(as_mapping(obj.get("spec")).get("controllerName", ""))
        for obj in as_list(given.get("admissionChecks"))
    }


def read_usage(quantities: Any) -> Usage:
    """Read quantities by flavor and resource."""
    return {
        FlavorResource(flavor, resource): UNLIMITED if value == "unlimited" else to_amount(resource, value)
        for flavor, resources in as_mapping(quantities).items()
        for resource, value in as_mapping(resources).items()
    }


def write_usage(usage: Mapping[FlavorResource, int]) -> dict[str, dict[str, str]]:
    """Write amounts as quantities by flavor and resource."""
    found: dict[str, dict[str, str]] = {}
    for pair, amount in usage.items():
        found.setdefault(pair.flavor, {})[pair.resource] = to_quantity(pair.resource, amount)
    return found


def is_enabled(given: Given, gate: str, default: bool) -> bool:
    """Return whether a feature gate is on in a case."""
    return bool(as_mapping(given.get("featureGates")).get(gate, default))


def is_fair(given: Given) -> bool:
    """Return whether a case uses fair sharing."""
    return as_mapping(given.get("fairSharing")).get("enabled") is True


def read_rules(given: Given) -> Rules:
    """Read the settings that decide how workloads are preempted."""
    strategies = as_list(as_mapping(given.get("fairSharing")).get("preemptionStrategies"))
    return Rules(
        is_fair(given),
        tuple(strategies) or DEFAULT_STRATEGIES,
        is_enabled(given, "FairSharingPreemptWithinNominal", default=True),
        is_enabled(given, "SchedulerTimestampPreemptionBuffer", default=False),
    )


def to_quantity(resource: str, amount: int) -> str:
    """Convert an amount to a quantity."""
    if amount >= UNLIMITED:
        return "unlimited"
    if resource == CPU and amount % 1000:
        return f"{amount}m"
    return str(amount // 1000 if resource == CPU else amount)


def sum_requests(
    pod_sets: Sequence[PodSet], assigned: Sequence[PodSetAssignment], replaced: Sequence[PodSetAdmission] = ()
) -> Usage:
    """Return what a workload needs of each flavor: for the pods that are assigned, without what it replaces."""
    usage: Usage = {}
    for number, (pod_set, each) in enumerate(zip(pod_sets, assigned, strict=True)):
        count = pod_set.count - replaced[number].count if replaced else each.count
        for resource, amount in pod_set.total(count).items():
            # A resource of which nothing is requested may have no flavor.
            if amount and resource in each.flavors:
                pair = FlavorResource(each.flavors[resource].flavor, resource)
                usage[pair] = add(usage.get(pair, 0), amount)
    return usage
