"""A line of a file with its fault underlined, cut to fit."""

from __future__ import annotations

from typing import NamedTuple
from unicodedata import category, east_asian_width

from jobgen.model.data import Location
from jobgen.report.text import visible

_TAB = "    "
_CUT = "…"
_LEAST = 20
"""However narrow the terminal, this much is shown."""


class Snippet(NamedTuple):
    """What is shown of a line, and what stands below it."""

    line: str
    blank: str
    carets: str


class _Cell(NamedTuple):
    text: str
    width: int


def snippet(line: str, location: Location, room: int) -> Snippet:
    """The part of the line around the mark that fits, with a caret below every column of the mark."""
    room = max(room, _LEAST)
    # A byte order mark is no character of the first line: no editor counts it.
    line = line.rstrip().removeprefix("\ufeff" if location.line == 1 else "")
    start = min(max(location.column, 1) - 1, len(line))
    end = _end(line, location, start)
    # Nothing further away than there is room can be seen; so lines of a megabyte cost no more than others.
    near = max(start - room, 0)
    far = min(len(line), start + room)
    cells = [_cell(char) for char in line[near:far]]
    whole = near == 0 and far == len(line) and _width(cells) <= room
    first, last = (0, len(cells)) if whole else _window(cells, start - near, end - near, room)
    before = _CUT if near + first else ""
    after = _CUT if near + last < len(line) else ""
    shown = cells[first:last]
    blank = " " * (len(before) + _width(cells[first : start - near]))
    carets = "^" * max(_width(cells[start - near : min(end - near, last)]), 1)
    return Snippet(before + "".join(cell.text for cell in shown) + after, blank, carets)


def _end(line: str, location: Location, start: int) -> int:
    """Where the mark ends on its first line."""
    if location.end_line > location.line:
        return max(len(line), start + 1)
    return max(min(location.end_column - 1, len(line)), start + 1)


def _window(cells: list[_Cell], start: int, end: int, room: int) -> tuple[int, int]:
    """The cells to be shown: a third before the mark, or more if little comes after it."""
    room -= 2 * len(_CUT)
    span = _width(cells[start:end])
    lead = max(0, min(room - span, max(room // 3, room - span - _width(cells[end:]))))
    first = start
    while first > 0 and (lead := lead - cells[first - 1].width) >= 0:
        first -= 1
    room -= _width(cells[first:start])
    last = start
    while last < len(cells) and (room := room - cells[last].width) >= 0:
        last += 1
    return first, last


def _cell(char: str) -> _Cell:
    if " " <= char <= "~":
        return _Cell(char, 1)
    if char == "\t":
        return _Cell(_TAB, len(_TAB))
    shown = visible(char)
    return _Cell(shown, len(shown) if len(shown) > 1 else _columns(char))


def _columns(char: str) -> int:
    """The columns of a terminal that a printable character takes."""
    if category(char) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def _width(cells: list[_Cell]) -> int:
    return sum(cell.width for cell in cells)
