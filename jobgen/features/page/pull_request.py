"""What a pull request does: changes of objects, grouped where they are equal, their causes, and what is dangerous."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jobgen.compare.changes import PREEMPTED, UNKNOWN, ChangeSet, QueueChanges, QuotaAmounts, WorkloadChange
from jobgen.compare.grouping import ACTIONS, FieldGroup, group_fields, make_row
from jobgen.compare.impact import Impact
from jobgen.compare.operator_behavior import Effect
from jobgen.compare.snapshot import Cause, Snapshot, find_causes
from jobgen.engine.workers import parallel_map
from jobgen.features.kueue.answers import NEVER, WAITS
from jobgen.features.kueue.queues.change_sections import format_errors, format_note, format_reason, format_transition
from jobgen.features.page.costs import find_deadline
from jobgen.features.page.encode import NONE, Table
from jobgen.features.page.fleet_tables import ERROR, Row, list_amounts, list_errors
from jobgen.k8s.compare import FieldPath
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.model.finding import Finding, Identity
from jobgen.rendering.environment import Rendered

_NO_LAYER = "jobgen"
"""The layer of values that the renderer sets."""


class CauseLine(NamedTuple):
    """A line that sets a changed value, on one of the two sides."""

    is_old: bool
    layer: str
    file: str
    line: int


class _Member(NamedTuple):
    """An object, and the changed fields whose lines are wanted; `number` and `field` count rows of the page."""

    number: int
    impact: Impact
    field: int
    paths: tuple[FieldPath, ...]


def list_causes(changes: ChangeSet, groups: Sequence[FieldGroup]) -> list[Table]:
    """List the lines, those that change most objects first, and which values of which objects they set.

    The cause of a change is the line of the new value; of a value that is gone, the line that set it. Objects of a
    group have equal changes, but each may have its own line, so each of them is traced. That is most of the work.
    """
    numbers = {id(one): number for number, one in enumerate(changes.impacts)}
    members: list[_Member] = []
    field = 0
    for group in groups:
        paths = tuple(fields[0].change.path for fields in group.fields)
        members += (_Member(numbers[id(one)], one, field, paths) for one in group.members if paths)
        field += len(paths)
    members.sort(key=lambda member: member.number)
    found = parallel_map(members, lambda share: [_trace(changes, member) for member in share])
    caused: dict[CauseLine, list[tuple[int, int]]] = {}
    was: dict[CauseLine, list[tuple[int, int]]] = {}
    for member, lines in zip(members, found, strict=True):
        for place, (new, old) in enumerate(lines):
            cause, previous = (new, old) if new else (old, None)
            if cause:
                caused.setdefault(cause, []).append((member.number, member.field + place))
            if previous:
                was.setdefault(previous, []).append((member.number, member.field + place))
    return _list_tables(caused, was)


def _list_tables(
    caused: dict[CauseLine, list[tuple[int, int]]], was: dict[CauseLine, list[tuple[int, int]]]
) -> list[Table]:
    objects = {cause: len({change for change, _ in pairs}) for cause, pairs in caused.items()}
    lines = [*sorted(objects, key=lambda cause: -objects[cause]), *(line for line in was if line not in objects)]
    rows: list[Row] = [(int(each.is_old), *each[1:], objects.get(each, 0)) for each in lines]
    tables = [Table("causes", ("old", "layer:text", "file:files", "line", "changes"), rows)]
    for name, known in (("causedBy", caused), ("wasSetBy", was)):
        pairs = [(number, *pair) for number, line in enumerate(lines) for pair in known.get(line, ())]
        tables.append(Table(name, ("cause:causes", "change:changes", "field:fields"), pairs))
    return tables


def _trace(changes: ChangeSet, member: _Member) -> list[tuple[CauseLine | None, CauseLine | None]]:
    new = _find_lines(changes.new, member.impact.new, member.paths, is_old=False)
    old = _find_lines(changes.old, member.impact.old, member.paths, is_old=True)
    return list(zip(new, old, strict=True))


def _find_lines(
    snapshot: Snapshot, rendered: Rendered | None, paths: Sequence[FieldPath], *, is_old: bool
) -> list[CauseLine | None]:
    causes = find_causes(snapshot, rendered, paths) if rendered else {}
    return [_to_line(causes[path], is_old) if path in causes else None for path in paths]


def _to_line(cause: Cause, is_old: bool) -> CauseLine:
    return CauseLine(is_old, cause.layer or _NO_LAYER, cause.location.file, cause.location.line)


LONG_RUN = 24 * 3600
"""Seconds from which a deadline allows a long run; a run without a deadline is also long."""

_PRODUCTION = frozenset(("prod", "production", "prd", "live"))
_BEFORE_PRODUCTION = frozenset(("non", "not", "no", "pre"))
_WORDS = re.compile(r"[^a-z]+")
_QUOTA_RULES = frozenset(("exceeds-quota", "gpu-budget-exceeded", "queue-quota-exceeded", "sweep-too-large"))


class Danger(NamedTuple):
    """Something that a reviewer must not overlook."""

    code: str
    """`rejected`, `deletes-running-job`, `suspends-running-job`, `restarts-long-run`, `exceeds-quota` or
    `touches-production`."""
    message: str
    """What is said about the object of the change, or a whole sentence if it is about several."""
    change: int
    """The number of the change; -1 if it is about several."""


def find_dangers(changes: ChangeSet, new: Iterable[Finding] = ()) -> Iterator[Danger]:
    """Yield what is dangerous about the changes and their new findings."""
    for number, one in enumerate(changes.impacts):
        found = _find_danger(changes, one)
        if found:
            yield Danger(*found, number)
    yield from _find_quota_dangers(changes, new)
    yield from _find_production(changes.impacts)


def _find_danger(changes: ChangeSet, one: Impact) -> tuple[str, str] | None:
    """Return the code and the text of what is dangerous about one change."""
    if one.outcome.effect is Effect.REJECTED:
        return "rejected", f"is rejected: {one.outcome.reason}"
    if not one.stops or one.old is None:
        return None
    if one.action == "removed":
        return "deletes-running-job", "is deleted and may be running"
    if one.outcome.effect is Effect.STOPS_RUNNING:
        return "suspends-running-job", f"may be running: {one.outcome.reason}"
    deadline = find_deadline(changes.old.manifest(one.old))
    if 0 < deadline < LONG_RUN:
        return None
    return "restarts-long-run", f"may run for {_format_time(deadline)}" if deadline else "has no deadline"


def _format_time(seconds: int) -> str:
    hours = round(seconds / 3600)
    return f"{hours} hours" if hours < 72 else f"{round(hours / 24)} days"


def _find_quota_dangers(changes: ChangeSet, new: Iterable[Finding]) -> Iterator[Danger]:
    """Yield the workloads that no longer fit, and new findings about quotas and budgets of other objects."""
    names = ((one.current.env, one.current.identity) for one in changes.impacts)
    numbers = {(env, named.kind, _name_workload(named)): number for number, (env, named) in enumerate(names)}
    known: set[tuple[str, str]] = set()
    for environment in changes.queues:
        env = environment.environment
        for each in environment.workloads:
            if each.after in (NEVER, WAITS, PREEMPTED) and each.before != each.after:
                known.add((env, each.workload))
                change = numbers.get((env, each.kind, each.workload), NONE)
                subject = f"`{each.workload}`{_name_place(env)} " if change == NONE else ""
                yield Danger("exceeds-quota", f"{subject}{_describe_decision(each)}", change)
    for finding in new:
        workload = _name_workload(finding.object) if finding.object else ""
        if finding.rule in _QUOTA_RULES and (finding.env, workload) not in known:
            yield Danger("exceeds-quota", f"{finding.message}{_name_place(finding.env)}", NONE)


def _name_workload(identity: Identity) -> str:
    return f"{identity.namespace}/{identity.name}"


def _describe_decision(one: WorkloadChange) -> str:
    """Say what becomes of a workload, and why."""
    after = "is never admitted" if one.after == NEVER else f"is {one.after}" if one.after == PREEMPTED else one.after
    if not one.before:
        return f"is new and {after.removeprefix('is ')}: {one.reason}"
    was = "" if one.before == UNKNOWN else f"was `{one.before}` and "
    return f"{was}now {after}: {one.reason}"


def _find_production(impacts: Iterable[Impact]) -> Iterator[Danger]:
    """Yield the environments and namespaces of production that change, with the number of their objects."""
    counts: dict[str, int] = {}
    for one in impacts:
        env, namespace = one.current.env, one.current.identity.namespace
        if is_production(env):
            place = f"environment `{env}`"
        elif is_production(namespace):
            place = f"namespace `{namespace}`{_name_place(env)}"
        else:
            continue
        counts[place] = counts.get(place, 0) + 1
    for place, count in sorted(counts.items()):
        objects = "1 object changes" if count == 1 else f"{count} objects change"
        yield Danger("touches-production", f"{place}: {objects}", NONE)


def is_production(name: str) -> bool:
    """Return True if the name of an environment or a namespace says that it is production; `pre-prod` is not."""
    words = _WORDS.split(name.lower())
    pairs = zip(("", *words), words, strict=False)
    return any(word in _PRODUCTION and before not in _BEFORE_PRODUCTION for before, word in pairs)


def _name_place(env: str) -> str:
    return f" in `{env}`" if env else ""


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
