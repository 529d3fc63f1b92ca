"""The summary lines and the totals table that text and Markdown share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jobgen.diff.changes import ChangeSet, GroupTotal
from jobgen.diff.impact import Action
from jobgen.k8s.resources import ResourceTotals, format_cpu, summarize_memory
from jobgen.model.named_tuple import NamedTuple

ACTIONS: tuple[Action, ...] = ("added", "removed", "changed")
_Formatter = Callable[[int], str]
_MEASURES: tuple[tuple[str, _Formatter], ...] = (
    ("GPUs", str),
    ("CPU", format_cpu),
    ("memory", summarize_memory),
)


class TotalRow(NamedTuple):
    """One row of the totals table."""

    env: str
    by: str
    gpus: str
    cpu: str
    memory: str


def format_headline(changes: ChangeSet) -> str:
    """How many objects are added, removed, changed and unchanged."""
    counts = [f"{changes.count(action)} {action}" for action in ACTIONS]
    return f"{', '.join(counts)}, {changes.unchanged} unchanged"


def format_warning(changes: ChangeSet) -> str:
    """How many jobs are stopped; empty if none is."""
    jobs, gpus = changes.count_stopped()
    if not jobs:
        return ""
    held = f" that {'holds' if jobs == 1 else 'hold'} {_pluralize(gpus, 'GPU')}" if gpus else ""
    return f"this stops {_pluralize(jobs, 'job')}{held}"


def list_totals(changes: ChangeSet) -> Iterator[TotalRow]:
    """The totals that change, by environment, namespace, team and queue."""
    for total in changes.totals:
        if total.before.amounts != total.after.amounts:
            name = total.by if total.by == "environment" else f"{total.by} {total.name}"
            yield TotalRow(total.env, name, *_format_total(total))


def _format_total(total: GroupTotal) -> tuple[str, ...]:
    shown = zip(_MEASURES, total.before.amounts, total.after.amounts, strict=True)
    return tuple(_format_delta(old, new, format_amount) for (_, format_amount), old, new in shown)


def format_resources(before: ResourceTotals, after: ResourceTotals) -> str:
    """The requested resources that change."""
    shown = zip(_MEASURES, before.amounts, after.amounts, strict=True)
    return ", ".join(
        f"{name} {_format_delta(old, new, format_amount)}" for (name, format_amount), old, new in shown if old != new
    )


def _format_delta(before: int, after: int, format_amount: _Formatter) -> str:
    """`4 → 6 (+2)`, or `4`."""
    if before == after:
        return format_amount(after)
    delta = after - before
    return f"{format_amount(before)} → {format_amount(after)} ({'+' if delta > 0 else ''}{format_amount(delta)})"


def _pluralize(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
