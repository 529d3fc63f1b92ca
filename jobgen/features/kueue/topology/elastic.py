"""Elastic jobs: a job that grows or shrinks keeps its pods where they are."""

from __future__ import annotations

from dataclasses import replace

from jobgen.features.kueue.topology.request import Failure, Placement, PodSetRequest
from jobgen.features.kueue.topology.snapshot import AssumedUsage, TopologySnapshot, add_assumed
from jobgen.model.named_tuple import NamedTuple


class Resized(NamedTuple):
    """Where the pods of an elastic job and of its leader are."""

    workers: Placement
    leader: Placement | None


def place_resized(
    snapshot: TopologySnapshot,
    workers: PodSetRequest,
    leader: PodSetRequest | None,
    assumed: AssumedUsage,
    *,
    ignore_usage: bool,
) -> Resized | Failure | None:
    """Place the pods that an elastic job adds; None if it has no place yet, or lost a node of it."""
    previous, lead = workers.previous, leader.previous if leader else None
    if previous is None or any(snapshot.is_stale(each) for each in (previous, lead) if each is not None):
        return None
    if workers.count > previous.count:
        return _grow(snapshot, workers, leader, previous, assumed, ignore_usage=ignore_usage)
    kept = _truncate(previous, workers.count)
    add_assumed(assumed, kept, workers.requests)
    if leader is not None and lead is not None:
        add_assumed(assumed, lead, leader.requests)
    return Resized(kept, lead)


def _grow(
    snapshot: TopologySnapshot,
    workers: PodSetRequest,
    leader: PodSetRequest | None,
    previous: Placement,
    assumed: AssumedUsage,
    *,
    ignore_usage: bool,
) -> Resized | Failure:
    add_assumed(assumed, previous, workers.requests)
    lead = leader.previous if leader else None
    if leader is not None and lead is not None:
        add_assumed(assumed, lead, leader.requests)
    more = replace(workers, count=workers.count - previous.count, previous=None)
    new_leader = None if lead is not None else leader
    found = snapshot.place(more, new_leader, assumed=assumed, ignore_usage=ignore_usage)
    if isinstance(found, Failure):
        return found
    added, new_lead = found
    if new_leader is not None and new_lead is not None:
        lead = new_lead
        add_assumed(assumed, new_lead, new_leader.requests)
    add_assumed(assumed, added, workers.requests)
    return Resized(snapshot.merge(added, previous), lead)


def _truncate(placement: Placement, count: int) -> Placement:
    """Keep the first pods of a placement."""
    kept = []
    for values, number in placement.domains:
        if count <= 0:
            break
        kept.append((values, min(number, count)))
        count -= number
    return replace(placement, domains=tuple(kept))
