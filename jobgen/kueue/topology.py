"""Topology aware scheduling: on which nodes the pods of a pod set are placed together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.kueue.match import is_blocking, is_tolerated, matches_node
from jobgen.kueue.objects import as_list, as_mapping
from jobgen.kueue.requests import Exact, _to_nanos, sum_pod_requests
from jobgen.kueue.workloads import TopologyRequest

HOSTNAME = "kubernetes.io/hostname"
_PODS = "pods"
_NANO = 10**9

Values = tuple[str, ...]
"""The values of the levels of a domain, from the top down."""


class Node(NamedTuple):
    """A node: its labels, taints and what pods can use of it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    allocatable: Exact


class Placement(NamedTuple):
    """Where the pods of a pod set are."""

    levels: tuple[str, ...]
    domains: tuple[tuple[Values, int], ...]


class Failure(NamedTuple):
    """Why pods cannot be placed."""

    message: str


class _Domain:
    """A part of the topology, and how many pods fit there."""

    __slots__ = ("children", "lead", "nodes", "pods", "pods_with", "slices", "slices_with", "values")

    def __init__(self, values: Values) -> None:
        self.values = values
        self.children: list[_Domain] = []
        self.nodes: list[Node] = []
        self.pods = self.pods_with = self.slices = self.slices_with = self.lead = 0


def parse_node(obj: Mapping[str, Any]) -> Node | None:
    """Parse a node; None if it takes no pods."""
    metadata, spec, status = (as_mapping(obj.get(name)) for name in ("metadata", "spec", "status"))
    conditions = {each.get("type"): each.get("status") for each in map(as_mapping, as_list(status.get("conditions")))}
    if spec.get("unschedulable") or conditions.get("Ready") != "True":
        return None
    allocatable = {str(name): _to_nanos(value) for name, value in as_mapping(status.get("allocatable")).items()}
    labels = {str(key): str(value) for key, value in as_mapping(metadata.get("labels")).items()}
    taints = tuple(map(as_mapping, as_list(spec.get("taints"))))
    return Node(str(metadata.get("name", "")), labels, taints, allocatable)


