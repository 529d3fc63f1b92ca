"""Findings for people: location, message, the line with the problem underlined, and related locations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unicodedata import category, east_asian_width

from jobgen.model.data import Location
from jobgen.model.finding import Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.reports import Report
from jobgen.reports.entries import ReportEntry, shown_entries, worst_first
from jobgen.reports.escape import visible
from jobgen.reports.formats import FormatInfo

FORMAT = FormatInfo("people", "one entry: `(in dev, prod)`", "with `--show-suppressed`")
_BOLD, _DIM = "1", "2"
_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}
_TAB = "    "
_ELLIPSIS = "…"


class Snippet(NamedTuple):
    """The visible part of a line, and the marks below it."""

    line: str
    blank: str
    carets: str


def render(report: Report) -> str:
    """Return all entries, errors first, as wide as the terminal, with an empty line around those of several lines."""
    parts: list[str] = []
    was_long = False
    for entry in worst_first(shown_entries(report)):
        block = list(_write_entry(report, entry))
        parts.append("\n" * (bool(parts) and (was_long or len(block) > 1)) + "\n".join(block) + "\n")
        was_long = len(block) > 1
    return "".join(parts)


def _write_entry(report: Report, entry: ReportEntry) -> Iterator[str]:
    def paint(code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if report.color else text

    finding, location = entry.finding, entry.finding.location
    color = _DIM if entry.by else _COLORS[finding.severity]
    severity = f"suppressed {finding.severity.value}" if entry.by else finding.severity.value
    name = f"[{visible(finding.rule)}]"
    address = report.link(finding.rule) if report.link else ""
    if address:
        # A terminal shows it as a link (OSC 8).
        name = f"\x1b]8;;{address}\x1b\\{name}\x1b]8;;\x1b\\"
    place = paint(_BOLD, visible(str(location)))
    yield f"{place}: {paint(color, severity)}: {visible(entry.message)} {paint(_DIM, name)}"
    line = None if entry.by else report.find_line(location.file, location.line)
    number = " " if line is None else str(location.line)
    margin = " " * len(number)
    if line is not None:
        part = make_snippet(line, location, report.width - len(number) - 3)
        yield f"{paint(_DIM, f'{number} |')} {part.line}".rstrip()
        yield f"{paint(_DIM, f'{margin} |')} {part.blank}{paint(color, part.carets)}"
    notes = [f"note: {visible(f'{other}: {message}')}" for other, message in finding.related]
    if entry.by:
        notes.append(f"note: {visible(entry.suppression_note)}")
    elif finding.fix:
        notes.append(f"help: fixable with `--fix{'' if finding.fix.safe else '-unsafe'}`")
    yield from (f"{margin} {paint(_DIM, '=')} {note}" for note in notes)


def make_snippet(line: str, location: Location, width: int) -> Snippet:
    """Return the part of a line around a location that fits, with a caret below every column of the location."""
    width = max(width, 20)
    # A byte order mark is not a character of the first line: editors do not count it.
    line = line.rstrip().removeprefix("\ufeff" if location.line == 1 else "")
    length = len(line)
    start = min(max(location.column, 1) - 1, length)
    last_column = length if location.end_line > location.line else min(location.end_column - 1, length)
    end = max(last_column, start + 1)
    # Characters further away than the width are never shown, so that a line of a megabyte is as fast as any other.
    near = max(start - width, 0)
    far = min(length, start + width)
    texts, widths = _measure_text(line[near:far])
    fits = near == 0 and far == length and sum(widths) <= width
    first, last = (0, len(texts)) if fits else _window(widths, start - near, end - near, width)
    before = _ELLIPSIS if near + first else ""
    after = _ELLIPSIS if near + last < length else ""
    blank = " " * (len(before) + sum(widths[first : start - near]))
    carets = "^" * max(sum(widths[start - near : min(end - near, last)]), 1)
    return Snippet(before + "".join(texts[first:last]) + after, blank, carets)


def _window(widths: Sequence[int], start: int, end: int, width: int) -> tuple[int, int]:
    """Return the range of characters to show: a third before the mark, or more if little comes after it."""
    width -= 2 * len(_ELLIPSIS)
    span = sum(widths[start:end])
    lead = max(0, min(width - span, max(width // 3, width - span - sum(widths[end:]))))
    first = start
    while first > 0 and (lead := lead - widths[first - 1]) >= 0:
        first -= 1
    width -= sum(widths[first:start])
    last = start
    while last < len(widths) and (width := width - widths[last]) >= 0:
        last += 1
    return first, last


def _measure_text(text: str) -> tuple[Sequence[str], Sequence[int]]:
    """Return each character of a text as it is shown, and how many columns of a terminal it takes."""
    if text.isascii() and text.isprintable():
        return text, [1] * len(text)
    measured = list(map(_measure, text))
    return [shown for shown, _ in measured], [columns for _, columns in measured]


def _measure(char: str) -> tuple[str, int]:
    """Return a character as it is shown, and how many columns of a terminal it takes."""
    if " " <= char <= "~":
        return char, 1
    if char == "\t":
        return _TAB, len(_TAB)
    shown = visible(char)
    if len(shown) > 1:
        return shown, len(shown)
    # A combining mark takes no column, a wide character two.
    columns = 0 if category(char) in ("Mn", "Me") else 2 if east_asian_width(char) in "WF" else 1
    return shown, columns
