"""The changes of queues as rows of text, which text and Markdown share."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.diff.queue_changes import Change, QueueChanges, QuotaAmounts, WorkloadChange
from jobgen.features.kueue.decision.answers import NEVER
from jobgen.features.kueue.queues.equal_rows import EqualRows, merge_equal, show_names
from jobgen.features.kueue.queues.report import NO_FINAL_STATE, NOT_SIMULATED, STOPPED
from jobgen.model.named_tuple import NamedTuple

AMOUNTS = QuotaAmounts._fields
_NONE = QuotaAmounts(*["0"] * len(AMOUNTS))

_COUNTED = {
    Change.PREEMPTED: "preempted",
    Change.WORSE: "worse",
    Change.LONGER: "longer in the queue",
    Change.RESTART: "only until a restart",
    Change.NEW: "new",
    Change.BETTER: "better",
}
_MAX_OBJECTS = 10


class QuotaRow(NamedTuple):
    """The quota of a queue or cohort, with the amounts before and after."""

    name: str
    flavor: str
    resource: str
    amounts: tuple[str, ...]


def format_counts(changes: QueueChanges) -> str:
    """How many workloads fare in each way; empty if none changes."""
    return ", ".join(f"{count} {_COUNTED[change]}" for change, count in changes.count_changes().items())


def format_transition(one: WorkloadChange) -> str:
    """What becomes of a workload, in a few words."""
    if one.change is Change.PREEMPTED:
        return f"{one.before} → preempted by {one.preempted_by} ({one.rule}), then {one.requeued}"
    if one.change is Change.RESTART:
        outcome = "is never admitted" if one.requeued == NEVER else one.requeued
        return f"keeps running, but {outcome} if it is started again"
    if one.change is Change.LONGER:
        return "waits longer"
    return f"new, {one.after}" if one.change is Change.NEW else f"{one.before} → {one.after}"


def format_reason(one: WorkloadChange) -> str:
    """Why, and behind which workloads it waits."""
    if not one.behind:
        return one.reason
    return f"{one.reason}; behind {show_names(one.behind)}"


def format_queue(one: WorkloadChange) -> str:
    """The kind of a job and its queue."""
    return f"{one.kind} in ClusterQueue {one.cluster_queue}" if one.cluster_queue else one.kind


def list_workload_rows(changes: QueueChanges) -> list[EqualRows]:
    """List kind and queue, transition and reason of workloads. Those that differ only in the name are one row."""
    return merge_equal(
        (one.workload, (format_queue(one), format_transition(one), format_reason(one))) for one in changes.workloads
    )


def list_quota_rows(changes: QueueChanges) -> Iterator[QuotaRow]:
    """Yield the quota that changes."""
    for one in changes.quota:
        pairs = zip(one.before or _NONE, one.after or _NONE, strict=True)
        amounts = tuple(after if before == after else f"{before} → {after}" for before, after in pairs)
        yield QuotaRow(f"{one.kind} {one.name}", one.flavor, one.resource, amounts)


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
    return f"running jobs keep their quota; {turns}{stopped}{NOT_SIMULATED}"


def format_errors(changes: QueueChanges) -> str:
    """Why the queues are not compared; empty if they are."""
    return f"the queues are not compared: {'; '.join(changes.errors)}" if changes.errors else ""
