"""Hover."""

from __future__ import annotations

from lsprotocol import types

from jobgen.editor.context import make_context
from jobgen.editor.hover import find_hover
from jobgen.editor.server.answers import answer, find_position
from jobgen.editor.server.app import JobgenServer
from jobgen.editor.server.markup import to_hover_markup
from jobgen.editor.server.positions import to_range


def register(server: JobgenServer) -> None:
    """Answer requests for what to show at a position."""
    answer(server, types.TEXT_DOCUMENT_HOVER, _hover)


def _hover(server: JobgenServer, params: types.HoverParams) -> types.Hover | None:
    found = find_position(server, params.text_document.uri, params.position)
    if found is None:
        return None
    asked, cursor = found
    opened = asked.opened
    hover = find_hover(make_context(opened.workspace, asked.file, cursor, opened.find_decisions()))
    if hover is None:
        return None
    return types.Hover(to_hover_markup(server, hover.markdown), to_range(server, asked.uri, hover.location))
