"""Which domains are used first, and which one fits best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from jobgen.features.kueue.topology.tree import Domain


def order_for_leader(domains: Iterable[Domain], *, is_least_free: bool) -> list[Domain]:
    """Sort domains by their room beside a leader: the most room first, or the least."""
    sign = 1 if is_least_free else -1
    return sorted(
        domains,
        key=lambda each: (
            -each.leaders,
            -each.score,
            sign * each.slices_with_leader,
            each.pods_with_leader,
            each.rank,
        ),
    )


def order_for_workers(domains: Iterable[Domain], *, is_least_free: bool) -> list[Domain]:
    """Sort domains by their room: the most room first, or the least."""
    sign = 1 if is_least_free else -1
    return sorted(domains, key=lambda each: (-each.score, sign * each.slices, each.pods, each.rank))


def get_room(domain: Domain, leaders: int, *, by_slices: bool) -> int:
    """Return the room of a domain for slices or pods, beside a leader if there is one."""
    if by_slices:
        return domain.slices_with_leader if leaders else domain.slices
    return domain.pods_with_leader if leaders else domain.pods


def find_best_fit(domains: Sequence[Domain], need: int, leaders: int, *, by_slices: bool) -> Domain:
    """Return the first domain with the least room that is enough; the first domain if there is none.

    Only domains with the highest score count.
    """
    first = domains[0]
    best, least = first, None
    for domain in takewhile(lambda each: each.score == first.score, domains):
        room = get_room(domain, leaders, by_slices=by_slices)
        if domain.leaders >= leaders and room >= need and (least is None or room < least):
            best, least = domain, room
    return best


def put_leader_first(domains: list[Domain], need: int, leaders: int, *, by_slices: bool) -> list[Domain]:
    """Move the first domain to the front that can take the leader and leaves enough room for all workers."""
    if not leaders or len(domains) < 2:
        return domains
    spare = sum(get_room(each, 0, by_slices=by_slices) for each in domains) - need
    for index, domain in enumerate(domains):
        loss = get_room(domain, 0, by_slices=by_slices) - get_room(domain, 1, by_slices=by_slices)
        if domain.leaders >= leaders and loss <= spare:
            return [domain, *domains[:index], *domains[index + 1 :]]
    return domains
