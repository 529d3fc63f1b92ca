"""Times and durations: as Kubernetes writes them, and as jobs and options do."""

from __future__ import annotations

from datetime import UTC, datetime

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple

EXPECTED_ANNOTATION = "jobgen.dev/expected"
"""The annotation with the duration that a run is expected to take: `6h`, or a range."""

DEADLINE_ANNOTATION = "jobgen.dev/deadline"
"""The annotation with the time when a run has to end."""
TIME = "write a time such as `2026-01-31T12:00:00Z`"
# Go reads an hour of one digit, a comma before the fraction, and offsets of up to 24:60.
_RFC3339 = lazy_pattern(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?"
    r"(?:Z|[+-]([0-9]{2}):([0-9]{2}))"
)


_DATE = lazy_pattern(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")


def is_date(text: str) -> bool:
    """Return True if a text is a date such as `2026-01-31`."""
    match = _DATE.fullmatch(text)
    return match is not None and _is_day(*map(int, match.groups()))


def _is_day(year: int, month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= count_days(year, month)


def count_days(year: int, month: int) -> int:
    """The number of days of a month; the year 0 is a leap year."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def is_time(text: str) -> bool:
    """Return True if Go's `time.Parse` accepts a text with the layout of RFC 3339."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second, offset_hour, offset_minute = (int(part or 0) for part in match.groups())
    is_clock = hour < 24 and max(minute, second) < 60 and offset_hour <= 24 and offset_minute <= 60
    return is_clock and _is_day(year, month, day)


_MAX_INTEGER = 2**63 - 1
_MAX_DIGITS = 18
# The quantifiers are possessive: the time is linear in the text.
_DURATION = lazy_pattern(r"([-+]?)((?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:ns|us|µs|μs|ms|s|m|h))+)")
_PART = lazy_pattern(r"([0-9]*+)\.?([0-9]*+)(ns|us|µs|μs|ms|s|m|h)")
_SECOND = 10**9
_UNITS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}


def parse_duration(text: str) -> int | None:
    """Return the nanoseconds of a duration; None if it is not one, or too long."""
    if text.lstrip("+-") == "0" and len(text) < 3:
        return 0
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    total = 0
    for whole, fraction, unit in _PART.findall(match[2]):
        part = fraction[:_MAX_DIGITS]
        total += read_number(whole) * _UNITS[unit] + read_number(part) * _UNITS[unit] // 10 ** len(part)
    return None if total > _MAX_INTEGER else -total if match[1] == "-" else total


def read_number(digits: str) -> int:
    """Return the value of digits; Python reads only a limited number of them, so longer ones are too large."""
    significant = digits.lstrip("0")
    return int(significant or 0) if len(significant) <= _MAX_DIGITS + 1 else 2 * _MAX_INTEGER


# How long a job is expected to run, and moments in time, in seconds since 1970.

DAY = 86_400
MAX_EXPECTED = 3660 * DAY
_ENDS = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
_FIRST, _LAST = (int(datetime.fromisoformat(each).timestamp()) for each in _ENDS)
_LENGTHS = {"d": DAY, "h": 3600, "m": 60, "s": 1}
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,3})?"
# Also as in ISO 8601: `PT6H`.
_LENGTH = rf"(?:{_NUMBER}[dhms])+|P(?=[0-9T])(?:{_NUMBER}D)?(?:T(?:{_NUMBER}[HMS])+)?"
_EXPECTED = lazy_pattern(rf"({_LENGTH})(?:-({_LENGTH}))?")
_LENGTH_PART = lazy_pattern(r"([0-9.]+)([dhmsDHMS])")
_MOMENT = lazy_pattern(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(Z|[+-][0-9:]+)?)?"
)


class Expected(NamedTuple):
    """The shortest and the longest time that a job is expected to run, in seconds."""

    least: int
    most: int


def parse_expected(text: str) -> Expected | str:
    """Return the range of a text such as `6h` or `4h-8h`; what is wrong with it if it has none."""
    match = _EXPECTED.fullmatch(text)
    if match is None:
        return "is not a duration; write one such as `6h` or `1d12h`, or a range such as `4h-8h`"
    least, most = (
        round(sum(float(number) * _LENGTHS[unit.lower()] for number, unit in _LENGTH_PART.findall(part)))
        for part in (match[1], match[2] or match[1])
    )
    if least < 1:
        return "is shorter than a second; write a longer duration such as `6h`"
    if most > MAX_EXPECTED:
        return f"is longer than `{MAX_EXPECTED // DAY}d`; write a shorter duration such as `6h`"
    if most < least:
        return "ends before it begins; write the shorter duration first, such as `4h-8h`"
    return Expected(least, most)


def parse_moment(text: str, *, ends_day: bool = False, needs_zone: bool = True) -> int | None:
    """Return the seconds since 1970 of a time with a time zone, or of a day in UTC; None if it is neither.

    A day is its beginning, or its end with `ends_day`. Without `needs_zone`, a time without a zone is in UTC.
    """
    match = _MOMENT.fullmatch(text)
    if match is None or (needs_zone and len(text) > 10 and not match[1]):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    seconds = int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    return seconds + DAY if ends_day and len(text) == 10 else seconds


def find_time_fault(annotation: str, text: str) -> str:
    """Return what is wrong with the text of the annotation of a duration or a deadline; empty if nothing is."""
    if annotation == EXPECTED_ANNOTATION:
        expected = parse_expected(text)
        return expected if isinstance(expected, str) else ""
    if parse_moment(text, ends_day=True) is not None:
        return ""
    has_no_zone = parse_moment(text, needs_zone=False) is not None
    return f"{'has no time zone' if has_no_zone else 'is not a time'}; write one such as `2026-12-01T08:00Z`"


def show_moment(seconds: int) -> str:
    """Return a moment as text, in UTC; one before the year 1 or after 9999 as the first or the last that there is."""
    shown = datetime.fromtimestamp(min(max(seconds, _FIRST), _LAST), UTC).isoformat()
    return f"{shown[:19].removesuffix(':00')}Z"


def show_length(seconds: int) -> str:
    """Return a length of time in its two largest units: `1d12h`."""
    parts: list[str] = []
    for unit, size in _LENGTHS.items():
        if seconds >= size:
            parts.append(f"{seconds // size}{unit}")
            seconds %= size
    return "".join(parts[:2]) or "0s"
