"""Inlay hints: what to use instead of something deprecated, after it; and lenses for editors that have none."""

from __future__ import annotations

from lsprotocol import types

from jobgen.editor.deprecated import list_deprecated
from jobgen.editor.server.answers import answer, find_document
from jobgen.editor.server.app import JobgenServer
from jobgen.editor.server.lenses import list_lens_hints
from jobgen.editor.server.positions import to_range


def register(server: JobgenServer) -> None:
    """Answer requests for inlay hints."""
    answer(server, types.TEXT_DOCUMENT_INLAY_HINT, _list_hints)


def _list_hints(server: JobgenServer, params: types.InlayHintParams) -> list[types.InlayHint] | None:
    asked = find_document(server, params.text_document.uri)
    if asked is None:
        return None
    known = asked.opened.known.find(asked.opened.workspace)
    hints = list_lens_hints(server, asked)
    for each in list_deprecated(asked.text, asked.file, known):
        end = to_range(server, asked.uri, each.location).end
        hints.append(types.InlayHint(end, each.hint, padding_left=True))
    return [hint for hint in hints if params.range.start.line <= hint.position.line <= params.range.end.line]
