"""What an editor can offer at a position: a title, and the change that is computed when the user takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobgen.features.editor.workspace import Workspace
from jobgen.model.data import Location
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple

QUICK_FIX = "quickfix"
FIX_ALL = "source.fixAll.jobgen"
EXTRACT = "refactor.extract"
REWRITE = "refactor.rewrite"
KINDS = (QUICK_FIX, FIX_ALL, EXTRACT, REWRITE)
"""The kinds of the protocol; a client asks for some of them."""


class Change(NamedTuple):
    """New contents of files, by path from the root. A file that does not exist is created."""

    files: Mapping[str, bytes]
    note: str = ""
    """What the user has to confirm; empty if nothing can be lost."""


class Offer(NamedTuple):
    """An action: `make` returns the change, or why there is none."""

    id: str
    """Names it among the offers for one position."""
    title: str
    kind: str
    make: Callable[[], Change | str]
    findings: tuple[Finding, ...] = ()
    """The findings that it removes."""
    is_preferred: bool = False


def return_change(change: Change) -> Change:
    """Return a change: what makes it, if it is known already."""
    return change


class ActionRequest(NamedTuple):
    """A request for the actions at a range of a file, by its path from the root."""

    workspace: Workspace
    file: str
    range: Location
    findings: tuple[Finding, ...]
    """All findings in the file. Their locations are valid in its current content."""
    is_invoked: bool = True
    """Whether the user asked for actions. Otherwise the cursor moved, and only what is quick to find is wanted."""

    def is_selected(self, location: Location) -> bool:
        """Whether the range touches a location of the file."""
        if location.file != self.file:
            return False
        start, end = _bounds(self.range)
        first, last = _bounds(location)
        return first <= end and start <= last

    def is_asked_about(self, location: Location) -> bool:
        """Whether the range touches a location, or is a cursor on its line: on `replicas` of a wrong `replicas: 2`."""
        at = self.range
        is_cursor = (at.line, at.column) == (at.end_line, at.end_column)
        return self.is_selected(location) or (
            is_cursor and location.file == self.file and location.line <= at.line <= _bounds(location)[1][0]
        )

    def list_nearest_first(self) -> list[Finding]:
        """Return the findings, first those that the range touches."""
        return sorted(self.findings, key=lambda finding: not self.is_selected(finding.location))


def _bounds(location: Location) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and the last position of a location. One without an end is one character."""
    start = location.line, location.column
    if not location.end_line:
        return start, (location.line, location.column + 1)
    return start, max(start, (location.end_line, location.end_column))
