"""Where a place in a text stands in the YAML file that has the text as a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jobgen.model.data import Location, TracedScalar


def find_in_text(node: TracedScalar, inside: Location, lines: Sequence[str]) -> Location:
    """Return where a place in the text of a scalar is, in a file with these lines.

    Only the lines of a literal block are those of its text; in another scalar, it is the scalar.
    """
    return measure_text(node, lines)(inside)


def measure_text(node: TracedScalar, lines: Sequence[str]) -> Callable[[Location], Location]:
    """Return a function that turns a place in the text of a scalar into one in its file."""
    start, text = node.location, str(node.value).split("\n")
    if (start.line, start.column) == (1, 1) and list(lines[: len(text)]) == text:
        # The text of a whole file.
        return lambda place: place._replace(file=start.file)
    header = lines[start.line - 1] if 0 < start.line <= len(lines) else ""
    if header[start.column - 1 : start.column] != "|":
        return lambda _: start
    # A literal block is moved down below its key, and to the right by its indentation.
    blank = next((at for at, line in enumerate(text) if line.strip()), 0)
    shown = lines[start.line + blank] if start.line + blank < len(lines) else ""
    right = max(_count_blanks(shown) - _count_blanks(text[blank]), 0)

    def move(place: Location) -> Location:
        end = (place.end_line + start.line, place.end_column + right) if place.end_line else (0, 0)
        return Location(start.file, place.line + start.line, place.column + right, *end)

    return move


def find_line(text: str, number: int) -> Location:
    """Return where a line is in a text, without the spaces around it; lines count from 1."""
    line = text.split("\n")[number - 1]
    return Location("", number, _count_blanks(line) + 1, number, len(line.rstrip()) + 1)


def _count_blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
