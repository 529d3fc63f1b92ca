"""Documents that differ from one before them in some values only: what both say is read once, and shared.

Repositories are full of them. Where every line that differs holds another value of the same key, the tree of the known
document is copied along the way to these values, and nothing else is looked at.
"""

from __future__ import annotations

from itertools import compress
from operator import ne
from typing import Any, NamedTuple

from jobgen.model.data import Data
from jobgen.yamlio.read.fast import read_lines, rows_of
from jobgen.yamlio.read.lines import NotSureError, Row, build, row_of

_SHORTEST, _LONGEST = 8, 1000
_REMEMBERED = 64
# With more lines that differ, reading anew is as fast.
_MOST_CHANGED = 4


class _Container(NamedTuple):
    """A mapping or list of a document, and where it hangs."""

    node: Any
    parent: int
    key: Any


class _Known:
    """A document with its lines; where their values stand is worked out when a second one is like it."""

    __slots__ = ("_containers", "_of_texts", "_rows", "_slots", "data", "lines")

    def __init__(self, lines: list[str], data: Data) -> None:
        self.lines = lines
        self.data = data
        self._containers: list[_Container] = []
        self._rows: list[Row] = []
        self._of_texts: frozenset[int] = frozenset()
        self._slots: dict[int, tuple[int, Any]] = {}

    def with_lines(self, lines: list[str]) -> Data:
        """The document of other lines, or None if they are not alike."""
        changed = list(compress(range(len(lines)), map(ne, lines, self.lines)))
        if len(changed) * _MOST_CHANGED > len(lines) or not "".join(lines[at] for at in changed).isprintable():
            return None
        if not self._containers:
            self._survey()
        fresh: dict[int, Any] = {}
        for at in changed:
            column, inner, key, value, waits = row_of(lines[at])
            old = self._rows[at]
            if waits or old.waits or at in self._of_texts or (column, inner, key) != old[:3]:
                return None
            if at in self._slots:
                number, place = self._slots[at]
                self._own(number, fresh)[place] = value
        return fresh.get(0, self.data)

    def _own(self, number: int, fresh: dict[int, Any]) -> Any:
        """A copy of a container for the new document, hanging where the old one hung."""
        if number not in fresh:
            node, parent, key = self._containers[number]
            fresh[number] = node.copy()
            if parent >= 0:
                self._own(parent, fresh)[key] = fresh[number]
        return fresh[number]

    def _survey(self) -> None:
        """Find out which line holds which value: the same document once more, its lines' numbers for values."""
        self._rows, self._of_texts = rows_of(self.lines)
        outline = build(row if row.waits else row._replace(value=at) for at, row in enumerate(self._rows))
        ahead = [(outline, _Container(self.data, -1, None))]
        while ahead:
            numbered, container = ahead.pop()
            self._containers.append(container)
            number = len(self._containers) - 1
            for key, child in numbered.items() if isinstance(numbered, dict) else enumerate(numbered):
                if isinstance(child, int):
                    self._slots[child] = (number, key)
                elif child is not None:
                    ahead.append((child, _Container(container.node[key], number, key)))


_known: dict[tuple[int, str], _Known] = {}


def read_alike(text: str) -> tuple[bool, Data]:
    """Whether a document is of the plain sort, and if so its data, which it may share with others."""
    lines = text.split("\n")
    # Files of several kinds take turns in many a folder.
    at = text.find("kind: ")
    sort = (len(lines), text[at : text.find("\n", at)])
    known = _known.get(sort)
    if known is not None:
        try:
            data = known.with_lines(lines)
        except NotSureError:
            # What is doubtful by itself may be a line of a text.
            data = None
        if data is not None:
            return True, data
    sure, data = read_lines(text)
    if isinstance(data, dict) and _SHORTEST <= len(lines) <= _LONGEST:
        if len(_known) >= _REMEMBERED:
            _known.clear()
        _known[sort] = _Known(lines, data)
    return sure, data
