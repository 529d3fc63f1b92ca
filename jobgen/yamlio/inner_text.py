"""Where a place in a text stands in the YAML file that has the text as a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from jobgen.model.data import Location, TracedScalar


def find_in_text(node: TracedScalar, inside: Location, lines: Sequence[str]) -> Location:
    """Return where a place in the text of a scalar is, in a file with these lines.

    Only the lines of a block are those of its text; in another scalar, it is the scalar.
    """
    return measure_text(node, lines)(inside)


def measure_text(node: TracedScalar, lines: Sequence[str]) -> Callable[[Location], Location]:
    """Return a function that turns a place in the text of a scalar into one in its file."""
    start, text = node.location, str(node.value).split("\n")
    if (start.line, start.column) == (1, 1) and list(lines[: len(text)]) == text:
        # The text of a whole file.
        return lambda place: place._replace(file=start.file)
    header = lines[start.line - 1] if 0 < start.line <= len(lines) else ""
    style = header[start.column - 1 : start.column]
    if style == ">":
        joined = _find_joined(text, lines[start.line :])
        return lambda place: _move_joined(place, start, joined)
    if style != "|":
        return lambda _: start
    # A literal block is moved down below its key, and to the right by its indentation.
    blank = next((at for at, line in enumerate(text) if line.strip()), 0)
    shown = lines[start.line + blank] if start.line + blank < len(lines) else ""
    right = max(_count_blanks(shown) - _count_blanks(text[blank]), 0)

    def move(place: Location) -> Location:
        end = (place.end_line + start.line, place.end_column + right) if place.end_line else (0, 0)
        return Location(start.file, place.line + start.line, place.column + right, *end)

    return move


_Joined: TypeAlias = "list[list[tuple[int, int, int]]]"
"""For each line of a text, the lines of the block that it joins: the number, the indentation and where it begins."""


def _find_joined(text: Sequence[str], block: Sequence[str]) -> _Joined:
    """Return which lines of a folded block each line of its text joins, until the block is not as it is read."""
    shown = iter(enumerate(block, 1))
    width = _count_blanks(next(filter(str.strip, block), "")) - _count_blanks(next(filter(str.strip, text), ""))
    found: _Joined = []
    for line in text:
        parts: list[tuple[int, int, int]] = []
        begin = 0
        while begin < len(line):
            number, written = next(((number, raw) for number, raw in shown if raw.strip()), (0, ""))
            if not number or not line.startswith(written[width:].rstrip(), begin):
                return found
            parts.append((number, width, begin))
            begin += len(written[width:].rstrip()) + 1
        found.append(parts)
    return found


def _move_joined(place: Location, start: Location, joined: _Joined) -> Location:
    """Return where a place in one line of the block is; what goes over several of them is the text as a whole."""
    parts = joined[place.line - 1] if place.line <= len(joined) else ()
    number, width, begin = next((part for part in reversed(parts) if part[2] < place.column), (0, 0, 0))
    if not number or place.end_line > place.line or any(place.column <= part[2] < place.end_column for part in parts):
        return start
    right = width - begin
    end = (start.line + number, place.end_column + right) if place.end_line else (0, 0)
    return Location(start.file, start.line + number, place.column + right, *end)


def find_line(text: str, number: int) -> Location:
    """Return where a line is in a text, without the spaces around it; lines count from 1."""
    line = text.split("\n")[number - 1]
    return Location("", number, _count_blanks(line) + 1, number, len(line.rstrip()) + 1)


def _count_blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
