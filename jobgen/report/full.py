"""Findings for people: where, what, the line itself with the fault underlined, and the places it speaks of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise

from jobgen.model.finding import Severity
from jobgen.report import Report
from jobgen.report.entries import ReportEntry, entries, suppressed
from jobgen.report.snippet import snippet
from jobgen.report.text import visible

_BOLD, _DIM = "1", "2"
_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}

Paint = Callable[[str, str], str]


def render(report: Report, *, width: int = 80, colour: bool = False) -> str:
    """All findings by file, as wide as the terminal; colours only where they are asked for."""
    paint = _painted if colour else _plain
    told = [*entries(report), *(suppressed(report) if report.show_suppressed else ())]
    told.sort(key=lambda entry: entry.finding.location)
    blocks = [
        block
        for file, group in groupby(told, key=lambda entry: entry.finding.location.file)
        for block in _of_file(group, report.lines(file), width, paint)
    ]
    return _spaced(blocks)


def _of_file(group: Iterator[ReportEntry], lines: Sequence[str], width: int, paint: Paint) -> Iterator[list[str]]:
    for entry in group:
        yield [_head(entry, paint), *_below(entry, lines, width, paint)]


def _spaced(blocks: list[list[str]]) -> str:
    """An empty line between findings, unless both are single lines."""
    parts = ["\n".join(blocks[0]) + "\n"] if blocks else []
    for before, block in pairwise(blocks):
        parts.append("\n" * (len(before) > 1 or len(block) > 1) + "\n".join(block) + "\n")
    return "".join(parts)


def _head(entry: ReportEntry, paint: Paint) -> str:
    finding = entry.finding
    word = f"suppressed {finding.severity.value}" if entry.by else finding.severity.value
    place, told, rule = visible(str(finding.location)), visible(entry.told), visible(finding.rule)
    return f"{paint(_BOLD, place)}: {paint(_tint(entry), word)}: {told} {paint(_DIM, f'[{rule}]')}"


def _below(entry: ReportEntry, lines: Sequence[str], width: int, paint: Paint) -> Iterator[str]:
    location = entry.finding.location
    known = 0 < location.line <= len(lines) and not entry.by
    number = str(location.line) if known else " "
    margin = " " * len(number)
    if known:
        part = snippet(lines[location.line - 1], location, width - len(number) - 3)
        yield f"{paint(_DIM, f'{number} |')} {part.line}".rstrip()
        yield f"{paint(_DIM, f'{margin} |')} {part.blank}{paint(_tint(entry), part.carets)}"
    for kind, note in _notes(entry):
        yield f"{margin} {paint(_DIM, '=')} {kind}: {visible(note)}"


def _notes(entry: ReportEntry) -> Iterator[tuple[str, str]]:
    for place, message in entry.finding.related:
        yield "note", f"{place}: {message}"
    if entry.by:
        yield "note", entry.silence
    elif entry.finding.fix:
        yield "help", f"`--fix{'' if entry.finding.fix.safe else '-unsafe'}` mends this"


def _tint(entry: ReportEntry) -> str:
    return _DIM if entry.by else _COLOURS[entry.finding.severity]


def _painted(code: str, words: str) -> str:
    return f"\x1b[{code}m{words}\x1b[0m"


def _plain(_: str, words: str) -> str:
    return words
