"""Read flow style (`{a: 1, b: [x]}`) and JSON that is half typed: brackets, commas and quotes may be missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
