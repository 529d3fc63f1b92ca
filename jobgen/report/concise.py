"""Findings for people in a hurry, and for grep: a line each, by place."""

from __future__ import annotations

from jobgen.report import Report
from jobgen.report.entries import ReportEntry, entries, suppressed
from jobgen.report.text import visible


def render(report: Report) -> str:
    """All findings, and below each the places it speaks of."""
    told = [*entries(report), *(suppressed(report) if report.show_suppressed else ())]
    told.sort(key=lambda entry: entry.finding.location)
    return "".join(f"{visible(line)}\n" for entry in told for line in lines(entry))


def lines(entry: ReportEntry) -> list[str]:
    """An entry as `text` shows a finding; whoever prints it makes it visible."""
    finding = entry.finding
    word = f"suppressed {finding.severity.value}" if entry.by else finding.severity.value
    said = [f"{finding.location}: {word}: {entry.told} [{finding.rule}]"]
    if entry.by:
        said.append(f"    {entry.silence}")
    return said + [f"    {place}: {message}" for place, message in finding.related]
