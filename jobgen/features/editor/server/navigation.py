"""Go to definition, and find references."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jobgen.features.editor.context import Context
from jobgen.features.editor.definition import find_definitions, list_rendered_environments
from jobgen.features.editor.references import find_references
from jobgen.features.editor.rendered import RenderedDocument, to_uri
from jobgen.features.editor.server.app import JobgenServer
from jobgen.features.editor.server.positions import to_location
from jobgen.features.editor.server.rendered import supports_content
from jobgen.features.editor.server.requested import RequestedDocument, find_context


def register(server: JobgenServer) -> None:
    """Answer requests for definitions and references."""
    server.feature(types.TEXT_DOCUMENT_DEFINITION)(partial(_find_definitions, server))
    server.feature(types.TEXT_DOCUMENT_REFERENCES)(partial(_find_references, server))


def _find_definitions(server: JobgenServer, params: types.DefinitionParams) -> list[types.Location] | None:
    found = find_context(server, params.text_document.uri, params.position)
    if found is None:
        return None
    requested, context = found
    places = [to_location(server, requested.opened, place) for place in find_definitions(context)]
    return places or (_list_rendered(requested, context) if supports_content(server) else [])


def _list_rendered(requested: RequestedDocument, context: Context) -> list[types.Location]:
    """Return the rendered documents of a job whose objects are not in the repository, one for each environment."""
    start = types.Range(types.Position(0, 0), types.Position(0, 0))
    shown = RenderedDocument(requested.uri, context.cursor.document, name=context.name)
    environments = list_rendered_environments(context)
    return [types.Location(to_uri(shown._replace(environment=each)), start) for each in environments]


def _find_references(server: JobgenServer, params: types.ReferenceParams) -> list[types.Location] | None:
    found = find_context(server, params.text_document.uri, params.position)
    if found is None:
        return None
    requested, context = found
    return [to_location(server, requested.opened, place) for place in find_references(context)]
