"""Look up single locations in the text of a document that the fast reader has read.

The data says which keys and items there are, and what is indented more than a key belongs to it. So the line of a node
is found by one search of the text for each step of its path. A property test compares the result with the exact reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from jobgen.model.data import Location, TracedKey
from jobgen.model.lazy_re import possessive_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.placed_tree import add_places
from jobgen.yamlio.read.locations import UnexpectedTextError, Walk

# Lines without content, and the indentation of the next one.
_NO_CONTENT = possessive_pattern(r"(?:\ *+(?:\#[^\n]*+)?\n)*+(\ *+)", re.VERBOSE)
_SPACES = re.compile(r" *")
# Only a line with such an end begins a collection whose other lines may be indented less.
_FLOW_ENDS = ("[\n", "{\n", ",\n")
_MAX_SEARCHES = 30
"""One walk through the whole document costs as much as some of these searches."""

Path = tuple[str | int, ...]


class _Entry(NamedTuple):
    """An entry of a mapping or list in block style: its value, and where it is in the text."""

    value: Any
    line: int
    """The position at which its line starts."""
    column: int
    """The column of its key; -1 for an item."""
    start: int
    """The column after the colon, or of the item."""
    depth: int
    """The number of steps to it."""


class SearchedText:
    """The text of a document, in which nodes are located when they are shown."""

    def __init__(
        self, data: dict[str, Any], text: str, file: str, first_line: int, read_all: Callable[[], Any]
    ) -> None:
        self._data = data
        self._text = text
        self._file = file
        self._first_line = first_line
        self._read_all = read_all
        """Reads the document with all locations, for what a search does not find."""
        self._searches = 0

    def add_places(self, path: Path, layer: str) -> Any:
        """The data at a path, with nodes that know their place in the document."""
        place: Any = self
        for step in path:
            place = (place, step)
        return add_places(_follow(self._data, path), place, layer)

    def locate_key(self, path: Path) -> Location:
        """Return the location of the key at the end of a path."""
        try:
            return self.search_key(path)
        except UnexpectedTextError:
            return _find_key(self._all, path)

    def locate_value(self, path: Path) -> Any:
        """Return a node like that at a path, with its location."""
        try:
            return self.search_value(path)
        except UnexpectedTextError:
            return _follow(self._all, path)

    def search_key(self, path: Path) -> Location:
        """Return the location of the key at the end of a path, if the text is as expected."""
        entry = self._find_entry(path)
        if entry.depth < len(path):
            return _find_key(self._read_entry(entry), path[entry.depth :])
        line = self._number(entry.line) + self._first_line
        return Location(self._file, line, entry.column + 1, line, entry.start)

    def search_value(self, path: Path) -> Any:
        """Return a node like that at a path, with its location, if the text is as expected."""
        entry = self._find_entry(path)
        return _follow(self._read_entry(entry), path[entry.depth :])

    @cached_property
    def _all(self) -> Any:
        return self._read_all()

    @cached_property
    def _lines(self) -> list[str]:
        return self._text.split("\n")

    @cached_property
    def _is_searchable(self) -> bool:
        return not any(end in self._text for end in _FLOW_ENDS)

    def _number(self, position: int) -> int:
        return self._text.count("\n", 0, position)

    def _read_entry(self, entry: _Entry) -> Any:
        """The value of an entry, with all locations in it."""
        walk = Walk(self._lines, self._file, self._first_line)
        walk.go_to_content(self._number(entry.line))
        if entry.column < 0:
            return walk.add_located(entry.value, entry.start)[1]
        return walk.add_to_value(entry.value, entry.column, entry.start)

    def _find_entry(self, path: Path) -> _Entry:
        """The entry at a path, or the one on the way to it whose value is a flow collection."""
        self._searches += 1
        if self._searches > _MAX_SEARCHES or not self._is_searchable:
            raise UnexpectedTextError
        text = self._text
        tree: Any = self._data
        line, column = _go_to_content(text, 0)
        for depth, step in enumerate(path, 1):
            tree = tree[step]
            if type(step) is int:
                line, start = self._find_item(step, line, column)
                if depth == len(path) or type(tree) is not dict or text[line + start] == "{":
                    return _Entry(tree, line, -1, start, depth)
                column = start
            else:
                line = self._find_key_line(str(step), line, column)
                start = column + len(str(step)) + 1
                end = _skip_spaces(text, line + start)
                if depth == len(path) or text[end] not in "#\n":
                    return _Entry(tree, line, column, start, depth)
                line, column = _go_to_content(text, text.index("\n", end) + 1)
        raise UnexpectedTextError

    def _find_key_line(self, key: str, line: int, column: int) -> int:
        """The line of a key of the mapping that begins on a line, at a column."""
        text = self._text
        # The first key of an item is behind a dash.
        if text.startswith((f"{key}: ", f"{key}:\n"), line + column):
            return line
        indented = f"\n{' ' * column}{key}:"
        found = text.find(indented, line)
        while found >= 0:
            if text.startswith((" ", "\n"), found + len(indented)):
                return found + 1
            found = text.find(indented, found + 1)
        raise UnexpectedTextError

    def _find_item(self, index: int, line: int, column: int) -> tuple[int, int]:
        """The line of an item of the list that begins on a line, with its dash at a column, and the item's column."""
        text, dash = self._text, f"\n{' ' * column}- "
        for _ in range(index):
            line = text.find(dash, line) + 1
            if not line:
                raise UnexpectedTextError
        if not text.startswith("- ", line + column):
            raise UnexpectedTextError
        return line, _skip_spaces(text, line + column + 1) - line


def _go_to_content(text: str, position: int) -> tuple[int, int]:
    """The first line from a position on that is neither empty nor a comment, and its indentation."""
    match = _NO_CONTENT.match(text, position)
    assert match is not None
    line, end = match.span(1)
    return line, end - line


def _skip_spaces(text: str, position: int) -> int:
    match = _SPACES.match(text, position)
    assert match is not None
    return match.end()


def _follow(tree: Any, path: Path) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _find_key(tree: Any, path: Path) -> Location:
    """The location of the key at the end of a path in a tree with locations."""
    key = next((each for each in _follow(tree, path[:-1]) if each == path[-1]), None)
    assert isinstance(key, TracedKey)
    return key.location
