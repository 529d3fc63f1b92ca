"""All that a merge does: what happens to each object, and what changes in sum."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from jobgen.diff.impact import Impact, added, changed, queue_name, removed
from jobgen.diff.match import match_objects
from jobgen.diff.operator_behavior import RANK, Effect
from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.objects import as_text
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.pipeline.environment import Rendered

_ORDER = {"removed": 0, "changed": 1, "added": 2}


class Total(NamedTuple):
    """What is asked for on both sides, by one environment, namespace, team or queue."""

    env: str
    by: str
    name: str
    before: ResourceTotals
    after: ResourceTotals


class ChangeSet(NamedTuple):
    """Everything that happens, the worst first; and what it amounts to."""

    old: Snapshot
    new: Snapshot
    happened: tuple[Impact, ...]
    unchanged: int
    totals: tuple[Total, ...]

    def count(self, happening: str) -> int:
        """How many objects are added, removed or changed."""
        return sum(one.happening == happening for one in self.happened)

    def effects(self) -> dict[Effect, int]:
        """How many objects have each effect, the worst first."""
        counts = Counter(one.outcome.effect for one in self.happened)
        return {effect: counts[effect] for effect in reversed(Effect) if counts[effect]}

    def stopped(self) -> tuple[int, int]:
        """How many jobs that may be running are stopped, and their accelerators."""
        stopping = [one for one in self.happened if one.stops]
        return len(stopping), sum(one.before.gpus for one in stopping)


def compare_snapshots(old: Snapshot, new: Snapshot) -> ChangeSet:
    """What it means to go from one side to the other."""
    every: list[Impact] = []
    for before, after in match_objects(old, new):
        if before is None:
            assert after is not None
            every.append(added(new, after))
        elif after is None:
            every.append(removed(old, before))
        else:
            every.append(changed(old, new, before, after))
    happened = [one for one in every if one.happening != "unchanged"]
    happened.sort(key=lambda one: (-RANK[one.outcome.effect], _ORDER[one.happening], one.made.env, one.made.identity))
    return ChangeSet(old, new, tuple(happened), len(every) - len(happened), _totals(old, new, every))


def _totals(old: Snapshot, new: Snapshot, every: list[Impact]) -> tuple[Total, ...]:
    before: dict[tuple[str, str, str], ResourceTotals] = {}
    after: dict[tuple[str, str, str], ResourceTotals] = {}
    for one in every:
        if one.old is not None and any(one.before):
            _count(before, old, one.old, one.before)
        if one.new is not None and any(one.after):
            _count(after, new, one.new, one.after)
    nothing = ResourceTotals()
    keys = sorted({*before, *after}, key=lambda key: (key[0], _BY.index(key[1]), key[2]))
    return tuple(Total(*key, before.get(key, nothing), after.get(key, nothing)) for key in keys)


_BY = ("environment", "namespace", "team", "queue")


def _count(
    sums: dict[tuple[str, str, str], ResourceTotals], side: Snapshot, made: Rendered, size: ResourceTotals
) -> None:
    manifest = side.manifest(made)
    names = (made.env, manifest.namespace, as_text(manifest.labels.get("team")), queue_name(manifest))
    for by, name in zip(_BY, names, strict=True):
        if name or by == "environment":
            key = (made.env, by, name)
            sums[key] = add_totals(sums.get(key, ResourceTotals()), size)
