"""Findings for GitLab's code quality widget."""

from __future__ import annotations

from jobgen.model.finding import Severity
from jobgen.reports import Report
from jobgen.reports.entries import RANK, ReportEntry, entries, fingerprints
from jobgen.reports.escape import dump_json_list, relative_path
from jobgen.reports.formats import FormatInfo

FORMAT = FormatInfo(
    "GitLab code quality", "one item", "never: the format has no field for them", names_files_from_top=True
)
MAX_ITEMS = 25_000
"""About ten megabytes."""
_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(report: Report) -> str:
    """Return one JSON list, the worst first; its last item counts what exceeds the limit."""
    found = entries(report)
    pairs = sorted(zip(found, fingerprints(found), strict=True), key=lambda pair: RANK[pair[0].finding.severity])
    items = [_item(report, entry, fingerprint) for entry, fingerprint in pairs[:MAX_ITEMS]]
    return dump_json_list([*items, *_count_rest(report, len(pairs) - MAX_ITEMS)]) + "\n"


def _item(report: Report, entry: ReportEntry, fingerprint: str) -> dict[str, object]:
    finding = entry.finding
    notes = [f"{report.from_top(location)}: {message}" for location, message in finding.related]
    return {
        "description": "; ".join([entry.message, *notes]),
        "check_name": finding.rule,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": relative_path(report.from_top(finding.location).file),
            "lines": {"begin": max(finding.location.line, 1)},
        },
    }


def _count_rest(report: Report, left: int) -> list[dict[str, object]]:
    if left <= 0:
        return []
    first = report.from_top(report.findings[0].location)
    return [
        {
            "description": f"and {left} more findings that exceed the limit of this report",
            "check_name": "too-many-findings",
            "fingerprint": "too-many-findings",
            "severity": "info",
            "location": {"path": relative_path(first.file), "lines": {"begin": 1}},
        }
    ]
