"""The names of time zones: those of the IANA database, and the names that other words for them mean."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.suggest import list_alternatives

_ABBREVIATIONS = {
    "ACDT": ("Australia/Adelaide",),
    "ACST": ("Australia/Adelaide", "Australia/Darwin"),
    "AEDT": ("Australia/Sydney",),
    "AEST": ("Australia/Sydney", "Australia/Brisbane"),
    "AKDT": ("America/Anchorage",),
    "AKST": ("America/Anchorage",),
    "AWST": ("Australia/Perth",),
    "BRT": ("America/Sao_Paulo",),
    "BST": ("Europe/London",),
    "CDT": ("America/Chicago",),
    "CEST": ("Europe/Berlin",),
    "CST": ("America/Chicago", "Asia/Shanghai"),
    "EDT": ("America/New_York",),
    "EEST": ("Europe/Athens",),
    "HKT": ("Asia/Hong_Kong",),
    "IST": ("Asia/Kolkata", "Asia/Jerusalem", "Europe/Dublin"),
    "JST": ("Asia/Tokyo",),
    "KST": ("Asia/Seoul",),
    "MDT": ("America/Denver",),
    "MSK": ("Europe/Moscow",),
    "NZDT": ("Pacific/Auckland",),
    "NZST": ("Pacific/Auckland",),
    "PDT": ("America/Los_Angeles",),
    "PST": ("America/Los_Angeles",),
    "SGT": ("Asia/Singapore",),
    "UTC+0": ("UTC",),
    "Z": ("UTC",),
}
"""Places with the time of an abbreviation that the database does not have; some abbreviations are used twice."""
_OFFSET = lazy_pattern(r"(?:UTC|GMT) ?([+-])0?(\d{1,2})(?::?00)?")
_MOST_EAST, _MOST_WEST = 14, 12


@cache
def _list_names() -> tuple[str, ...]:
    path = Path(__file__).parents[1] / "data" / "time_zones.txt"
    return tuple(path.read_text(encoding="utf-8").split())


def is_time_zone(name: str) -> bool:
    """Return True if a name is in the IANA database, with the case of its letters."""
    return name in _list_names()


def suggest_time_zone(text: str) -> str:
    """Return `; write …` with the names that a text means, or else with an example."""
    shown = list_alternatives([f"`{name}`" for name in list_meant_zones(text)])
    return f"; write {shown or 'a name from the IANA database, such as `Europe/Berlin`'}"


def list_meant_zones(text: str) -> tuple[str, ...]:
    """Return the names that an abbreviation, an offset, a city, or a name in other letters means."""
    if known := _ABBREVIATIONS.get(text.upper()):
        return known
    if (offset := _OFFSET.fullmatch(text)) and 0 < int(offset[2]) <= (_MOST_EAST if offset[1] == "+" else _MOST_WEST):
        # The signs of these names are those of POSIX: east is minus.
        return (f"Etc/GMT{'-' if offset[1] == '+' else '+'}{offset[2]}",)
    words = text.replace(" ", "_").lower()
    names = [name for name in _list_names() if name.lower() == words]
    return tuple(names or [name for name in _list_names() if name.lower().rpartition("/")[2] == words])[:3]
