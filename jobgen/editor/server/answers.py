"""Answer requests about a position or a document of an open workspace."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from lsprotocol import types

from jobgen.editor.cursor import Cursor, find_cursor
from jobgen.editor.server.app import JobgenServer, OpenWorkspace

log = logging.getLogger("jobgen.lsp")
_Params = TypeVar("_Params")


class Asked(NamedTuple):
    """A document that a request is about."""

    opened: OpenWorkspace
    file: str
    """Its path from the root of the workspace."""
    uri: str
    text: str


def answer(
    server: JobgenServer,
    method: str,
    handler: Callable[[JobgenServer, _Params], Any],
    options: Any = None,
) -> None:
    """Answer a request. An error is logged and answered with nothing: the server lives, and shows no message."""

    def handle(params: _Params) -> Any:
        try:
            return handler(server, params)
        except Exception:
            log.exception("the request %s failed; please report this bug in jobgen", method)
            return None

    server.feature(method, options)(handle)


def find_document(server: JobgenServer, uri: str) -> Asked | None:
    """Return the document of a request; None if it is not in a workspace or cannot be read."""
    found = server.find_workspace(uri)
    if found is None:
        return None
    try:
        text = server.workspace.get_text_document(uri).source
    except (OSError, ValueError):
        return None
    return Asked(*found, uri, text)


def find_position(server: JobgenServer, uri: str, position: types.Position) -> tuple[Asked, Cursor] | None:
    """Return the document of a request and what is at its position; None if the document is not known."""
    asked = find_document(server, uri)
    if asked is None:
        return None
    lines = asked.text.split("\n")
    if position.line >= len(lines):
        return asked, find_cursor(asked.text, position.line + 1, 1, asked.file)
    place = server.workspace.position_codec.position_from_client_units(lines, position)
    return asked, find_cursor(asked.text, place.line + 1, place.character + 1, asked.file)
