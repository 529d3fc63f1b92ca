"""Encode the data of a page as compact JSON: one table of texts, and tables of rows that refer to it.

docs/report_data.md describes the result. All text that users wrote becomes part of this JSON and of nothing else. The
JSON has no control characters, no bidirectional marks and none of the characters that HTML interprets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jobgen.report.escape import visible

VERSION = 1
NONE = -1
"""A reference to no row."""

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_FIRST_COUNT = 2
_MAX_SKIPPED = 12
"""How many lines of the base are dropped to go on copying; a line that is equal by chance may be far away."""

Cell = str | int | float | bool | None


class Table(NamedTuple):
    """Rows of a table. A column `a:text` has texts, `a:jobs` the numbers of rows of `jobs`, `a` plain values."""

    name: str
    columns: tuple[str, ...]
    rows: Iterable[Sequence[Cell]]


class Source(NamedTuple):
    """A place that sets a value: the number of an origin (layer and file), line, column, and the value there."""

    origin: int
    line: int
    column: int
    value: int = 0
    """The number of a text; 0 for the first source, whose value is in the line itself."""


class Line(NamedTuple):
    """A line of a manifest: the number of its text, and its sources, of which the first one wins."""

    text: int
    sources: tuple[Source, ...] = ()


class Texts:
    """Every text once, by its number; the empty text has number 0."""

    def __init__(self) -> None:
        self._numbers = {"": 0}

    def __getitem__(self, text: str) -> int:
        numbers = self._numbers
        found = numbers.get(text)
        if found is None:
            found = numbers[text] = len(numbers)
        return found

    def list_visible(self) -> list[str]:
        """List the texts by number. Unprintable characters become escapes, as in the terminal."""
        return [visible(text) for text in self._numbers]


def encode(view: str, head: Mapping[str, Cell], tables: Iterable[Table], texts: Texts) -> str:
    """Return the JSON of a page, which is safe inside of a `script` element."""
    encoded = {table.name: _encode_table(table, texts) for table in tables}
    document = {
        "version": VERSION,
        "view": view,
        "head": {name: visible(value) if isinstance(value, str) else value for name, value in head.items()},
        "tables": encoded,
        "texts": texts.list_visible(),
    }
    return escape_markup(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def escape_markup(text: str) -> str:
    """Escape the characters of JSON that HTML interprets."""
    for character, escape in _MARKUP.items():
        text = text.replace(character, escape)
    return text


def _encode_table(table: Table, texts: Texts) -> dict[str, object]:
    numbers = [number for number, column in enumerate(table.columns) if column.endswith(":text")]
    rows: list[list[Cell]] = []
    for row in table.rows:
        encoded = list(row)
        for number in numbers:
            encoded[number] = texts[str(encoded[number] or "")]
        rows.append(encoded)
    return {"columns": table.columns, "rows": rows}


def encode_numbers(numbers: Iterable[int]) -> str:
    """Encode integers as source maps do: base 64, five bits in each digit, the sign in the lowest bit."""
    return "".join(map(_encode_number, numbers))


_short = {number: _DIGITS[number << 1 if number >= 0 else -number << 1 | 1] for number in range(-15, 16)}


def _encode_number(number: int) -> str:
    found = _short.get(number)
    if found is not None:
        return found
    rest, digits = (number << 1) if number >= 0 else (-number << 1 | 1), ""
    while rest >= 32:
        digits += _DIGITS[32 | rest & 31]
        rest >>= 5
    return digits + _DIGITS[rest]


def encode_texts(numbers: Iterable[int]) -> str:
    """Encode the numbers of texts, such as those of the lines of a file: each as the distance to the one before it."""
    last, distances = 0, []
    for number in numbers:
        distances.append(number - last)
        last = number
    return encode_numbers(distances)


def encode_lines(lines: Sequence[Line], base: Sequence[Line] = ()) -> str:
    """Encode the lines of a manifest, as changes to the lines of another one.

    The result is a sequence of groups: how many lines of the base to skip, to copy, and to add, and the added lines.
    """
    writer = _LineWriter()
    numbers: list[int] = []
    for skipped, copied, added in find_changes(lines, base):
        numbers += (skipped, copied, len(added))
        for line in added:
            writer.write(line, numbers)
    return encode_numbers(numbers)


class _LineWriter:
    """Writes lines as the distance to the line before."""

    def __init__(self) -> None:
        self._text = 0
        self._last = Source(0, 0, 0)

    def write(self, line: Line, numbers: list[int]) -> None:
        """Append the numbers of a line: its text, and 0, 1 or 2 for a common case, else its sources."""
        numbers.append(line.text - self._text)
        self._text = line.text
        last, sources = self._last, line.sources
        if not sources:
            numbers.append(0)
            return
        if len(sources) == 1 and sources[0].origin == last.origin and sources[0].column == last.column:
            if sources[0].line == last.line + 1:
                numbers.append(1)
                self._last = sources[0]
                return
            if sources[0].line == last.line:
                numbers.append(2)
                return
        numbers.append(len(sources) + _FIRST_COUNT)
        for place, source in enumerate(sources):
            numbers += (source.origin - last.origin, source.line - last.line, source.column - last.column)
            if place:
                numbers.append(source.value)
            last = source
        self._last = sources[0]


Change = tuple[int, int, list[Line]]
"""How many lines of the base are skipped, then copied, and the lines that are added then."""


def find_changes(lines: Sequence[Line], base: Sequence[Line]) -> list[Change]:
    """Find which lines of the base are skipped and copied, and which are added.

    One pass: a line is copied from the next place of the base that has it, if that is near.
    """
    places: dict[Line, list[int]] = {}
    for place, line in enumerate(base):
        places.setdefault(line, []).append(place)
    changes: list[Change] = []
    at, skipped, copied, added = 0, 0, 0, list[Line]()
    for line in lines:
        found = next((place for place in places.get(line, ()) if place >= at), None)
        if found is None or found - at > _MAX_SKIPPED:
            added.append(line)
            continue
        if found > at or added:
            changes.append((skipped, copied, added))
            skipped, copied, added = found - at, 0, []
        copied += 1
        at = found + 1
    changes.append((skipped, copied, added))
    return [change for change in changes if any(change)]
