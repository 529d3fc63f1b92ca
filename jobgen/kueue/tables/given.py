"""What the cases of several tables give: the state of queues, amounts, feature gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobgen.kueue.amounts import UNLIMITED, to_amount, to_quantity
from jobgen.kueue.objects import as_list, as_mapping
from jobgen.kueue.quota import FlavorResource, Usage
from jobgen.kueue.snapshot import Snapshot, read_snapshot
from jobgen.kueue.workloads import parse_workload

Given = Mapping[str, Any]


def read_state(given: Given) -> Snapshot:
    """Read queues, cohorts and flavors with their usage: `usage` by queue, and admitted `workloads`."""
    snapshot = read_snapshot(given)
    for queue, usage in as_mapping(given.get("usage")).items():
        snapshot.add_usage(queue, read_usage(usage))
    for obj in as_list(given.get("workloads")):
        snapshot.add_workload(parse_workload(obj))
    return snapshot


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
