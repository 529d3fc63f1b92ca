"""The model of a report: what a lint found, from which every format in `formats/` is written."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from jobgen.model.data import Location
from jobgen.model.finding import Finding, Severity
from jobgen.model.named_tuple import NamedTuple
from jobgen.repo.shipped import BUILT_IN

if TYPE_CHECKING:
    from jobgen.report.shard_part import ShardPart


class Suppressed(NamedTuple):
    """A finding that a comment, an exception of the settings, or the baseline suppresses."""

    finding: Finding
    reason: str
    by: str = "comment"
    """`comment`, `exception` or `baseline`."""


class RuleText(NamedTuple):
    """The documentation of a rule."""

    category: str
    severity: Severity
    summary: str
    help: str
    page: str = ""
    """The address of the section about it; empty for a policy of the user."""


def _no_lines(_: str) -> Sequence[str]:
    return ()


class Report(NamedTuple):
    """The result of a lint, and how to show it."""

    findings: Sequence[Finding]
    suppressed: Sequence[Suppressed] = ()
    files: int = 0
    objects: int = 0
    environments: Sequence[str] = ()
    rules: Mapping[str, RuleText] = MappingProxyType({})
    """Every rule that was applied, by name."""
    lines: Callable[[str], Sequence[str]] = _no_lines
    """Returns the lines of a file, split at `\\n`; empty if the file cannot be read."""
    show_suppressed: bool = False
    """Whether to show suppressed findings in formats that leave them out by default."""
    width: int = 80
    """Columns of the terminal."""
    color: bool = False
    """Whether the terminal supports colors."""
    link: Callable[[str], str] | None = None
    """Returns the address of the page about a rule, empty without one; None if the terminal shows no links."""
    skipped: Mapping[str, int] = MappingProxyType({})
    """How many files and folders were not judged, by reason."""
    taken: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """What each file was taken for, and why, by path; only those that were decided about."""
    explain_files: bool = False
    """Whether to list also the files that are judged as they are."""
    shard: ShardPart | None = None
    """Which share of a run this is, if it is one."""
    prefix: str = ""
    """The path of the folder that file names are relative to, from the top of the Git repository; empty at the top."""

    def from_top(self, location: Location) -> Location:
        """The location with the path that forges know: from the top of the Git repository."""
        file = location.file
        # Files that come with jobgen and texts that are no path stay as they are.
        if not self.prefix or file.startswith(("/", "<", BUILT_IN)):
            return location
        return location._replace(file=posixpath.normpath(f"{self.prefix}/{file}"))
