"""Durations as Go's `time.ParseDuration` reads them, such as `1h30m`."""

from __future__ import annotations

from jobgen.model.lazy_re import lazy_pattern

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
