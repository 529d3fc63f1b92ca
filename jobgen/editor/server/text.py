"""The texts of open documents, in lines as the protocol counts them."""

from __future__ import annotations

from collections.abc import Sequence

from pygls.workspace import TextDocument, Workspace

from jobgen.editor.actions.text_changes import split_lines


class Text(TextDocument):
    """A document whose lines end as the protocol says.

    pygls also ends lines at form feeds and Unicode separators, so an edit after one would change another line.
    """

    @property
    def lines(self) -> Sequence[str]:
        """The lines with their ends."""
        return split_lines(self.source)


class Texts(Workspace):
    """The open documents."""

    def _create_text_document(
        self, doc_uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
    ) -> TextDocument:
        return Text(
            doc_uri, source, version, language_id, sync_kind=self._sync_kind, position_codec=self._position_codec
        )
