"""Parse the schedule of a CronJob as Kubernetes does: five fields, or a descriptor such as `@daily`; and time zones."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from jobgen.check.admission.fields import join_names


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """The names of its values, from the lowest."""


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _DAYS),
)
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
# What Go's strings.Fields splits at; Python's split takes four separators more.
_SPACE = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_MAX_NUMBER = 2**63 - 1
_MAX_DIGITS = 30


def find_schedule_error(schedule: str) -> str:
    """Return what is wrong with a schedule, and what to write instead; empty if it is valid."""
    if schedule.startswith("@"):
        return _find_descriptor_error(schedule)
    parts = [part for part in _SPACE.split(schedule) if part]
    if len(parts) != len(_FIELDS):
        return f"it has {len(parts)} fields instead of 5; write minute, hour, day of month, month and day of week"
    errors = (
        _find_range_error(expression, field)
        for part, field in zip(parts, _FIELDS, strict=True)
        for expression in part.split(",")
        if expression
    )
    return next(filter(None, errors), "")


def _find_descriptor_error(text: str) -> str:
    if text in _DESCRIPTORS:
        return ""
    if not text.startswith(_EVERY):
        return f"write {join_names([*_DESCRIPTORS, '@every 1h30m'], 'or')}"
    return "" if _is_duration(text[len(_EVERY) :]) else "write a duration after `@every`, such as `1h30m`"


def _is_duration(text: str) -> bool:
    """Return whether a text is a duration of Go: numbers with units, such as `1h30m`, or 0."""
    text = text[1:] if text[:1] in ("+", "-") else text
    total, end = 0, 0
    for match in _DURATION.finditer(text):
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if match.start() != end or not whole + fraction or len(whole) > _MAX_DIGITS:
            return False
        end = match.end()
        total += int(whole or "0") * _UNITS[unit]
    return text == "0" or (bool(text) and end == len(text) and total <= _MAX_NUMBER)


def _find_range_error(expression: str, field: _Field) -> str:
    """Return what is wrong with `5`, `1-5`, `*/15` or `1-5/2`; what follows `*-` is ignored."""
    span, *steps = expression.split("/")
    first, *rest = span.split("-")
    hint = f"`{expression}` is not a valid {field.name}"
    if len(steps) > 1:
        return f"{hint}; write one `/`"
    step = _parse_number(steps[0]) if steps else 1
    if not step:
        return f"{hint}; write a positive number after `/`"
    if first in ("*", "?"):
        return ""
    if len(rest) > 1:
        return f"{hint}; write one `-`"
    low = _parse_value(first, field)
    high = _parse_value(rest[0], field) if rest else field.high if steps else low
    if low is None or high is None or low < field.low or high > field.high or low > high:
        example = f", or names such as `{field.names[0]}`" if field.names else ""
        return f"{hint}; write numbers from {field.low} to {field.high}{example}"
    return ""


def _parse_value(text: str, field: _Field) -> int | None:
    name = text.lower()
    return field.names.index(name) + field.low if name in field.names else _parse_number(text)


def _parse_number(text: str) -> int | None:
    """Return a number that Go can parse, without `-`."""
    return int(text) if re.fullmatch(r"\+?[0-9]{1,30}", text) and int(text) <= _MAX_NUMBER else None


def is_time_zone(name: str) -> bool:
    """Return whether a name is in the IANA database, with the case of its letters."""
    return name in _list_time_zones()


@cache
def _list_time_zones() -> frozenset[str]:
    path = Path(__file__).parents[2] / "data" / "time_zones.txt"
    return frozenset(path.read_text(encoding="utf-8").split())
