"""The longest time and the highest cost of one run of each job.

Git does not know how long jobs run. Only a deadline limits it. The time and the cost of a job without one are not
known, and are part of no sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil

from jobgen.diff.snapshot import Snapshot
from jobgen.features.page.deadlines import find_deadline
from jobgen.features.page.flavors import JobFlavors
from jobgen.features.page.fleet import ACTIVE, Fleet, FleetCell
from jobgen.features.page.prices import NO_PRICES, Prices, PriceTarget
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Pod
from jobgen.k8s.requested_amounts import RequestedAmount, list_amounts
from jobgen.k8s.workloads import find_workload
from jobgen.model.named_tuple import NamedTuple

UNKNOWN = -1
"""A cost or a time that is not known."""

_HOUR = 3600
_MILLIONTHS = 10**6


class LongestRun(NamedTuple):
    """The most that one run of a job can take."""

    deadline: int = 0
    """In seconds, with the restarts for which the time starts again; 0 if it has none."""
    gpu_seconds: int = UNKNOWN
    cost: int = UNKNOWN
    """In thousandths of the currency, rounded up."""
    is_counted: bool = False
    """Whether it is part of the sums: an active job that requests GPUs, or other resources with a price."""
    is_scheduled: bool = False
    """Whether a schedule starts it again and again."""


class CostTotal(NamedTuple):
    """The most that one run of each job can take."""

    environment: str
    by: str
    name: str
    jobs: int
    bounded: int
    """Jobs with a deadline."""
    priced: int
    """Jobs with a deadline and a price."""
    scheduled: int
    gpu_seconds: int
    cost: int


def find_longest_run(snapshot: Snapshot, cell: FleetCell, prices: Prices, flavors: JobFlavors) -> LongestRun:
    """Find the longest run of a job in an environment."""
    if not cell.objects:
        return LongestRun()
    manifests = [snapshot.manifest(each) for each in cell.objects]
    kind, deadline = find_workload(manifests[0].group, manifests[0].kind_name), find_deadline(manifests[0])
    amounts = [
        each
        for manifest in (manifests if prices != NO_PRICES else ())
        for each in list_amounts(manifest, prices.resources)
    ]
    run = LongestRun(
        is_counted=cell.state == ACTIVE and bool(cell.resources.gpus or amounts),
        is_scheduled=kind is not None and kind.scheduled,
    )
    if not deadline:
        return run
    hourly = _sum_prices(cell, amounts, prices, flavors)
    cost = UNKNOWN if hourly is None else ceil(hourly * deadline * 1000 / (_HOUR * _MILLIONTHS))
    return run._replace(deadline=deadline, gpu_seconds=deadline * cell.resources.gpus, cost=cost)


def _sum_prices(
    cell: FleetCell, amounts: Sequence[RequestedAmount], prices: Prices, flavors: JobFlavors
) -> Fraction | None:
    """Return what an hour of all pods costs, in millionths; None if a resource has no price."""
    total = Fraction(0)
    for each in amounts:
        found = _find_price(cell, each, prices, flavors)
        if found is None:
            return None
        total += each.amount * found
    return total if amounts else None


def _find_price(cell: FleetCell, each: RequestedAmount, prices: Prices, flavors: JobFlavors) -> int | None:
    """Return the highest price among the flavors that pods can get; None if one of them has none."""
    key = (cell.environment, cell.kind, cell.namespace, cell.name)
    role = each.pod.role.replica_type.lower() if each.pod.role else ""
    found: list[int] = []
    for flavor, labels in flavors.find(key, role, each.resource):
        selected = {**_read_node_selector(each.pod), **labels}
        price = prices.find(each.resource, PriceTarget(cell.environment, cell.namespace, cell.queue, flavor, selected))
        if price is None:
            return None
        found.append(price)
    return max(found)


def _read_node_selector(pod: Pod) -> dict[str, str]:
    return {str(key): as_text(value) for key, value in as_mapping(pod.spec.get("nodeSelector")).items()}


def sum_costs(fleet: Fleet, runs: Iterable[LongestRun], prices: Prices) -> Iterator[CostTotal]:
    """Sum up the longest runs by environment, team and queue."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for cell, run in zip(fleet.cells, runs, strict=True):
        if not run.is_counted:
            continue
        flags = (True, run.deadline > 0, run.cost != UNKNOWN, run.is_scheduled)
        amounts = (*map(int, flags), max(run.gpu_seconds, 0), max(run.cost, 0))
        for by, name in (("environment", cell.environment), ("team", cell.team), ("queue", cell.queue)):
            known = sums.setdefault((cell.environment, by, name), [0] * len(amounts))
            sums[cell.environment, by, name] = [one + other for one, other in zip(known, amounts, strict=True)]
    order = ("environment", "team", "queue")
    for env, by, name in sorted(sums, key=lambda key: (fleet.environments.index(key[0]), order.index(key[1]), key[2])):
        total = CostTotal(env, by, name, *sums[env, by, name])
        yield total if prices != NO_PRICES else total._replace(cost=UNKNOWN)
