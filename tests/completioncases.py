"""Texts with a marked cursor, and what completion does with them."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.features.editor.completion.complete import Completion, complete
from jobgen.features.editor.completion.items import fill_in
from jobgen.features.editor.completion.names import Known, KnownCache
from jobgen.features.editor.workspace import Workspace

MARK = "█"


class RequestedDocument(NamedTuple):
    """A completion, and the text that it was asked for."""

    text: str
    line: int
    completion: Completion

    @property
    def labels(self) -> list[str]:
        """What is offered, in order."""
        return [offer.item.label for offer in self.completion.offers]

    def find(self, label: str):
        """The item with a label."""
        return next(offer.item for offer in self.completion.offers if offer.item.label == label)

    def accept(self, label: str) -> str:
        """The text after an item is accepted, with its own values in the places to fill in."""
        offer = next(each for each in self.completion.offers if each.item.label == label)
        lines = self.text.split("\n")
        line = lines[self.line - 1]
        assert 1 <= offer.start <= offer.end <= len(line) + 1
        new = fill_in(offer.text) if offer.item.is_snippet else offer.text
        lines[self.line - 1] = line[: offer.start - 1] + new + line[offer.end - 1 :]
        if offer.item.above:
            lines.insert(self.line - 1, offer.item.above)
        return "\n".join(lines)


def ask(known: Known, marked: str, file: str = "jobs/job.yaml", found=()) -> RequestedDocument:
    """Ask for completion at the mark in a text."""
    before, _, after = marked.partition(MARK)
    return ask_at(known, before + after, len(before), file, found)


def ask_at(known: Known, text: str, at: int, file: str, found=()) -> RequestedDocument:
    """Ask for completion at an offset of a text."""
    line, column = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
    return RequestedDocument(text, line, complete(text, line, column, file, known, found))


def load_known(folder) -> Known:
    """What a folder knows, before the background process has indexed its jobs."""
    return KnownCache().find(Workspace(folder))
