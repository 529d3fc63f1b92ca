"""The nodes of a flavor, the tree of domains over them, and what a pod set asks of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.requests import Amounts, charge_pod, read_amounts, sum_pod_requests
from jobgen.features.kueue.workloads import TopologyRequest
from jobgen.model.named_tuple import NamedTuple

_PLACED = tuple(
    f"kueue.x-k8s.io/podset-{name}"
    for name in """required-topology preferred-topology unconstrained-topology slice-required-topology
    slice-required-topology-constraints""".split()
)


class Node(NamedTuple):
    """A node: its labels, its taints and what pods can use of it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    allocatable: Amounts


def parse_nodes(objects: Iterable[Mapping[str, Any]]) -> list[Node]:
    """Parse the nodes that are ready and take pods."""
    nodes: list[Node] = []
    for obj in objects:
        metadata, spec, status = (as_mapping(obj.get(name)) for name in ("metadata", "spec", "status"))
        conditions = map(as_mapping, as_list(status.get("conditions")))
        ready = next((each.get("status") for each in conditions if each.get("type") == "Ready"), None)
        if not spec.get("unschedulable") and ready == "True":
            labels = {str(key): str(value) for key, value in as_mapping(metadata.get("labels")).items()}
            taints = tuple(map(as_mapping, as_list(spec.get("taints"))))
            amounts = read_amounts(as_mapping(status.get("allocatable")))
            nodes.append(Node(str(metadata.get("name", "")), labels, taints, amounts))
    return nodes


def select_nodes(nodes: Iterable[Node], labels: Mapping[str, str], levels: Iterable[str]) -> list[Node]:
    """Select the nodes with all labels of a flavor, and a label for each level of its topology."""
    wanted = tuple(levels)
    return [
        node
        for node in nodes
        if all(node.labels.get(key, "") == value for key, value in labels.items())
        and all(level in node.labels for level in wanted)
    ]


def sum_other_pods(pods: Iterable[Mapping[str, Any]]) -> dict[str, Amounts]:
    """Sum by node what running pods use that topology-aware scheduling has not placed."""
    found: dict[str, Amounts] = {}
    for pod in pods:
        metadata, spec, status = (as_mapping(pod.get(name)) for name in ("metadata", "spec", "status"))
        annotations = as_mapping(metadata.get("annotations"))
        is_placed = any(name in annotations for name in _PLACED)
        if spec.get("nodeName") and status.get("phase") not in ("Succeeded", "Failed") and not is_placed:
            used = found.setdefault(str(spec["nodeName"]), {})
            for name, amount in charge_pod(sum_pod_requests(spec)).items():
                used[name] = used.get(name, 0) + amount
            used["pods"] = used.get("pods", 0) + 1
    return found


HOSTNAME = "kubernetes.io/hostname"

Values = tuple[str, ...]
"""The values of the levels of a domain, from the top down. A domain that is one host has only its name."""


class Domain:
    """A part of the topology, with the numbers of the search that runs.

    The search counts first what fits, and replaces these numbers later by what the domain gets.
    """

    __slots__ = tuple(
        """children index key lacking leaders parent path pods pods_with_leader rank score slices slices_with_leader
        values""".split()
    )

    def __init__(self, values: Values, key: Values, parent: Domain | None) -> None:
        self.values = values
        self.key = key
        self.path = ",".join(values)
        self.parent = parent
        self.children: list[Domain] = []
        self.index = -1
        """The position among the leaves."""
        self.rank = 0
        """The position in the order of values, among the domains of its level."""
        self.reset()

    def reset(self) -> None:
        """Forget the numbers of a search."""
        self.pods = self.pods_with_leader = self.slices = self.slices_with_leader = self.leaders = self.score = 0
        self.lacking = ""
        """The resource of which a leaf has not enough for one pod."""

    def copy(self, parent: Domain | None = None) -> Domain:
        """Copy the domain and all below it, with their numbers."""
        made = Domain(self.values, self.key, parent)
        made.index, made.rank, made.score, made.leaders = self.index, self.rank, self.score, self.leaders
        made.pods, made.pods_with_leader = self.pods, self.pods_with_leader
        made.slices, made.slices_with_leader = self.slices, self.slices_with_leader
        made.children = [child.copy(made) for child in self.children]
        return made


def list_leaves(domain: Domain) -> Iterator[Domain]:
    """List the leaves of a domain."""
    if not domain.children:
        yield domain
    for child in domain.children:
        yield from list_leaves(child)


def is_inside(domain: Domain, path: str) -> bool:
    """Return True if a domain is the one with a path, or below it."""
    return domain.path == path or domain.path.startswith(f"{path},")


class TopologyTree:
    """The domains of nodes by level. All nodes must have the labels of all levels."""

    def __init__(self, levels: Sequence[str], nodes: Iterable[Node]) -> None:
        self.levels = tuple(levels)
        self.has_hostnames = bool(levels) and levels[-1] == HOSTNAME
        self.by_level: list[dict[Values, Domain]] = [{} for _ in levels]
        self.nodes: list[Node] = []
        """One node of each leaf; the only one where leaves are hosts."""
        self.capacity: list[Amounts] = []
        """What the nodes of each leaf have together."""
        self.leaf_of_node: dict[str, Domain] = {}
        self.counted: tuple[Any, ...] | None = None
        """What the numbers of all domains are for."""
        self.touched: list[int] = []
        """The leaves below domains whose numbers a search has replaced since."""
        for node in nodes:
            values = tuple(node.labels[level] for level in self.levels)
            key = values[-1:] if self.has_hostnames else values
            leaf = self.leaves.get(key)
            if leaf is None:
                leaf = self._add_domain(values, key)
                leaf.index = len(self.nodes)
                self.nodes.append(node)
                self.capacity.append({})
            self.leaf_of_node[node.name] = leaf
            capacity = self.capacity[leaf.index]
            for name, amount in node.allocatable.items():
                capacity[name] = capacity.get(name, 0) + amount
        for domains in self.by_level:
            for rank, domain in enumerate(sorted(domains.values(), key=lambda each: each.values)):
                domain.rank = rank

    @property
    def leaves(self) -> dict[Values, Domain]:
        """The domains of the lowest level."""
        return self.by_level[-1]

    def _add_domain(self, values: Values, key: Values) -> Domain:
        above = values[:-1]
        parent = None
        if above:
            parent = self.by_level[len(above) - 1].get(above) or self._add_domain(above, above)
        domain = self.by_level[len(values) - 1][key] = Domain(values, key, parent)
        if parent is not None:
            parent.children.append(domain)
        return domain


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
    """True if only the queue asks for a placement: all its flavors have a topology."""
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
    """True if the least free domains are used first; otherwise those that fit best."""

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
    has_only_slices = bool(topology.slices) and not topology.required and not topology.preferred
    is_unconstrained = topology.unconstrained or request.is_implied or has_only_slices
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
