"""Find single nodes of a document that the fast reader has read, in its text.

The data says which keys and items there are, and what is indented more than a key belongs to it. Where the text is not
as expected, the whole document is read with locations. A property test compares the two.
"""

from __future__ import annotations

import re
from typing import Any

from jobgen.model.data import TracedKey
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.read.locations import UnexpectedTextError, Walk

# Lines of a flow collection may be indented less than what is around it. An alias is not written as its value.
_UNUSUAL = lazy_pattern(r"[\[{,][ \t]*$|[\s\[{,][&*!][^\s]", re.MULTILINE)


class Search:
    """The lines of a document, in which nodes are looked up."""

    def __init__(self, data: Any, text: str, file: str, first_line: int) -> None:
        """Start with the text of a file, of which the document begins on a line, counted from 1."""
        self._data = data
        self._lines = text.split("\n")
        self._file = file
        self._first = first_line - 1
        # One line may hold thousands of values: what is read with locations is kept for the other paths into it.
        self._located: dict[tuple[Any, ...], Any] = {}
        if _UNUSUAL.search(text):
            raise UnexpectedTextError

    def find(self, path: tuple[Any, ...], *, is_key: bool) -> Any:
        """Return the node at a path, or the key at its end, with its location; raise an UnexpectedTextError."""
        for end in range(len(path), 0, -1):
            if not (is_key and end == len(path)) and path[:end] in self._located:
                return _follow(self._located[path[:end]], path[end:], is_key=is_key)
        walk, tree = Walk(self._lines, self._file, 1), self._data
        walk.go_to_content(self._first)
        column = walk.find_indent()
        for depth, step in enumerate(path):
            if type(tree) is list:
                start = self._go_to_item(walk, tree, step, column)
                value: Any = tree[step]
                is_block = type(value) is dict and walk.line[start : start + 1] != "{"
                if depth == len(path) - 1 or not is_block:
                    node = walk.add_to_mapping(value, start) if is_block else walk.add_located(value, start)[1]
                    return self._keep(node, path, depth + 1, is_key=is_key)
                column = start
            else:
                key = str(step)
                _go_to_key(walk, key, column)
                value = tree[step]
                end = column + len(key)
                if is_key and depth == len(path) - 1:
                    return TracedKey.at(key, walk.span(column, end))
                rest = walk.line[end + 1 :].lstrip(" ")
                if depth == len(path) - 1 or (rest and rest[0] != "#"):
                    return self._keep(walk.add_to_value(value, column, end + 1), path, depth + 1, is_key=is_key)
                walk.go_to_content(walk.at + 1)
                # What follows is indented more, but for the dashes of a list.
                indent = walk.find_indent()
                if indent < column or (indent == column and type(value) is not list):
                    raise UnexpectedTextError
                column = indent
            tree = value
        raise UnexpectedTextError

    def _keep(self, node: Any, path: tuple[Any, ...], depth: int, *, is_key: bool) -> Any:
        """Keep the node that begins at a depth of a path, and return the node or key at its end."""
        self._located[path[:depth]] = node
        return _follow(node, path[depth:], is_key=is_key)

    @staticmethod
    def _go_to_item(walk: Walk, items: list[Any], index: int, dash: int) -> int:
        """Go to the line of an item of a list whose dashes stand at a column; return where the item begins."""
        if index >= len(items) or not walk.line.startswith("- ", dash):
            raise UnexpectedTextError
        for _ in range(index):
            _go_to_line(walk, "- ", dash)
        start = dash + 1
        while walk.line[start : start + 1] == " ":
            start += 1
        return start


def _go_to_key(walk: Walk, key: str, column: int) -> None:
    """Go to the line of a key of the mapping that begins on the current line, at a column."""
    wanted = f"{key}:"
    # The first key of an item is behind a dash.
    if not (walk.line.startswith(wanted, column) and walk.line[column + len(wanted) :][:1] in ("", " ")):
        _go_to_line(walk, wanted, column)


def _go_to_line(walk: Walk, wanted: str, column: int) -> None:
    """Go to the next line that has a text at a column, unless the block ends before."""
    lines, end, before = walk.lines, column + len(wanted), " " * column
    for number in range(walk.at + 1, len(lines)):
        line = lines[number]
        start = line[:column]
        if start == before:
            if line[column:end] == wanted and (wanted[-1] == " " or line[end : end + 1] in ("", " ")):
                walk.go_to_content(number)
                return
            if not column and line[:3] in ("---", "..."):
                break
        elif (text := line.lstrip(" ")) and text[0] != "#":
            break
    raise UnexpectedTextError


def _follow(tree: Any, path: tuple[Any, ...], *, is_key: bool) -> Any:
    """Return the node at a path in data with locations, or the key at its end."""
    for step in path[:-1] if is_key else path:
        tree = tree[step]
    return next(key for key in tree if key == path[-1]) if is_key and path else tree
