"""What is asked of a topology: the pods of a pod set, the level they share, and their slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jobgen.features.kueue.topology.tree import Values
from jobgen.features.kueue.workload.requests import Amounts
from jobgen.features.kueue.workload.workloads import TopologyRequest
from jobgen.model.named_tuple import NamedTuple


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the pods of a pod set are."""

    levels: tuple[str, ...]
    domains: tuple[tuple[Values, int], ...]
    """Values of the levels, and the number of pods there."""

    @property
    def count(self) -> int:
        """The number of all pods."""
        return sum(count for _, count in self.domains)


class Failure(NamedTuple):
    """Why pods cannot be placed."""

    message: str


class TopologyGates(NamedTuple):
    """Feature gates of topology-aware scheduling, with their defaults in 0.19."""

    profile_mixed: bool = True
    """`TASProfileMixed`: pods without a required or preferred level use the least free domains first."""
    balanced_placement: bool = False
    """`TASBalancedPlacement`: a preferred level gets as many pods as possible in each domain."""
    handle_overlapping_flavors: bool = True
    """`TASHandleOverlappingFlavors`: the usage of a host counts for all flavors that have it."""
    respect_preferred_affinity: bool = False
    """`TASRespectNodeAffinityPreferred`: nodes with a preferred affinity come first."""
    elastic: bool = False
    """`ElasticJobsViaWorkloadSlicesWithTAS`: a job that grows or shrinks keeps its pods where they are."""
    keep_single_pods: bool = True
    """`SkipReassignmentForPodOwnedWorkloads`: a workload of one plain pod stays on its failed node."""


DEFAULT_GATES = TopologyGates()

_GATES = {
    "profile_mixed": "TASProfileMixed",
    "balanced_placement": "TASBalancedPlacement",
    "handle_overlapping_flavors": "TASHandleOverlappingFlavors",
    "respect_preferred_affinity": "TASRespectNodeAffinityPreferred",
    "elastic": "ElasticJobsViaWorkloadSlicesWithTAS",
    "keep_single_pods": "SkipReassignmentForPodOwnedWorkloads",
}


def read_gates(gates: Mapping[str, Any]) -> TopologyGates:
    """Read feature gates that differ from their defaults."""
    return DEFAULT_GATES._replace(**{field: bool(gates[name]) for field, name in _GATES.items() if name in gates})


@dataclass(frozen=True, slots=True)
class PodSetRequest:
    """The pods of a pod set that need a place."""

    name: str
    count: int
    requests: Amounts
    """What one pod requests, before any exclusion or transformation."""
    topology: TopologyRequest | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The pod spec: its tolerations, node selector and node affinity count."""
    is_implied: bool = False
    """Whether only the queue asks for a placement: all its flavors have a topology."""
    group: str = ""
    """The name that a leader and its workers share."""
    previous: Placement | None = None
    """Where the pods of the workload slice are that this one replaces."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A request in terms of the levels of a topology."""

    count: int
    leaders: int
    """1 if a leader must be placed, too."""
    level: int
    slice_level: int
    slice_size: int
    inner: Mapping[int, int]
    """Sizes of inner slices by level."""
    layers: tuple[tuple[str, int], ...]
    """Levels and sizes of all slices if there are inner ones."""
    is_required: bool
    is_unconstrained: bool
    is_least_free: bool
    """Whether the least free domains are used first; otherwise those that fit best."""

    @property
    def slices(self) -> int:
        """The number of slices."""
        return self.count // self.slice_size


def make_plan(levels: Sequence[str], request: PodSetRequest, *, leaders: int, gates: TopologyGates) -> Plan | Failure:
    """Resolve the levels and slices that a request names."""
    topology = request.topology or TopologyRequest()
    slice_size = topology.slices[0][1] if topology.slices else 1
    if slice_size <= 0:
        return Failure("slice topology requested, but slice size not provided")
    named = find_level(levels, request)
    if named is None:
        return Failure("topology level not specified")
    if named not in levels:
        return Failure(f"no requested topology level: {named}")
    slice_name = topology.slices[0][0] if topology.slices else levels[-1]
    if slice_name not in levels:
        return Failure(f"no requested topology level for slices: {slice_name}")
    level, slice_level = levels.index(named), levels.index(slice_name)
    if level > slice_level:
        return Failure(f"podset slice topology {slice_name} is above the podset topology {named}")
    inner = _resolve_inner(levels, topology.slices)
    if isinstance(inner, Failure):
        return inner
    is_unconstrained = topology.unconstrained or request.is_implied or _has_only_slices(topology)
    return Plan(
        count=request.count,
        leaders=leaders,
        level=level,
        slice_level=slice_level,
        slice_size=slice_size,
        inner=inner,
        layers=topology.slices if inner else (),
        is_required=bool(topology.required),
        is_unconstrained=is_unconstrained,
        is_least_free=is_unconstrained and gates.profile_mixed,
    )


def find_level(levels: Sequence[str], request: PodSetRequest) -> str | None:
    """Return the level that a request names or implies."""
    topology = request.topology or TopologyRequest()
    if topology.required or topology.preferred:
        return topology.required or topology.preferred
    if topology.slices:
        return levels[0]
    return levels[-1] if topology.unconstrained or request.is_implied else None


def _has_only_slices(topology: TopologyRequest) -> bool:
    return bool(topology.slices) and not topology.required and not topology.preferred


def _resolve_inner(levels: Sequence[str], slices: Sequence[tuple[str, int]]) -> dict[int, int] | Failure:
    """Resolve the sizes of inner slices, for each level after the outer one down to their own."""
    found: dict[int, int] = {}
    for (above, outer_size), (name, size) in pairwise(slices):
        if name not in levels:
            return Failure(f"no requested topology level for additional slice layer: {name}")
        outer, depth = levels.index(above), levels.index(name)
        if depth <= outer:
            return Failure(f"additional slice layer topology {name} must be at a lower level than {above}")
        if size <= 0 or outer_size % size:
            return Failure(f"additional slice layer size {size} must evenly divide parent layer size {outer_size}")
        found.update(dict.fromkeys(range(outer + 1, depth + 1), size))
    return found
