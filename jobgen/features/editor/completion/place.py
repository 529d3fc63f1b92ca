"""Where a completion goes: the part of the line that it replaces, and the style of what is around it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from jobgen.features.editor.completion.items import Item, ItemKind, Offer
from jobgen.features.editor.completion.snippets import escape
from jobgen.features.editor.cursor import Cursor, Part, get_path
from jobgen.model.data import TracedKey, TracedList, TracedMapping, value_of
from jobgen.model.named_tuple import NamedTuple

_INDENT = "  "
_WORDS = ("true", "false", "null")


class Place(NamedTuple):
    """Where a completion goes."""

    start: int
    """The column of the first character that is replaced, from 1."""
    end: int
    typed: str
    """What is typed already, without a quote."""
    quote: str
    """The quote that a key or value begins with; empty without one."""
    after: str
    """What follows on the line."""
    is_flow: bool
    """Whether it is in brackets or braces."""
    spans_lines: bool
    """Whether it is inside a value of several lines."""
    needs_space: bool
    """Whether there is no space after the colon, dash or comma."""
    siblings: Collection[str]
    """The other keys of the mapping, or the other items of the list."""
    is_json: bool
    """Whether keys and texts need quotes."""
    expression: str
    """The value up to the cursor, without its quotes."""

    @property
    def is_quoted(self) -> bool:
        """Whether it is in quotes."""
        return bool(self.quote)

    def write_key(self, item: Item, types: Sequence[str]) -> Offer:
        """Offer a key, with what follows it: a space, or the next line if its value is a mapping or a list."""
        is_whole = item.kind is ItemKind.FIELD and bool(item.insert)
        quote = self.quote or ('"' if self.is_json else "")
        key = f"{quote}{item.label}{quote}" if quote else item.label if is_whole else item.text
        follows = self.after.lstrip()
        if follows.startswith(":"):
            return self._offer(item, key)
        if is_whole and not quote and not self.is_flow:
            return self._offer(item, item.insert)
        if self.is_flow:
            ends = {"object": "{$1}", "array": "[$1]"}
            end = ends.get(types[0] if types else "", "")
            start = escape(key) if end else key
            return self._offer(item._replace(is_snippet=bool(end)), f"{start}: {end}")
        indent = " " * (self.start - 1 + self.needs_space) + _INDENT
        first = types[0] if types else ""
        if first not in ("object", "array") or follows:
            return self._offer(item, f"{key}: ")
        return self._offer(item, f"{key}:\n{indent}" + ("- " if first == "array" else ""))

    def write_value(self, item: Item) -> Offer:
        """Offer a value, in the quotes that are there."""
        if self.quote == "'":
            return self._offer(item, "'" + item.label.replace("'", "''") + "'")
        if self.quote:
            return self._offer(item, '"' + item.label.replace("\\", "\\\\").replace('"', '\\"') + '"')
        item = item._replace(above="") if self.is_flow else item
        is_text = item.label == item.text and item.label not in _WORDS
        return self._offer(item, json.dumps(item.label) if self.is_json and is_text else item.text)

    def write_item(self, item: Item) -> Offer:
        """Offer an item of a list, of several lines."""
        return self._offer(item, self.indent(item.text))

    def indent(self, text: str) -> str:
        """Return a text of several lines as it is written here."""
        return text.replace("\n", "\n" + " " * (self.start - 1 + self.needs_space))

    def _offer(self, item: Item, text: str) -> Offer:
        space = " " if self.needs_space else ""
        return Offer(item, self.start, self.end, space + text, f"{self.quote}{item.label}")


def find_place(cursor: Cursor, lines: Sequence[str], line: int, column: int) -> Place:
    """Return where a completion goes."""
    at = cursor.location
    text = lines[line - 1]
    spans_lines = _starts_block(lines, cursor) or at.line != line or at.end_line != line
    start, end = (column, column) if spans_lines else (at.column, max(at.end_column, column))
    written = text[start - 1 : end - 1]
    quote = written[:1] if written[:1] in ("'", '"') else ""
    before = text[: start - 1]
    holder = get_path(cursor.tree, cursor.path[:-1])
    is_flow = _is_flow(holder, lines, before)
    is_item = bool(cursor.path) and isinstance(cursor.path[-1], int)
    needs_space = (
        (cursor.part is Part.VALUE and before.endswith(":"))
        or (is_item and not is_flow and before.endswith("-"))
        or (is_flow and before.endswith(","))
    )
    return Place(
        start,
        end,
        text[start - 1 : column - 1].lstrip("'\""),
        quote,
        text[end - 1 :],
        is_flow,
        spans_lines or written.startswith(("&", "*", "!")),
        needs_space,
        _list_siblings(holder, cursor),
        cursor.location.file.endswith(".json"),
        _read_expression(cursor, lines, line, column),
    )


def _starts_block(lines: Sequence[str], cursor: Cursor) -> bool:
    at = cursor.location
    return cursor.part is Part.VALUE and lines[at.line - 1][at.column - 1 : at.column] in ("|", ">")


def _is_flow(holder: Any, lines: Sequence[str], before: str) -> bool:
    """Whether the mapping or list around a position is in brackets: its first key or item comes after one."""
    if isinstance(holder, (TracedMapping, TracedList)):
        at = holder.location
        return lines[at.line - 1][at.column - 1 : at.column] in ("{", "[") if at.line <= len(lines) else False
    first = next(iter(holder), None) if isinstance(holder, dict) else None
    if isinstance(first, TracedKey):
        at = first.location
        head = "".join(line.split(" #")[0] for line in lines[max(0, at.line - 3) : at.line - 1])
        return (head + lines[at.line - 1][: at.column - 1]).rstrip().endswith("{")
    return before.rstrip().endswith(("{", "[", ","))


def _list_siblings(holder: Any, cursor: Cursor) -> Collection[str]:
    own = cursor.path[-1] if cursor.path else ""
    if isinstance(holder, dict):
        return frozenset(str(key) for key in holder if key != own)
    if isinstance(holder, list):
        others = (value_of(item) for index, item in enumerate(holder) if index != own)
        return frozenset(str(item) for item in others if isinstance(item, str))
    return ()


def _read_expression(cursor: Cursor, lines: Sequence[str], line: int, column: int) -> str:
    """Return the value at a position up to the cursor, as it is read."""
    at = cursor.location
    if at.line == line and not _starts_block(lines, cursor):
        written = lines[line - 1][at.column - 1 : column - 1]
    else:
        first = lines[at.line - 1][at.column - 1 :] if at.line <= len(lines) else ""
        start = [] if first[:1] in ("|", ">") else [first]
        written = "\n".join([*start, *lines[at.line : line - 1], lines[line - 1][: column - 1]])
    if written.startswith("'"):
        return written[1:].replace("''", "'")
    return written[1:].replace('\\"', '"') if written.startswith('"') else written
