"""Findings as one line each, errors first."""

from __future__ import annotations

from jobgen.reports import Report
from jobgen.reports.entries import ReportEntry, shown_entries, worst_first
from jobgen.reports.escape import visible
from jobgen.reports.formats import FormatInfo

FORMAT = FormatInfo("short output, `grep`", "one entry", "with `--show-suppressed`")


def render(report: Report) -> str:
    """Return one line for each entry, followed by its related locations."""
    return "".join(f"{visible(line)}\n" for entry in worst_first(shown_entries(report)) for line in entry_lines(entry))


def entry_lines(entry: ReportEntry) -> list[str]:
    """Return the lines of an entry; the caller escapes them."""
    finding = entry.finding
    severity = f"suppressed {finding.severity.value}" if entry.by else finding.severity.value
    lines = [f"{finding.location}: {severity}: {entry.message} [{finding.rule}]"]
    if entry.by:
        lines.append(f"    {entry.suppression_note}")
    return lines + [f"    {location}: {message}" for location, message in finding.related]
