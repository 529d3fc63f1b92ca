"""The texts of open documents, in lines as the protocol counts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pygls.workspace import TextDocument, Workspace

from jobgen.features.editor.actions.text_changes import split_lines
from jobgen.features.editor.server.units import Units


class Text(TextDocument):
    """A document whose lines end as the protocol says.

    pygls also ends lines at form feeds and Unicode separators, so an edit after one would change another line.
    """

    _split: tuple[str, Sequence[str]] = ("", ())

    @property
    def lines(self) -> Sequence[str]:
        """The lines with their ends. They are kept, since each finding of a file needs them for its range."""
        source = self.source
        if self._split[0] is not source:
            self._split = source, split_lines(source)
        return self._split[1]


class Texts(Workspace):
    """The open documents."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._position_codec = Units(self.position_encoding)

    def _create_text_document(
        self, doc_uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
    ) -> TextDocument:
        return Text(
            doc_uri, source, version, language_id, sync_kind=self._sync_kind, position_codec=self._position_codec
        )
