"""How long something takes, as people and other programs write it."""

from __future__ import annotations

from jobgen.model.lazy_re import lazy_pattern

_PART = lazy_pattern(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([a-z]*)(?: |$|(?=[0-9]))")
_PRODUCT = lazy_pattern(r"[0-9]{1,6}(?: ?\* ?[0-9]{1,6}){1,4}\Z")
_GROUPED = lazy_pattern(r"[0-9]{1,3}(?:([_,])[0-9]{3})(?:\1[0-9]{3}){0,2}\Z")
_CLOCK = lazy_pattern(r"(?:([0-9]{1,3})-)?([0-9]{1,4}):([0-9]{1,2})(?::([0-9]{1,2}))?\Z")
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}


def read_seconds(text: str) -> int | None:
    """Return the seconds of `24h`, `1d12h`, `1.5 hours`, `24*3600`, `86_400`, or `1-12:00:00` and `90:00` of Slurm."""
    text = text.strip().lower()
    if clock := _CLOCK.match(text):
        days, first, second, third = (int(part or 0) for part in clock.groups())
        # With days, or with three numbers, the first is hours; else it is minutes.
        has_hours = clock[1] is not None or clock[4] is not None
        return 86400 * days + (3600 * first + 60 * second + third if has_hours else 60 * first + second)
    if _GROUPED.match(text):
        return int(text.replace("_", "").replace(",", ""))
    if _PRODUCT.match(text):
        result = 1
        for factor in text.split("*"):
            result *= int(factor)
        return result
    return _add_parts(text.removeprefix("pt"))


def _add_parts(text: str) -> int | None:
    """Return the sum of parts with units, the largest unit first; without units, it is no duration."""
    seconds, end, last = 0.0, 0, float("inf")
    while part := _PART.match(text, end):
        unit = _UNITS.get(part[2])
        if unit is None or unit >= last:
            return None
        seconds, end, last = seconds + float(part[1]) * unit, part.end(), unit
    return int(seconds) if end and end == len(text) and seconds == int(seconds) else None
