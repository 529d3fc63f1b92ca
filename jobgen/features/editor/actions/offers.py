"""What an editor can offer at a position, and the smallest edits that carry it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import NamedTuple

from jobgen.features.editor.workspace import Workspace
from jobgen.model.data import Location
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern

QUICK_FIX = "quickfix"
FIX_ALL = "source.fixAll.jobgen"
EXTRACT = "refactor.extract"
REWRITE = "refactor.rewrite"
KINDS = (QUICK_FIX, FIX_ALL, EXTRACT, REWRITE)
"""The kinds of the protocol; a client asks for some of them."""


class Change(NamedTuple):
    """New contents of files, by path from the root. A file that does not exist is created."""

    files: Mapping[str, bytes]
    note: str = ""
    """What the user has to confirm; empty if nothing can be lost."""


class Offer(NamedTuple):
    """An action: `make` returns the change, or why there is none."""

    id: str
    """Names it among the offers for one position."""
    title: str
    kind: str
    make: Callable[[], Change | str]
    findings: tuple[Finding, ...] = ()
    """The findings that it removes."""
    is_preferred: bool = False


def return_change(change: Change) -> Change:
    """Return a change: what makes it, if it is known already."""
    return change


class ActionRequest(NamedTuple):
    """A request for the actions at a range of a file, by its path from the root."""

    workspace: Workspace
    file: str
    range: Location
    findings: tuple[Finding, ...]
    """All findings in the file. Their locations are valid in its current content."""
    is_invoked: bool = True
    """True if the user asked for actions. Otherwise the cursor moved, and only what is quick to find is wanted."""

    def is_selected(self, location: Location) -> bool:
        """Return True if the range touches a location of the file."""
        if location.file != self.file:
            return False
        start, end = _bounds(self.range)
        first, last = _bounds(location)
        return first <= end and start <= last

    def is_asked_about(self, location: Location) -> bool:
        """True if the range touches a location, or is a cursor on its line: on `replicas` of a wrong `replicas: 2`."""
        at = self.range
        is_cursor = (at.line, at.column) == (at.end_line, at.end_column)
        return self.is_selected(location) or (
            is_cursor and location.file == self.file and location.line <= at.line <= _bounds(location)[1][0]
        )

    def list_nearest_first(self) -> list[Finding]:
        """Return the findings, first those that the range touches."""
        return sorted(self.findings, key=lambda finding: not self.is_selected(finding.location))


def _bounds(location: Location) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and the last position of a location. One without an end is one character."""
    start = location.line, location.column
    if not location.end_line:
        return start, (location.line, location.column + 1)
    return start, max(start, (location.end_line, location.end_column))


_LINE = lazy_pattern(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COMMENT = lazy_pattern(r"(?:^|(?<=\s))#", re.MULTILINE)
_MAX_LINES = 2_000
"""A longer part that changes is replaced as a whole: comparing its lines would take too long."""


class Replacement(NamedTuple):
    """New text for a part of the old one. Offsets count characters from the beginning of the old text."""

    start: int
    end: int
    text: str


def list_replacements(old: str, new: str) -> list[Replacement]:
    """Return the replacements that turn the old text into the new one, in order; they do not touch each other."""
    old_lines, new_lines = split_lines(old), split_lines(new)
    found: list[Replacement] = []
    offset, line = 0, 0
    for first, last, new_first, new_last in _list_changed_lines(old_lines, new_lines):
        offset += sum(map(len, old_lines[line:first]))
        line = first
        before, after = "".join(old_lines[first:last]), "".join(new_lines[new_first:new_last])
        found.append(_trim(before, after, offset))
    return found


def loses_comments(before: bytes, after: bytes) -> bool:
    """Return True if a text has fewer comments than before."""
    old, new = (len(_COMMENT.findall(text.decode("utf-8", "replace"))) for text in (before, after))
    return new < old


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their ends, by the line ends of the protocol."""
    return _LINE.findall(text)


def _list_changed_lines(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the parts that changed: first and last line of the old text, and of the new one."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(left) + len(right) > _MAX_LINES:
        yield head, len(old) - tail, head, len(new) - tail
        return
    for tag, first, last, new_first, new_last in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            yield head + first, head + last, head + new_first, head + new_last


def _trim(before: str, after: str, offset: int) -> Replacement:
    """Leave out what both texts begin and end with. A line end of two characters is never divided."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    if before[start - 1 : start + 1] == "\r\n":
        start -= 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    if before[len(before) - end - 1 : len(before) - end + 1] == "\r\n":
        end -= 1
    return Replacement(offset + start, offset + len(before) - end, after[start : len(after) - end])
