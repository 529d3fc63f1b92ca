"""Go to definition, and find references."""

from __future__ import annotations

from lsprotocol import types

from jobgen.editor.context import make_context
from jobgen.editor.definition import find_definitions
from jobgen.editor.references import find_references
from jobgen.editor.server.answers import answer, find_position
from jobgen.editor.server.app import JobgenServer
from jobgen.editor.server.positions import to_location


def register(server: JobgenServer) -> None:
    """Answer requests for definitions and references."""
    answer(server, types.TEXT_DOCUMENT_DEFINITION, _find_definitions)
    answer(server, types.TEXT_DOCUMENT_REFERENCES, _find_references)


def _find_definitions(server: JobgenServer, params: types.DefinitionParams) -> list[types.Location] | None:
    found = find_position(server, params.text_document.uri, params.position)
    if found is None:
        return None
    asked, cursor = found
    context = make_context(asked.opened.workspace, asked.file, cursor)
    return [to_location(server, asked.opened, place) for place in find_definitions(context)]


def _find_references(server: JobgenServer, params: types.ReferenceParams) -> list[types.Location] | None:
    found = find_position(server, params.text_document.uri, params.position)
    if found is None:
        return None
    asked, cursor = found
    context = make_context(asked.opened.workspace, asked.file, cursor)
    return [to_location(server, asked.opened, place) for place in find_references(context)]
