"""Who lends to whom: quota that queues use beyond their own, and where it is unused.

Kueue does not record this, because a cohort lends as a whole. Here, a queue borrows first from its nearest cohort:
from the cohort's own quota, then from the queues in the order of their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobgen.features.kueue.quota import FlavorResource, QuotaNode
from jobgen.features.kueue.scheduling.snapshot import Snapshot
from jobgen.model.named_tuple import NamedTuple


class Loan(NamedTuple):
    """Quota that one queue uses, and another queue or cohort does not."""

    borrower: str
    lender: str
    pair: FlavorResource
    amount: int
    is_from_cohort: bool = False
    """Whether the lender is a cohort with quota of its own; a queue may have the same name."""


def list_loans(snapshot: Snapshot) -> list[Loan]:
    """List what every queue borrows, and from whom."""
    free: dict[tuple[int, FlavorResource], int] = {}
    members = snapshot.list_members()
    return [loan for _, node in sorted(snapshot.nodes.items()) for loan in _list_loans_of(node, members, free)]


def _list_loans_of(
    node: QuotaNode, members: Mapping[str, Sequence[QuotaNode]], free: dict[tuple[int, FlavorResource], int]
) -> Iterator[Loan]:
    if node.parent is None:
        return
    for pair, used in node.usage.items():
        missing = used - node.find_quota(pair).nominal
        for cohort in node.list_ancestors():
            if missing <= 0:
                break
            for lender in (cohort, *members[cohort.name]):
                amount = min(missing, free.setdefault((id(lender), pair), _count_unused(lender, pair)))
                if lender is not node and amount > 0:
                    free[id(lender), pair] -= amount
                    missing -= amount
                    yield Loan(node.name, lender.name, pair, amount, lender is cohort)


def _count_unused(node: QuotaNode, pair: FlavorResource) -> int:
    """Return how much a node has of its own, does not use, and may lend."""
    nominal = node.find_quota(pair).nominal
    if not node.is_queue:
        return nominal
    return nominal - max(node.usage.get(pair, 0), node.local_quota(pair))
