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
        if _UNUSUAL.search(text):
            raise UnexpectedTextError
        self._walk = Walk(text.split("\n"), file, 1)
        self._end = len(self._walk.lines)
        # What a lookup has found on its way is kept for other paths that begin like it: mappings and lists in block
        # style as they are in the data, with their first line and column, and others with their locations.
        self._blocks = {(): (data, *self._find_content(first_line - 1))}
        self._located: dict[tuple[Any, ...], Any] = {}
        # The lines of the first items of lists.
        self._items: dict[tuple[Any, ...], list[int]] = {}

    def find(self, path: tuple[Any, ...], *, is_key: bool) -> Any:
        """Return the node at a path, or the key at its end, with its location; raise an UnexpectedTextError."""
        last = len(path) - 1
        if not path:
            raise UnexpectedTextError
        depth = last if is_key else last + 1
        while path[:depth] not in self._blocks:
            if path[:depth] in self._located:
                return _follow(self._located[path[:depth]], path[depth:], is_key=is_key)
            depth -= 1
        # The value at a path is read with locations, also one in block style.
        depth = min(depth, last)
        tree, at, column = self._blocks[path[:depth]]
        walk, lines = self._walk, self._walk.lines
        while depth <= last:
            step, depth = path[depth], depth + 1
            if type(tree) is list:
                at, start = self._find_item(path[: depth - 1], at, tree, step, column)
                tree = tree[step]
                is_block = type(tree) is dict and lines[at][start : start + 1] != "{"
                if depth > last or not is_block:
                    walk.go_to_content(at)
                    node = walk.add_to_mapping(tree, start) if is_block else walk.add_located(tree, start)[1]
                    return self._keep(node, path, depth, is_key=is_key)
                column = start
            else:
                key = str(step)
                at, end = self._find_key(at, key, column)
                tree = tree[step]
                if is_key and depth > last:
                    walk.go_to_content(at)
                    return TracedKey.at(key, walk.span(column, end - 1))
                rest = lines[at][end:]
                if depth > last or (rest and (rest := rest.lstrip(" ")) and rest[0] != "#"):
                    walk.go_to_content(at)
                    return self._keep(walk.add_to_value(tree, column, end), path, depth, is_key=is_key)
                at, indent = self._find_content(at + 1)
                # What follows is indented more, but for the dashes of a list.
                if indent < column or (indent == column and type(tree) is not list):
                    raise UnexpectedTextError
                column = indent
            self._blocks[path[:depth]] = tree, at, column
        raise UnexpectedTextError

    def _keep(self, node: Any, path: tuple[Any, ...], depth: int, *, is_key: bool) -> Any:
        """Keep the node that begins at a depth of a path, and return the node or key at its end."""
        self._located[path[:depth]] = node
        return _follow(node, path[depth:], is_key=is_key)

    def _find_content(self, at: int) -> tuple[int, int]:
        """Return the first line from a number on that is neither empty nor a comment, and how far it is indented."""
        lines = self._walk.lines
        for number in range(at, self._end):
            text = lines[number].lstrip(" ")
            if text and text[0] != "#":
                return number, lines[number].find(text)
        raise UnexpectedTextError

    def _find_item(self, path: tuple[Any, ...], at: int, items: list[Any], index: int, dash: int) -> tuple[int, int]:
        """Return the line of an item of the list at a path, whose dashes stand at a column, and where it begins."""
        if index >= len(items) or self._walk.lines[at][dash : dash + 2] != "- ":
            raise UnexpectedTextError
        known = self._items.setdefault(path, [at])
        while index >= len(known):
            known.append(self._find_line(known[-1] + 1, "- ", dash))
        line, start = self._walk.lines[known[index]], dash + 1
        while line[start : start + 1] == " ":
            start += 1
        return known[index], start

    def _find_key(self, at: int, key: str, column: int) -> tuple[int, int]:
        """Return the line of a key of the mapping that begins on a line, at a column, and where its colon ends."""
        wanted = f"{key}:"
        line, end = self._walk.lines[at], column + len(wanted)
        # The first key of an item is behind a dash.
        if line[column:end] != wanted or line[end : end + 1] not in ("", " "):
            at = self._find_line(at + 1, wanted, column)
        return at, end

    def _find_line(self, at: int, wanted: str, column: int) -> int:
        """Return the first line from a number on that has a text at a column, unless the block ends before."""
        lines, end, before = self._walk.lines, column + len(wanted), " " * column
        for number in range(at, self._end):
            line = lines[number]
            if line[:column] == before:
                if line[column:end] == wanted and (wanted[-1] == " " or line[end : end + 1] in ("", " ")):
                    return number
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
