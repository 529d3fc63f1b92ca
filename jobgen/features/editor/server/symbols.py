"""Symbols of a document and of the workspace."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jobgen.features.editor.server.app import JobgenServer
from jobgen.features.editor.server.positions import to_location, to_range
from jobgen.features.editor.server.requested import find_document
from jobgen.features.editor.symbols import Symbol, SymbolKind, list_symbols
from jobgen.features.editor.workspace_symbols import MAX_FOUND, find_symbols

_KINDS = {
    SymbolKind.DOCUMENT: types.SymbolKind.Object,
    SymbolKind.JOB: types.SymbolKind.Class,
    SymbolKind.ROLE: types.SymbolKind.Method,
    SymbolKind.CONTAINER: types.SymbolKind.Field,
    SymbolKind.OVERLAY: types.SymbolKind.Namespace,
    SymbolKind.PATCH: types.SymbolKind.Event,
    SymbolKind.KIND: types.SymbolKind.Interface,
    SymbolKind.POLICY: types.SymbolKind.Function,
    SymbolKind.RULE: types.SymbolKind.Boolean,
    SymbolKind.FIELD: types.SymbolKind.Property,
}


def register(server: JobgenServer) -> None:
    """Answer requests for symbols."""
    server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)(partial(_list_document, server))
    server.feature(types.WORKSPACE_SYMBOL)(partial(_list_workspace, server))


def _list_document(server: JobgenServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
    requested = find_document(server, params.text_document.uri)
    if requested is None:
        return None
    return [_to_symbol(server, requested.uri, each) for each in list_symbols(requested.text, requested.file)]


def _to_symbol(server: JobgenServer, uri: str, symbol: Symbol) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=symbol.name,
        kind=_KINDS[symbol.kind],
        range=to_range(server, uri, symbol.location),
        selection_range=to_range(server, uri, symbol.selection),
        detail=symbol.detail or None,
        children=[_to_symbol(server, uri, child) for child in symbol.children] or None,
    )


def _list_workspace(server: JobgenServer, params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
    return [
        types.SymbolInformation(
            to_location(server, opened, each.location), each.name, _KINDS[each.kind], None, None, each.detail
        )
        for opened in server.workspaces.values()
        for each in find_symbols(opened.workspace, params.query)
    ][:MAX_FOUND]
