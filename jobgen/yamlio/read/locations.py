"""Add locations to a document that the fast reader has read.

The data says what comes next in the text, so only positions are looked up, in about a tenth of the time that the exact
reader takes. Where the text is not as expected, the exact reader takes over. A property test compares the two.
"""

from __future__ import annotations

from typing import Any

from jobgen.model.data import Location, Scalar, TracedKey, TracedList, TracedMapping, TracedScalar
from jobgen.model.lazy_re import lazy_pattern
from jobgen.yamlio.read.scalars import to_text

# A number, a boolean or null.
_WORD = lazy_pattern(r"[^\s,\[\]{}#]+")
_new_tuple = tuple.__new__


class UnexpectedTextError(Exception):
    """The text is not as the data says."""


def add_locations(data: dict[str, Any], text: str, file: str, first_line: int) -> dict[str, Any]:
    """The data of a document, whose first line has this number, with locations."""
    walk = Walk(text.split("\n"), file, first_line)
    walk.go_to_content(0)
    found = walk.add_to_mapping(data, walk.find_indent())
    if walk.line:
        raise UnexpectedTextError
    return found


class Walk:
    """One walk through the data of a document and the lines of its text at the same time."""

    def __init__(self, lines: list[str], file: str, first_line: int) -> None:
        self.lines = lines
        self.file = file
        self.first_line = first_line
        self.at = 0
        self.line = ""
        self.number = 0

    def go_to_content(self, at: int) -> None:
        """Go to the first line from a number on that is neither empty nor a comment."""
        while at < len(self.lines):
            line = self.lines[at]
            content = line.lstrip(" ")
            if content and content[0] != "#":
                self.at, self.line, self.number = at, line, at + self.first_line
                return
            at += 1
        self.at, self.line = at, ""

    def find_indent(self) -> int:
        """Return how far the current line is indented."""
        return len(self.line) - len(self.line.lstrip(" "))

    def span(self, start: int, end: int) -> Location:
        """The location of some columns of the current line, counted from 0."""
        # A third of the time of `Location(…)`.
        return _new_tuple(Location, (self.file, self.number, start + 1, self.number, end + 1))

    def add_to_mapping(self, mapping: dict[str, Any], column: int) -> dict[str, Any]:
        """A mapping in block style, whose keys begin at a column."""
        found: dict[str, Any] = {}
        for key, child in mapping.items():
            line, end = self.line, column + len(key)
            if not line.startswith(key, column) or line[end : end + 1] != ":":
                raise UnexpectedTextError
            traced = TracedKey.at(key, self.span(column, end))
            if (
                type(child) is str
                and end + 2 + len(child) == len(line)
                and line.endswith(child)
                and child[:1] not in "|>"
            ):
                # Most lines are a key and a text without quotes. `|-` may be the text below itself.
                found[traced] = TracedScalar(child, self.span(end + 2, len(line)))
                self.go_to_content(self.at + 1)
            else:
                found[traced] = self.add_to_value(child, column, end + 1)
        return found

    def add_to_value(self, value: Any, column: int, end: int) -> Any:
        """The value of a key at a column, after the end of its colon: on the same line, or on the next ones."""
        content = self.line[end:].lstrip(" ")
        if content and content[0] != "#":
            return self.add_located(value, len(self.line) - len(content))[1]
        if value is None:
            node = TracedScalar(None, self.span(end, end))
            self.go_to_content(self.at + 1)
            return node
        if not value or not isinstance(value, (dict, list)):
            raise UnexpectedTextError
        self.go_to_content(self.at + 1)
        if isinstance(value, dict):
            return self.add_to_mapping(value, self.find_indent())
        return self._add_to_list(value, column)

    def _add_to_list(self, items: list[Any], column: int) -> TracedList:
        """A list in block style, below a key at a column."""
        dash = self.find_indent()
        # To libyaml, a list that is not indented begins with its first dash; any other, before it.
        found = TracedList((), self.span(dash, dash + (dash == column)))
        for item in items:
            if not self.line.startswith("- ", dash):
                raise UnexpectedTextError
            start = _skip_spaces(self.line, dash + 1)
            if type(item) is dict and self.line[start : start + 1] != "{":
                found.item_locations.append(self.span(start, start))
                found.append(self.add_to_mapping(item, start))
            else:
                location, node = self.add_located(item, start)
                found.item_locations.append(location)
                found.append(node)
        return found

    def add_located(self, value: Any, start: int) -> tuple[Location, Any]:
        """A value that begins on the current line, and its own location; go to the line after it."""
        if self.line[start:] in ("|", "|-"):
            scalar = self._add_to_block(value, start)
            return scalar.location, scalar
        if self.line[start] == ">":
            # Its lines were folded, so the value does not tell where it ends.
            raise UnexpectedTextError
        location, node, end = self._add_to_flow(value, start)
        rest = self.line[end:].lstrip(" ")
        if rest and rest[0] != "#":
            raise UnexpectedTextError
        self.go_to_content(self.at + 1)
        return location, node

    def _add_to_block(self, value: str, start: int) -> TracedScalar:
        """A block scalar. To libyaml, it ends where the next line with text begins."""
        lines, number = self.lines, self.number
        after = self.at + 1 + value.count("\n") + self.line.endswith("-")
        while after < len(lines) and not lines[after].strip(" "):
            after += 1
        after = min(after, len(lines) - 1)
        self.go_to_content(after)
        return TracedScalar(value, Location(self.file, number, start + 1, after + self.first_line, 1))

    def _add_to_flow(self, value: Any, start: int) -> tuple[Location, Any, int]:
        """A scalar or a flow collection on the current line: its own location, the node, and where it ends."""
        if type(value) is list or type(value) is dict:
            return self._add_to_flow_collection(value, start)
        end = self._find_end(value, start)
        location = self.span(start, end)
        node = TracedScalar(value, location)
        if type(value) is not str and value is not None and self.line[start:end] != to_text(value):
            node.written = self.line[start:end]
        return location, node, end

    def _add_to_flow_collection(self, value: Any, start: int) -> tuple[Location, Any, int]:
        opening, closing = ("[", "]") if type(value) is list else ("{", "}")
        self._expect(opening, start)
        location, at = self.span(start, start + 1), start + 1
        found: Any = TracedList((), location) if type(value) is list else {} if value else TracedMapping(location)
        for part in value:
            begin = _skip_separator(self.line, at)
            if type(value) is list:
                own, node, at = self._add_to_flow(part, begin)
                found.item_locations.append(own)
                found.append(node)
            else:
                end = self._find_end(part, begin)
                self._expect(":", end)
                _, node, at = self._add_to_flow(value[part], _skip_spaces(self.line, end + 1))
                found[TracedKey.at(part, self.span(begin, end))] = node
        end = _skip_spaces(self.line, at)
        self._expect(closing, end)
        return location, found, end + 1

    def _find_end(self, value: Scalar, start: int) -> int:
        """The end of a scalar that begins at a column."""
        if not isinstance(value, str):
            word = _WORD.match(self.line, start)
            if word is None:
                raise UnexpectedTextError
            return word.end()
        quote = self.line[start : start + 1]
        text = f"{quote}{value}{quote}" if quote in ("'", '"') else value
        if not self.line.startswith(text, start):
            raise UnexpectedTextError
        return start + len(text)

    def _expect(self, character: str, at: int) -> None:
        if self.line[at : at + 1] != character:
            raise UnexpectedTextError


# Patterns would take three calls for what is at most a few characters.
def _skip_spaces(line: str, at: int) -> int:
    while line[at : at + 1] == " ":
        at += 1
    return at


def _skip_separator(line: str, at: int) -> int:
    while line[at : at + 1] in (" ", ","):
        at += 1
    return at
