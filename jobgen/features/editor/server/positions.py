"""Positions and ranges as an editor counts them: from 0, in the units of the client."""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec, ServerTextPosition, TextDocument, Workspace

from jobgen.features.editor.offers import split_lines
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.model.data import Location
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_BYTES

_NUMBERS = range(2**31)
_MARK = "\ufeff"
"""The byte order mark at the beginning of a file; locations do not count it."""


def are_numbers_of_positions(*numbers: int) -> bool:
    """Return True if positions of the protocol can have these lines and characters."""
    return all(number in _NUMBERS for number in numbers)


def to_range(server: JobgenServer, uri: str, location: Location) -> types.Range:
    """Return the range of a location in a document. Without an end it is one character."""
    start = types.Position(max(location.line - 1, 0), max(location.column - 1, 0))
    end_line = max(location.end_line or location.line, location.line)
    end_column = location.end_column or (location.column + 1 if end_line == location.line else 1)
    found = types.Range(start, types.Position(end_line - 1, max(end_column - 1, 0)))
    lines = _find_lines(server, uri)
    if lines and lines[0].startswith(_MARK):
        # Most editors remove it when they open a file; if this one keeps it, columns of the first line count it.
        for position in (found.start, found.end):
            position.character += position.line == 0
    return server.workspace.position_codec.range_to_client_units(lines, found) if lines else found


def _find_lines(server: JobgenServer, uri: str) -> Sequence[str]:
    """Return the lines of a document, or of a file that is not open; none if all units count the same in it."""
    document = server.find_document(uri)
    if document is not None:
        return document.lines
    path = to_fs_path(uri) or ""
    try:
        found = os.lstat(path)
        # A pipe would never end, and a link may lead out of the repository.
        is_readable = stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES
        return _read_lines(path, found.st_mtime_ns, found.st_size) if is_readable else ()
    except OSError:
        return ()


@lru_cache(maxsize=4)
def _read_lines(path: str, _changed: int, _size: int) -> Sequence[str]:
    """Return the lines of a file. The findings of a file are converted one after the other, so few files are kept."""
    content = Path(path).read_bytes()
    return () if content.isascii() else split_lines(content.decode("utf-8", "replace").removeprefix(_MARK))


def to_location(server: JobgenServer, opened: OpenWorkspace, location: Location) -> types.Location:
    """Return a location of a workspace as the editor needs it."""
    uri = server.find_uri(opened, location.file)
    return types.Location(uri, to_range(server, uri, location))


_LONG = lazy_pattern("[\U00010000-\U0010ffff]")
_LINE_END = re.compile(r"[\r\n]+\Z")


class Units(PositionCodec):
    """Converts positions. Those beyond a line or beyond the text are at its end."""

    def client_num_units(self, string: str) -> int:
        """Return the length of a text."""
        return self._count(string, len(string))

    def position_from_client_units(self, lines: Sequence[str], position: types.Position) -> ServerTextPosition:
        """Return the position in characters."""
        if not lines:
            return ServerTextPosition(0, 0)
        if position.line >= len(lines):
            return ServerTextPosition(len(lines) - 1, len(lines[-1]))
        line = lines[position.line]
        end = len(line) - len(line[-2:]) + len(_LINE_END.sub("", line[-2:]))
        return ServerTextPosition(position.line, min(self._find_index(line, position.character), end))

    def position_to_client_units(
        self, lines: Sequence[str], position: ServerTextPosition | types.Position
    ) -> types.Position:
        """Return the position in the units of the client."""
        if position.line >= len(lines):
            return types.Position(len(lines), 0)
        line = lines[position.line]
        return types.Position(position.line, self._count(line, min(position.character, len(line))))

    def _count(self, line: str, index: int) -> int:
        if line.isascii() or self.encoding == types.PositionEncodingKind.Utf32:
            return index
        if self.encoding == types.PositionEncodingKind.Utf8:
            return len(line[:index].encode("utf-8", "surrogatepass"))
        return index + bisect_left(_find_long(line), index)

    def _find_index(self, line: str, units: int) -> int:
        if line.isascii() or self.encoding == types.PositionEncodingKind.Utf32:
            return units
        if self.encoding == types.PositionEncodingKind.Utf8:
            return len(line.encode("utf-8", "replace")[:units].decode("utf-8", "ignore"))
        long = _find_long(line)
        return units - bisect_left(range(len(long)), units, key=lambda number: long[number] + number)


@lru_cache(maxsize=8)
def _find_long(line: str) -> Sequence[int]:
    """Return where a line has characters that are two in UTF-16."""
    return [match.start() for match in _LONG.finditer(line)]


class LineMap:
    """Where the lines of a text begin, by the line ends of the protocol."""

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self._text = text
        self._codec = codec
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]

    def position(self, offset: int) -> types.Position:
        """Return the position of an offset in the units of the client."""
        line = bisect_right(self._starts, offset) - 1
        return types.Position(line, self._codec.client_num_units(self._text[self._starts[line] : offset]))


class Text(TextDocument):
    """A document whose lines end as the protocol says.

    pygls also ends lines at form feeds and Unicode separators, so an edit after one would change another line.
    """

    _split: tuple[str, Sequence[str]] = ("", ())

    @property
    def lines(self) -> Sequence[str]:
        """The lines with their ends. They are kept, since each finding of a file needs them for its range."""
        source = self.source
        if self._split[0] is not source:
            self._split = source, split_lines(source)
        return self._split[1]


class Texts(Workspace):
    """The open documents."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._position_codec = Units(self.position_encoding)

    def _create_text_document(
        self, doc_uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
    ) -> TextDocument:
        return Text(
            doc_uri, source, version, language_id, sync_kind=self._sync_kind, position_codec=self._position_codec
        )
