"""`jobgen diff --format html`: what a pull request does, its changes grouped where they are equal, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path

from jobgen.api.errors import JobgenError
from jobgen.api.lint_files import LintRequest
from jobgen.api.lint_run import find_findings
from jobgen.api.since import Side, find_new
from jobgen.compare.changes import PREEMPTED, UNKNOWN, Change, ChangeSet, QueueChanges, WorkloadChange
from jobgen.compare.effects import divide
from jobgen.compare.grouping import ACTIONS, FieldGroup, group_fields, make_row
from jobgen.compare.impact import Impact
from jobgen.compare.operator_behavior import Effect, Manner
from jobgen.compare.snapshot import Snapshot, find_causes
from jobgen.engine.workers import parallel_map
from jobgen.features.kueue.answers import NEVER, UNMANAGED, WAITS
from jobgen.features.kueue.queues.change_sections import (
    format_balance,
    format_errors,
    format_note,
    format_reason,
    format_transition,
)
from jobgen.features.page.capacity import find_deadline
from jobgen.features.page.page import NONE, Table, assemble_page, describe_repository, encode, make_title
from jobgen.features.page.report import ERROR, Row, list_amounts, list_errors
from jobgen.k8s.compare import FieldPath
from jobgen.k8s.resources import ResourceTotals, add_totals
from jobgen.model.finding import Finding, Identity
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.finish import OF_REPORT, Finishing, finish
from jobgen.repo import git, layout
from jobgen.repo.changed_files import find_uncommitted
from jobgen.repo.commit import CommitPath
from jobgen.reports import name_rule_page

_NO_LAYER = "jobgen"
"""The layer of values that the renderer sets."""
_IGNORED = "ignored"
"""The effect of a change that nothing in the cluster uses."""
LONG_RUN = 24 * 3600
"""Seconds from which a deadline allows a long run; a run without a deadline is also long."""
_PRODUCTION = frozenset(("prod", "production", "prd", "live"))
_BEFORE_PRODUCTION = frozenset(("non", "not", "no", "pre"))
_WORDS = re.compile(r"[^a-z]+")
_QUOTA_RULES = frozenset(("exceeds-quota", "gpu-budget-exceeded", "queue-quota-exceeded", "sweep-too-large"))
_AMOUNTS = ("gpusBefore", "gpusAfter", "cpuBefore", "cpuAfter", "memoryBefore", "memoryAfter")
_QUOTA_AMOUNTS = ("nominal", "used", "borrowed", "waiting")
_ENVIRONMENT = "environment:environments"
_MAX_FIELDS = 200
"""Changed fields of one object that are listed; the others are counted."""


class CauseLine(NamedTuple):
    """A line that sets a changed value, on one of the two sides."""

    is_old: bool
    layer: str
    file: str
    line: int


def list_causes(changes: ChangeSet, groups: Sequence[FieldGroup]) -> list[Table]:
    """List the lines, those that change most objects first, and which values of which objects they set.

    The cause of a change is the line of the new value; of a value that is gone, the line that set it. Objects of a
    group have equal changes, but each may have its own line, so each of them is traced. That is most of the work.
    """
    numbers = {id(one): number for number, one in enumerate(changes.impacts)}
    # The number of each object, that of its first field, and the fields whose lines are wanted.
    members: list[tuple[int, int, Impact, tuple[FieldPath, ...]]] = []
    first = 0
    for group in groups:
        paths = tuple(fields[0].change.path for fields in group.fields)
        members += ((numbers[id(one)], first, one, paths) for one in group.members if paths)
        first += len(paths)
    members.sort(key=lambda member: member[0])
    found = parallel_map(members, lambda share: [_trace(changes, one, paths) for _, _, one, paths in share])
    caused: dict[CauseLine, list[tuple[int, int]]] = {}
    was: dict[CauseLine, list[tuple[int, int]]] = {}
    for (number, field, _, _), lines in zip(members, found, strict=True):
        for place, (new, old) in enumerate(lines, field):
            cause, previous = (new, old) if new else (old, None)
            if cause:
                caused.setdefault(cause, []).append((number, place))
            if previous:
                was.setdefault(previous, []).append((number, place))
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


def _trace(changes: ChangeSet, one: Impact, paths: Sequence[FieldPath]) -> list[tuple[CauseLine | None, ...]]:
    """Return the lines of the new and of the old value of each field."""
    sides: list[list[CauseLine | None]] = []
    for is_old, snapshot in ((False, changes.new), (True, changes.old)):
        rendered, other = (one.old, one.new) if is_old else (one.new, one.old)
        causes = find_causes(snapshot, rendered, paths, other) if rendered else {}
        found = {path: (cause.layer or _NO_LAYER, *cause.location[:2]) for path, cause in causes.items()}
        sides.append([CauseLine(is_old, *found[path]) if path in found else None for path in paths])
    return list(zip(*sides, strict=True))


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
    found = ((_find_danger(changes, one), number) for number, one in enumerate(changes.impacts))
    yield from (Danger(*danger, number) for danger, number in found if danger)
    yield from _find_quota_dangers(changes, new)
    yield from _find_production(changes.impacts)


def _find_danger(changes: ChangeSet, one: Impact) -> tuple[str, str] | None:
    if one.outcome.effect is Effect.REJECTED:
        return "rejected", f"is rejected: {one.outcome.reason}"
    if not one.stops or one.old is None:
        return None
    if one.action == "removed":
        return "deletes-running-job", "is deleted and can be running"
    if one.outcome.effect is Effect.STOPS_RUNNING:
        return "suspends-running-job", f"can be running: {one.outcome.reason}"
    deadline = find_deadline(changes.old.manifest(one.old))
    if 0 < deadline < LONG_RUN:
        return None
    hours = round(deadline / 3600)
    time = f"{hours} hours" if hours < 72 else f"{round(hours / 24)} days"
    return "restarts-long-run", f"can run for {time}" if deadline else "has no deadline"


def _find_quota_dangers(changes: ChangeSet, new: Iterable[Finding]) -> Iterator[Danger]:
    """Yield the workloads that no longer fit, and new findings about quotas and budgets of other objects."""
    names = ((one.current.env, one.current.identity) for one in changes.impacts)
    numbers = {(env, named.kind, _name_workload(named)): number for number, (env, named) in enumerate(names)}
    known: set[tuple[str, str]] = set()
    for environment in changes.queues:
        env = environment.environment
        for each in environment.workloads:
            is_unmanaged = each.after == UNMANAGED and each.change is not Change.BETTER
            if (is_unmanaged or each.after in (NEVER, WAITS, PREEMPTED)) and each.before != each.after:
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
    after = {NEVER: "is never admitted", WAITS: WAITS}.get(one.after, f"is {one.after}")
    if not one.before:
        return f"is new and {after.removeprefix('is ')}: {one.reason}"
    was = "" if one.before == UNKNOWN else f"was `{one.before}` and "
    return f"{was}now {after}: {one.reason}"


def _find_production(impacts: Iterable[Impact]) -> Iterator[Danger]:
    """Yield the environments and namespaces of production that change, with the number of their objects."""
    counts = Counter[str]()
    for one in impacts:
        env, namespace = one.current.env, one.current.identity.namespace
        if is_production(env):
            counts[f"environment `{env}`"] += 1
        elif is_production(namespace):
            counts[f"namespace `{namespace}`{_name_place(env)}"] += 1
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


def list_tables(
    changes: ChangeSet, new: Sequence[Finding], fixed: Sequence[Finding], not_compared: Sequence[str]
) -> list[Table]:
    """List the tables of the view. `not_compared` says what is missing, and why."""
    names = [*changes.old.environments, *changes.new.environments, *(total.env for total in changes.totals)]
    environments = {env: number for number, env in enumerate(dict.fromkeys(names))}
    groups = list(group_fields(changes, _MAX_FIELDS))
    totals: list[Row] = [
        (environments[total.env], total.by, total.name, *_list_amounts(total.before, total.after))
        for total in sorted(changes.totals, key=lambda total: environments[total.env])
    ]
    dangers = list(find_dangers(changes, new))
    # `isLimit` is 0 for what the comparison of queues always assumes.
    notes: list[Row] = [(NONE, 1, note) for note in not_compared]
    for each in changes.queues:
        found = filter(None, (format_errors(each), format_balance(each), format_note(each)))
        notes += ((environments[each.environment], int(bool(each.errors)), note) for note in found)
    return [
        Table("environments", ("name:text",), [(env,) for env in environments]),
        _list_changes(changes, groups, environments),
        *_list_groups(groups),
        *list_causes(changes, groups),
        Table("totals", (_ENVIRONMENT, "by:text", "name:text", *_AMOUNTS), totals),
        Table("dangers", ("code:text", "message:text", "change:changes"), dangers),
        Table(
            "rules",
            ("name:text", "page:text"),
            [(name, name_rule_page(name)) for name in _list_rules(changes, new, fixed)],
        ),
        _list_findings("findings", new, environments),
        _list_findings("fixed", fixed, environments),
        *_list_queues(changes.queues, environments),
        Table("notes", (_ENVIRONMENT, "isLimit", "text:text"), notes),
        _list_findings("oldErrors", changes.old.errors, environments),
        _list_findings("newErrors", changes.new.errors, environments),
    ]


def _list_rules(changes: ChangeSet, *several: Iterable[Finding]) -> list[str]:
    """List the names of the rules of all findings that are shown."""
    shown = (*several, changes.old.errors, changes.new.errors)
    return sorted({finding.rule for findings in shown for finding in findings})


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
        *("was:text", "file:files", "line", *_AMOUNTS, "group:groups", "source:text", "effects:text"),
    )
    group_of = {id(one): number for number, group in enumerate(groups) for one in group.members}
    rows = [
        (
            *(environments[one.current.env], one.action, one.outcome.effect.value, one.outcome.reason, int(one.stops)),
            *one.current.identity[1:],
            str(one.old.identity) if one.is_replaced and one.old else "",
            *one.current.location[:2],
            *_list_amounts(one.before, one.after),
            group_of[id(one)],
            changes.describe_source(one),
            _name_effects(one),
        )
        for one in changes.impacts
    ]
    return Table("changes", columns, rows)


def _name_effects(one: Impact) -> str:
    """Return all effects of a change, the most severe first."""
    return _IGNORED if one.outcome.manner is Manner.IGNORED else " ".join(one.effects)


def _list_groups(groups: Sequence[FieldGroup]) -> Iterator[Table]:
    listed: list[Row] = []
    rows: list[Row] = []
    for number, group in enumerate(groups):
        first = group.members[0]
        outcome = (first.action, first.outcome.effect.value, first.outcome.reason)
        before = reduce(add_totals, (one.before for one in group.members), ResourceTotals())
        after = reduce(add_totals, (one.after for one in group.members), ResourceTotals())
        effects = (_name_effects(first), *divide(first))
        listed.append((*outcome, len(group.members), group.hidden, *_list_amounts(before, after), *effects))
        for fields in group.fields:
            row = make_row(fields)
            name = ", ".join((row.field, *row.other_roles))
            effect = _IGNORED if row.outcome.manner is Manner.IGNORED else row.outcome.effect.value
            rows.append((number, name, row.op, row.old, row.new, effect, row.outcome.reason))
    columns = ("action:text", "effect:text", "why:text", "members", "hidden", *_AMOUNTS)
    yield Table("groups", (*columns, "effects:text", "now:text", "later:text", "amounts:text"), listed)
    names = ("group:groups", "field:text", "op:text", "old:text", "new:text", "effect:text", "why:text")
    yield Table("fields", names, rows)


def _list_findings(name: str, findings: Iterable[Finding], environments: dict[str, int]) -> Table:
    return Table(name, ERROR, list_errors(findings, environments))


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
            sides = (quota.before, quota.after)
            amounts = [getattr(side, name) if side else "0" for name in _QUOTA_AMOUNTS for side in sides]
            name = f"{quota.name} in {quota.cluster}" if quota.cluster else quota.name
            quotas.append((env, quota.kind, name, *quota[2:4], *amounts))
        objects += ((env, *changed) for changed in each.objects)
    columns = ("change:text", "kind:text", "namespace:text", "name:text", "clusterQueue:text")
    yield Table("queueMoves", (_ENVIRONMENT, *columns, "transition:text", "reason:text"), moves)
    pairs = [f"{name}{side}:text" for name in _QUOTA_AMOUNTS for side in ("Before", "After")]
    yield Table("quotas", (_ENVIRONMENT, "kind:text", "name:text", "flavor:text", "resource:text", *pairs), quotas)
    yield Table("queueObjects", (_ENVIRONMENT, "action:text", "kind:text", "namespace:text", "name:text"), objects)


def _list_amounts(before: ResourceTotals, after: ResourceTotals) -> list[int]:
    """Return the amounts before and after, pair by pair."""
    pairs = zip(list_amounts(before.amounts), list_amounts(after.amounts), strict=True)
    return [amount for pair in pairs for amount in pair]


def render_page(changes: ChangeSet, directory: Path, environments: Sequence[str], repo_url: str | None = None) -> str:
    """Return the page of a comparison, with the findings that are new and fixed."""
    sides = changes.old, changes.new
    found: Sequence[Finding] = ()
    fixed: Sequence[Finding] = ()
    notes: list[str] = []
    base, root = changes.old.project.root, changes.new.project.root
    try:
        before = _lint_side(changes.old, directory, environments, None)
        # A change is judged by the settings of its base.
        judged = layout.Layers(root, base) if isinstance(base, CommitPath) else None
        after = _lint_side(changes.new, directory, environments, judged)
        old, new = Side(before, (changes.old.folder,)), Side(after, (changes.new.folder,))
        found, fixed = find_new(new, old), find_new(old, new)
    except JobgenError as error:
        notes.append(f"The findings of the two sides are not compared: {error}")
    notes += (f"Governance: {each.describe()} ({each.location})" for each in changes.governance)
    tables = list_tables(changes, found, fixed, notes)
    return _assemble(sides, directory, repo_url, describe_changes(changes), tables)


def render_failure(old: Snapshot, new: Snapshot, directory: Path, repo_url: str | None = None) -> str:
    """Return the page of a comparison that is not possible, with the errors of each side that cannot be rendered."""
    return _assemble((old, new), directory, repo_url, {"failed": 1}, list_failure_tables(old.errors, new.errors))


def _assemble(
    sides: tuple[Snapshot, Snapshot],
    directory: Path,
    repo_url: str | None,
    facts: dict[str, str | int],
    tables: list[Table],
) -> str:
    new = sides[1].folder
    repository, changed = describe_repository(directory, repo_url, shows_work_tree=new == directory)
    if new != directory:
        # The new side is not the work tree, but a commit or a folder.
        repository["revision"] = new.commit.name if isinstance(new, CommitPath) else ""
    head: dict[str, str | int] = {**repository}
    columns = [(table, at) for table in tables for at, name in enumerate(table.columns) if name.endswith(":files")]
    files = sorted({str(row[at]) for table, at in columns for row in table.rows} - {""})
    unlinked: list[tuple[int, str]] = []
    for is_old, side in ((1, sides[0]), (0, sides[1])):
        name, folder = "base" if is_old else "head", side.folder
        revision = prefix = ""
        if isinstance(folder, CommitPath):
            revision, prefix = folder.commit.name, folder.path
        else:
            # The files of a work tree are in its last commit, if it has them; outside of Git there is none.
            with suppress(git.GitError):
                revision, prefix = git.resolve_commit(folder, "HEAD"), git.find_prefix(folder)
        head |= {name: side.name, f"{name}Revision": revision, f"{name}Prefix": prefix}
        if repository["link"] and revision:
            unlinked += ((is_old, file) for file in find_uncommitted(folder, revision, files))
    tables = [*tables, changed, Table("unlinked", ("old", "file:files"), unlinked)]
    title = f"{sides[0].name} → {sides[1].name}, {make_title(repository, changed)}"
    return assemble_page(title, encode("changes", {**head, **facts}, tables))


def _lint_side(
    side: Snapshot, directory: Path, environments: Sequence[str], judged: layout.Layers | None
) -> list[Finding]:
    envs = [] if side.is_tree else [env for env in environments if env in side.project.overlays]
    if environments and not envs and not side.is_tree:
        return []
    paths = (".",) if side.is_tree else ()
    request = LintRequest(directory, paths, envs, today=side.project.today, judged=judged)
    if isinstance(side.folder, CommitPath):
        request = request._replace(committed=side.folder)
    else:
        request = request._replace(directory=side.folder)
    linted = find_findings(request)
    findings = finish(linted.findings, Finishing(linted.mandatory, narrowing=linted.narrowing), OF_REPORT)
    if side.is_tree and environments:
        return [each for each in findings if each.location.file.partition("/")[0] in environments]
    return findings
