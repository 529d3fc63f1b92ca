"""The quota of queues and cohorts: what each may use, lends and borrows.

ClusterQueues are the leaves of a tree, cohorts the nodes above them. A node sees the quota of a child without what the
child keeps for itself, which is its local quota. Amounts are what Kueue counts: CPU in thousandths, everything else in
whole units, both rounded up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from math import inf

from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.resources import summarize_memory
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At
from jobgen.model.quantity import MAX_POWER, Quantity, parse_quantity

UNLIMITED = 2**63 - 1
"""The greatest amount. Greater quantities count as unlimited, and sums stop there."""

_LEAST = -(2**63)

CPU = "cpu"


def to_amount(resource: str, quantity: str | float | None) -> int:
    """Convert a quantity to an amount; what is missing or no quantity is 0."""
    found = parse_quantity(str(quantity)) if quantity is not None else None
    if found is None:
        return 0
    return max(_LEAST, min(to_multiples(found, -3 if resource == CPU else 0), UNLIMITED))


def to_multiples(quantity: Quantity, power: int) -> int:
    """Return how many multiples of `10**power` a quantity has, rounded up. No exponent takes long to evaluate."""
    shift = min(quantity.power, MAX_POWER) - power
    return int(quantity.amount * 10**shift) if shift >= 0 else int(-(-quantity.amount // 10**-shift))


def show_amount(resource: str, amount: int) -> str:
    """Return an amount as Kueue prints it."""
    return "<unlimited>" if amount >= UNLIMITED else show_number(resource, amount)


def show_number(resource: str, amount: int) -> str:
    """Return an amount as Kubernetes prints it: memory in the greatest binary unit without a rest."""
    is_binary = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return str(Quantity(amount, -3 if resource == CPU else 0, is_binary))


def summarize_amount(resource: str, amount: int) -> str:
    """Return an amount for people: CPUs with decimals, and long numbers of bytes rounded, as in `1.9Ti`."""
    if resource == CPU and 1000 < amount < UNLIMITED:
        return f"{amount // 1000}.{amount % 1000:03d}".rstrip("0").rstrip(".")
    exact = show_amount(resource, amount)
    is_long = exact.endswith("i") and len(exact) > len("9999Mi")
    return summarize_memory(amount * 1000) if is_long else exact


def add(one: int, other: int) -> int:
    """Add amounts; the sum is at most unlimited."""
    total = one + other
    if one >= UNLIMITED or other >= UNLIMITED or total >= UNLIMITED:
        return UNLIMITED
    # Not `max`: a call costs more than all the rest here.
    if total < _LEAST:
        return _LEAST
    return total


def subtract(one: int, other: int) -> int:
    """Subtract amounts: unlimited less a limited amount is unlimited, a limited one less unlimited is the least."""
    if one >= UNLIMITED:
        return 0 if other >= UNLIMITED else UNLIMITED
    if other >= UNLIMITED:
        return _LEAST
    rest = one - other
    if rest >= UNLIMITED:
        return UNLIMITED
    if rest < _LEAST:
        return _LEAST
    return rest


class FlavorResource(NamedTuple):
    """A resource in a flavor."""

    flavor: str
    resource: str


class Quota(NamedTuple):
    """The quota of a node for one resource in one flavor."""

    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


Usage = dict[FlavorResource, int]
"""Amounts by flavor and resource."""

NO_QUOTA = Quota(0)


class Tree:
    """What all nodes of a tree share: the version of their state."""

    __slots__ = ("_exceeding", "freed", "version")

    _versions = count(1)

    def __init__(self) -> None:
        self.version = 0
        """Changes with the usage of any node. What puts the usage back may put the version back."""
        self.freed: Usage = {}
        """The version in which a workload was removed last that used a flavor and resource."""
        self._exceeding: dict[tuple[int, frozenset[FlavorResource]], tuple[int, list[QuotaNode]]] = {}

    def change(self) -> None:
        """Give the state a version that it never had."""
        self.version = next(Tree._versions)

    def list_exceeding(self, cohort: QuotaNode, pairs: frozenset[FlavorResource]) -> list[QuotaNode]:
        """Return the children of a cohort that use more of any of these than their quota."""
        version, found = self._exceeding.get((id(cohort), pairs), (-1, []))
        if version != self.version:
            found = [each for each in cohort.children if any(map(each.is_borrowing, pairs))]
            self._exceeding[id(cohort), pairs] = self.version, found
        return found


class QuotaNode:
    """A ClusterQueue or cohort in the tree, with its current usage."""

    __slots__ = tuple(
        """_lendable _limits changed children height is_queue local name parent
        potentials quotas subtree tree usage weight""".split()
    )

    def __init__(
        self, name: str, quotas: Mapping[FlavorResource, Quota], *, is_queue: bool, weight: float = 1.0
    ) -> None:
        self.name = name
        self.quotas = dict(quotas)
        self.is_queue = is_queue
        self.weight = weight
        self.parent: QuotaNode | None = None
        self.tree = Tree()
        self.changed = 0
        """The version in which the workloads of a queue changed last."""
        self.children: list[QuotaNode] = []
        self.height = 0
        """The number of cohorts from here down: 1 for a cohort that has only ClusterQueues."""
        self.subtree: Usage = {}
        """The quota of the node and of all below it, as far as they lend it."""
        self.usage: Usage = {}
        # What follows from quota alone, which does not change once the tree is built.
        self.local: Usage = {}
        """The quota that the node never lends."""
        self.potentials: Usage = {}
        """How much the node could use if the tree were empty, as far as it was computed."""
        self._lendable: dict[str, int] | None = None
        self._limits: dict[FlavorResource, tuple[QuotaNode, int, list[tuple[QuotaNode, int, int | None]]]] = {}

    def sum_quota(self) -> None:
        """Sum the quota of the node and of all below it."""
        # A node stands before all nodes below it. A loop has no limit of depth, recursion has.
        for node in reversed(list(self.list_below())):
            node.tree = self.tree
            if not node.is_queue:
                node.height = max((child.height + 1 for child in node.children), default=0)
            node.subtree = {pair: quota.nominal for pair, quota in node.quotas.items()}
            for child in node.children:
                for pair, amount in child.subtree.items():
                    node.subtree[pair] = add(node.subtree.get(pair, 0), subtract(amount, child.local_quota(pair)))
            node.local = {
                pair: max(0, subtract(node.subtree_quota(pair), quota.lending_limit))
                for pair, quota in node.quotas.items()
                if quota.lending_limit is not None
            }

    def list_ancestors(self) -> Iterator[QuotaNode]:
        """Yield the cohorts above, the nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def root(self) -> QuotaNode:
        """The top of the tree."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def list_below(self) -> Iterator[QuotaNode]:
        """Yield the node, and all nodes below it in the order of the tree."""
        left = [self]
        while left:
            node = left.pop()
            yield node
            left += reversed(node.children)

    def list_queues(self) -> Iterator[QuotaNode]:
        """Yield the ClusterQueues below, or the node itself if it is one."""
        return (node for node in self.list_below() if node.is_queue)

    def find_quota(self, pair: FlavorResource) -> Quota:
        """Return the quota for a resource in a flavor."""
        return self.quotas.get(pair, NO_QUOTA)

    def subtree_quota(self, pair: FlavorResource) -> int:
        """Return the quota of the node and of all below it, as far as they lend it."""
        return self.subtree.get(pair, 0)

    def local_quota(self, pair: FlavorResource) -> int:
        """Return the quota that the node never lends."""
        return self.local.get(pair, 0)

    def local_available(self, pair: FlavorResource) -> int:
        """Return the unused part of the quota that the node never lends."""
        local = self.local.get(pair, 0)
        return max(0, subtract(local, self.usage.get(pair, 0))) if local else 0

    def available(self, pair: FlavorResource) -> int:
        """Return how much more the node can use now; negative above the quota of the tree."""
        limits = self._limits.get(pair)
        if limits is None:
            limits = self._limits[pair] = self._find_limits(pair)
        root, quota, below = limits
        found = subtract(quota, root.usage.get(pair, 0))
        for node, local, most in below:
            used = node.usage.get(pair, 0)
            if most is not None:
                found = min(found, subtract(most, used - local if used > local else 0))
            if local > used:
                found = add(subtract(local, used), found)
        return found

    def _find_limits(self, pair: FlavorResource) -> tuple[QuotaNode, int, list[tuple[QuotaNode, int, int | None]]]:
        """Return the root and its quota, and the nodes on the way down that keep quota or limit what they borrow.

        With each of these, the quota that it keeps, and the most that it may use of what is shared.
        """
        below: list[tuple[QuotaNode, int, int | None]] = []
        node = self
        while node.parent is not None:
            limit, local = node.find_quota(pair).borrowing_limit, node.local_quota(pair)
            if limit is not None or local:
                most = None if limit is None else add(subtract(node.subtree_quota(pair), local), limit)
                below.append((node, local, most))
            node = node.parent
        return node, node.subtree_quota(pair), below[::-1]

    def potential(self, pair: FlavorResource) -> int:
        """Return how much the node could use if the tree were empty."""
        known = self.potentials.get(pair)
        if known is not None:
            return known
        below: list[QuotaNode] = []
        node = self
        while node.parent is not None and pair not in node.potentials:
            below.append(node)
            node = node.parent
        found = node.potentials[pair] if pair in node.potentials else node.subtree_quota(pair)
        for node in reversed(below):
            limit = node.find_quota(pair).borrowing_limit
            found = add(node.local_quota(pair), found)
            found = found if limit is None else min(found, add(node.subtree_quota(pair), limit))
            node.potentials[pair] = found
        return found

    @property
    def lendable(self) -> Mapping[str, int]:
        """What the children of a cohort could use of each resource, in all flavors of the tree."""
        if self._lendable is None:
            self._lendable = {}
            for pair in self.root.subtree:
                self._lendable[pair.resource] = add(self._lendable.get(pair.resource, 0), self.potential(pair))
        return self._lendable

    def is_borrowing(self, pair: FlavorResource, more: int = 0) -> bool:
        """Return True if the usage, and `more`, exceeds the quota of the node and of all below it."""
        return add(self.usage.get(pair, 0), more) > self.subtree_quota(pair)

    def add_usage(self, pair: FlavorResource, amount: int) -> None:
        """Add usage to the node, and to the nodes above as far as it exceeds what the node keeps for itself."""
        node: QuotaNode | None = self
        while node is not None:
            local = node.local_available(pair) if pair in node.local else 0
            node.usage[pair] = add(node.usage.get(pair, 0), amount)
            if amount <= local:
                return
            amount = subtract(amount, local) if local else amount
            node = node.parent

    def remove_usage(self, pair: FlavorResource, amount: int) -> None:
        """Remove usage from the node, and from the nodes above as far as it exceeded what the node keeps."""
        node: QuotaNode | None = self
        while node is not None:
            used = node.usage.get(pair, 0)
            node.usage[pair] = subtract(used, amount)
            exceeding = subtract(used, node.local[pair]) if pair in node.local else used
            if exceeding <= 0:
                return
            amount = min(amount, exceeding)
            node = node.parent

    def fits(self, usage: Mapping[FlavorResource, int]) -> bool:
        """Return True if all of a usage is available."""
        return all(amount <= max(0, self.available(pair)) for pair, amount in usage.items())


def find_borrowing_level(node: QuotaNode, pair: FlavorResource, amount: int) -> tuple[int, bool]:
    """Return how high in the tree a ClusterQueue would borrow, and whether it may reclaim quota of others there.

    Level 0 is its own quota. A cohort that has only ClusterQueues is level 1.
    """
    if not node.is_borrowing(pair, amount) or node.parent is None:
        return 0, node.parent is not None
    left = subtract(amount, node.local_available(pair))
    last = node
    for cohort in node.list_ancestors():
        last = cohort
        if not cohort.is_borrowing(pair, left):
            return cohort.height, cohort.parent is not None
        left = subtract(left, cohort.local_available(pair))
    return last.height, False


def reserve_for_blocked(node: QuotaNode, usage: Mapping[FlavorResource, int], level: int) -> Usage:
    """Return what a workload keeps from others while it waits without anything that it may preempt.

    It keeps no more than its queue may use: its nominal quota, and its borrowing limit if the workload borrows.
    """
    reserved: Usage = {}
    for pair, amount in usage.items():
        quota, used = node.find_quota(pair), node.usage.get(pair, 0)
        if level == 0:
            reserved[pair] = max(0, min(amount, subtract(quota.nominal, used)))
        elif quota.borrowing_limit is None:
            reserved[pair] = amount
        else:
            reserved[pair] = min(amount, subtract(add(quota.nominal, quota.borrowing_limit), used))
    return reserved


class Share(NamedTuple):
    """The share of a node in what its cohort lends, for fair sharing."""

    ratio: float
    """The greatest borrowed part of a resource, in thousandths."""
    weight: float
    resource: str = ""
    borrowed: frozenset[FlavorResource] = frozenset()
    """What the node borrows."""

    @property
    def precise(self) -> float:
        """The ratio by weight; infinite if the node borrows although its weight is 0."""
        if self.ratio == 0:
            return 0.0
        return inf if self.weight == 0 else self.ratio / self.weight

    @property
    def order(self) -> tuple[float, float]:
        """The key that orders shares. Infinite ones come last, by their ratio."""
        return self.precise, self.ratio if self.precise == inf else 0.0

    def borrows_any(self, requested: Mapping[FlavorResource, int]) -> bool:
        """Return True if the node borrows something that is requested."""
        return any(requested.get(pair, 0) > 0 for pair in self.borrowed)


def compare_shares(one: Share, other: Share) -> int:
    """Return -1, 0 or 1 as the first share is less than, equal to or greater than the second."""
    left, right = one.order, other.order
    return (left > right) - (left < right)


def compute_share(node: QuotaNode, more: Mapping[FlavorResource, int] | None = None) -> Share:
    """Compute the dominant resource share of a node, with more usage if given.

    Kueue computes it with floating-point numbers, and so does this: shares that differ only by rounding decide order.
    """
    if node.parent is None:
        return Share(0.0, node.weight)
    borrowed: dict[str, int] = {}
    pairs: list[FlavorResource] = []
    for pair, quota in node.subtree.items():
        used = node.usage.get(pair, 0)
        above = subtract(add(more.get(pair, 0), used) if more else used, quota)
        if above > 0:
            borrowed[pair.resource] = add(borrowed.get(pair.resource, 0), above)
            pairs.append(pair)
    if not borrowed:
        return Share(0.0, node.weight)
    lendable = node.parent.lendable
    best, dominant = 0.0, ""
    for resource in sorted(borrowed):
        if lendable.get(resource, 0) > 0:
            ratio = float(borrowed[resource]) * 1000.0 / float(lendable[resource])
            if ratio > best:
                best, dominant = ratio, resource
    return Share(best, node.weight, dominant, frozenset(pairs))


def build_tree(
    queues: Iterable[tuple[QuotaNode, str]], cohorts: Iterable[tuple[QuotaNode, str]]
) -> dict[str, QuotaNode]:
    """Connect nodes with their parents, create cohorts that are only named, and return the cohorts by name.

    The cohorts of a cycle stay unconnected.
    """
    found: dict[str, QuotaNode] = {}
    parents: dict[str, str] = {}
    for node, parent in cohorts:
        found[node.name] = node
        parents[node.name] = parent
    pairs = list(queues)
    for name in [parent for _, parent in pairs] + list(parents.values()):
        if name and name not in found:
            found[name] = QuotaNode(name, {}, is_queue=False)
    cycles = find_cycles(parents)
    for node, above in [*((found[name], each) for name, each in parents.items() if name not in cycles), *pairs]:
        if above:
            node.parent = found[above]
            node.parent.children.append(node)
    for node in [*found.values(), *(node for node, _ in pairs)]:
        if node.parent is None:
            node.sum_quota()
    return found


def find_cycles(parents: Mapping[str, str]) -> set[str]:
    """Return the cohorts whose chain of parents never ends."""
    cyclic: set[str] = set()
    finite: set[str] = set()
    for start in parents:
        chain: dict[str, None] = {}
        name = start
        while name and name not in chain and name not in cyclic and name not in finite:
            chain[name] = None
            name = parents.get(name, "")
        is_endless = name in chain or name in cyclic
        (cyclic if is_endless else finite).update(chain)
    return cyclic


def list_cycles(parents: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the cycles of parents, each from the first by name to the one whose parent that is."""
    found: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for start in sorted(parents):
        path: dict[str, int] = {}
        name = start
        while name and name not in seen:
            seen.add(name)
            path[name] = len(path)
            name = parents.get(name, "")
        if name in path:
            cycle = list(path)[path[name] :]
            first = cycle.index(min(cycle))
            found.append((*cycle[first:], *cycle[:first]))
    return found


_PARENTS = {"Cohort": ("parentName", "parent"), "ClusterQueue": ("cohortName", "cohort")}
"""The fields that name the cohort above an object; older versions of the API have the second."""


def get_parent(obj: Mapping[str, Plain]) -> Plain:
    """Return the node that names the cohort above a Cohort or ClusterQueue; None if there is none."""
    place = find_parent(obj)
    return None if place is None else place.node


def find_parent(obj: Mapping[str, Plain]) -> At | None:
    """Return the place of the name of the cohort above a Cohort or ClusterQueue; None if there is none."""
    spec = as_mapping(obj.get("spec"))
    fields = _PARENTS.get(as_text(obj.get("kind")), ())
    return next((At(spec, field) for field in fields if as_text(spec.get(field))), None)
