"""Quota and its use, by ClusterQueue and cohort, for each flavor and resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from jobgen.features.kueue.decision.loans import Loan
from jobgen.features.kueue.quota import FlavorResource, QuotaNode, Usage
from jobgen.features.kueue.scheduling.snapshot import Snapshot
from jobgen.model.named_tuple import NamedTuple


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
    tree: int = 0
    """Equal for all queues and cohorts that lend to each other, directly or through others."""


Amounts = Counter[FlavorResource]


def list_totals(snapshot: Snapshot, loans: Iterable[Loan], waiting: Iterable[tuple[str, Usage]]) -> list[Total]:
    """List the totals of all queues, then those of all cohorts; `waiting` has queues and what is requested there."""
    lent = Counter[tuple[str, bool, FlavorResource]]()
    for loan in loans:
        lent[loan.lender, not loan.is_from_cohort, loan.pair] += loan.amount
    requested: dict[str, Amounts] = {}
    for queue, usage in waiting:
        _add_amounts(requested.setdefault(queue, Amounts()), usage)
    queues = [node for _, node in sorted(snapshot.nodes.items())]
    cohorts = [node for _, node in sorted(snapshot.cohorts.items())]
    sums = _sum_by_node(queues, cohorts, requested)
    trees: dict[int, int] = {}
    return [
        total._replace(tree=trees.setdefault(id(node.tree), len(trees)))
        for node in (*queues, *cohorts)
        for total in _list_totals_of(node, sums[id(node)], lent)
    ]


def select_trees(totals: Sequence[Total], queues: Container[str]) -> list[Total]:
    """Select the totals of queues, and of all queues and cohorts that they share quota with."""
    trees = {each.tree for each in totals if each.kind == "ClusterQueue" and each.name in queues}
    return [each for each in totals if each.tree in trees]


class _Sums(NamedTuple):
    """What a node and all below it have, use and wait for."""

    nominal: Amounts
    used: Amounts
    waiting: Amounts


def _sum_by_node(
    queues: Sequence[QuotaNode], cohorts: Sequence[QuotaNode], requested: Mapping[str, Amounts]
) -> dict[int, _Sums]:
    """Sum amounts from the queues up, one step for each node. Stopped queues count, although no cohort lists them."""
    sums = {id(node): _Sums(_list_nominal(node), Amounts(), Amounts()) for node in (*queues, *cohorts)}
    for node in queues:
        _add_amounts(sums[id(node)].used, node.usage)
        _add_amounts(sums[id(node)].waiting, requested.get(node.name, {}))
    below = [each for node in cohorts if node.parent is None for each in node.list_below() if not each.is_queue]
    for node in (*queues, *reversed(below)):
        if node.parent is not None:
            for total, amounts in zip(sums[id(node.parent)], sums[id(node)], strict=True):
                _add_amounts(total, amounts)
    return sums


def _list_nominal(node: QuotaNode) -> Amounts:
    return Amounts({pair: quota.nominal for pair, quota in node.quotas.items()})


def _add_amounts(total: Amounts, more: Mapping[FlavorResource, int]) -> None:
    for pair, amount in more.items():
        total[pair] += amount


def _list_totals_of(node: QuotaNode, sums: _Sums, lent: Counter[tuple[str, bool, FlavorResource]]) -> Iterator[Total]:
    """Yield the totals of a queue, or of a cohort and all queues below it."""
    for pair in sorted({*node.quotas, *node.subtree, *node.usage} if not node.is_queue else node.quotas):
        nominal, used = sums.nominal[pair], sums.used[pair]
        yield Total(
            "ClusterQueue" if node.is_queue else "Cohort",
            node.name,
            pair.flavor,
            pair.resource,
            nominal=nominal,
            used=used,
            # Without a parent there is nothing to borrow from: the quota was lowered while workloads ran.
            borrowed=max(0, used - nominal) if node.parent is not None else 0,
            lent=lent[node.name, node.is_queue, pair],
            waiting=sums.waiting[pair],
        )
