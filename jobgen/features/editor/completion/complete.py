"""Complete what is typed at a position: choose what to offer, and the text that replaces what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from jobgen.features.editor.completion import cel, rules, snippets
from jobgen.features.editor.completion.candidates import Document, list_keys, list_scalars, read_document
from jobgen.features.editor.completion.items import MAX_ITEMS, Item, ItemKind, Offer, Rank
from jobgen.features.editor.completion.known import Known
from jobgen.features.editor.completion.manifests import describe_framework, find_object_schema, list_kinds
from jobgen.features.editor.completion.place import Place, find_place
from jobgen.features.editor.completion.schema_nodes import SchemaNode
from jobgen.features.editor.cursor import Cursor, Part, find_cursor
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import untraced
from jobgen.model.named_tuple import NamedTuple

_POLICY_KINDS = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")


class Completion(NamedTuple):
    """What is offered at a position."""

    offers: tuple[Offer, ...] = ()
    is_incomplete: bool = False
    """Whether more text leads to other offers."""


def complete(text: str, line: int, column: int, file: str, known: Known, found: Iterable[str] = ()) -> Completion:
    """Return what can be written at a position; lines and columns count from 1.

    `file` is the path from the root of the repository; `found` has the rules with findings near the line.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if not 1 <= line <= len(lines):
        return Completion()
    is_alone = not any(each.startswith("---") for each in lines)
    lines, line = _select_document(lines, line)
    column = min(max(column, 1), len(lines[line - 1]) + 1)
    cursor = find_cursor("\n".join(lines), line, column, file)
    before = lines[line - 1][: column - 1]
    if cursor.part is Part.COMMENT:
        comment = before[cursor.location.column - 1 :]
        return _replace_before(column, *rules.complete_comment(comment, known.read_docs, found))
    document = read_document(cursor, file, known)
    place = find_place(cursor, lines, line, column)
    if document.kind in _POLICY_KINDS and cursor.path and cursor.path[-1] in cel.EXPRESSIONS:
        policy = _read_policy(document, known)
        return _replace_before(column, *cel.complete_expression(place.expression, policy))
    if place.spans_lines:
        return Completion()
    return _limit([*_list_offers(cursor, document, place, known, is_alone=is_alone)], place)


def _select_document(lines: list[str], line: int) -> tuple[list[str], int]:
    """Return the lines of the document at a line, and the number of the line among them. The others are not read."""
    starts = [number for number, text in enumerate(lines, 1) if text.startswith("---")]
    first = max((start for start in starts if start <= line), default=1)
    end = min((start for start in starts if start > line), default=len(lines) + 1)
    return lines[first - 1 : end - 1], line - first + 1


def _rank_framework(known: Known, name: str) -> tuple[Rank, str]:
    """Return the rank of a framework, first those that the clusters support, and why not to use it."""
    reason = describe_framework(name, known.kinds, known.clusters)
    return Rank.DEPRECATED if reason else Rank.REQUIRED if known.list_job_kinds(name) else Rank.OTHER, reason


def _list_offers(cursor: Cursor, document: Document, place: Place, known: Known, *, is_alone: bool) -> Iterator[Offer]:
    if document.is_empty:
        for item in snippets.list_documents(document.file, partial(_rank_framework, known), is_alone=is_alone):
            yield Offer(item, place.start, place.end, item.text, item.label)
    path = cursor.path
    if cursor.part is Part.KEY:
        for item, types in list_keys(path[:-1], document, known, place.siblings):
            yield place.write_key(item, types)
        return
    if path and isinstance(path[-1], int) and not place.is_quoted:
        if not place.is_flow and len(path) > 1:
            yield from map(place.write_item, snippets.list_items(path[-2], document.format))
        for item, types in list_keys(path, document, known, ()):
            if item.kind is ItemKind.FIELD:
                yield place.write_key(item, types)
    for item in list_scalars(path, document, known, place.siblings):
        yield place.write_value(item)


def _replace_before(column: int, typed: int, items: Sequence[Item]) -> Completion:
    """Offer items in the place of some characters before the cursor."""
    ordered = sorted(items, key=lambda item: item.rank)
    return Completion(tuple(Offer(item, column - typed, column, item.text, item.label) for item in ordered))


def _limit(offers: Sequence[Offer], place: Place) -> Completion:
    """Offer the best items, each once."""
    unique = list({(offer.item.label, offer.item.above): offer for offer in reversed(offers)}.values())[::-1]
    ordered = sorted(unique, key=lambda offer: offer.item.rank)
    if len(ordered) <= MAX_ITEMS:
        return Completion(tuple(ordered))
    typed = place.typed.lower()
    matching = [offer for offer in ordered if typed in offer.item.label.lower()]
    return Completion(tuple(matching[:MAX_ITEMS]), is_incomplete=True)


def _read_policy(document: Document, known: Known) -> cel.Policy:
    def find_schema(api_version: str, kind: str) -> Sequence[SchemaNode]:
        return find_object_schema(known.root, api_version, kind, known.clusters)

    def find_object(group: str, version: str, resource: str) -> Sequence[SchemaNode]:
        api_version = f"{group}/{version}" if group else version
        for kind in list_kinds(known.kinds, known.clusters):
            if kind.api_version == api_version and resource == kind.plural:
                return find_schema(api_version, kind.name)
        return ()

    plain: Any = untraced(document.data)
    return cel.read_policy(as_mapping(plain), find_object, find_schema)
