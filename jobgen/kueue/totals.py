"""Quota and its use, by ClusterQueue and cohort, for each flavor and resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
    lent, requested = Counter[tuple[str, bool, FlavorResource]](), Counter[tuple[str, FlavorResource]]()
    for loan in loans:
        lent[loan.lender, not loan.is_from_cohort, loan.pair] += loan.amount
    for queue, usage in waiting:
        for pair, amount in usage.items():
            requested[queue, pair] += amount
    found = [(node, [node]) for _, node in sorted(snapshot.nodes.items())]
    members = snapshot.list_members()
    found += [(cohort, members[name]) for name, cohort in sorted(snapshot.cohorts.items())]
    return [total for node, queues in found for total in _list_totals_of(node, queues, lent, requested)]


def _list_totals_of(
    node: QuotaNode,
    queues: Sequence[QuotaNode],
    lent: Counter[tuple[str, bool, FlavorResource]],
    requested: Counter[tuple[str, FlavorResource]],
) -> Iterator[Total]:
    """Yield the totals of a queue, or of a cohort and all queues below it."""
    cohorts = [each for each in node.list_below() if not each.is_queue]
    for pair in sorted({*node.quotas, *node.subtree, *node.usage} if not node.is_queue else node.quotas):
        nominal = sum(each.find_quota(pair).nominal for each in (*cohorts, *queues))
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
            lent=lent[node.name, node.is_queue, pair],
            waiting=sum(requested[each.name, pair] for each in queues),
        )
