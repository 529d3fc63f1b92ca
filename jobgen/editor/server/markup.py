"""Texts with markup, in the form that the client can show."""

from __future__ import annotations

from lsprotocol import types

from jobgen.editor.plain_markdown import simplify
from jobgen.editor.server.app import JobgenServer


def to_hover_markup(server: JobgenServer, markdown: str) -> types.MarkupContent:
    """Return Markdown as it is for a client that says which parser renders it, and in a plain form for others.

    Editors in a terminal accept Markdown, but show its source.
    """
    capabilities = server.client_capabilities
    hover = capabilities.text_document.hover if capabilities.text_document else None
    formats = (hover.content_format if hover else None) or ()
    kind = types.MarkupKind.Markdown if types.MarkupKind.Markdown in formats else types.MarkupKind.PlainText
    renders = capabilities.general is not None and capabilities.general.markdown is not None
    return types.MarkupContent(kind, markdown if renders and kind is types.MarkupKind.Markdown else simplify(markdown))
