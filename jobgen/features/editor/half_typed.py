"""Read a document that is half typed, and so not YAML yet: keys by their indentation, items of lists, flow style.

The result is a traced tree, as the exact reader returns it, of all that can be recognized. A word on a line of its own
is a key that has no colon yet. Nothing is an error here, and any text has a result.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

from jobgen.model.data import Location, TracedKey, TracedList, TracedMapping, TracedScalar
from jobgen.model.lazy_re import lazy_pattern, possessive_pattern
from jobgen.yamlio.read.scalars import resolve

_END_OF_PLAIN = lazy_pattern(r"[,\[\]{}\n]|:(?=[\s,\[\]{}]|\Z)|\s#")
_SPACE = possessive_pattern(r"(?:\s++|(?<=\s)#[^\n]*+)*+")
# Possessive, because a pattern that can go back takes more than 100 bytes of memory for each character.
_SINGLE = possessive_pattern(r"'(?:[^']++|'')*+'(?!')")
_DOUBLE = possessive_pattern(r'"(?:[^"\\]++|\\.)*+"')
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_ESCAPE = lazy_pattern(r"\\(.)")

MAX_NESTING = 200
Locate = Callable[[int, int], Location]
"""Gives the location of a part of the text."""


def read_quoted(text: str, at: int, end: int) -> tuple[str, int]:
    """Return the text in quotes at a position, and where it ends; without a second quote, at the end of the line."""
    match = (_SINGLE if text[at] == "'" else _DOUBLE).match(text, at, end)
    if match is None:
        stop = text.find("\n", at, end)
        stop = stop if stop >= 0 else end
        return text[at + 1 : stop].rstrip(), at + len(text[at:stop].rstrip())
    content = match[0][1:-1]
    if text[at] == "'":
        return content.replace("''", "'"), match.end()
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), content), match.end()


def read_flow(text: str, at: int, end: int, locate: Locate) -> tuple[Any, int]:
    """Read the mapping or list that begins at a position; return it, and where it ends."""
    reader = _FlowReader(text, end, locate)
    while at < end:
        at = reader.read_token(at)
        if not reader.stack:
            break
        space = _SPACE.match(text, at, end)
        at = space.end() if space else at
    return reader.root, at


class _FlowReader:
    """The brackets that are open, and the key of each mapping whose value comes next."""

    def __init__(self, text: str, end: int, locate: Locate) -> None:
        self._text = text
        self._end = end
        self._locate = locate
        self.root: Any = None
        self.stack: list[tuple[Any, str | None, bool]] = []
        """Each open mapping or list, its newest key, and whether the colon after it has been read."""

    def read_token(self, at: int) -> int:
        """Read a bracket, a comma, a colon or a scalar; return where it ends."""
        char = self._text[at]
        if char in "{[":
            location = self._locate(at, at + 1)
            node: Any = TracedMapping(location) if char == "{" else TracedList([], location)
            # What is nested more deeply is read, but left out: no format of Kubernetes needs it.
            if len(self.stack) < MAX_NESTING:
                self._add(node, at)
            self.stack.append((node, None, False))
        elif char in "}]":
            self.stack.pop()
        elif char == ",":
            self._change(None, is_after_colon=False)
        elif char == ":":
            self._change(self.stack[-1][1], is_after_colon=True)
        else:
            return self._read_scalar(at)
        return at + 1

    def _change(self, key: str | None, *, is_after_colon: bool) -> None:
        self.stack[-1] = (self.stack[-1][0], key, is_after_colon)

    def _read_scalar(self, at: int) -> int:
        if self._text[at] in "\"'":
            value, end = read_quoted(self._text, at, self._end)
            resolved: Any = value
        else:
            match = _END_OF_PLAIN.search(self._text, at + 1, self._end)
            value = self._text[at : match.start() if match else self._end].rstrip()
            resolved, end = resolve(value), at + max(len(value), 1)
        node, _, is_after_colon = self.stack[-1]
        if isinstance(node, dict) and not is_after_colon:
            key = TracedKey.at(value, self._locate(at, end))
            node.pop(key, None)
            node[key] = TracedScalar(None, self._locate(end, end))
            self._change(key, is_after_colon=False)
        else:
            self._add(TracedScalar(resolved, self._locate(at, end)), at)
        return end

    def _add(self, value: Any, at: int) -> None:
        """Put a value into the innermost bracket; one without a key is left out."""
        if not self.stack:
            self.root = value
            return
        node, key, is_after_colon = self.stack[-1]
        if isinstance(node, TracedList):
            node.append(value)
            node.item_locations.append(self._locate(at, at))
        elif key is not None and is_after_colon:
            node[key] = value


_WORD = lazy_pattern(r"[A-Za-z\ue000][\w./-]*\Z")
_PROPERTIES = lazy_pattern(r"(?:[&!][^\s,\[\]{}]*[ \t]+)+")
_COLON = lazy_pattern(r":(?=\s|\Z)|\s#", re.ASCII)
_COMMENT = lazy_pattern(r"(?:\A|\s)#")


class _Open(NamedTuple):
    """A mapping or list that lines may continue, the column at which it begins, and its newest key or index."""

    column: int
    node: Any
    last: Any

    def set(self, value: Any) -> None:
        self.node[self.last] = value

    @property
    def value(self) -> Any:
        return self.node[self.last]


def read_half_typed(text: str, file: str = "", first_line: int = 1) -> Any:
    """Read one document; an empty mapping if nothing can be recognized."""
    reader = _Reader(text, file, first_line)
    start = text.lstrip()[:1]
    if start in ("{", "["):
        tree, _ = read_flow(text, text.index(start), len(text), reader.locate)
    else:
        tree = reader.read()
    return tree if isinstance(tree, (dict, list)) else {}


class _Reader:
    """Reads the lines of a document."""

    def __init__(self, text: str, file: str, first_line: int) -> None:
        self._text = text
        self._file = file
        self._first_line = first_line
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._root: dict[str, Any] = {"": None}
        self._open = [_Open(-1, self._root, "")]
        self._skip_to = 0
        """The offset up to which the text has been read, as part of a value of several lines."""

    def locate(self, start: int, end: int) -> Location:
        """Return the location of a part of the text."""
        return Location(self._file, *self._place(start), *self._place(end))

    def _place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._starts, at) - 1
        return line + self._first_line, at - self._starts[line] + 1

    def read(self) -> Any:
        """Read all lines."""
        for number, line in enumerate(self._lines):
            if self._starts[number] >= self._skip_to:
                self._read_line(number, line.rstrip())
        return self._root[""]

    def _read_line(self, number: int, line: str) -> None:
        start, at = self._starts[number], len(line) - len(line.lstrip())
        if not line or line[at] == "#" or line.startswith(("---", "%")):
            return
        while line.startswith("-", at) and line[at + 1 : at + 2] in ("", " ", "\t") and len(self._open) < MAX_NESTING:
            self._open_item(at, start + at)
            after = line[at + 1 :]
            at = len(line) - len(after.lstrip())
            empty = self.locate(start + at, start + at)
            self._open[-1].node.item_locations.append(empty)
            self._open[-1].set(TracedScalar(None, empty))
        if at < len(line):
            self._read_content(number, line, at)

    def _read_content(self, number: int, line: str, at: int) -> None:
        """Read a key and its value, or a value, or a word that may become a key."""
        start = self._starts[number]
        found = _find_key(line, at)
        if found is not None:
            key, end, after = found
            self._open_key(at, TracedKey.at(key, self.locate(start + at, start + end)))
            self._read_value(number, line, after)
        elif _WORD.match(line, at) and not self._continues_scalar(at):
            if type(self._open[-1].node) is TracedList and at > self._open[-1].column:
                self._open[-1].set(TracedScalar(line[at:], self.locate(start + at, start + len(line))))
            else:
                self._open_key(at, TracedKey.at(line[at:], self.locate(start + at, start + len(line))))
                self._open[-1].set(TracedScalar(None, self.locate(start + len(line), start + len(line))))
        elif self._open[-1].column < at and _is_empty(self._open[-1].value):
            self._read_value(number, line, at)

    def _continues_scalar(self, column: int) -> bool:
        """Return True if a line at a column belongs to the scalar before it."""
        top = self._open[-1]
        return top.column < column and type(top.value) is TracedScalar and not _is_empty(top.value)

    def _read_value(self, number: int, line: str, at: int) -> None:
        start, top = self._starts[number], self._open[-1]
        at += len(line[at:]) - len(line[at:].lstrip())
        properties = _PROPERTIES.match(line, at)
        begin, at = at, properties.end() if properties else at
        first = line[at : at + 1]
        if not first or first == "#":
            top.set(TracedScalar(None, self.locate(start + begin, start + begin)))
        elif first in "{[":
            node, self._skip_to = read_flow(self._text, start + at, self._find_end(number, top.column), self.locate)
            top.set(node)
        elif first in "|>":
            self._skip_to = self._find_end(number, top.column)
            text = self._text[start + at : self._skip_to].rstrip("\n")
            top.set(TracedScalar(text.partition("\n")[2], self.locate(start + begin, start + at + len(text))))
        elif first in "\"'":
            value, end = read_quoted(self._text, start + at, self._find_end(number, top.column))
            self._skip_to = end if "\n" in self._text[start + at : end] else 0
            top.set(TracedScalar(value, self.locate(start + begin, end)))
        else:
            comment = _COMMENT.search(line, at)
            value = line[at : comment.start() if comment else len(line)].rstrip()
            top.set(TracedScalar(resolve(value), self.locate(start + begin, start + at + len(value))))

    def _find_end(self, number: int, column: int) -> int:
        """Return the offset of the first line after a line that is not below a column, and closes no bracket."""
        for following in range(number + 1, len(self._lines)):
            line = self._lines[following]
            content = line.lstrip()
            if content and len(line) - len(content) <= column and content[0] not in "}]":
                return self._starts[following]
        return len(self._text)

    def _open_key(self, column: int, key: TracedKey) -> None:
        """Add a key to the mapping at its column, or to a new one."""
        while self._open[-1].column > column or (
            self._open[-1].column == column and type(self._open[-1].node) is TracedList
        ):
            self._open.pop()
        top = self._open[-1]
        if top.column == column:
            self._open[-1] = top._replace(last=key)
        else:
            # A mapping that was read before at another column is continued: the indentation is half typed too.
            node: dict[str, Any] = top.value if isinstance(top.value, dict) else {}
            top.set(node)
            self._open.append(_Open(column, node, key))
        self._open[-1].node.pop(key, None)
        self._open[-1].set(TracedScalar(None, key.location))

    def _open_item(self, column: int, at: int) -> None:
        """Add an item to the list at its column, or to a new one."""
        while self._open[-1].column > column:
            self._open.pop()
        top = self._open[-1]
        if type(top.node) is not TracedList or top.column != column:
            node = top.value if type(top.value) is TracedList else TracedList([], self.locate(at, at + 1))
            top.set(node)
            self._open.append(_Open(column, node, -1))
        node = self._open[-1].node
        node.append(None)
        self._open[-1] = self._open[-1]._replace(last=len(node) - 1)


def _is_empty(value: Any) -> bool:
    return value is None or (type(value) is TracedScalar and value.value is None)


def _find_key(line: str, at: int) -> tuple[str, int, int] | None:
    """Return the key that begins at a position, its end, and the position after its colon; None if there is none."""
    properties = _PROPERTIES.match(line, at)
    at = properties.end() if properties else at
    first = line[at : at + 1]
    if first in ('"', "'"):
        key, end = read_quoted(line, at, len(line))
        after = len(line) - len(line[end:].lstrip())
        is_key = line.startswith(":", after) and line[after + 1 : after + 2] in ("", " ", "\t")
        return (key, end, after + 1) if is_key else None
    if first in "{[#|>@`%":
        return None
    colon = _COLON.search(line, at)
    if colon is None or colon[0] != ":":
        return None
    key = line[at : colon.start()].rstrip()
    return key, at + len(key), colon.end()
