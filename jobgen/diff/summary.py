"""What a difference amounts to, in words and rows that text and Markdown share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jobgen.diff.changes import ChangeSet, Total
from jobgen.k8s.resources import ResourceTotals, format_cpu, format_memory

_MEASURES: tuple[tuple[str, Callable[[int], str]], ...] = (
    ("GPUs", str),
    ("CPU", format_cpu),
    ("memory", format_memory),
)


class Row(NamedTuple):
    """One line of the table of totals."""

    env: str
    by: str
    gpus: str
    cpu: str
    memory: str


def headline(difference: ChangeSet) -> str:
    """How many objects are added, removed, changed and as they were."""
    counts = [f"{difference.count(word)} {word}" for word in ("added", "removed", "changed")]
    return f"{', '.join(counts)}, {difference.unchanged} unchanged"


def warning(difference: ChangeSet) -> str:
    """What is stopped, or nothing."""
    jobs, gpus = difference.stopped()
    if not jobs:
        return ""
    held = f" that {'holds' if jobs == 1 else 'hold'} {_counted(gpus, 'GPU')}" if gpus else ""
    return f"this stops {_counted(jobs, 'job')}{held}"


def rows(difference: ChangeSet) -> Iterator[Row]:
    """The totals that change, by environment, namespace, team and queue."""
    for total in difference.totals:
        if total.before != total.after:
            name = total.by if total.by == "environment" else f"{total.by} {total.name}"
            yield Row(total.env, name, *amounts(total))


def amounts(total: Total) -> tuple[str, ...]:
    """Accelerators, CPU and memory: before, after and the difference."""
    shown = zip(_MEASURES, total.before, total.after, strict=True)
    return tuple(delta(old, new, spell) for (_, spell), old, new in shown)


def sizes(before: ResourceTotals, after: ResourceTotals) -> str:
    """What an object asks for, as far as that changes."""
    shown = zip(_MEASURES, before, after, strict=True)
    return ", ".join(f"{name} {delta(old, new, spell)}" for (name, spell), old, new in shown if old != new)


def delta(before: int, after: int, spell: Callable[[int], str]) -> str:
    """`4 → 6 (+2)`, or `4`."""
    if before == after:
        return spell(after)
    more = after - before
    return f"{spell(before)} → {spell(after)} ({'+' if more > 0 else ''}{spell(more)})"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
