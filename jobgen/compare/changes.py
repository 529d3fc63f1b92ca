"""Everything that a merge does: the impact on each object, and the totals of requested resources."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import reduce

from jobgen.compare.governance import Change as Governed
from jobgen.compare.impact import Action, Impact, assess_addition, assess_change, assess_removal
from jobgen.compare.operator_behavior import RANK, Effect
from jobgen.compare.snapshot import Pair, Snapshot, match_some
from jobgen.k8s.objects import Manifest
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.model.finding import Finding, Identity, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.object_summary import list_groups
from jobgen.rendering.environment import Rendered
from jobgen.rendering.left_out import LeftOut, LeftOutFile, join_environments
from jobgen.repo.files import read_file

UNKNOWN, PREEMPTED = "unknown", "preempted"

JobName = tuple[str, str, str]
"""Kind, namespace and name of a job."""


class Update(StrEnum):
    """What a merge does to a job that the old state has."""

    UNCHANGED = "unchanged"
    """A running job is not affected."""
    IN_PLACE = "in-place"
    """A running job changes without being stopped."""
    RESTARTED = "restarted"
    """It is stopped, and queued again."""
    NOT_APPLIED = "not-applied"
    """The old job stays: its change is rejected, or it is removed from the files only."""


class Change(StrEnum):
    """How a workload fares after the merge, the most severe first."""

    PREEMPTED = "preempted"
    """It ran, and is evicted."""
    WORSE = "worse"
    LONGER = "waits-longer"
    """It waits as before, and new jobs are before it."""
    RESTART = "after-restart"
    """It keeps running, but would not be admitted if it were started again."""
    MOVES = "moves"
    """It runs as before, but in another flavor or cluster, or with other jobs evicted."""
    NEW = "new"
    BETTER = "better"


class WorkloadChange(NamedTuple):
    """What becomes of one workload."""

    change: Change
    workload: str
    """Namespace and name."""
    kind: str
    cluster_queue: str
    before: str
    """The decision before the merge; empty for a new job, `unknown` if the old state has no queues."""
    after: str
    """The decision after the merge, or `preempted`."""
    reason: str
    behind: tuple[str, ...] = ()
    """The workloads that it waits behind; if it waits longer, only those that are new."""
    requeued: str = ""
    """The decision when it is queued again: after it is preempted, or if it is started again."""
    preempted_by: str = ""
    rule: str = ""
    """The rule that allows the preemption, as in the condition of the workload."""
    moved: str = ""
    """From which flavor or worker cluster to which one it moves; empty if it does not."""


class QuotaAmounts(NamedTuple):
    """The quota of a queue or cohort, and its use, as Kubernetes writes quantities."""

    nominal: str
    used: str
    borrowed: str
    lent: str
    waiting: str


class QuotaChange(NamedTuple):
    """The quota of a queue or cohort for one resource in one flavor; None on a side that does not have it."""

    kind: str
    name: str
    flavor: str
    resource: str
    before: QuotaAmounts | None
    after: QuotaAmounts | None
    cluster: str = ""
    """The worker cluster of MultiKueue that has the queue; empty for the cluster itself."""


class QueueObjectChange(NamedTuple):
    """A queue, or another object that decides about admission, that is added, removed or changed."""

    action: str
    kind: str
    namespace: str
    name: str


class Balance(NamedTuple):
    """A number of workloads, or an amount of quota, before and after."""

    name: str
    """`admitted`, `preempted`, `waits`, `never` or `unmanaged`; or `unused`, of a resource in a flavor."""
    before: str
    after: str
    resource: str = ""
    flavor: str = ""
    cluster: str = ""
    """The worker cluster of MultiKueue that has the quota; empty for the cluster itself."""


class QueueChanges(NamedTuple):
    """What a merge does to the queues of one environment."""

    environment: str
    workloads: tuple[WorkloadChange, ...] = ()
    quota: tuple[QuotaChange, ...] = ()
    objects: tuple[QueueObjectChange, ...] = ()
    errors: tuple[str, ...] = ()
    """Why the queues are not compared: what cannot be read."""
    settles: bool = True
    """False if workloads evict each other in turn, before or after the merge; what is shown is one of the states."""
    complete: bool = True
    """False if there is so much to decide that a simulation was stopped before its end."""
    left_out: tuple[str, ...] = ()
    """What is not simulated."""
    balance: tuple[Balance, ...] = ()
    """Who is admitted and who waits, and which quota stays unused; empty if no queue or other object changes."""
    remarks: tuple[str, ...] = ()
    """What runs and is no job of the repository, and what the merge adds that is not valid or not simulated."""

    def count_changes(self) -> Mapping[Change, int]:
        """Return how many workloads fare in each way, the most severe first."""
        found = [each.change for each in self.workloads]
        return {change: found.count(change) for change in Change if change in found}


_ORDER = {"removed": 0, "changed": 1, "added": 2}
_GROUPS = ("environment", "namespace", "team", "queue")


class GroupTotal(NamedTuple):
    """The resources that one environment, namespace, team or queue requests before and after the change."""

    env: str
    by: str
    name: str
    before: ResourceTotals
    after: ResourceTotals


class NotCompared(NamedTuple):
    """Jobs of a file, or an environment, that one side cannot render, so that they are neither added nor removed."""

    side: str
    """The name of the state that has the errors."""
    is_old: bool
    left_out: LeftOutFile

    def describe(self) -> str:
        """Return what is not compared, in one line."""
        if any(each.severity is Severity.ERROR for each in self.left_out.errors):
            return f"not compared, because of errors in {self.side}: {self.left_out.describe()}"
        return f"not compared in {self.side}: {self.left_out.explain()}"


class ChangeSet(NamedTuple):
    """All impacts, most severe first, and the totals."""

    old: Snapshot
    new: Snapshot
    impacts: tuple[Impact, ...]
    unchanged: int
    totals: tuple[GroupTotal, ...]
    queues: tuple[QueueChanges, ...] = ()
    """What changes in the queues of environments; empty if no environment has a ClusterQueue."""
    not_compared: tuple[NotCompared, ...] = ()
    governance: tuple[Governed, ...] = ()
    """What changes in the settings, teams, policies and schemas that judge a change."""
    tree: tuple[Finding, ...] = ()
    """What of the declared trees is not what the new state renders, and was not so in the old one."""

    def name_environments(self, names: Iterable[str]) -> str:
        """Name environments, each once; three or more that are all of both sides are `all environments`."""
        named = list(dict.fromkeys(filter(None, names)))
        known = {env for side in (self.old, self.new) for env in (*side.environments, *side.project.environments())}
        return "all environments" if len(named) > 2 and known - {""} == {*named} else ", ".join(named)

    def describe_source(self, one: Impact) -> str:
        """What an object is built from: a chart with its values, or a kustomization; empty for all others."""
        made = one.current
        return (self.new if one.new else self.old).describe_build((made.location.file, made.position))

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
    """Compare two snapshots object by object. What one of them cannot render is in neither of those of the result."""
    pairs = match_some(old, new, old.objects, new.objects)
    if not old.left_out and not new.left_out:
        return compare_pairs(old, new, pairs)
    compared: list[Pair] = []
    aside: dict[int, list[Rendered]] = {}
    for before, after in pairs:
        alone, other, here = (before, new, old) if before else (after, old, new)
        cause = _find_left_out(here, other, alone) if alone and not (before and after) else None
        if cause is None or alone is None:
            compared.append((before, after))
        else:
            aside.setdefault(id(cause), []).append(alone)
    sides: list[Snapshot] = []
    for number, side in enumerate((old, new)):
        sides.append(copy.copy(side))
        sides[-1].objects = [one for one in (pair[number] for pair in compared) if one is not None]
    found = (*_list_not_compared(old, aside, is_old=True), *_list_not_compared(new, aside, is_old=False))
    return compare_pairs(sides[0], sides[1], compared)._replace(not_compared=found)


def _find_left_out(here: Snapshot, other: Snapshot, alone: Rendered) -> LeftOut | None:
    """Return why the other side may lack an object of this side although it has its job: what it cannot render."""
    file, env, release = alone.location.file, alone.env, here.find_release(alone)
    names = (file, release.chart) if release else (file,)
    found = next((each for each in other.left_out if any(each.concerns(name, env) for name in names)), None)
    if found is not None or release or file in other.files:
        return found
    # The job may have moved to another file, which cannot be rendered.
    document = here.job(alone).document
    wanted = {alone.identity.name, document.name, document.sweep} - {""}
    lost = (each for each in other.left_out if each.file in other.files and each.file not in here.files)
    return next((each for each in lost if each.env in (None, env) and _may_define(other, each, wanted)), None)


def _may_define(side: Snapshot, left_out: LeftOut, names: set[str]) -> bool:
    """Return True if a file that cannot be rendered has a job with one of these names, as far as it can be read."""
    if left_out.names:
        return not names.isdisjoint(left_out.names)
    content = read_file(side.files[left_out.file]).content
    return any(name.encode() in content for name in names)


def _list_not_compared(side: Snapshot, aside: Mapping[int, Sequence[Rendered]], *, is_old: bool) -> list[NotCompared]:
    """List what a side cannot render. What it cannot read has the names of the objects that the other side has."""
    named: list[LeftOut] = []
    for each in side.left_out:
        names = each.names or tuple(one.identity.name for one in aside.get(id(each), ()) if not one.companion)
        named.append(each._replace(names=names if each.file else ()))
    return [NotCompared(side.name, is_old, each) for each in join_environments(named)]


def compare_pairs(old: Snapshot, new: Snapshot, pairs: Iterable[Pair]) -> ChangeSet:
    """Compare objects of two snapshots; one of a pair may be missing."""
    every: list[Impact] = []
    for before, after in pairs:
        if before is not None and after is not None:
            every.append(assess_change(old, new, before, after))
        elif before is not None:
            every.append(assess_removal(old, before))
        elif after is not None:
            every.append(assess_addition(new, after))
    impacts = [one for one in every if one.action != "unchanged"]
    impacts.sort(key=rank_impact)
    used: list[_Share] = []
    needed: list[_Share] = []
    for one in every:
        groups = old.list_groups(one.old) if one.old and any(one.before) else None
        if one.old and groups is not None:
            used.append((one.old.env, groups, one.before))
        if one.new and any(one.after):
            # What is rendered alike at both revisions is rendered once.
            is_shared = groups is not None and one.old is not None and one.old.object is one.new.object
            needed.append((one.new.env, groups if groups and is_shared else new.list_groups(one.new), one.after))
    sums, later, zero = _sum_side(used), _sum_side(needed), ResourceTotals()
    keys = sorted({*sums, *later}, key=_order_groups)
    totals = tuple(GroupTotal(*key, sums.get(key, zero), later.get(key, zero)) for key in keys)
    return ChangeSet(old, new, tuple(impacts), len(every) - len(impacts), totals)


_Share = tuple[str, tuple[str, str, str], ResourceTotals]
"""What an object requests: its environment, its groups, and its resources."""
Rank = tuple[int, int, str, Identity]


def rank_impact(one: Impact) -> Rank:
    """The place of an impact among others: the most severe first."""
    return -RANK[one.outcome.effect], _ORDER[one.action], one.current.env, one.current.identity


_GroupKey = tuple[str, str, str]


def sum_objects(objects: Iterable[tuple[str, Manifest, ResourceTotals]]) -> tuple[GroupTotal, ...]:
    """Sum what objects request, each with its environment, by environment, namespace, team and queue."""
    sums = _sum_side((env, list_groups(manifest), resources) for env, manifest, resources in objects if any(resources))
    return tuple(GroupTotal(*key, sums[key], sums[key]) for key in sorted(sums, key=_order_groups))


def _order_groups(key: _GroupKey) -> tuple[str, int, str]:
    return key[0], _GROUPS.index(key[1]), key[2]


def _sum_side(objects: Iterable[_Share]) -> dict[_GroupKey, ResourceTotals]:
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
