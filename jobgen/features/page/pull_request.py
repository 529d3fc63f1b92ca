"""What a pull request does: changes of objects, grouped where they are equal, their causes, and what is dangerous."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jobgen.diff.changes import ChangeSet
from jobgen.diff.grouping import FieldGroup, group_fields, make_row
from jobgen.diff.queue_changes import QueueChanges, QuotaAmounts
from jobgen.diff.summary import ACTIONS
from jobgen.features.kueue.queues.change_rows import format_errors, format_note, format_reason, format_transition
from jobgen.features.page.change_causes import list_causes
from jobgen.features.page.dangers import find_dangers
from jobgen.features.page.encode import NONE, Table
from jobgen.features.page.fleet_tables import ERROR, Row, list_amounts, list_errors
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple

_AMOUNTS = ("gpusBefore", "gpusAfter", "cpuBefore", "cpuAfter", "memoryBefore", "memoryAfter")
_ENVIRONMENT = "environment:environments"
_MAX_FIELDS = 200
"""Changed fields of one object that are listed; the others are counted."""


class PullRequest(NamedTuple):
    """Everything that the view of a pull request shows."""

    changes: ChangeSet
    new: Sequence[Finding]
    fixed: Sequence[Finding]
    notes: Sequence[str] = ()
    """What is not compared, and why."""


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
    groups = list(group_fields(changes, _MAX_FIELDS))
    totals: list[Row] = [
        (environments[each.env], each.by, each.name, *_list_amounts(each.before, each.after))
        for each in sorted(changes.totals, key=lambda total: environments[total.env])
    ]
    dangers = list(find_dangers(changes, request.new))
    return [
        Table("environments", ("name:text",), [(env,) for env in environments]),
        _list_changes(changes, groups, environments),
        *_list_groups(groups),
        *list_causes(changes, groups),
        Table("totals", (_ENVIRONMENT, "by:text", "name:text", *_AMOUNTS), totals),
        Table("dangers", ("code:text", "message:text", "change:changes"), dangers),
        _list_findings("findings", request.new, environments),
        _list_findings("fixed", request.fixed, environments),
        *_list_queues(changes.queues, environments),
        _list_notes(request, environments),
    ]


def list_failure_tables(old: Sequence[Finding], new: Sequence[Finding]) -> list[Table]:
    """List the tables of a comparison that was not made: the errors of either side."""
    names = dict.fromkeys(finding.env for finding in (*old, *new) if finding.env)
    environments = {env: number for number, env in enumerate(names)}
    return [
        Table("environments", ("name:text",), [(env,) for env in environments]),
        _list_findings("oldErrors", old, environments),
        _list_findings("newErrors", new, environments),
    ]


def _list_changes(changes: ChangeSet, groups: Sequence[FieldGroup], environments: dict[str, int]) -> Table:
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
            *_list_amounts(one.before, one.after),
            group_of[id(one)],
        )
        for one in changes.impacts
    ]
    return Table("changes", columns, rows)


def _list_groups(groups: Sequence[FieldGroup]) -> Iterator[Table]:
    columns = ("action:text", "effect:text", "why:text", "members", "hidden", *_AMOUNTS)
    yield Table("groups", columns, [_list_group(group) for group in groups])
    rows: list[Row] = []
    for number, group in enumerate(groups):
        for fields in group.fields:
            row = make_row(fields)
            name = ", ".join((row.field, *row.other_roles))
            rows.append((number, name, row.op, row.old, row.new, row.outcome.effect.value, row.outcome.reason))
    names = ("group:groups", "field:text", "op:text", "old:text", "new:text", "effect:text", "why:text")
    yield Table("fields", names, rows)


def _list_group(group: FieldGroup) -> Row:
    first = group.members[0]
    before = after = ResourceTotals()
    for one in group.members:
        before, after = add_totals(before, one.before), add_totals(after, one.after)
    outcome = (first.action, first.outcome.effect.value, first.outcome.reason)
    return (*outcome, len(group.members), group.hidden, *_list_amounts(before, after))


def _list_findings(name: str, findings: Iterable[Finding], environments: dict[str, int]) -> Table:
    return Table(name, ERROR, list_errors(findings, environments))


def _list_notes(request: PullRequest, environments: dict[str, int]) -> Table:
    """List what is not compared; `isLimit` is 0 for what the comparison of queues always assumes."""
    rows: list[Row] = [(NONE, 1, note) for note in request.notes]
    for each in request.changes.queues:
        env = environments[each.environment]
        rows += ((env, int(bool(each.errors)), note) for note in (format_errors(each), format_note(each)) if note)
    return Table("notes", (_ENVIRONMENT, "isLimit", "text:text"), rows)


def _list_queues(queues: Iterable[QueueChanges], environments: dict[str, int]) -> Iterator[Table]:
    moves: list[Row] = []
    quotas: list[Row] = []
    objects: list[Row] = []
    for each in queues:
        env = environments[each.environment]
        for found in each.workloads:
            names = (found.change.value, found.kind, *found.workload.partition("/")[::2], found.cluster_queue)
            moves.append((env, *names, format_transition(found), format_reason(found)))
        for quota in each.quota:
            sides = [_list_quota(quota.before), _list_quota(quota.after)]
            quotas.append((env, *quota[:4], *(amount for pair in zip(*sides, strict=True) for amount in pair)))
        objects += ((env, *changed) for changed in each.objects)
    columns = ("change:text", "kind:text", "namespace:text", "name:text", "clusterQueue:text")
    yield Table("queueMoves", (_ENVIRONMENT, *columns, "transition:text", "reason:text"), moves)
    amounts = [f"{name}{side}:text" for name in _QUOTA_AMOUNTS for side in ("Before", "After")]
    yield Table("quotas", (_ENVIRONMENT, "kind:text", "name:text", "flavor:text", "resource:text", *amounts), quotas)
    yield Table("queueObjects", (_ENVIRONMENT, "action:text", "kind:text", "namespace:text", "name:text"), objects)


_QUOTA_AMOUNTS = ("nominal", "used", "borrowed", "waiting")


def _list_quota(amounts: QuotaAmounts | None) -> list[str]:
    return [getattr(amounts, name) if amounts else "0" for name in _QUOTA_AMOUNTS]


def _list_amounts(before: ResourceTotals, after: ResourceTotals) -> list[int]:
    """Return the amounts before and after, pair by pair."""
    pairs = zip(list_amounts(before.amounts), list_amounts(after.amounts), strict=True)
    return [amount for pair in pairs for amount in pair]
