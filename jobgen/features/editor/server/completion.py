"""Completion: what can be written at a position. The documentation of an item is sent when an editor asks for it."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jobgen.features.editor.completion.complete import complete
from jobgen.features.editor.completion.items import Item, Offer, fill_in
from jobgen.features.editor.server.app import JobgenServer
from jobgen.features.editor.server.positions import to_range
from jobgen.features.editor.server.requests import find_document, to_markup
from jobgen.model.data import Location

_TRIGGERS = [".", "[", "{", " "]
_AFTER_SPACE = (": ", "- ", "[ ", "{ ", ", ")


class _Answers:
    """The items of the last answer, whose documentation may be asked for."""

    def __init__(self) -> None:
        self.items: tuple[Item, ...] = ()
        self.number = 0


def register(server: JobgenServer) -> None:
    """Answer requests for completion."""
    answers = _Answers()
    options = types.CompletionOptions(trigger_characters=_TRIGGERS, resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(partial(_complete, answers, server))
    server.feature(types.COMPLETION_ITEM_RESOLVE)(partial(_resolve, answers, server))


def _complete(answers: _Answers, server: JobgenServer, params: types.CompletionParams) -> types.CompletionList | None:
    requested = find_document(server, params.text_document.uri)
    lines = requested.text.split("\n") if requested else []
    if requested is None or params.position.line >= len(lines):
        return None
    place = server.workspace.position_codec.position_from_client_units(lines, params.position)
    line, column = place.line + 1, place.character + 1
    is_space = params.context is not None and params.context.trigger_character == " "
    before = lines[line - 1][: column - 1] if line <= len(lines) else ""
    if is_space and not before.endswith(_AFTER_SPACE):
        # It begins no value: an editor must not offer something at each word of a text.
        return None
    opened, file = requested.opened, requested.file
    findings = opened.workspace.snapshot.findings.get(file)
    # A comment can suppress findings of its line or the next one.
    rules = [each.rule for each in findings.all if each.location.line in (line, line + 1)] if findings else []
    completion = complete(requested.text, line, column, file, opened.known.find(opened.workspace), rules)
    answers.number += 1
    answers.items = tuple(offer.item for offer in completion.offers)
    items: list[types.CompletionItem] = []
    for index, offer in enumerate(completion.offers):
        replaced = to_range(server, requested.uri, Location("", line, offer.start, line, offer.end))
        # A location without a length has one character elsewhere; here nothing is replaced.
        end = replaced.start if offer.start == offer.end else replaced.end
        items.append(to_item(server, answers.number, offer, index, types.Range(replaced.start, end)))
    return types.CompletionList(is_incomplete=completion.is_incomplete, items=items)


def to_item(server: JobgenServer, number: int, offer: Offer, index: int, place: types.Range) -> types.CompletionItem:
    """Return an offer in the form that the client supports: the offer of an answer with a number, at an index."""
    item = offer.item
    supported = _find_capabilities(server)
    is_snippet = item.is_snippet and bool(supported.snippet_support)
    # An editor that does not leave the lines of a snippet as they are indents them itself.
    written = offer.text if supported.insert_text_mode_support else item.text if "\n" in item.text else offer.text
    text = written if is_snippet else fill_in(offer.text) if item.is_snippet else offer.text
    above = types.Position(place.start.line, 0)
    # An editor that asks for the documentation of the item that it shows gets it then.
    is_resolved = supported.resolve_support is not None and "documentation" in supported.resolve_support.properties
    return types.CompletionItem(
        label=item.label,
        kind=types.CompletionItemKind[item.kind.value],
        tags=[types.CompletionItemTag.Deprecated] if item.deprecated and supported.tag_support else None,
        deprecated=True if item.deprecated and not supported.tag_support else None,
        detail=item.deprecated or item.detail or None,
        sort_text=f"{item.rank}{index:05}",
        filter_text=offer.typed,
        insert_text_format=types.InsertTextFormat.Snippet if is_snippet else types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs if supported.insert_text_mode_support else None,
        text_edit=types.TextEdit(place, text),
        additional_text_edits=[types.TextEdit(types.Range(above, above), f"{item.above}\n")] if item.above else None,
        documentation=None if is_resolved else _to_documentation(server, item),
        data=[number, index],
    )


def _find_capabilities(server: JobgenServer) -> types.ClientCompletionItemOptions:
    document = server.client_capabilities.text_document
    found = document.completion.completion_item if document and document.completion else None
    return found or types.ClientCompletionItemOptions()


def _to_documentation(server: JobgenServer, item: Item) -> types.MarkupContent | None:
    parts = [f"Deprecated: {item.deprecated}." if item.deprecated else "", item.documentation]
    text = "\n\n".join(filter(None, parts))
    formats = _find_capabilities(server).documentation_format
    return to_markup(server, text, formats or ()) if text else None


def _resolve(answers: _Answers, server: JobgenServer, item: types.CompletionItem) -> types.CompletionItem:
    number, index = item.data if isinstance(item.data, (list, tuple)) and len(item.data) == 2 else (0, 0)
    if number == answers.number and isinstance(index, int) and 0 <= index < len(answers.items):
        item.documentation = _to_documentation(server, answers.items[index])
    return item
