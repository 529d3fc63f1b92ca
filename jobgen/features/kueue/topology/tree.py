"""The domains of a topology: a tree with one level for each node label, built once for a set of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.kueue.objects import as_list, as_mapping
from jobgen.features.kueue.topology.nodes import Node
from jobgen.features.kueue.workload.requests import Amounts

HOSTNAME = "kubernetes.io/hostname"

Values = tuple[str, ...]
"""The values of the levels of a domain, from the top down. A domain that is one host has only its name."""


class Domain:
    """A part of the topology, with the numbers of the search that runs.

    The search counts first what fits, and replaces these numbers later by what the domain gets.
    """

    __slots__ = (
        "children",
        "index",
        "key",
        "lacking",
        "leaders",
        "parent",
        "path",
        "pods",
        "pods_with_leader",
        "rank",
        "score",
        "slices",
        "slices_with_leader",
        "values",
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
        self.lacking = ""
        """The resource of which a leaf has not enough for one pod."""
        self.reset()

    def reset(self) -> None:
        """Forget the numbers of a search."""
        self.pods = self.pods_with_leader = self.slices = self.slices_with_leader = self.leaders = self.score = 0
        self.lacking = ""

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
    """Return whether a domain is the one with a path, or below it."""
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
            self._add_node(node)
        for domains in self.by_level:
            for rank, domain in enumerate(sorted(domains.values(), key=lambda each: each.values)):
                domain.rank = rank

    @property
    def leaves(self) -> dict[Values, Domain]:
        """The domains of the lowest level."""
        return self.by_level[-1]

    def _add_node(self, node: Node) -> None:
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

    def _add_domain(self, values: Values, key: Values) -> Domain:
        above = values[:-1]
        parent = None
        if above:
            parent = self.by_level[len(above) - 1].get(above) or self._add_domain(above, above)
        domain = self.by_level[len(values) - 1][key] = Domain(values, key, parent)
        if parent is not None:
            parent.children.append(domain)
        return domain


def parse_topologies(objects: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Read the levels of Topology objects by name."""
    return {str(as_mapping(each.get("metadata")).get("name", "")): _parse_levels(each) for each in objects}


def _parse_levels(obj: Mapping[str, Any]) -> tuple[str, ...]:
    levels = map(as_mapping, as_list(as_mapping(obj.get("spec")).get("levels")))
    return tuple(str(level.get("nodeLabel", "")) for level in levels)
