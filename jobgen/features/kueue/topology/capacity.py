"""What is free in each leaf of a topology, and how many pods fit there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.features.kueue.topology.tree import TopologyTree, Values
from jobgen.features.kueue.workload.requests import Amounts
from jobgen.model.named_tuple import NamedTuple

_MOST = 2**31 - 1
_KEPT = 32
"""For how many different pods the counts are kept."""

_LOGGED = 10_000
"""How many changes of usage are kept at least."""

PodAmounts = tuple[tuple[str, int], ...]
"""What one pod takes of a node by resource, in the order of names."""


def take_one_pod(requests: Mapping[str, int]) -> PodAmounts:
    """Return what one pod takes: its requests, and one of `pods`."""
    return tuple(sorted({**requests, "pods": requests.get("pods", 0) + 1}.items()))


def multiply_pods(requests: Mapping[str, int], count: int) -> Amounts:
    """Return what pods use together, with the number of `pods`."""
    return {name: amount * count for name, amount in take_one_pod(requests)}


def change_amounts(amounts: Amounts, changes: Mapping[str, int], sign: int = 1) -> None:
    """Add amounts by resource, or subtract them with a sign of -1."""
    for name, amount in changes.items():
        amounts[name] = amounts.get(name, 0) + sign * amount


def fit_pods(free: Mapping[str, int], pod: PodAmounts) -> tuple[int, str]:
    """Return how many pods fit; for none, also the first resource of which there is not enough."""
    least = _MOST
    for name, amount in pod:
        if amount:
            number = free.get(name, 0) // amount
            if number < least:
                if number <= 0:
                    return 0, name
                least = number
    return least, ""


class LeafCount(NamedTuple):
    """What fits in a leaf."""

    pods: int
    leaders: int
    pods_with_leader: int
    lacking: str
    """The resource of which there is not enough for one pod."""


def count_leaf(free: Mapping[str, int], pod: PodAmounts, leader: PodAmounts | None) -> LeafCount:
    """Count what fits in a leaf, also beside a leader if that fits."""
    pods, lacking = fit_pods(free, pod)
    if leader is None or not fit_pods(free, leader)[0]:
        return LeafCount(pods, 0, pods, lacking)
    left = dict(free)
    change_amounts(left, dict(leader), -1)
    return LeafCount(pods, 1, fit_pods(left, pod)[0], lacking)


class _Counts:
    """Counts of all leaves for one pod, and the version of usage that they include."""

    __slots__ = ("leaves", "version")

    def __init__(self, leaves: list[LeafCount], version: int) -> None:
        self.leaves = leaves
        self.version = version


class LeafCapacity:
    """Capacity and usage of leaves.

    Counts are kept, and only leaves whose usage has changed are counted again: a search for places to preempt for
    changes a few leaves, and counts many times.
    """

    def __init__(self, tree: TopologyTree, other_pods: Mapping[str, Mapping[str, int]]) -> None:
        self._leaves = tree.leaves
        self._capacity = [dict(each) for each in tree.capacity]
        for node, used in other_pods.items():
            leaf = tree.leaf_of_node.get(node)
            if leaf is not None:
                change_amounts(self._capacity[leaf.index], used, -1)
        self._free = [dict(each) for each in self._capacity]
        self.used: dict[Values, Amounts] = {}
        """What workloads use of each leaf."""
        self._changed: list[int] = []
        """The leaves whose usage has changed, in order of time."""
        self._forgotten = 0
        """How many changes came before those."""
        self._counts: dict[tuple[PodAmounts, PodAmounts | None, bool], _Counts] = {}

    def add(self, values: Values, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add usage to a leaf. A leaf that has no node any more is passed over."""
        leaf = self._leaves.get(values)
        if leaf is not None:
            change_amounts(self.used.setdefault(values, {}), amounts, sign)
            change_amounts(self._free[leaf.index], amounts, -sign)
            self._changed.append(leaf.index)
            if len(self._changed) > _LOGGED + 4 * len(self._free):
                # To count all leaves again costs less than to keep all changes.
                self._forgotten += len(self._changed)
                self._changed.clear()

    @property
    def version(self) -> int:
        """The number of changes of usage so far."""
        return self._forgotten + len(self._changed)

    def list_changed(self, since: int) -> Iterable[int]:
        """List the leaves whose usage has changed since a version."""
        if since < self._forgotten:
            return range(len(self._free))
        return set(self._changed[since - self._forgotten :])

    def list_free(self, *, ignore_usage: bool = False) -> list[Amounts]:
        """Return what is free in each leaf, or would be without any workload."""
        return self._capacity if ignore_usage else self._free

    def count(self, pod: PodAmounts, leader: PodAmounts | None, *, ignore_usage: bool) -> list[LeafCount]:
        """Count what fits in each leaf."""
        key = (pod, leader, ignore_usage)
        found = self._counts.pop(key, None)
        free = self.list_free(ignore_usage=ignore_usage)
        if found is None:
            found = _Counts([count_leaf(each, pod, leader) for each in free], self.version)
            if len(self._counts) >= _KEPT:
                del self._counts[next(iter(self._counts))]
        elif not ignore_usage:
            for index in self.list_changed(found.version):
                found.leaves[index] = count_leaf(free[index], pod, leader)
            found.version = self.version
        self._counts[key] = found
        return found.leaves
