"""Go to definition, and find references."""

from __future__ import annotations

from lsprotocol import types

from jobgen.editor.context import Context, make_context
from jobgen.editor.definition import find_definitions, list_rendered_environments
from jobgen.editor.references import find_references
from jobgen.editor.rendered import RenderedDocument, to_uri
from jobgen.editor.server.answers import Asked, answer, find_position
from jobgen.editor.server.app import JobgenServer
from jobgen.editor.server.positions import to_location
from jobgen.editor.server.rendered import supports_content


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
    places = [to_location(server, asked.opened, place) for place in find_definitions(context)]
    return places or (_list_rendered(asked, context) if supports_content(server) else [])


def _list_rendered(asked: Asked, context: Context) -> list[types.Location]:
    """Return the rendered documents of a job whose objects are not in the repository, one for each environment."""
    start = types.Range(types.Position(0, 0), types.Position(0, 0))
    shown = RenderedDocument(asked.uri, context.cursor.document, name=context.name)
    environments = list_rendered_environments(context)
    return [types.Location(to_uri(shown._replace(environment=each)), start) for each in environments]


def _find_references(server: JobgenServer, params: types.ReferenceParams) -> list[types.Location] | None:
    found = find_position(server, params.text_document.uri, params.position)
    if found is None:
        return None
    asked, cursor = found
    context = make_context(asked.opened.workspace, asked.file, cursor)
    return [to_location(server, asked.opened, place) for place in find_references(context)]
