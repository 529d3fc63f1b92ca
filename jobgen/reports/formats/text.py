"""Findings for people: location, message, the line with the problem underlined, and related locations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple
from unicodedata import category, east_asian_width

from jobgen.model.data import Location
from jobgen.model.finding import Severity
from jobgen.reports import Report
from jobgen.reports.entries import ReportEntry, shown_entries
from jobgen.reports.escape import visible
from jobgen.reports.formats import FormatInfo

FORMAT = FormatInfo("people", "one entry: `(in dev, prod)`", "with `--show-suppressed`")
_BOLD, _DIM = "1", "2"
_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}
_TAB = "    "
_ELLIPSIS = "…"
_MIN_WIDTH = 20
"""Columns of a line that are shown in the narrowest terminal."""

Paint = Callable[[str, str], str]
Link = Callable[[str], str]


class Snippet(NamedTuple):
    """The visible part of a line, and the marks below it."""

    line: str
    blank: str
    carets: str


class _Cell(NamedTuple):
    text: str
    width: int


def render(report: Report) -> str:
    """Return all entries by file, as wide as the terminal."""
    paint = _paint if report.color else _no_paint
    blocks = [
        block
        for file, group in groupby(shown_entries(report), key=lambda entry: entry.finding.location.file)
        for block in _file_blocks(group, report.lines(file), report, paint)
    ]
    return _join_blocks(blocks)


def _file_blocks(
    group: Iterator[ReportEntry], lines: Sequence[str], report: Report, paint: Paint
) -> Iterator[list[str]]:
    for entry in group:
        yield [_header(entry, paint, report.link), *_details(entry, lines, report.width, paint)]


def _join_blocks(blocks: list[list[str]]) -> str:
    """Put an empty line between entries, unless both are single lines."""
    parts = ["\n".join(blocks[0]) + "\n"] if blocks else []
    for before, block in pairwise(blocks):
        parts.append("\n" * (len(before) > 1 or len(block) > 1) + "\n".join(block) + "\n")
    return "".join(parts)


def _header(entry: ReportEntry, paint: Paint, link: Link | None) -> str:
    finding = entry.finding
    severity = f"suppressed {finding.severity.value}" if entry.by else finding.severity.value
    location, message, rule = visible(str(finding.location)), visible(entry.message), visible(finding.rule)
    name = _link(f"[{rule}]", link(finding.rule)) if link else f"[{rule}]"
    return f"{paint(_BOLD, location)}: {paint(_color(entry), severity)}: {message} {paint(_DIM, name)}"


def _details(entry: ReportEntry, lines: Sequence[str], width: int, paint: Paint) -> Iterator[str]:
    location = entry.finding.location
    readable = 0 < location.line <= len(lines) and not entry.by
    number = str(location.line) if readable else " "
    margin = " " * len(number)
    if readable:
        part = make_snippet(lines[location.line - 1], location, width - len(number) - 3)
        yield f"{paint(_DIM, f'{number} |')} {part.line}".rstrip()
        yield f"{paint(_DIM, f'{margin} |')} {part.blank}{paint(_color(entry), part.carets)}"
    for kind, note in _notes(entry):
        yield f"{margin} {paint(_DIM, '=')} {kind}: {visible(note)}"


def _notes(entry: ReportEntry) -> Iterator[tuple[str, str]]:
    for location, message in entry.finding.related:
        yield "note", f"{location}: {message}"
    if entry.by:
        yield "note", entry.suppression_note
    elif entry.finding.fix:
        yield "help", f"fixable with `--fix{'' if entry.finding.fix.safe else '-unsafe'}`"


def _color(entry: ReportEntry) -> str:
    return _DIM if entry.by else _COLORS[entry.finding.severity]


def _paint(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _link(text: str, address: str) -> str:
    """Return a text that a terminal shows as a link (OSC 8)."""
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\" if address else text


def _no_paint(_: str, text: str) -> str:
    return text


def make_snippet(line: str, location: Location, width: int) -> Snippet:
    """Return the part of a line around a location that fits, with a caret below every column of the location."""
    width = max(width, _MIN_WIDTH)
    # A byte order mark is not a character of the first line: editors do not count it.
    line = line.rstrip().removeprefix("\ufeff" if location.line == 1 else "")
    start = min(max(location.column, 1) - 1, len(line))
    end = _end_of_mark(line, location, start)
    # Characters further away than the width are never shown, so that a line of a megabyte is as fast as any other.
    near = max(start - width, 0)
    far = min(len(line), start + width)
    cells = [_cell(char) for char in line[near:far]]
    fits = near == 0 and far == len(line) and _width(cells) <= width
    first, last = (0, len(cells)) if fits else _window(cells, start - near, end - near, width)
    before = _ELLIPSIS if near + first else ""
    after = _ELLIPSIS if near + last < len(line) else ""
    shown = cells[first:last]
    blank = " " * (len(before) + _width(cells[first : start - near]))
    carets = "^" * max(_width(cells[start - near : min(end - near, last)]), 1)
    return Snippet(before + "".join(cell.text for cell in shown) + after, blank, carets)


def _end_of_mark(line: str, location: Location, start: int) -> int:
    """Return where the location ends on its first line."""
    if location.end_line > location.line:
        return max(len(line), start + 1)
    return max(min(location.end_column - 1, len(line)), start + 1)


def _window(cells: list[_Cell], start: int, end: int, width: int) -> tuple[int, int]:
    """Return the range of cells to show: a third before the mark, or more if little comes after it."""
    width -= 2 * len(_ELLIPSIS)
    span = _width(cells[start:end])
    lead = max(0, min(width - span, max(width // 3, width - span - _width(cells[end:]))))
    first = start
    while first > 0 and (lead := lead - cells[first - 1].width) >= 0:
        first -= 1
    width -= _width(cells[first:start])
    last = start
    while last < len(cells) and (width := width - cells[last].width) >= 0:
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
    """Return the columns of a terminal that a printable character takes."""
    if category(char) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def _width(cells: list[_Cell]) -> int:
    return sum(cell.width for cell in cells)
