"""What changes of `--what-if` do to a timeline: jobs that start or end at another time, deadlines, utilization."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from jobgen.features.kueue.queues.comparison import AppliedChange
from jobgen.features.kueue.queues.timeline_report import Timeline, TimelineRow, Use, Window
from jobgen.features.kueue.queues.what_if import UnknownTargetError
from jobgen.features.kueue.quota import show_amount
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.times import show_length, show_moment

EARLIER, LATER, MOVED, CHANGED, NEW, REMOVED = "earlier", "later", "in another cluster", "changed", "new", "removed"
_ORDER = (LATER, EARLIER, MOVED, CHANGED, NEW, REMOVED)
_ENDLESS = 2**60


class RowChange(NamedTuple):
    """What changes do to one workload."""

    change: str
    before: TimelineRow | None
    after: TimelineRow | None

    @property
    def workload(self) -> str:
        """The key of the workload."""
        row = self.after or self.before
        return row.answer.key if row else ""

    def list_cells(self) -> tuple[str, ...]:
        """Return the state, the cluster, and the times, before and after, and what to say about them."""
        if self.before is None or self.after is None:
            ((state, *times),) = (_show(row) for row in (self.before, self.after) if row)
            return (f"{state} ({self.change})", *times, "")
        state, *times = (_join(*pair) for pair in zip(_show(self.before), _show(self.after), strict=True))
        if self.before.cluster and self.after.cluster:
            places = _join(self.before.cluster, self.after.cluster)
            state = f"{_join(self.before.state, self.after.state)} in {places}"
        return (state, *times, "; ".join(self._list_remarks(self.before, self.after)))

    def _list_remarks(self, before: TimelineRow, after: TimelineRow) -> Iterator[str]:
        for verb, old, new in (("starts", before.starts, after.starts), ("ends", before.ends, after.ends)):
            if old and new and old != new:
                first, last = new.earliest - old.earliest, (new.latest or 0) - (old.latest or 0)
                several = (first, last) if None not in (old.latest, new.latest) else (first,)
                shown = "-".join(dict.fromkeys(show_length(abs(each)) for each in sorted(several, key=abs)))
                if all(each < 0 for each in several) or all(each > 0 for each in several):
                    yield f"{verb} {shown} {'earlier' if several[0] < 0 else 'later'}"
        if after.miss is None and before.miss is not None:
            yield "meets its deadline"
        elif after.miss is not None and before.miss is None:
            yield "misses its deadline"


def _show(row: TimelineRow) -> tuple[str, ...]:
    where = f"{row.state} in {row.cluster}" if row.cluster else row.state
    return (where, *(window.show() if window else "–" for window in (row.starts, row.ends)))


def _join(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


class TimelineChanges(NamedTuple):
    """A timeline before changes, the changes, and what they do."""

    applied: tuple[AppliedChange, ...]
    before: Timeline
    after: Timeline
    rows: tuple[RowChange, ...]

    def summarize(self) -> str:
        """Return how many workloads change, and how."""
        counts = Counter(row.change for row in self.rows)
        shown = ", ".join(f"{counts[each]} {each}" for each in _ORDER if counts[each])
        every = {row.answer.key for side in (self.before, self.after) for row in side.rows}
        return f"{shown or 'no job starts or ends at another time'}; {len(every) - len(self.rows)} unchanged"

    def list_balance(self) -> list[tuple[str, ...]]:
        """Return what counts, before and after: the last end, the states, missed deadlines, and utilization."""
        sides = self.before, self.after
        states = [Counter(row.state for row in side.rows) for side in sides]
        ends = (_describe_end(side) or "–" for side in sides)
        rows: list[tuple[str, ...]] = [("the last end", *ends)]
        rows += ((state, *(str(side[state]) for side in states)) for state in dict.fromkeys([*states[0], *states[1]]))
        rows.append(("deadlines missed", *(str(len(side.misses)) for side in sides)))
        for old, new in self.list_uses():
            use = new or old
            if use is not None:
                rows.append((f"used {use.pair.resource} in {use.flavor}", _show_use(old), _show_use(new)))
        return rows

    def list_applied(self) -> list[tuple[str, str]]:
        """Return the changes, and what each does to an object."""
        return [
            (
                each.change,
                f"{each.what}: {f'{each.before} → ' if each.before else ''}{each.after}"
                + (f"; {each.note}" if each.note else ""),
            )
            for each in self.applied
        ]

    def describe(self) -> dict[str, Plain]:
        """Return the comparison as plain data."""
        return {
            "changes": [dict(each._asdict()) for each in self.applied],
            "lastEnd": {"before": _describe_end(self.before), "after": _describe_end(self.after)},
            "deadlinesMissed": {"before": len(self.before.misses), "after": len(self.after.misses)},
            "workloads": [
                {
                    "workload": each.workload,
                    "change": each.change,
                    "before": _describe(each.before),
                    "after": _describe(each.after),
                }
                for each in self.rows
            ],
            "utilization": [
                {
                    "cluster": use.cluster,
                    "flavor": use.pair.flavor,
                    "resource": use.pair.resource,
                    "before": _describe_use(old),
                    "after": _describe_use(new),
                }
                for old, new in self.list_uses()
                for use in (new or old,)
                if use
            ],
        }

    def list_uses(self) -> Iterator[tuple[Use | None, Use | None]]:
        """Yield what is used of each flavor before and after."""
        sides = [{(use.cluster, use.pair): use for use in side.uses} for side in (self.before, self.after)]
        yield from ((sides[0].get(key), sides[1].get(key)) for key in sorted({**sides[0], **sides[1]}))


class ShownTimeline(NamedTuple):
    """A timeline, and what changes do to it if there are any; it is then the one after them."""

    timeline: Timeline
    changes: TimelineChanges | None = None


def _show_use(use: Use | None) -> str:
    return f"{use.total}% of {show_amount(use.pair.resource, use.nominal)}" if use else "–"


def _describe(row: TimelineRow | None) -> Plain:
    if row is None:
        return None
    starts, ends = (each.describe() if each else None for each in (row.starts, row.ends))
    return {"state": row.state, "cluster": row.cluster, "starts": starts, "ends": ends, "missed": row.miss is not None}


def _describe_end(timeline: Timeline) -> str | None:
    return None if timeline.last_end is None else show_moment(timeline.last_end)


def _describe_use(use: Use | None) -> Plain:
    return {"nominal": show_amount(use.pair.resource, use.nominal), "percent": use.total} if use else None


def describe_lost(cluster: str) -> AppliedChange:
    """Describe the loss of a worker cluster as a change."""
    return AppliedChange(f"--without-cluster {cluster}", f"worker cluster `{cluster}`", "", "lost from the beginning")


def compare_timelines(
    applied: Sequence[AppliedChange | UnknownTargetError], before: Timeline, after: Timeline
) -> ShownTimeline:
    """Return the timeline after changes, with what they do."""
    old, new = ({(*row.answer.job[:3], row.answer.key): row for row in side.rows} for side in (before, after))
    found = (_compare(old.get(key), new.get(key)) for key in {**old, **new})
    made = tuple(each for each in applied if isinstance(each, AppliedChange))
    changes = TimelineChanges(made, before, after, tuple(each for each in found if each is not None))
    return ShownTimeline(after, changes)


def _compare(before: TimelineRow | None, after: TimelineRow | None) -> RowChange | None:
    if before is None or after is None:
        return RowChange(NEW if before is None else REMOVED, before, after)
    if _show(before) == _show(after) and (before.miss is None) == (after.miss is None):
        return None
    old, new = (tuple(map(_measure, (row.starts, row.ends))) for row in (before, after))
    pairs = list(zip(old, new, strict=True))
    if old == new:
        change = MOVED if before.cluster != after.cluster else CHANGED
    elif all(one <= other for other, one in pairs):
        change = EARLIER
    else:
        change = LATER if all(one >= other for other, one in pairs) else CHANGED
    return RowChange(change, before, after)


def _measure(window: Window | None) -> tuple[int, int]:
    """Return the times of a window, where a time that never comes is later than all others."""
    if window is None:
        return _ENDLESS, _ENDLESS
    return window.earliest, _ENDLESS if window.latest is None else window.latest