class Topology:
    """The domains of a flavor's nodes, and what is used of each leaf."""

    def __init__(self, name: str, levels: Sequence[str], nodes: Iterable[Node]) -> None:
        self.name = name
        self.levels = tuple(levels)
        self._by_level: list[dict[Values, _Domain]] = [{} for _ in levels]
        self._free: dict[Values, Exact] = {}
        self._node_count = 0
        for node in nodes:
            if all(level in node.labels for level in levels):
                self._add_node(node)

    def _add_node(self, node: Node) -> None:
        self._node_count += 1
        parent: _Domain | None = None
        for depth in range(len(self.levels)):
            values = tuple(node.labels[level] for level in self.levels[: depth + 1])
            domain = self._by_level[depth].get(values)
            if domain is None:
                domain = self._by_level[depth][values] = _Domain(values)
                if parent is not None:
                    parent.children.append(domain)
            parent = domain
        assert parent is not None, "a topology has levels"
        parent.nodes.append(node)
        free = self._free.setdefault(parent.values, {})
        for name, amount in node.allocatable.items():
            free[name] = free.get(name, 0) + amount

    @property
    def has_hostnames(self) -> bool:
        """Whether each leaf is one node."""
        return self.levels[-1] == HOSTNAME

    def find_leaf(self, values: Values) -> Values | None:
        """Return a leaf by all its values, or by the name of its host alone."""
        if values in self._free:
            return values
        if self.has_hostnames and len(values) == 1:
            return next((leaf for leaf in self._free if leaf[-1] == values[0]), None)
        return None

    def change_usage(self, values: Values, requests: Exact, pods: int) -> None:
        """Add what pods use of a leaf; a negative number of pods removes it."""
        leaf = self.find_leaf(values)
        if leaf is None:
            return
        free = self._free[leaf]
        for name, amount in {**requests, _PODS: _NANO}.items():
            free[name] = free.get(name, 0) - amount * pods

    # Counting

    def _count(self, request: _Request) -> _Exclusions:
        excluded = _Exclusions()
        for values, leaf in self._by_level[-1].items():
            self._count_leaf(leaf, self._free[values], request, excluded)
        for depth in range(len(self.levels) - 2, -1, -1):
            for domain in self._by_level[depth].values():
                self._count_inner(domain, depth, request)
        return excluded

    def _count_leaf(self, leaf: _Domain, free: Exact, request: _Request, excluded: _Exclusions) -> None:
        leaf.pods = leaf.pods_with = leaf.lead = leaf.slices = leaf.slices_with = 0
        if self.has_hostnames and not self._is_allowed(leaf, request, excluded):
            return
        leaf.pods, lacking = _count_fitting(free, request.pod)
        if not leaf.pods and lacking:
            excluded.resources[lacking] = excluded.resources.get(lacking, 0) + len(leaf.nodes)
        leaf.pods_with = leaf.pods
        if request.leader is not None:
            leaf.lead = min(1, _count_fitting(free, request.leader)[0])
            if leaf.lead:
                left = {name: amount - request.leader.get(name, 0) for name, amount in free.items()}
                leaf.pods_with = _count_fitting(left, request.pod)[0]
        self._count_slices(leaf, len(self.levels) - 1, request)

    def _is_allowed(self, leaf: _Domain, request: _Request, excluded: _Exclusions) -> bool:
        [node, *_] = leaf.nodes
        tolerations = [*map(as_mapping, as_list(request.spec.get("tolerations"))), *request.tolerations]
        taint = next((each for each in node.taints if is_blocking(each) and not is_tolerated(each, tolerations)), None)
        if taint is not None:
            value = f"={taint['value']}" if taint.get("value") else ""
            excluded.note(f'taint "{taint.get("key", "")}{value}:{taint.get("effect", "")}"')
            return False
        selector, affinity = matches_node(node.labels, request.spec)
        if not selector:
            excluded.note("nodeSelector")
        elif not affinity:
            excluded.note("affinity")
        return selector and affinity

    def _count_inner(self, domain: _Domain, depth: int, request: _Request) -> None:
        inner = request.inner.get(depth + 1, 1)
        children = domain.children
        domain.pods = sum(child.pods // inner * inner for child in children)
        domain.lead = max((child.lead for child in children), default=0)
        able = [child for child in children if child.lead or request.leader is None]
        losses = [child.pods // inner * inner - child.pods_with // inner * inner for child in able]
        domain.pods_with = domain.pods - min(losses) if losses else 0
        if depth < request.slice_level:
            domain.slices = sum(child.slices for child in children)
            differences = [child.slices - child.slices_with for child in able]
            domain.slices_with = domain.slices - min(differences) if differences else 0
        else:
            self._count_slices(domain, depth, request)

    @staticmethod
    def _count_slices(domain: _Domain, depth: int, request: _Request) -> None:
        if depth == request.slice_level:
            domain.slices, domain.slices_with = (
                domain.pods // request.slice_size,
                domain.pods_with // request.slice_size,
            )
        else:
            domain.slices = domain.slices_with = 0

    # Placing

    def place(
        self,
        count: int,
        pod: Exact,
        request: TopologyRequest | None,
        spec: Mapping[str, Any],
        *,
        leader: Exact | None = None,
        tolerations: Sequence[Mapping[str, Any]] = (),
    ) -> tuple[Placement, Placement | None] | Failure:
        """Find where pods, and a leader with them, are placed."""
        wanted = _prepare(self.levels, count, pod, request, spec, leader, tolerations)
        if isinstance(wanted, Failure):
            return wanted
        excluded = self._count(wanted)
        found = self._find(wanted.level, wanted, count)
        if isinstance(found, int):
            return Failure(self._explain(found, count, wanted, excluded))
        start, chosen = found
        workers = self._descend(start, chosen, wanted, count)
        leaders = [(domain, 1) for domain, _, lead in workers if lead]
        pods = [(domain, amount) for domain, amount, _ in workers if amount]
        return self._build(pods), self._build(leaders) if leader is not None else None

    def _build(self, parts: Sequence[tuple[_Domain, int]]) -> Placement:
        ordered = sorted(parts, key=lambda part: part[0].values)
        if self.has_hostnames:
            return Placement((HOSTNAME,), tuple((domain.values[-1:], count) for domain, count in ordered))
        return Placement(self.levels, tuple((domain.values, count) for domain, count in ordered))

    def _find(self, depth: int, request: _Request, count: int) -> tuple[int, list[_Domain]] | int:
        """The level and the domains that hold all slices; or how many fit."""
        need, leaders = count // request.slice_size, int(request.leader is not None)
        ordered = sorted(self._by_level[depth].values(), key=lambda each: _leader_order(each, request))
        if request.is_least:
            alone = next((each for each in ordered if each.lead >= leaders and each.slices_with >= need), None)
            if alone is not None:
                return depth, [alone]
        elif ordered and ordered[0].lead >= leaders and ordered[0].slices_with >= need:
            return depth, [_find_tight(ordered, need, leaders, by_slices=True)]
        if request.is_required:
            return max((each.slices_with if leaders else each.slices for each in ordered), default=0)
        if depth > 0 and not request.is_least:
            return self._find(depth - 1, request, count)
        taken = _take(ordered, need, leaders, request, by_slices=True)
        if taken is None:
            return sum(each.slices for each in ordered)
        return depth, [domain for domain, _, _ in taken]

    def _descend(
        self, depth: int, chosen: list[_Domain], request: _Request, count: int
    ) -> list[tuple[_Domain, int, int]]:
        leaders = int(request.leader is not None)
        slices = count // request.slice_size
        parts = _take(
            sorted(chosen, key=lambda each: _leader_order(each, request)), slices, leaders, request, by_slices=True
        )
        parts = [(domain, amount * request.slice_size, lead) for domain, amount, lead in parts or []]
        if depth > request.slice_level:
            parts = []
        while depth < len(self.levels) - 1:
            if depth < request.slice_level:
                children = [child for domain, _, _ in parts for child in domain.children]
                ordered = sorted(children, key=lambda each: _leader_order(each, request))
                taken = _take(ordered, slices, leaders, request, by_slices=True) or []
                parts = [(domain, amount * request.slice_size, lead) for domain, amount, lead in taken]
            else:
                parts = [
                    part for domain, amount, lead in parts for part in self._split(domain, amount, lead, depth, request)
                ]
            depth += 1
        return parts

    @staticmethod
    def _split(
        domain: _Domain, amount: int, lead: int, depth: int, request: _Request
    ) -> list[tuple[_Domain, int, int]]:
        """Distribute the pods of a domain to its children."""
        size = request.inner.get(depth + 1, 1)
        for child in domain.children:
            child.slices, child.slices_with = child.pods // size, child.pods_with // size
        ordered = sorted(domain.children, key=lambda each: _leader_order(each, request, by_slices=size > 1))
        taken = _take(ordered, amount // size, lead, request, by_slices=size > 1) or []
        return [(child, number * size, leads) for child, number, leads in taken]

    def _explain(self, fitting: int, count: int, request: _Request, excluded: _Exclusions) -> str:
        what = "slice(s)" if request.slice_size > 1 else "pod(s)"
        total = count // request.slice_size
        start = f'topology "{self.name}" '
        if not fitting:
            start += f"doesn't allow to fit any of {total} {what}"
        else:
            start += f"allows to fit only {fitting} out of {total} {what}"
        parts = sorted(
            [*(f"{name}: {number}" for name, number in excluded.reasons.items()), *excluded.list_resources()]
        )
        tail = f"; excluded: {', '.join(parts)}" if parts else ""
        return f"{start}. Total nodes: {self._node_count}{tail}" if parts else start


class _Exclusions:
    """How many nodes take no pod, and why."""

    def __init__(self) -> None:
        self.reasons: dict[str, int] = {}
        self.resources: dict[str, int] = {}

    def note(self, reason: str) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def list_resources(self) -> Iterator[str]:
        yield from (f'resource "{name}": {number}' for name, number in self.resources.items())


class _Request(NamedTuple):
    pod: Exact
    leader: Exact | None
    spec: Mapping[str, Any]
    tolerations: Sequence[Mapping[str, Any]]
    level: int
    is_required: bool
    is_least: bool
    """Whether the smallest domains are used first."""
    slice_level: int
    slice_size: int
    inner: Mapping[int, int]
    """Sizes of inner slices, by level."""


def _prepare(
    levels: Sequence[str],
    count: int,
    pod: Exact,
    request: TopologyRequest | None,
    spec: Mapping[str, Any],
    leader: Exact | None,
    tolerations: Sequence[Mapping[str, Any]],
) -> _Request | Failure:
    wanted = request or TopologyRequest(unconstrained=True)
    named = wanted.required or wanted.preferred
    if named and named not in levels:
        return Failure(f"no requested topology level: {named}")
    is_least = not named
    lowest = len(levels) - 1
    level = levels.index(named) if named else 0 if wanted.slices and not wanted.unconstrained else lowest
    slice_level, slice_size, inner = lowest, 1, dict[int, int]()
    for position, (name, size) in enumerate(wanted.slices):
        if name not in levels:
            return Failure(f"no requested topology level for slices: {name}")
        depth = levels.index(name)
        if position == 0:
            slice_level, slice_size = depth, size
            before = depth
        else:
            inner.update(dict.fromkeys(range(before + 1, depth + 1), size))
            before = depth
    if slice_level < level:
        return Failure(f"podset slice topology {levels[slice_level]} is above the podset topology {levels[level]}")
    one = {**pod, _PODS: _NANO}
    lead = None if leader is None else {**leader, _PODS: _NANO}
    return _Request(
        one, lead, spec, tolerations, level, bool(wanted.required), is_least, slice_level, slice_size, inner
    )


def _count_fitting(free: Exact, pod: Exact) -> tuple[int, str]:
    """How many pods fit, and the first resource of which there is not enough for one."""
    counts = {name: max(0, free.get(name, 0)) // amount for name, amount in sorted(pod.items()) if amount > 0}
    lacking = next((name for name, number in counts.items() if not number), "")
    return min(counts.values(), default=0), lacking


def _leader_order(domain: _Domain, request: _Request, *, by_slices: bool = True) -> tuple[Any, ...]:
    main = domain.slices_with if by_slices else domain.pods_with
    return (-domain.lead, main if request.is_least else -main, domain.pods_with, domain.values)


def _plain_order(domain: _Domain, request: _Request, *, by_slices: bool = True) -> tuple[Any, ...]:
    main = domain.slices if by_slices else domain.pods
    return (main if request.is_least else -main, domain.pods, domain.values)


def _find_tight(domains: Sequence[_Domain], need: int, leaders: int, *, by_slices: bool) -> _Domain:
    """The domain with the least room that is enough."""
    able = [each for each in domains if each.lead >= leaders and _room(each, leaders, by_slices=by_slices) >= need]
    return min(able, key=lambda each: _room(each, leaders, by_slices=by_slices)) if able else domains[0]


def _room(domain: _Domain, leaders: int, *, by_slices: bool) -> int:
    if by_slices:
        return domain.slices_with if leaders else domain.slices
    return domain.pods_with if leaders else domain.pods


def _take(
    ordered: Sequence[_Domain], need: int, leaders: int, request: _Request, *, by_slices: bool
) -> list[tuple[_Domain, int, int]] | None:
    """Take slices or pods from domains until all are placed; None if they are not enough."""
    domains = list(ordered)
    taken: list[tuple[_Domain, int, int]] = []
    if leaders:
        total = sum(_room(each, 0, by_slices=by_slices) for each in domains)
        for index, each in enumerate(domains):
            loss = _room(each, 0, by_slices=by_slices) - _room(each, 1, by_slices=by_slices)
            if each.lead and total - loss >= need:
                domains.insert(0, domains.pop(index))
                break
    while leaders and domains:
        domain = domains[0]
        if not domain.lead:
            return None
        if (not request.is_least and domain.slices_with >= need and by_slices) or (
            not request.is_least and not by_slices and domain.pods_with >= need
        ):
            domain = _find_tight(domains, need, leaders, by_slices=by_slices)
        amount = min(need, _room(domain, 1, by_slices=by_slices))
        taken.append((domain, amount, 1))
        domains.remove(domain)
        need, leaders = need - amount, leaders - 1
    if leaders:
        return None
    domains.sort(key=lambda each: _plain_order(each, request, by_slices=by_slices))
    while need and domains:
        domain = domains[0]
        if not request.is_least and _room(domain, 0, by_slices=by_slices) >= need:
            domain = _find_tight(domains, need, 0, by_slices=by_slices)
        amount = min(need, _room(domain, 0, by_slices=by_slices))
        taken.append((domain, amount, 0))
        domains.remove(domain)
        need -= amount
    return taken if not need else None


def sum_running(pods: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Exact]]:
    """Yield the node and the requests of pods that run outside of topology aware scheduling."""
    for pod in pods:
        spec, status = as_mapping(pod.get("spec")), as_mapping(pod.get("status"))
        if spec.get("nodeName") and status.get("phase") not in ("Succeeded", "Failed"):
            yield str(spec["nodeName"]), sum_pod_requests(spec)
