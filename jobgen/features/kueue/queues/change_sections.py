"""The changes of queues in a diff: the sections of its JSON, Markdown and text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from jobgen.compare.changes import Balance, Change, QueueChanges, QuotaAmounts, WorkloadChange
from jobgen.features.kueue.answers import NEVER, UNMANAGED
from jobgen.features.kueue.queues.report import NO_FINAL_STATE, STOPPED
from jobgen.model.data import Plain
from jobgen.reports.escape import markdown_text

_MAX_NAMES = 5

Row = tuple[str, ...]
"""Everything that is said about a workload."""


def merge_equal(rows: Iterable[tuple[str, Row]]) -> list[tuple[list[str], Row]]:
    """Merge rows, given with the name of their workload, in the order of the first of each."""
    found: dict[Row, list[str]] = {}
    for name, row in rows:
        found.setdefault(row, []).append(name)
    return [(names, row) for row, names in found.items()]


def show_names(names: Sequence[str]) -> str:
    """List names; of many, the first and the number of the others."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"


def align_rows(rows: Sequence[Row], numbers: int = 0) -> Iterator[str]:
    """Yield rows as lines with aligned columns; the last ones are as many numbers, which end in the same column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = len(widths) - numbers
    for row in rows:
        cells = (
            cell.ljust(width) if place < words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


AMOUNTS = QuotaAmounts._fields
_NONE = QuotaAmounts(*["0"] * len(AMOUNTS))

_COUNTED = {
    Change.PREEMPTED: "preempted",
    Change.WORSE: "worse",
    Change.LONGER: "longer in the queue",
    Change.RESTART: "only until a restart",
    Change.MOVES: "moves",
    Change.NEW: "new",
    Change.BETTER: "better",
}
_MAX_OBJECTS = 10


def format_counts(changes: QueueChanges) -> str:
    """How many workloads fare in each way; empty if none changes."""
    return ", ".join(f"{count} {_COUNTED[change]}" for change, count in changes.count_changes().items())


def format_transition(one: WorkloadChange) -> str:
    """What becomes of a workload, in a few words."""
    if one.change is Change.PREEMPTED:
        return f"{one.before} → preempted by {one.preempted_by} ({one.rule}), then {one.requeued}"
    if one.change is Change.RESTART:
        outcome = {NEVER: "is never admitted", UNMANAGED: "is unmanaged"}.get(one.requeued, one.requeued)
        return f"keeps running, but {outcome} if it is started again"
    if one.change is Change.LONGER:
        return "waits longer"
    if one.change is Change.NEW:
        return f"new, {one.after}"
    decision = one.after if one.before == one.after else f"{one.before} → {one.after}"
    return f"{decision}, moves {one.moved}" if one.moved else decision


def format_reason(one: WorkloadChange) -> str:
    """Why, and behind which workloads it waits."""
    if not one.behind:
        return one.reason
    return f"{one.reason}; behind {show_names(one.behind)}"


NameEnvironments = Callable[[Sequence[str]], str]


def merge_environments(several: Sequence[QueueChanges], name: NameEnvironments) -> list[QueueChanges]:
    """Merge equal changes of several environments, each of which may have its own namespace for all workloads."""
    found: dict[QueueChanges, list[QueueChanges]] = {}
    for changes in several:
        found.setdefault(_drop_namespace(changes)._replace(environment=""), []).append(changes)
    return [
        alike[0] if len(alike) == 1 else shared._replace(environment=name([each.environment for each in alike]))
        for shared, alike in found.items()
    ]


def _drop_namespace(changes: QueueChanges) -> QueueChanges:
    """Return the changes without the namespace of workloads and LocalQueues, if all have the same."""
    namespaces = {one.workload.partition("/")[0] for one in changes.workloads}
    namespaces |= {one.namespace for one in changes.objects if one.namespace}
    if len(namespaces) != 1:
        return changes
    start = f"{namespaces.pop()}/"
    workloads: list[WorkloadChange] = []
    for one in changes.workloads:
        behind = tuple(each.removeprefix(start) for each in one.behind)
        preempted_by, reason = one.preempted_by.removeprefix(start), one.reason.replace(start, "")
        bare = one._replace(behind=behind, preempted_by=preempted_by, reason=reason)
        workloads.append(bare._replace(workload=one.workload.removeprefix(start)))
    objects = tuple(one._replace(namespace="") for one in changes.objects)
    return changes._replace(workloads=tuple(workloads), objects=objects)


def list_workload_rows(changes: QueueChanges) -> list[tuple[list[str], Row]]:
    """List kind and queue, transition and reason of workloads. Those that differ only in the name are one row."""
    rows: list[tuple[str, Row]] = []
    for one in changes.workloads:
        queue = f"{one.kind} in ClusterQueue {one.cluster_queue}" if one.cluster_queue else one.kind
        rows.append((one.workload, (queue, format_transition(one), format_reason(one))))
    return merge_equal(rows)


def list_quota_rows(changes: QueueChanges) -> list[Row]:
    """List the quota that changes: queue or cohort, flavor, resource, and the amounts before and after."""
    rows: list[Row] = []
    for one in changes.quota:
        pairs = zip(one.before or _NONE, one.after or _NONE, strict=True)
        amounts = (after if before == after else f"{before} → {after}" for before, after in pairs)
        where = f" in {one.cluster}" if one.cluster else ""
        rows.append((f"{one.kind} {one.name}{where}", one.flavor, one.resource, *amounts))
    return rows


def list_balance_rows(changes: QueueChanges) -> list[Row]:
    """List how many workloads are admitted and wait, and what stays unused, before and after."""
    rows: list[Row] = []
    for one in changes.balance:
        where = f" in {one.cluster}" if one.cluster else ""
        name = f"unused {one.resource} in {one.flavor}{where}" if one.resource else one.name
        rows.append((name, one.before, one.after))
    return rows


def format_balance(changes: QueueChanges) -> str:
    """The same in one line; empty if no queue or other object changes."""
    rows = list_balance_rows(changes)
    return ", ".join(f"{name} {after if before == after else f'{before} → {after}'}" for name, before, after in rows)


def format_objects(changes: QueueChanges) -> str:
    """The queues and other objects that are added, removed or changed."""
    names = [
        f"{one.action} {one.kind} {one.namespace + '/' if one.namespace else ''}{one.name}" for one in changes.objects
    ]
    more = f" and {len(names) - _MAX_OBJECTS} more" if len(names) > _MAX_OBJECTS else ""
    return f"{', '.join(names[:_MAX_OBJECTS])}{more}"


def format_note(changes: QueueChanges) -> str:
    """What the comparison assumes and leaves out; empty if nothing is compared."""
    if changes.errors:
        return ""
    turns = "" if changes.settles else f"{NO_FINAL_STATE}; "
    stopped = "" if changes.complete else f"{STOPPED}; "
    remarks = "".join(f"{each}; " for each in changes.remarks)
    is_drained = any("HoldAndDrain" in one.reason for one in changes.workloads)
    kept = f"running jobs keep their quota{', unless their queue is drained' if is_drained else ''}"
    return f"{kept}; {remarks}{turns}{stopped}not simulated: {', '.join(changes.left_out)}"


def format_errors(changes: QueueChanges) -> str:
    """Why the queues are not compared; empty if they are."""
    return f"the queues are not compared: {'; '.join(changes.errors)}" if changes.errors else ""


_MAX_ROWS = 50
_RESERVED = 1_000
"""Characters for headings and notes."""


def describe_queues(changes: QueueChanges) -> dict[str, Plain]:
    """Describe what changes in the queues of an environment."""
    return {
        "env": changes.environment,
        "errors": list(changes.errors),
        "settles": changes.settles,
        "complete": changes.complete,
        "summary": {change.value: count for change, count in changes.count_changes().items()},
        "workloads": [
            {
                "change": one.change.value,
                "workload": one.workload,
                "kind": one.kind,
                "clusterQueue": one.cluster_queue,
                "before": one.before or None,
                "after": one.after,
                "why": one.reason,
                "behind": list(one.behind),
                "requeued": one.requeued or None,
                "preemptedBy": {"workload": one.preempted_by, "rule": one.rule} if one.rule else None,
                **({"moved": one.moved} if one.moved else {}),
            }
            for one in changes.workloads
        ],
        "quota": [
            {
                "kind": one.kind,
                "name": one.name,
                "flavor": one.flavor,
                "resource": one.resource,
                "before": None if one.before is None else dict(one.before._asdict()),
                "after": None if one.after is None else dict(one.after._asdict()),
                **({"cluster": one.cluster} if one.cluster else {}),
            }
            for one in changes.quota
        ],
        "objects": [dict(one._asdict()) for one in changes.objects],
        **({"balance": [_describe_balance(one) for one in changes.balance]} if changes.balance else {}),
    }


def _describe_balance(one: Balance) -> dict[str, Plain]:
    return {key: value for key, value in one._asdict().items() if value or key != "cluster"}


def render_markdown(several: Sequence[QueueChanges], space: int, name: NameEnvironments) -> Iterator[str]:
    """Yield the tables of each environment, with as many rows as fit."""
    several = merge_environments(several, name)
    share = space // len(several)
    for number, changes in enumerate(several):
        if share < 2 * _RESERVED and number * 2 * _RESERVED > space:
            yield f"Queues of {len(several) - number} more environments change.\n\n"
            return
        yield from _render_markdown_environment(changes, max(share, 2 * _RESERVED) - _RESERVED)


def _render_markdown_environment(changes: QueueChanges, space: int) -> Iterator[str]:
    where = f" in {markdown_text(changes.environment)}" if changes.environment else ""
    summary = format_errors(changes)[: 2 * _RESERVED] or format_counts(changes) or "no job waits longer"
    yield f"**Queues{where}**: {markdown_text(summary)}\n\n"
    yield from render_tables(changes, space)
    notes = (format_objects(changes)[:_RESERVED], format_note(changes))
    yield f"{'; '.join(map(markdown_text, filter(None, notes)))}\n\n"


def render_tables(changes: QueueChanges, space: int) -> Iterator[str]:
    """Yield the Markdown tables of the jobs and of the quota that change, and of both sides in short."""
    balance = [tuple(map(markdown_text, row)) for row in list_balance_rows(changes)]
    short = "".join(fill_table("| | before | after |\n|---|---:|---:|\n", balance, space // 3))
    space -= len(short)
    workloads = [tuple(map(markdown_text, (show_names(names), *row))) for names, row in list_workload_rows(changes)]
    yield from fill_table("| job | | | |\n|---|---|---|---|\n", workloads, space * 2 // 3)
    header = f"| | flavor | resource | {' | '.join(AMOUNTS)} |\n|---|---|---{'|---:' * len(AMOUNTS)}|\n"
    quota = [tuple(map(markdown_text, row)) for row in list_quota_rows(changes)]
    yield from fill_table(header, quota, space // 3)
    yield short


def fill_table(header: str, rows: Sequence[Row], space: int) -> Iterator[str]:
    """Yield the lines of a Markdown table of as many rows as fit, whose cells are escaped; the others are counted."""
    if not rows:
        return
    yield header
    for number, row in enumerate(rows):
        line = f"| {' | '.join(row)} |\n"
        space -= len(line)
        if space < 0:
            yield f"| … | {len(rows) - number} more |{' |' * (len(row) - 2)}\n"
            break
        yield line
    yield "\n"


def render_text(several: Sequence[QueueChanges], name: NameEnvironments) -> Iterator[str]:
    """Yield the lines about each environment: its jobs, then its quota."""
    for changes in merge_environments(several, name):
        where = f" in {changes.environment}" if changes.environment else ""
        summary = format_errors(changes) or format_counts(changes) or "no job waits longer"
        yield f"queues{where}: {summary}"
        yield from render_workloads(changes)
        if format_note(changes):
            yield f"    {format_note(changes)}"
        if changes.objects:
            yield f"    {format_objects(changes)}"
        yield ""
        yield from render_quota(changes)


def render_workloads(changes: QueueChanges) -> Iterator[str]:
    """Yield the lines about workloads that fare differently."""
    rows = list_workload_rows(changes)
    for names, (queue, transition, reason) in rows[:_MAX_ROWS]:
        yield f"    {show_names(names)}: {transition}"
        yield f"        {queue}; {reason}"
    if len(rows) > _MAX_ROWS:
        left = sum(len(names) for names, _ in rows[_MAX_ROWS:])
        yield f"    … and {left} more; `--format json` shows all of them"


def render_quota(changes: QueueChanges) -> Iterator[str]:
    """Yield the tables of the quota that changes, and of both sides in short."""
    tables: list[tuple[list[Row], int]] = [
        ([("", "flavor", "resource", *AMOUNTS), *list_quota_rows(changes)], 0),
        ([("", "before", "after"), *list_balance_rows(changes)], 2),
    ]
    for rows, numbers in tables:
        if len(rows) > 1:
            yield from align_rows(rows[: _MAX_ROWS + 1], numbers)
            if len(rows) > _MAX_ROWS + 1:
                yield f"… and {len(rows) - _MAX_ROWS - 1} more"
            yield ""
