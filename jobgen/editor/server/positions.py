"""Ranges of files as an editor counts them: from 0, in the units of the client (UTF-16 unless it asks for others)."""

from __future__ import annotations

from lsprotocol import types

from jobgen.editor.server.app import JobgenServer, OpenWorkspace
from jobgen.model.data import Location


def to_range(server: JobgenServer, uri: str, location: Location) -> types.Range:
    """Return the range of a location in a document. Without an end it is one character."""
    start = types.Position(max(location.line - 1, 0), max(location.column - 1, 0))
    end_line = max(location.end_line or location.line, location.line)
    end_column = location.end_column or (location.column + 1 if end_line == location.line else 1)
    found = types.Range(start, types.Position(end_line - 1, max(end_column - 1, 0)))
    if uri not in server.workspace.text_documents:
        return found
    document = server.workspace.get_text_document(uri)
    return server.workspace.position_codec.range_to_client_units(document.lines, found)


def to_location(server: JobgenServer, opened: OpenWorkspace, location: Location) -> types.Location:
    """Return a location of a workspace as the editor needs it."""
    uri = server.find_uri(opened, location.file)
    return types.Location(uri, to_range(server, uri, location))
