"""Keep the findings of a document while a line of it is half typed.

A line that is not complete yet hides what the rest of the document has: text that is not YAML has one finding, and a
job with a wrong field is not rendered. So the findings of the other lines stay as they were in the last good text.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.features.editor.snapshot import key_of
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple

_HIDING = frozenset(("yaml", "schema", "spec"))
"""The categories of errors that hide what later stages find."""

_MAX_LINES = 3
"""As many lines may be half typed together: a key, and the first line of its value. More were not typed just now."""


class GoodText(NamedTuple):
    """A document that was not half typed, and its findings."""

    text: str
    findings: tuple[Finding, ...]


def keep_findings(good: GoodText, text: str, found: tuple[Finding, ...]) -> tuple[Finding, ...] | None:
    """Return the findings of a document with those that a half-typed line hides; None if no line is half typed."""
    if text == good.text:
        return None
    known_errors = set(map(_name_error, good.findings))
    if not any(_hides_others(each) and _name_error(each) not in known_errors for each in found):
        return None
    before, now = good.text.split("\n"), text.split("\n")
    start, after = _find_edit(before, now)
    if len(now) - after - start > _MAX_LINES:
        return None
    shift = len(now) - len(before)
    known = set(map(key_of, found))
    is_yaml = not any(each.rule == "yaml-syntax" for each in found)
    kept = [
        moved
        for each in good.findings
        # Errors that hide others are all found at once, unless the text is not YAML.
        if not (is_yaml and _hides_others(each))
        and (moved := _move(each, start, len(before) - after, shift)) is not None
        and key_of(moved) not in known
    ]
    return (*kept, *found) if kept else None


def _hides_others(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR and finding.category in _HIDING


def _name_error(finding: Finding) -> tuple[str, str]:
    """What identifies an error, whatever line it is on."""
    return finding.rule, finding.message


def _find_edit(before: Sequence[str], now: Sequence[str]) -> tuple[int, int]:
    """Return how many lines are equal before and after those that differ."""
    most = min(len(before), len(now))
    start = next((number for number in range(most) if before[number] != now[number]), most)
    after = next((number for number in range(most - start) if before[-1 - number] != now[-1 - number]), most - start)
    return start, after


def _move(finding: Finding, start: int, end: int, shift: int) -> Finding | None:
    """Return a finding at its place after the edit of the lines after `start`, up to `end`; None if it is in them."""
    file = finding.location.file
    location = _move_location(finding.location, start, end, shift)
    if location is None:
        return None
    related = tuple(
        each._replace(location=moved)
        for each in finding.related
        if (moved := _move_location(each.location, start, end, shift) if each.location.file == file else each.location)
    )
    return finding._replace(location=location, related=related, fix=None)


def _move_location(at: Location, start: int, end: int, shift: int) -> Location | None:
    last = max(at.line, at.end_line)
    if last <= start:
        return at
    if at.line <= end:
        return None
    return at._replace(line=at.line + shift, end_line=at.end_line + shift if at.end_line else 0)
