"""What a lint of the whole workspace found, by file: sent from the background process to the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobgen.features.editor.index import IndexChange
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple


class FileFindings(NamedTuple):
    """The findings that are located in one file."""

    own: tuple[Finding, ...] = ()
    """Those that the file has by itself."""
    shared: tuple[Finding, ...] = ()
    """Those that it has because of other files, or that only all files together show."""

    @property
    def all(self) -> tuple[Finding, ...]:
        """All findings, sorted by location."""
        return tuple(sorted((*self.own, *self.shared), key=lambda found: (found.location, found.rule, found.message)))


class Snapshot(NamedTuple):
    """A workspace as the background process found it."""

    number: int = 0
    """The request that it answers."""
    findings: Mapping[str, FileFindings] = {}
    """By path from the root; files without findings are left out."""
    index_change: IndexChange = IndexChange()
    """What changed in the index of the workspace since the snapshot before."""
    keeps_decisions: bool = False
    """Whether the decisions of Kueue that were sent last still hold."""
    error: str = ""
    """Why nothing else was linted: the settings have errors, or something failed."""
    others: frozenset[str] = frozenset()
    """The files that are no finished objects, so that they are not judged by themselves."""
    has_failed: bool = False
    """Whether an exception ended the lint, so that nothing is known about any file."""


def group_findings(findings: Iterable[Finding], own: Mapping[str, frozenset[object]]) -> dict[str, FileFindings]:
    """Group findings by file. `own` has, for each file, the keys of the findings that it has by itself."""
    grouped: dict[str, tuple[list[Finding], list[Finding]]] = {}
    for finding in findings:
        file = finding.location.file
        lists = grouped.setdefault(file, ([], []))
        lists[key_of(finding) not in own.get(file, frozenset())].append(finding)
    return {file: FileFindings(tuple(alone), tuple(shared)) for file, (alone, shared) in grouped.items()}


def key_of(finding: Finding) -> object:
    """What identifies a finding in one lint, whatever severity the settings give it."""
    return finding.rule, finding.location, finding.message, finding.env
