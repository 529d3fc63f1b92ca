"""Reports fields that stand beside the empty key they belong below, as one finding.

`secretKeyRef:` with `name` and `key` at its own depth is a null and two unknown fields for YAML; two spaces are
missing.
This comes after severities and suppressions, as `consequences` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.reports.read_fields import DEPENDS_ON

_EMPTY = lazy_pattern(r"((?: |- )*)([\w./-]{1,100}):\s*(?:#.*)?\Z")
_ENTRY = lazy_pattern(r"( *)([\w./-]{1,100}):(?:\s|\Z)")
_CERTAIN = ("not indented", "other form", "unnamed item")
"""Causes of which the message says what to write instead."""
_MOST = 20
"""How many lines above a field are searched for the empty key."""


class _Place(NamedTuple):
    """An empty key, and the first field below it that stands at its depth; lines count from 1."""

    key: str
    line: int
    field: str
    first: Location
    last: int
    """The last line of the mapping that both are in."""


def join_unindented(findings: Sequence[Finding], read_text: Callable[[str], str]) -> list[Finding]:
    """Return the findings with one for each empty key whose fields stand beside it."""
    unknown = [each for each in findings if _may_be_unindented(each)]
    if not unknown:
        return list(findings)
    read_lines = cache(lambda file: read_text(file).split("\n"))
    lines_of_unknown = {each.location[:2] for each in unknown}
    places: dict[int, _Place] = {}
    for each in unknown:
        place = _find_place(each.location, read_lines(each.location.file))
        if place and place.first[:2] in lines_of_unknown:
            places[id(each)] = place
    joined: dict[object, Finding] = {}
    for each in findings:
        found = places.get(id(each))
        if found is not None:
            message = (
                f"`{found.field}` belongs to `{found.key}`, which has no value;"
                f" indent what belongs to `{found.key}` below it"
            )
            shown = each._replace(message=message, location=found.first, fix=None)
            joined.setdefault((found.first, each.env), shown)
        elif not any(_follows(each, place) for place in places.values()):
            joined[id(each)] = each
    return [*joined.values()]


def _may_be_unindented(found: Finding) -> bool:
    is_unknown = found.rule == "unknown-field" and found.severity is Severity.ERROR and found.location.line > 1
    if found.cause == "missing level":
        # Its key may be there, without a value.
        return is_unknown
    is_certain = found.meant or found.cause in _CERTAIN
    return is_unknown and found.fix is None and not is_certain


def _follows(found: Finding, place: _Place) -> bool:
    """Return True if a finding is about the empty key, or about what its fields mean at the wrong depth."""
    at = found.location
    if at.file != place.first.file or not place.line <= at.line <= place.last:
        return False
    if found.rule == "deletes-nothing":
        return at.line == place.line and place.key in found.values
    return found.rule in DEPENDS_ON


def _find_place(at: Location, lines: Sequence[str]) -> _Place | None:
    """Return the empty key above a field whose own fields begin at the same depth; None if there is none."""
    width = at.column - 1
    entry = _ENTRY.match(lines[at.line - 1]) if at.line <= len(lines) else None
    if entry is None or len(entry[1]) != width:
        return None
    first = (at.line, entry[2])
    for number in range(at.line - 1, max(0, at.line - _MOST), -1):
        line = lines[number - 1].rstrip()
        text = line.lstrip(" ")
        if not text or text.startswith("#"):
            continue
        empty = _EMPTY.match(line)
        depth = len(empty[1]) if empty else len(line) - len(text)
        if empty and depth == width:
            place = Location(at.file, first[0], width + 1, first[0], width + 1 + len(first[1]))
            return _Place(empty[2], number, first[1], place, _find_end(lines, at.line, width))
        other = _ENTRY.match(line)
        if other is None or len(other[1]) != width:
            return None
        first = (number, other[2])
    return None


def _find_end(lines: Sequence[str], start: int, width: int) -> int:
    """Return the last line, from a start, that is indented at least so deep."""
    end = start
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip(" ")) >= width):
        end += 1
    return end
