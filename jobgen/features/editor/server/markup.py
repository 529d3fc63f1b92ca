"""Texts with markup, in the form that the client can show."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from jobgen.features.editor.plain_markdown import simplify
from jobgen.features.editor.server.app import JobgenServer


def to_hover_markup(server: JobgenServer, markdown: str) -> types.MarkupContent:
    """Return Markdown in the form that the client can show in a hover."""
    document = server.client_capabilities.text_document
    hover = document.hover if document else None
    return to_markup(server, markdown, (hover.content_format if hover else None) or ())


def to_markup(server: JobgenServer, markdown: str, formats: Sequence[types.MarkupKind]) -> types.MarkupContent:
    """Return Markdown as it is for a client that says which parser renders it, and in a plain form for others.

    Editors in a terminal accept Markdown, but show its source. `formats` are those that the client accepts here.
    """
    capabilities = server.client_capabilities
    kind = types.MarkupKind.Markdown if types.MarkupKind.Markdown in formats else types.MarkupKind.PlainText
    renders = capabilities.general is not None and capabilities.general.markdown is not None
    return types.MarkupContent(kind, markdown if renders and kind is types.MarkupKind.Markdown else simplify(markdown))
