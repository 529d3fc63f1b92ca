"""Quota and its use, by ClusterQueue and cohort, for each flavor and resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobgen.kueue.loans import Loan
from jobgen.kueue.quota import FlavorResource, QuotaNode, Usage
from jobgen.kueue.snapshot import Snapshot


class Total(NamedTuple):
    """The quota of a queue or cohort for one resource in one flavor."""

    kind: str
    """`ClusterQueue` or `Cohort`."""
    name: str
    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    lent: int
    waiting: int
    """What the waiting workloads request."""


def list_totals(snapshot: Snapshot, loans: Iterable[Loan], waiting: Iterable[tuple[str, Usage]]) -> list[Total]:
    """List the totals of all queues, then those of all cohorts; `waiting` has queues and what is requested there."""
    lent, requested = Counter[tuple[str, FlavorResource]](), Counter[tuple[str, FlavorResource]]()
    for loan in loans:
        lent[loan.lender, loan.pair] += loan.amount
    for queue, usage in waiting:
        for pair, amount in usage.items():
            requested[queue, pair] += amount
    nodes = [snapshot.nodes[name] for name in sorted(snapshot.nodes)]
    nodes += [snapshot.cohorts[name] for name in sorted(snapshot.cohorts)]
    return [total for node in nodes for total in _list_totals_of(node, lent, requested)]


def _list_totals_of(
    node: QuotaNode, lent: Counter[tuple[str, FlavorResource]], requested: Counter[tuple[str, FlavorResource]]
) -> Iterator[Total]:
    queues = list(node.list_queues())
    for pair in sorted({*node.quotas, *node.subtree, *node.usage} if not node.is_queue else node.quotas):
        own = node.find_quota(pair).nominal
        nominal = own if node.is_queue else _sum_nominal(node, pair)
        used = sum(each.usage.get(pair, 0) for each in queues)
        yield Total(
            "ClusterQueue" if node.is_queue else "Cohort",
            node.name,
            pair.flavor,
            pair.resource,
            nominal=nominal,
            used=used,
            # Without a parent there is nobody to borrow from: the quota was lowered while workloads ran.
            borrowed=max(0, used - nominal) if node.parent is not None else 0,
            lent=lent[node.name, pair],
            waiting=sum(requested[each.name, pair] for each in queues),
        )


def _sum_nominal(node: QuotaNode, pair: FlavorResource) -> int:
    """Return the quota of a cohort and of everything in it."""
    return node.find_quota(pair).nominal + sum(_sum_nominal(child, pair) for child in node.children)
