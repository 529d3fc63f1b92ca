"""Everything that a merge does: the impact on each object, and the totals of requested resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce

from jobgen.diff.effects import RANK, Effect
from jobgen.diff.impact import Action, Impact, assess_addition, assess_change, assess_removal
from jobgen.diff.match import Pair, match_objects
from jobgen.diff.queue_changes import QueueChanges
from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.model.finding import Identity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.object_summary import list_groups
from jobgen.render.environment import Rendered

_ORDER = {"removed": 0, "changed": 1, "added": 2}
_GROUPS = ("environment", "namespace", "team", "queue")


class GroupTotal(NamedTuple):
    """The resources that one environment, namespace, team or queue requests before and after the change."""

    env: str
    by: str
    name: str
    before: ResourceTotals
    after: ResourceTotals


class ChangeSet(NamedTuple):
    """All impacts, most severe first, and the totals."""

    old: Snapshot
    new: Snapshot
    impacts: tuple[Impact, ...]
    unchanged: int
    totals: tuple[GroupTotal, ...]
    queues: tuple[QueueChanges, ...] = ()
    """What changes in the queues of environments; empty if no environment has a ClusterQueue."""

    def count(self, action: Action) -> int:
        """Count the objects that are added, removed or changed."""
        return sum(one.action == action for one in self.impacts)

    def count_effects(self) -> dict[Effect, int]:
        """Count the objects by effect, most severe first."""
        counts = Counter(one.outcome.effect for one in self.impacts)
        return {effect: counts[effect] for effect in reversed(Effect) if counts[effect]}

    def count_stopped(self) -> tuple[int, int]:
        """Count the jobs that are stopped while they may be running, and their accelerators."""
        stopped = [one for one in self.impacts if one.stops]
        return len(stopped), reduce(add_totals, (one.before for one in stopped), ResourceTotals()).gpus


def compare_snapshots(old: Snapshot, new: Snapshot) -> ChangeSet:
    """Compare two snapshots object by object."""
    return compare_pairs(old, new, match_objects(old, new))


def compare_pairs(old: Snapshot, new: Snapshot, pairs: Iterable[Pair]) -> ChangeSet:
    """Compare objects of two snapshots; one of a pair may be missing."""
    every = [_assess(old, new, before, after) for before, after in pairs]
    impacts = [one for one in every if one.action != "unchanged"]
    impacts.sort(key=rank_impact)
    return ChangeSet(old, new, tuple(impacts), len(every) - len(impacts), _sum_groups(old, new, every))


def _assess(old: Snapshot, new: Snapshot, before: Rendered | None, after: Rendered | None) -> Impact:
    if before is not None and after is not None:
        return assess_change(old, new, before, after)
    if before is not None:
        return assess_removal(old, before)
    assert after is not None
    return assess_addition(new, after)


Rank = tuple[int, int, str, Identity]


def rank_impact(one: Impact) -> Rank:
    """The place of an impact among others: the most severe first."""
    return -RANK[one.outcome.effect], _ORDER[one.action], one.current.env, one.current.identity


_GroupKey = tuple[str, str, str]


def _sum_groups(old: Snapshot, new: Snapshot, impacts: list[Impact]) -> tuple[GroupTotal, ...]:
    before = _sum_side(
        (one.old.env, old.list_groups(one.old), one.before) for one in impacts if one.old and any(one.before)
    )
    after = _sum_side(
        (one.new.env, new.list_groups(one.new), one.after) for one in impacts if one.new and any(one.after)
    )
    zero = ResourceTotals()
    keys = sorted({*before, *after}, key=_order_groups)
    return tuple(GroupTotal(*key, before.get(key, zero), after.get(key, zero)) for key in keys)


def sum_objects(objects: Iterable[tuple[str, Manifest, ResourceTotals]]) -> tuple[GroupTotal, ...]:
    """Sum what objects request, each with its environment, by environment, namespace, team and queue."""
    sums = _sum_side((env, list_groups(manifest), resources) for env, manifest, resources in objects if any(resources))
    return tuple(GroupTotal(*key, sums[key], sums[key]) for key in sorted(sums, key=_order_groups))


def _order_groups(key: _GroupKey) -> tuple[str, int, str]:
    return key[0], _GROUPS.index(key[1]), key[2]


def _sum_side(objects: Iterable[tuple[str, tuple[str, str, str], ResourceTotals]]) -> dict[_GroupKey, ResourceTotals]:
    """Sum what objects request by each of their groups: first for those with the same groups, because few differ."""
    alike: dict[tuple[str, tuple[str, str, str]], ResourceTotals] = {}
    for env, groups, resources in objects:
        known = alike.get((env, groups))
        alike[env, groups] = add_totals(known, resources) if known else resources
    sums: dict[_GroupKey, ResourceTotals] = {}
    for (env, groups), resources in alike.items():
        for by, name in zip(_GROUPS, (env, *groups), strict=True):
            if name or by == "environment":
                key = (env, by, name)
                sums[key] = add_totals(sums[key], resources) if key in sums else resources
    return sums
