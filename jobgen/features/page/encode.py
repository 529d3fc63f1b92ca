"""Encode the data of a page as compact JSON: one list of texts, and tables whose columns are numbers.

docs/report_data.md describes the result. All text that users wrote becomes part of this JSON and of nothing else. The
JSON has no control characters, no bidirectional marks and none of the characters that HTML interprets. Tokens
are hidden in every text, also in labels and names, which nothing else redacts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.k8s.secrets import hide_credentials
from jobgen.reports.escape import visible

_MAX_SKIPPED = 12
"""How many lines of the base are dropped to go on copying; a line that is equal by chance may be far away."""


# A page has hundreds of thousands of these. Tuples are sent to another process in a tenth of the time of named ones.
LineSource = tuple[str, str, int, str]
"""A layer that sets the value of a line, its file, which is empty if no file does, the line there, and the value.

The value is the one that another layer overrides; it is empty for the layer that wins.
"""

Line = tuple[str, tuple[LineSource, ...]]
"""The text of a line, and its sources: the first one wins, and the others are overridden."""


class Change(NamedTuple):
    """How many lines of the base are skipped, how many are then copied, and the lines that are then added."""

    skipped: int
    copied: int
    added: tuple[Line, ...]


def find_changes(lines: Sequence[Line], base: Sequence[Line] = ()) -> tuple[Change, ...]:
    """Find the changes that turn the lines of the base into other lines.

    One pass: a line is copied from the next place of the base that has it, if that is near.
    """
    if not base:
        return (Change(0, 0, tuple(lines)),)
    places: dict[Line, list[int]] = {}
    changes: list[Change] = []
    at, skipped, copied, added = 0, 0, 0, list[Line]()
    end = len(base)
    for line in lines:
        if at < end and base[at] == line:
            found = at
        else:
            if not places:
                for place, each in enumerate(base):
                    places.setdefault(each, []).append(place)
            found = next((place for place in places.get(line, ()) if place >= at), end)
            if found - at > _MAX_SKIPPED or found == end:
                added.append(line)
                continue
        if found > at or added:
            changes.append(Change(skipped, copied, tuple(added)))
            skipped, copied, added = found - at, 0, []
        copied += 1
        at = found + 1
    changes.append(Change(skipped, copied, tuple(added)))
    return tuple(change for change in changes if any(change))


def apply_changes(changes: Sequence[Change], base: Sequence[Line] = ()) -> list[Line]:
    """Apply changes to the lines of the base, as the page does."""
    lines: list[Line] = []
    at = 0
    for skipped, copied, added in changes:
        at += skipped
        lines += (*base[at : at + copied], *added)
        at += copied
    return lines


VERSION = 1
NONE = -1
"""A reference to no row."""

_TEXT = ":text"
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
# What an added line says about its sources.
_NO_SOURCE, _NEXT_LINE, _OTHER_LINE, _ALL_SOURCES = range(4)
_NO_ORIGIN = ("", "")


class Table(NamedTuple):
    """Rows of a table. A column `a:text` has texts, `a:jobs` the numbers of rows of `jobs`, `a` plain numbers."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str | int]]
    lines: Sequence[Sequence[Change]] = ()
    """The lines of each row, as changes to those of its `base`."""


