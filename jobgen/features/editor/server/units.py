"""Positions in the units of the client: characters of UTF-16, unless it asks for others.

pygls counts the characters of a line one by one for each position, so a file of one long line with many findings would
take minutes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

from lsprotocol import types
from pygls.workspace import PositionCodec, ServerTextPosition

from jobgen.model.lazy_re import lazy_pattern

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
