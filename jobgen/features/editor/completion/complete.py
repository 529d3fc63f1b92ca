"""Complete what is typed at a position: choose what to offer, and the text that replaces what is there."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from jobgen.features.editor.completion import cel, items, names
from jobgen.features.editor.completion.candidates import Document, list_keys, list_scalars, read_document
from jobgen.features.editor.completion.items import MAX_ITEMS, Item, ItemKind, Offer, Rank, escape
from jobgen.features.editor.completion.names import Known
from jobgen.features.editor.completion.schemas import describe_framework
from jobgen.features.editor.cursor import Cursor, Part, find_cursor, get_path
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import TracedKey, TracedList, TracedMapping, untraced, value_of
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
    is_flow: bool
    spans_lines: bool
    needs_space: bool
    """True if there is no space after the colon, dash or comma."""
    siblings: Collection[str]
    """The other keys of the mapping, or the other items of the list."""
    is_json: bool
    """True if keys and texts need quotes."""
    expression: str
    """The value up to the cursor, without its quotes."""

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
        return self._offer(item, item.text.replace("\n", "\n" + " " * (self.start - 1 + self.needs_space)))

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
    own = cursor.path[-1] if cursor.path else ""
    siblings = {str(key) for key in holder if key != own} if isinstance(holder, dict) else set()
    if isinstance(holder, list):
        others = (value_of(item) for index, item in enumerate(holder) if index != own)
        siblings = {item for item in others if isinstance(item, str)}
    return Place(
        start=start,
        end=end,
        typed=text[start - 1 : column - 1].lstrip("'\""),
        quote=quote,
        after=text[end - 1 :],
        is_flow=is_flow,
        spans_lines=spans_lines or written.startswith(("&", "*", "!")),
        needs_space=needs_space,
        siblings=siblings,
        is_json=at.file.endswith(".json"),
        expression=_read_expression(cursor, lines, line, column),
    )


def _starts_block(lines: Sequence[str], cursor: Cursor) -> bool:
    at = cursor.location
    return cursor.part is Part.VALUE and lines[at.line - 1][at.column - 1 : at.column] in ("|", ">")


def _is_flow(holder: Any, lines: Sequence[str], before: str) -> bool:
    """Return True if the mapping or list around a position is in brackets: its first key or item comes after one."""
    if isinstance(holder, (TracedMapping, TracedList)):
        at = holder.location
        return lines[at.line - 1][at.column - 1 : at.column] in ("{", "[") if at.line <= len(lines) else False
    first = next(iter(holder), None) if isinstance(holder, dict) else None
    if isinstance(first, TracedKey):
        at = first.location
        head = "".join(line.split(" #")[0] for line in lines[max(0, at.line - 3) : at.line - 1])
        return (head + lines[at.line - 1][: at.column - 1]).rstrip().endswith("{")
    return before.rstrip().endswith(("{", "[", ","))


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


_POLICY_KINDS = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")


class Completion(NamedTuple):
    """What is offered at a position."""

    offers: tuple[Offer, ...] = ()
    is_incomplete: bool = False
    """True if more text leads to other offers."""


def complete(text: str, line: int, column: int, file: str, known: Known, found: Iterable[str] = ()) -> Completion:
    """Return what can be written at a position; lines and columns count from 1.

    `file` is the path from the root of the repository; `found` has the rules with findings near the line.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if not 1 <= line <= len(lines):
        return Completion()
    # The other documents are not read.
    starts = [number for number, each in enumerate(lines, 1) if each.startswith("---")]
    first = max((start for start in starts if start <= line), default=1)
    end = min((start for start in starts if start > line), default=len(lines) + 1)
    lines, line = lines[first - 1 : end - 1], line - first + 1
    column = min(max(column, 1), len(lines[line - 1]) + 1)
    cursor = find_cursor("\n".join(lines), line, column, file)
    before = lines[line - 1][: column - 1]
    if cursor.part is Part.COMMENT:
        comment = before[cursor.location.column - 1 :]
        return _replace_before(column, *names.complete_comment(comment, known.read_docs, found))
    document = read_document(cursor, file)
    place = find_place(cursor, lines, line, column)
    if document.kind in _POLICY_KINDS and cursor.path and cursor.path[-1] in cel.EXPRESSIONS:
        plain: Any = untraced(document.data)
        policy = cel.read_policy(as_mapping(plain), known)
        return _replace_before(column, *cel.complete_expression(place.expression, policy))
    if place.spans_lines:
        return Completion()
    offers = [*_list_offers(cursor, document, place, known, is_alone=not starts)]
    unique = list({(offer.item.label, offer.item.above): offer for offer in reversed(offers)}.values())[::-1]
    ordered = sorted(unique, key=lambda offer: offer.item.rank)
    if len(ordered) <= MAX_ITEMS:
        return Completion(tuple(ordered))
    matching = [offer for offer in ordered if place.typed.lower() in offer.item.label.lower()]
    return Completion(tuple(matching[:MAX_ITEMS]), is_incomplete=True)


def _rank_framework(known: Known, name: str) -> tuple[Rank, str]:
    """Return the rank of a framework, first those that the clusters support, and why not to use it."""
    reason = describe_framework(name, known.kinds, known.clusters)
    return Rank.DEPRECATED if reason else Rank.REQUIRED if known.list_job_kinds(name) else Rank.OTHER, reason


def _list_offers(cursor: Cursor, document: Document, place: Place, known: Known, *, is_alone: bool) -> Iterator[Offer]:
    if document.is_empty:
        for item in items.list_documents(document.file, partial(_rank_framework, known), is_alone=is_alone):
            yield Offer(item, place.start, place.end, item.text, item.label)
    path = cursor.path
    if cursor.part is Part.KEY:
        for item, types in list_keys(path[:-1], document, known, place.siblings):
            yield place.write_key(item, types)
        return
    if path and isinstance(path[-1], int) and not place.quote:
        if not place.is_flow and len(path) > 1:
            yield from map(place.write_item, items.list_items(path[-2], document.format))
        for item, types in list_keys(path, document, known, ()):
            if item.kind is ItemKind.FIELD:
                yield place.write_key(item, types)
    for item in list_scalars(path, document, known, place.siblings):
        yield place.write_value(item)


def _replace_before(column: int, typed: int, items: Sequence[Item]) -> Completion:
    """Offer items in the place of some characters before the cursor."""
    ordered = sorted(items, key=lambda item: item.rank)
    return Completion(tuple(Offer(item, column - typed, column, item.text, item.label) for item in ordered))
