"""The document and the position that a request is about."""

from __future__ import annotations

from lsprotocol import types

from jobgen.features.editor.context import Context, make_context
from jobgen.features.editor.cursor import Cursor, find_cursor
from jobgen.features.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.model.named_tuple import NamedTuple


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
