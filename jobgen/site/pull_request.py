"""What a pull request does: changes of objects, grouped where they are alike, their causes, and what is dangerous."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jobgen.diff.changes import ChangeSet
from jobgen.diff.effects import Effect
from jobgen.diff.grouping import FieldRow, ImpactGroup, group_impacts
from jobgen.diff.summary import ACTIONS
from jobgen.kueue.decision.answers import NEVER, WAITS
from jobgen.model.finding import Finding
from jobgen.queues.changes import PREEMPTED, QueueChanges, QuotaAmounts
from jobgen.site.encode import NONE, Table
from jobgen.site.fleet_tables import Row, list_amounts

_PRODUCTION = frozenset(("prod", "production", "prd", "live"))
_WORDS = re.compile(r"[^a-z]+")
_AMOUNTS = ("gpusBefore", "gpusAfter", "cpuBefore", "cpuAfter", "memoryBefore", "memoryAfter")
_FINDING = ("rule:text", "category:text", "severity:text", "message:text", "file:files", "line", "column")
_ENVIRONMENT = "environment:environments"


class Danger(NamedTuple):
    """Something that a reviewer must not overlook."""

    code: str
    """`deletes-running-job`, `restarts-job`, `rejected`, `exceeds-quota` or `touches-production`."""
    message: str
    change: int
    """The number of the change; -1 if it is about several."""


class PullRequest(NamedTuple):
    """Everything that the view of a pull request shows."""

    changes: ChangeSet
    new: Sequence[Finding]
    fixed: Sequence[Finding]


def find_dangers(changes: ChangeSet) -> Iterator[Danger]:
    """Yield what is dangerous about the changes."""
    for number, one in enumerate(changes.impacts):
        name = f"`{one.current.identity}`{f' in {one.current.env}' if one.current.env else ''}"
        if one.outcome.effect is Effect.REJECTED:
            yield Danger("rejected", f"{name} is rejected: {one.outcome.reason}", number)
        elif one.stops and one.action == "removed":
            yield Danger("deletes-running-job", f"{name} is deleted, and may be running", number)
        elif one.stops:
            yield Danger("restarts-job", f"{name} is stopped, and may be running: {one.outcome.reason}", number)
    for queues in changes.queues:
        yield from _find_queue_dangers(queues)
    environments = sorted({one.current.env for one in changes.impacts if is_production(one.current.env)})
    for env in environments:
        count = sum(one.current.env == env for one in changes.impacts)
        objects = "1 object" if count == 1 else f"{count} objects"
        yield Danger("touches-production", f"{objects} of {env} change", NONE)


def _find_queue_dangers(queues: QueueChanges) -> Iterator[Danger]:
    for each in queues.workloads:
        if each.after in (NEVER, WAITS, PREEMPTED) and each.before != each.after:
            name = f"`{each.workload}` in {queues.environment}" if queues.environment else f"`{each.workload}`"
            yield Danger("exceeds-quota", f"{name}: {each.after}; {each.reason}", NONE)


def is_production(environment: str) -> bool:
    """Whether the name of an environment says that it is production."""
    return not _PRODUCTION.isdisjoint(_WORDS.split(environment.lower()))


def describe_changes(changes: ChangeSet) -> dict[str, str | int]:
    """Return the totals of the changes: the same as the summary of `jobgen diff --format json`."""
    jobs, gpus = changes.count_stopped()
    return {
        "base": changes.old.name,
        "head": changes.new.name,
        **{str(action): changes.count(action) for action in ACTIONS},
        "unchanged": changes.unchanged,
        "stoppedJobs": jobs,
        "stoppedGpus": gpus,
    }


def list_tables(request: PullRequest) -> list[Table]:
    """List the tables of the view."""
    changes = request.changes
    names = [*changes.old.environments, *changes.new.environments, *(total.env for total in changes.totals)]
    environments = {env: number for number, env in enumerate(dict.fromkeys(names))}
    groups = list(group_impacts(changes))
    totals: list[Row] = [
        (environments[each.env], each.by, each.name, *_list_amounts(each.before.amounts, each.after.amounts))
        for each in changes.totals
    ]
    return [
        Table("environments", ("name:text",), [(env,) for env in environments]),
        _list_changes(changes, groups, environments),
        *_list_groups(groups),
        *_list_causes(changes, groups),
        Table("totals", (_ENVIRONMENT, "by:text", "name:text", *_AMOUNTS), totals),
        Table("dangers", ("code:text", "message:text", "change:changes"), list(find_dangers(changes))),
        *_list_findings(request, environments),
        *_list_queues(changes.queues, environments),
    ]


def _list_changes(changes: ChangeSet, groups: Sequence[ImpactGroup], environments: dict[str, int]) -> Table:
    columns = (
        *(_ENVIRONMENT, "action:text", "effect:text", "why:text", "stops", "kind:text", "namespace:text", "name:text"),
        *("was:text", "file:files", "line", *_AMOUNTS, "group:groups"),
    )
    group_of = {id(one): number for number, group in enumerate(groups) for one in group.members}
    rows = [
        (
            environments[one.current.env],
            one.action,
            one.outcome.effect.value,
            one.outcome.reason,
            int(one.stops),
            *one.current.identity[1:],
            str(one.old.identity) if one.is_replaced and one.old else "",
            one.current.location.file,
            one.current.location.line,
            *_list_amounts(one.before.amounts, one.after.amounts),
            group_of[id(one)],
        )
        for one in changes.impacts
    ]
    return Table("changes", columns, rows)


def _list_groups(groups: Sequence[ImpactGroup]) -> Iterator[Table]:
    columns = ("action:text", "effect:text", "why:text", "members", "hidden", *_AMOUNTS)
    yield Table("groups", columns, [_list_group(group) for group in groups])
    rows: list[Row] = []
    for number, group in enumerate(groups):
        for row in group.rows:
            places = (row.layer, *_split_place(row.cause), row.old_layer, *_split_place(row.was))
            field = ", ".join((row.field, *row.other_roles))
            rows.append(
                (number, field, row.op, row.old, row.new, row.outcome.effect.value, row.outcome.reason, *places)
            )
    names = ("group:groups", "field:text", "op:text", "old:text", "new:text", "effect:text", "why:text", "layer:text")
    yield Table("fields", (*names, "file:files", "line", "oldLayer:text", "oldFile:files", "oldLine"), rows)


def _list_group(group: ImpactGroup) -> Row:
    first = group.first
    before, after = group.totals
    amounts = _list_amounts(before.amounts, after.amounts)
    return (first.action, first.outcome.effect.value, first.outcome.reason, len(group.members), group.hidden, *amounts)


def _split_place(place: str) -> tuple[str, int]:
    """Split a place such as `jobs/bert.yaml:3`."""
    file, _, line = place.rpartition(":")
    return file, int(line or 0)


def _list_causes(changes: ChangeSet, groups: Sequence[ImpactGroup]) -> Iterator[Table]:
    """List which lines change which objects, those that change most first."""
    numbers = {id(one): number for number, one in enumerate(changes.impacts)}
    found: dict[tuple[str, str], list[int]] = {}
    for group in groups:
        for cause in dict.fromkeys(_find_cause(row) for row in group.rows):
            found.setdefault(cause, []).extend(numbers[id(one)] for one in group.members)
    causes = sorted(((cause, members) for cause, members in found.items() if cause[1]), key=lambda each: -len(each[1]))
    rows = [(layer, *_split_place(place), len(members)) for (layer, place), members in causes]
    yield Table("causes", ("layer:text", "file:files", "line", "changes"), rows)
    pairs = [(number, change) for number, (_, members) in enumerate(causes) for change in members]
    yield Table("causedBy", ("cause:causes", "change:changes"), pairs)


def _find_cause(row: FieldRow) -> tuple[str, str]:
    """Return the layer and the line that wrote the new value; of a value that is gone, the old one."""
    return (row.layer, row.cause) if row.cause else (row.old_layer, row.was)


def _list_findings(request: PullRequest, environments: dict[str, int]) -> Iterator[Table]:
    for name, findings in (("findings", request.new), ("fixed", request.fixed)):
        rows = [
            (
                *(each.rule, each.category, each.severity.value, each.message),
                *(each.location.file, each.location.line, each.location.column),
                environments.get(each.env, NONE),
            )
            for each in findings
        ]
        yield Table(name, (*_FINDING, _ENVIRONMENT), rows)


def _list_queues(queues: Iterable[QueueChanges], environments: dict[str, int]) -> Iterator[Table]:
    moves: list[Row] = []
    quotas: list[Row] = []
    notes: list[Row] = []
    for each in queues:
        env = environments[each.environment]
        for found in each.workloads:
            names = (found.change.value, found.kind, *found.workload.partition("/")[::2], found.cluster_queue)
            moves.append((env, *names, found.before, found.after, found.reason))
        for quota in each.quota:
            sides = [_list_quota(quota.before), _list_quota(quota.after)]
            quotas.append((env, *quota[:4], *(amount for pair in zip(*sides, strict=True) for amount in pair)))
        notes += ((env, error) for error in each.errors)
    columns = ("change:text", "kind:text", "namespace:text", "name:text", "clusterQueue:text")
    yield Table("queueMoves", (_ENVIRONMENT, *columns, "before:text", "after:text", "reason:text"), moves)
    amounts = [f"{name}{side}:text" for name in ("nominal", "used", "waiting") for side in ("Before", "After")]
    yield Table("quotas", (_ENVIRONMENT, "kind:text", "name:text", "flavor:text", "resource:text", *amounts), quotas)
    yield Table("notes", (_ENVIRONMENT, "text:text"), notes)


def _list_quota(amounts: QuotaAmounts | None) -> tuple[str, str, str]:
    return (amounts.nominal, amounts.used, amounts.waiting) if amounts else ("0", "0", "0")


def _list_amounts(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return the amounts before and after, pair by pair."""
    pairs = zip(list_amounts(before), list_amounts(after), strict=True)
    return [amount for pair in pairs for amount in pair]
