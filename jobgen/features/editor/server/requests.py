"""Answer requests about a position: hover, symbols, lenses, inlay hints and completion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from lsprotocol import types

from jobgen.features.editor.completion.complete import complete
from jobgen.features.editor.completion.items import Item, Offer, fill_in
from jobgen.features.editor.context import Context, make_context
from jobgen.features.editor.cursor import Cursor, find_cursor
from jobgen.features.editor.hover import find_hover, list_deprecated
from jobgen.features.editor.rendered import Lens, list_lenses
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.features.editor.server.positions import to_location, to_range
from jobgen.features.editor.symbols import MAX_FOUND, Symbol, find_symbols, list_symbols
from jobgen.features.editor.values import simplify
from jobgen.model.data import Location
from jobgen.model.limits import MAX_HOVER_LENGTH, MAX_HOVER_LINES
from jobgen.model.named_tuple import NamedTuple

SHOW_REFERENCES = "jobgen.showReferences"
"""A command of the editor: it has the arguments URI, position and locations. VS Code needs its own types for them."""
LIST_JOBS = "jobgen.listJobs"
"""The same as a command of the server, for editors that have no such command."""
SHOW_RENDERED = "jobgen.showRendered"
_MAX_LISTED = 1000
_MAX_NAMED = 10


class RequestedDocument(NamedTuple):
    """A document that a request is about."""

    opened: OpenWorkspace
    file: str
    """Its path from the root of the workspace."""
    uri: str
    text: str


def find_document(server: JobgenServer, uri: str) -> RequestedDocument | None:
    """Return the document of a request; None if it is not in a workspace or cannot be read."""
    found = server.find_workspace(uri)
    if found is None:
        return None
    opened, file = found
    document = server.find_document(uri)
    if document is not None:
        return RequestedDocument(opened, file, uri, document.source)
    # A pipe would never end, and a link may lead out of the repository, so the file is read as lint reads it.
    read = opened.workspace.read(file)
    return None if read.finding else RequestedDocument(opened, file, uri, read.content.decode("utf-8", "replace"))


def find_position(server: JobgenServer, uri: str, position: types.Position) -> tuple[RequestedDocument, Cursor] | None:
    """Return the document of a request and what is at its position; None if the document is not known."""
    requested = find_document(server, uri)
    if requested is None:
        return None
    lines = requested.text.split("\n")
    if position.line >= len(lines):
        return requested, find_cursor(requested.text, position.line + 1, 1, requested.file)
    place = server.workspace.position_codec.position_from_client_units(lines, position)
    return requested, find_cursor(requested.text, place.line + 1, place.character + 1, requested.file)


def find_context(server: JobgenServer, uri: str, position: types.Position) -> tuple[RequestedDocument, Context] | None:
    """Return the document of a request and what is known about its position; None if the document is not known."""
    found = find_position(server, uri, position)
    if found is None:
        return None
    requested, cursor = found
    opened = requested.opened
    return requested, make_context(opened.workspace, requested.file, cursor, opened.find_decisions())


def to_hover_markup(server: JobgenServer, markdown: str) -> types.MarkupContent:
    """Return Markdown in the form that the client can show in a hover."""
    document = server.client_capabilities.text_document
    hover = document.hover if document else None
    return to_markup(server, markdown, (hover.content_format if hover else None) or ())


def to_markup(server: JobgenServer, markdown: str, formats: Sequence[types.MarkupKind]) -> types.MarkupContent:
    """Return Markdown as it is for a client that says which parser renders it, and in a plain form for others.

    Editors in a terminal accept Markdown, but show its source. `formats` are those that the client accepts here.
    """
    capabilities = server.client_capabilities
    kind = types.MarkupKind.Markdown if types.MarkupKind.Markdown in formats else types.MarkupKind.PlainText
    renders = capabilities.general is not None and capabilities.general.markdown is not None
    return types.MarkupContent(kind, markdown if renders and kind is types.MarkupKind.Markdown else simplify(markdown))


def register(server: JobgenServer) -> None:
    """Answer requests for hovers, symbols, code lenses, inlay hints and completion."""
    server.feature(types.TEXT_DOCUMENT_HOVER)(partial(_hover, server))
    server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)(partial(_list_document, server))
    server.feature(types.WORKSPACE_SYMBOL)(partial(_list_workspace, server))
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(partial(_list_code_lenses, server))
    server.feature(types.TEXT_DOCUMENT_INLAY_HINT)(partial(_list_hints, server))
    server.command(LIST_JOBS)(partial(_list_jobs, server))
    server.listeners.append(partial(_refresh, server))
    answers = _Answers()
    options = types.CompletionOptions(trigger_characters=_TRIGGERS, resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(partial(_complete, answers, server))
    server.feature(types.COMPLETION_ITEM_RESOLVE)(partial(_resolve_item, answers, server))


def _hover(server: JobgenServer, params: types.HoverParams) -> types.Hover | None:
    requested = find_document(server, params.text_document.uri)
    if requested and (requested.text.count("\n") > MAX_HOVER_LINES or len(requested.text) > MAX_HOVER_LENGTH):
        limits = f"{MAX_HOVER_LINES} lines and {MAX_HOVER_LENGTH} characters"
        message = f"This file is too large for a description: at most {limits}. `jobgen explain` has no such limit."
        return types.Hover(to_hover_markup(server, message))
    found = find_context(server, params.text_document.uri, params.position)
    hover = find_hover(found[1]) if found else None
    if found is None or hover is None:
        return None
    return types.Hover(to_hover_markup(server, hover.markdown), to_range(server, found[0].uri, hover.location))


def _list_document(server: JobgenServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
    requested = find_document(server, params.text_document.uri)
    if requested is None:
        return None
    return [_to_symbol(server, requested.uri, each) for each in list_symbols(requested.text, requested.file)]


def _to_symbol(server: JobgenServer, uri: str, symbol: Symbol) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=symbol.name,
        kind=types.SymbolKind[symbol.kind.value],
        range=to_range(server, uri, symbol.location),
        selection_range=to_range(server, uri, symbol.selection),
        detail=symbol.detail or None,
        children=[_to_symbol(server, uri, child) for child in symbol.children] or None,
    )


def _list_workspace(server: JobgenServer, params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
    found = [
        (opened, each) for opened in server.workspaces.values() for each in find_symbols(opened.workspace, params.query)
    ]
    return [
        types.SymbolInformation(
            location=to_location(server, opened, each.location),
            name=each.name,
            kind=types.SymbolKind[each.kind.value],
            container_name=each.detail,
        )
        for opened, each in found[:MAX_FOUND]
    ]


def _list_code_lenses(server: JobgenServer, params: types.CodeLensParams) -> list[types.CodeLens] | None:
    requested = find_document(server, params.text_document.uri)
    if requested is None or _uses_hints(server):
        return None
    return [
        types.CodeLens(to_range(server, requested.uri, lens.location), _to_command(server, requested, lens))
        for lens in list_lenses(requested.opened.workspace, requested.file, requested.opened.find_decisions())
    ]


def _uses_hints(server: JobgenServer) -> bool:
    """Return True if to show inlay hints instead of lenses: the setting says so, or the editor has no lenses."""
    options = server.options.get("inlayHints")
    document = server.client_capabilities.text_document
    has_lenses = document is not None and document.code_lens is not None
    has_hints = document is not None and document.inlay_hint is not None
    return options if isinstance(options, bool) else has_hints and not has_lenses


def _to_command(server: JobgenServer, requested: RequestedDocument, lens: Lens) -> types.Command:
    start = to_range(server, requested.uri, lens.location).start
    if lens.environment is not None:
        argument = {"uri": requested.uri, "position": _to_data(start), "environment": lens.environment}
        return types.Command(title=lens.text, command=SHOW_RENDERED, arguments=[argument])
    places = [to_location(server, requested.opened, place) for place in lens.jobs[:_MAX_LISTED]]
    listed = [{"uri": each.uri, "range": _to_data(each.range)} for each in places]
    if not listed:
        return types.Command(title=lens.text, command="")
    name = SHOW_REFERENCES if SHOW_REFERENCES in server.client_commands else LIST_JOBS
    return types.Command(title=lens.text, command=name, arguments=[requested.uri, _to_data(start), listed])


def _to_data(value: types.Position | types.Range) -> dict[str, Any]:
    if isinstance(value, types.Range):
        return {"start": _to_data(value.start), "end": _to_data(value.end)}
    return {"line": value.line, "character": value.character}


def _list_jobs(server: JobgenServer, *arguments: Any) -> Any:
    """Show the only job of a lens, or a message with the files of several; the result has all of them."""
    places = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], list) else []
    uris = [place["uri"] for place in places if isinstance(place, dict) and isinstance(place.get("uri"), str)]
    if len(uris) == 1:
        server.window_show_document(types.ShowDocumentParams(uris[0], take_focus=True))
    elif uris:
        more = f" and {len(uris) - _MAX_NAMED} more" if len(uris) > _MAX_NAMED else ""
        names = ", ".join(uri.rpartition("/")[2] for uri in uris[:_MAX_NAMED])
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"{names}{more}"))
    return places


def _refresh(server: JobgenServer, _: OpenWorkspace) -> None:
    """Ask the editor for lenses again: other files decide how many jobs a patch matches."""
    workspace = server.client_capabilities.workspace
    if _uses_hints(server):
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            server.workspace_inlay_hint_refresh(None)
    elif workspace and workspace.code_lens and workspace.code_lens.refresh_support:
        server.workspace_code_lens_refresh(None)


def _list_hints(server: JobgenServer, params: types.InlayHintParams) -> list[types.InlayHint] | None:
    requested = find_document(server, params.text_document.uri)
    if requested is None:
        return None
    opened, lines = requested.opened, requested.text.split("\n")
    known = opened.known.find(opened.workspace)
    lenses = list_lenses(opened.workspace, requested.file, opened.find_decisions()) if _uses_hints(server) else ()
    texts: dict[int, list[str]] = {}
    for lens in lenses:
        texts.setdefault(max(lens.location.line - 1, 0), []).append(lens.text)
    hints: list[types.InlayHint] = []
    for line, several in texts.items():
        if line < len(lines):
            column = server.workspace.position_codec.client_num_units(lines[line].rstrip("\r"))
            hints.append(types.InlayHint(types.Position(line, column), "; ".join(several), padding_left=True))
    for each in list_deprecated(requested.text, requested.file, known):
        end = to_range(server, requested.uri, each.location).end
        hints.append(types.InlayHint(end, each.hint, padding_left=True))
    return [hint for hint in hints if params.range.start.line <= hint.position.line <= params.range.end.line]


_TRIGGERS = [".", "[", "{", " "]
_AFTER_SPACE = (": ", "- ", "[ ", "{ ", ", ")


class _Answers:
    """The items of the last answer, whose documentation may be asked for."""

    def __init__(self) -> None:
        self.items: tuple[Item, ...] = ()
        self.number = 0


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


def _resolve_item(answers: _Answers, server: JobgenServer, item: types.CompletionItem) -> types.CompletionItem:
    number, index = item.data if isinstance(item.data, (list, tuple)) and len(item.data) == 2 else (0, 0)
    if number == answers.number and isinstance(index, int) and 0 <= index < len(answers.items):
        item.documentation = _to_documentation(server, answers.items[index])
    return item
