"""How many runs of a schedule may be active at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.check.counted_pods import MAX_PODS
from jobgen.k8s.nodes import as_integer, as_list, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple


class _Schedule(NamedTuple):
    """Where a kind says when its runs start, and what ends them."""

    deadline: tuple[str, ...] = ()
    """The path of the seconds after which a run ends; empty if the kind has none."""
    has_policy: bool = True
    """True if it has a `concurrencyPolicy`."""


_KINDS: Mapping[tuple[str, str], _Schedule] = {
    ("batch", "CronJob"): _Schedule(("spec", "jobTemplate", "spec", "activeDeadlineSeconds")),
    ("batch.volcano.sh", "CronJob"): _Schedule(),
    ("ray.io", "RayCronJob"): _Schedule(("spec", "jobTemplate", "activeDeadlineSeconds"), has_policy=False),
    ("argoproj.io", "CronWorkflow"): _Schedule(("spec", "workflowSpec", "activeDeadlineSeconds")),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): _Schedule(),
}
_FORBID, _REPLACE = "Forbid", "Replace"
_MINUTE, _DAY = 60, 86_400
_FREE_GRACE = 600
"""The seconds that pods may take to end before they count beside those of the next run."""
_MAX_SCHEDULES = 50


def count_runs(group: str, kind: str, obj: Mapping[str, Plain], *, outlives_runs: bool = False) -> tuple[int, str]:
    """Return how many runs may overlap, and what to write if that has no limit. Without a schedule, it is one.

    `outlives_runs` is true if a run ends while the objects that it has created go on.
    """
    schedule = _KINDS.get((group, kind))
    if schedule is None:
        return 1, ""
    if outlives_runs:
        return MAX_PODS, "the objects that its runs create go on after them, so set `successCondition`"
    policy = as_text(get_path(obj, "spec", "concurrencyPolicy"))
    late = max(_find_grace(obj) - _FREE_GRACE, 0)
    seconds = as_integer(get_path(obj, *schedule.deadline)) if schedule.deadline else None
    if policy == _REPLACE or (policy == _FORBID and seconds is not None):
        # The pods of a run that was ended may go on while the next ones start.
        return (min(1 + _count_all_starts(obj, late), MAX_PODS) if late else 1), ""
    if policy == _FORBID:
        return 1, ""
    if seconds is None:
        ways = ["`concurrencyPolicy: Forbid`"] if schedule.has_policy else []
        ways += ["`activeDeadlineSeconds`"] if schedule.deadline else []
        return MAX_PODS, f"its runs can overlap, so set {' or '.join(ways)}"
    return min(_count_all_starts(obj, max(seconds, 1) + late), MAX_PODS), ""


def _find_grace(obj: Mapping[str, Plain]) -> int:
    """Return the longest time that pods of an object have to end; 0 if it does not say."""
    found = 0
    below: list[Plain] = [dict(obj)]
    while below:
        node = below.pop()
        if isinstance(node, dict):
            found = max(found, as_integer(node.get("terminationGracePeriodSeconds")) or 0)
            below += node.values()
        elif isinstance(node, list):
            below += node
    return found


def _count_all_starts(obj: Mapping[str, Plain], seconds: int) -> int:
    """Return the most starts of all schedules of an object in any such time."""
    written = get_path(obj, "spec", "schedule")
    several = [written] if as_text(written) else as_list(get_path(obj, "spec", "schedules"))
    texts = list(map(as_text, several)) or [""]
    # What is beyond the first ones counts as if it started every minute.
    starts = sum(count_starts(text, seconds) for text in texts[:_MAX_SCHEDULES])
    return starts + max(len(texts) - _MAX_SCHEDULES, 0) * -(-seconds // _MINUTE)


def count_starts(schedule: str, seconds: int) -> int:
    """Return the most starts of a schedule of cron in any such time. What cannot be read starts every minute."""
    fields = _NAMED.get(schedule.strip(), schedule).split()
    fields = fields[1:] if fields[:1] and fields[0].startswith(("TZ=", "CRON_TZ=")) else fields
    if fields[:1] == ["@every"]:
        return -(-seconds // _read_interval("".join(fields[1:])))
    if len(fields) != len(_RANGES):
        fields = ["*"] * len(_RANGES)
    minutes, hours, days, _, weekdays = (
        _read_field(text, *bounds) for text, bounds in zip(fields, _RANGES, strict=True)
    )
    times = sorted((hour * 60 + minute) * _MINUTE for hour in hours for minute in minutes)
    # With both fields, a day that either of them names counts, so they are not followed any further.
    is_of_month, is_of_week = len(days) < 31, len(weekdays) < 7
    cycle, active = (28, days) if is_of_month else (7, weekdays) if is_of_week else (1, {0})
    if is_of_month and is_of_week:
        cycle, active = 1, {0}
    whole, rest = divmod(seconds, _DAY)
    return _count_days(active, cycle, whole) * len(times) + _count_in_window(times, rest, active, cycle)


_INTERVAL = lazy_pattern(r"(?:[0-9]{1,9}(?:\.[0-9]*)?(?:h|m|s|ms|us|µs|ns))+")
_UNIT = lazy_pattern(r"([0-9]+)(?:\.[0-9]*)?(h|ms|m|s|us|µs|ns)")
_SECONDS = {"h": 3600, "m": _MINUTE, "s": 1}


def _read_interval(text: str) -> int:
    """Return the seconds of `@every`, which are at least one; one if it cannot be read."""
    parts = _UNIT.findall(text) if _INTERVAL.fullmatch(text) else []
    return max(sum(int(number) * _SECONDS.get(unit, 0) for number, unit in parts), 1)


_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_NAMED = {
    "@hourly": "0 * * * *",
    **dict.fromkeys(("@daily", "@midnight"), "0 0 * * *"),
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    **dict.fromkeys(("@yearly", "@annually"), "0 0 1 1 *"),
}
_WEEKDAYS = {name: str(number) for number, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}


def _read_field(text: str, first: int, last: int) -> set[int]:
    """Return the values of a field; all of them if it cannot be read."""
    found: set[int] = set()
    for part in text.upper().split(",")[: last + 2]:
        span, _, step = part.partition("/")
        low, dash, high = (_WEEKDAYS.get(each, each) for each in span.partition("-"))
        if span in ("*", "?"):
            low, high = str(first), str(last)
        elif not dash:
            high = str(last) if step else low
        if not (low.isdecimal() and high.isdecimal() and (step or "1").isdecimal() and len(low + high + step) < 12):
            return set(range(first, last + 1))
        found.update(range(int(low), min(int(high), last + 1) + 1, max(int(step or 1), 1)))
    # Sunday is also the seventh day.
    found = {0 if last == 6 and each == 7 else each for each in found}
    return found & set(range(first, last + 1)) or set(range(first, last + 1))


def _count_days(active: set[int], cycle: int, days: int) -> int:
    """Return the most days with starts among so many in a row."""
    whole, rest = divmod(days, cycle)
    known = {each % cycle for each in active}
    most = max(sum((start + each) % cycle in known for each in range(rest)) for start in range(cycle))
    return whole * len(known) + most


def _count_in_window(times: Iterable[int], seconds: int, active: set[int], cycle: int) -> int:
    """Return the most starts within a part of a day, which may pass midnight if the next day has starts."""
    known = {each % cycle for each in active}
    is_next = any((each + 1) % cycle in known for each in known)
    one = list(times)
    starts = [*one, *(each + _DAY for each in one)] if is_next else one
    most = end = 0
    for begin, at in enumerate(starts):
        while end < len(starts) and starts[end] < at + seconds:
            end += 1
        most = max(most, end - begin)
    return most
