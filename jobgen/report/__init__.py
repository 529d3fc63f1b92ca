"""Findings in the words of those who read them: one module a format, all from one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from jobgen.model.finding import Finding, Severity


class Suppressed(NamedTuple):
    """A finding that was known and is not to be told again: by whose word, and why."""

    finding: Finding
    reason: str
    by: str = "comment"
    """`comment` in the file, or `baseline`."""


class RuleText(NamedTuple):
    """What a rule says about itself."""

    category: str
    severity: Severity
    summary: str
    help: str


def _unread(_: str) -> Sequence[str]:
    return ()


class Report(NamedTuple):
    """All that a lint has to tell, and how much was looked at."""

    findings: Sequence[Finding]
    suppressed: Sequence[Suppressed] = ()
    files: int = 0
    objects: int = 0
    environments: Sequence[str] = ()
    rules: Mapping[str, RuleText] = MappingProxyType({})
    """Every rule that was applied, by name."""
    lines: Callable[[str], Sequence[str]] = _unread
    """The lines of a file that a finding stands in: its text split at `\\n`, or nothing if it cannot be read."""
    show_suppressed: bool = False
    """Whether suppressed findings are to be told as well, where that is a choice."""
