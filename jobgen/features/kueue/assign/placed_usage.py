"""What placed pods use of topologies, beside the quota that their workloads use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobgen.features.kueue.topology.assign import shares_hosts
from jobgen.features.kueue.topology.request import Placement
from jobgen.features.kueue.topology.snapshot import TopologySnapshot
from jobgen.features.kueue.workload.requests import Amounts, charge_pod
from jobgen.features.kueue.workload.workloads import PodSet, PodSetAdmission, Workload
from jobgen.model.named_tuple import NamedTuple


class PlacedPods(NamedTuple):
    """Pods of one template, and where they are."""

    placement: Placement
    requests: Amounts
    """What one pod requests, before any exclusion or transformation."""


PlacedUsage = Mapping[str, tuple[PlacedPods, ...]]
"""Placed pods by flavor."""

NOTHING_PLACED: PlacedUsage = {}


def get_pod_requests(pod_set: PodSet) -> Amounts:
    """Return what one pod takes of a node. Exclusions and transformations concern quota only."""
    return pod_set.requests if pod_set.exact is None else charge_pod(pod_set.exact)


def find_placed_usage(workload: Workload) -> PlacedUsage:
    """Find what the placed pods of an admitted workload use of the topologies of their flavors."""
    if not any(each.levels for each in workload.admission):
        return NOTHING_PLACED
    pod_sets = {each.name: each for each in workload.pod_sets}
    found: dict[str, tuple[PlacedPods, ...]] = {}
    for each in workload.admission:
        if each.levels:
            placed = PlacedPods(Placement(each.levels, each.domains), _find_requests(each, pod_sets.get(each.name)))
            for flavor in sorted(set(each.flavors.values())):
                found[flavor] = (*found.get(flavor, ()), placed)
    return found


def _find_requests(admission: PodSetAdmission, pod_set: PodSet | None) -> Amounts:
    if pod_set is not None:
        return get_pod_requests(pod_set)
    return {name: amount // max(admission.count, 1) for name, amount in admission.usage.items()}


class Topologies:
    """The topologies of all flavors that have one, with what placed pods use."""

    def __init__(self, snapshots: Mapping[str, TopologySnapshot]) -> None:
        self.snapshots = snapshots

    def __bool__(self) -> bool:
        return bool(self.snapshots)

    def add(self, usage: PlacedUsage) -> None:
        """Add placed pods to their flavors, for the rest of a cycle."""
        for snapshot, placed in self._list_placed(usage):
            for values, count in placed.placement.domains:
                snapshot.add_usage(values, placed.requests, count)

    def remove(self, usage: PlacedUsage) -> None:
        """Remove placed pods from their flavors, for the rest of a cycle."""
        for snapshot, placed in self._list_placed(usage):
            for values, count in placed.placement.domains:
                snapshot.remove_usage(values, placed.requests, count)

    def share(self, usage: PlacedUsage, *, is_gone: bool = False) -> None:
        """Add placed pods to the other flavors that have the same hosts, or remove them.

        Kueue does this once before each cycle. What changes within a cycle counts for one flavor only.
        """
        for flavor, several in usage.items():
            own = self.snapshots.get(flavor)
            if own is None or not shares_hosts(own):
                continue
            for other in self.snapshots.values():
                if other is not own and shares_hosts(other):
                    _change(other, several, is_gone=is_gone)

    def fits(self, usage: PlacedUsage) -> bool:
        """Return whether pods still fit where they were placed."""
        return all(
            flavor in self.snapshots and self.snapshots[flavor].fits(placed.placement, placed.requests)
            for flavor, several in usage.items()
            for placed in several
        )

    def _list_placed(self, usage: PlacedUsage) -> Iterator[tuple[TopologySnapshot, PlacedPods]]:
        for flavor, several in usage.items():
            snapshot = self.snapshots.get(flavor)
            if snapshot is not None:
                for placed in several:
                    yield snapshot, placed


NO_TOPOLOGIES = Topologies({})


def _change(snapshot: TopologySnapshot, several: Iterable[PlacedPods], *, is_gone: bool) -> None:
    change = snapshot.remove_usage if is_gone else snapshot.add_usage
    for placed in several:
        for values, count in placed.placement.domains:
            change(values, placed.requests, count)
