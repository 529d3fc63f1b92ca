"""Inlay hints: what to use instead of something deprecated, after it; and lenses for editors that have none."""

from __future__ import annotations

from functools import partial

from lsprotocol import types

from jobgen.features.editor.deprecated import list_deprecated
from jobgen.features.editor.server.app import JobgenServer
from jobgen.features.editor.server.lenses import list_lens_hints
from jobgen.features.editor.server.positions import to_range
from jobgen.features.editor.server.requested import find_document


def register(server: JobgenServer) -> None:
    """Answer requests for inlay hints."""
    server.feature(types.TEXT_DOCUMENT_INLAY_HINT)(partial(_list_hints, server))


def _list_hints(server: JobgenServer, params: types.InlayHintParams) -> list[types.InlayHint] | None:
    requested = find_document(server, params.text_document.uri)
    if requested is None:
        return None
    known = requested.opened.known.find(requested.opened.workspace)
    hints = list_lens_hints(server, requested)
    for each in list_deprecated(requested.text, requested.file, known):
        end = to_range(server, requested.uri, each.location).end
        hints.append(types.InlayHint(end, each.hint, padding_left=True))
    return [hint for hint in hints if params.range.start.line <= hint.position.line <= params.range.end.line]