def encode(view: str, head: Mapping[str, str | int], tables: Sequence[Table]) -> str:
    """Return the JSON of a page, which is safe inside of a `script` element.

    The tables `files` and `origins` are added: the files that tables refer to by `:files`, which have their paths here,
    and the layers in files that set values.
    """
    writer = _Writer(tables)
    written = {table.name: writer.write_table(table) for table in tables if table.rows}
    document = {
        "version": VERSION,
        "view": view,
        "head": {
            name: visible(hide_credentials(value)) if isinstance(value, str) else value for name, value in head.items()
        },
        "tables": {**written, **{table.name: writer.write_table(table) for table in writer.list_places()}},
        "texts": [visible(hide_credentials(text)) for text in writer.texts],
    }
    return _escape_markup(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def _escape_markup(text: str) -> str:
    for character, escape in _MARKUP.items():
        text = text.replace(character, escape)
    return text


class _Writer:
    """Writes tables. A text that is used often has a small number, which is short."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._parts: dict[str, tuple[int, str]] = {}
        self._origins = {_NO_ORIGIN: 0}
        self._files = {"": NONE}
        counts = Counter[str]()
        for table in tables:
            counts.update(self._list_texts(table))
        counts.update(part for origin in self._origins for part in origin)
        counts.update(self._files)
        self.texts = ["", *(text for text, _ in counts.most_common() if text)]
        self._numbers = {text: number for number, text in enumerate(self.texts)}
        self._lines = {line: (level, self._numbers[text]) for line, (level, text) in self._parts.items()}

    def _list_texts(self, table: Table) -> Iterator[str]:
        """List every text each time that it is used; note lines, files and origins on the way."""
        for place, column in enumerate(table.columns):
            if column.endswith(_TEXT):
                yield from (str(row[place]) for row in table.rows)
            elif column.endswith(":files"):
                self._note_files(str(row[place]) for row in table.rows)
        for changes in table.lines:
            for change in changes:
                yield from self._list_line_texts(change.added)

    def _list_line_texts(self, lines: Iterable[Line]) -> list[str]:
        parts, origins, texts = self._parts, self._origins, list[str]()
        for text, sources in lines:
            split = parts.get(text)
            if split is None:
                split = parts[text] = _split_indent(text)
            texts.append(split[1])
            for place, (layer, file, _, value) in enumerate(sources):
                if (layer, file) not in origins:
                    self._note_files((file,))
                    origins[layer, file] = len(origins)
                if place:
                    texts.append(value)
        return texts

    def _note_files(self, files: Iterable[str]) -> None:
        for file in files:
            self._files.setdefault(file, len(self._files) - 1)

    def list_places(self) -> list[Table]:
        """List the tables of files and origins."""
        return [
            Table("files", ("path:text",), [(file,) for file in self._files if file]),
            Table("origins", ("layer:text", "file:files"), list(self._origins)),
        ]

    def write_table(self, table: Table) -> dict[str, object]:
        """Return a table by columns, each as the distances of its numbers, and its lines."""
        columns = {
            column: encode_distances(self._to_numbers(column, [row[place] for row in table.rows]))
            for place, column in enumerate(table.columns)
        }
        written: dict[str, object] = {"rows": len(table.rows), "columns": columns}
        if table.lines:
            written["lines"] = [encode_numbers(self._write_changes(changes)) for changes in table.lines]
        return written

    def _to_numbers(self, column: str, values: Sequence[str | int]) -> Iterable[int]:
        if column.endswith(_TEXT):
            return (self._numbers[str(value)] for value in values)
        if column.endswith(":files"):
            return (self._files[str(value)] for value in values)
        return map(int, values)

    def _write_changes(self, changes: Sequence[Change]) -> list[int]:
        numbers: list[int] = []
        state = (0, 0, 0)
        for skipped, copied, added in changes:
            numbers += (skipped, copied, len(added))
            state = self._write_lines(added, state, numbers)
        return numbers

    def _write_lines(self, lines: Iterable[Line], state: _State, numbers: list[int]) -> _State:
        """Add the numbers of lines; return the state after them."""
        level, origin, at = state
        for text, sources in lines:
            depth, number = self._lines[text]
            step = _to_unsigned(depth - level) << 2
            level = depth
            if not sources:
                numbers += (number, step | _NO_SOURCE)
                continue
            layer, file, line, _ = sources[0]
            first = self._origins[layer, file]
            if len(sources) > 1 or first != origin:
                numbers += (number, step | _ALL_SOURCES, len(sources))
                self._write_sources(sources, at, numbers)
            elif line == at + 1:
                numbers += (number, step | _NEXT_LINE)
            else:
                numbers += (number, step | _OTHER_LINE, _to_unsigned(line - at))
            origin, at = first, line
        return level, origin, at

    def _write_sources(self, sources: Sequence[LineSource], at: int, numbers: list[int]) -> None:
        for place, (layer, file, line, value) in enumerate(sources):
            numbers += (self._origins[layer, file], _to_unsigned(line - at))
            numbers += (self._numbers[value],) if place else ()
            at = line


_State = tuple[int, int, int]
"""What the next line is written relative to: a level of indentation, an origin and the number of a line."""


def _split_indent(line: str) -> tuple[int, str]:
    """Split a line into its level of indentation, two spaces each, and its text."""
    text = line.lstrip(" ")
    level, rest = divmod(len(line) - len(text), 2)
    return (level, " " * rest + text) if text else (0, "")


def _to_unsigned(number: int) -> int:
    """Return an integer with its sign in the lowest bit."""
    return number << 1 if number >= 0 else (-number << 1) | 1


def encode_distances(numbers: Iterable[int]) -> str:
    """Encode integers, each as the distance to the one before it."""
    last, distances = 0, list[int]()
    for number in numbers:
        distances.append(_to_unsigned(number - last))
        last = number
    return encode_numbers(distances)


def encode_numbers(numbers: Iterable[int]) -> str:
    """Encode integers that are not negative in base 64: five bits in each digit, 32 in all digits but the last."""
    return "".join([_SHORT[number] if number < _LONG else _encode_number(number) for number in numbers])


def _encode_number(number: int) -> str:
    digits = ""
    while number > 31:
        digits += _DIGITS[32 | number & 31]
        number >>= 5
    return digits + _DIGITS[number]


_LONG = 2**15
_SHORT = list(map(_encode_number, range(_LONG)))
