"""Hover."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jobgen.features.editor.hover import find_hover
from jobgen.features.editor.server.app import JobgenServer
from jobgen.features.editor.server.markup import to_hover_markup
from jobgen.features.editor.server.positions import to_range
from jobgen.features.editor.server.requested import find_context


def register(server: JobgenServer) -> None:
    """Answer requests for what to show at a position."""
    server.feature(types.TEXT_DOCUMENT_HOVER)(partial(_hover, server))


def _hover(server: JobgenServer, params: types.HoverParams) -> types.Hover | None:
    found = find_context(server, params.text_document.uri, params.position)
    if found is None:
        return None
    requested, context = found
    hover = find_hover(context)
    if hover is None:
        return None
    return types.Hover(to_hover_markup(server, hover.markdown), to_range(server, requested.uri, hover.location))
