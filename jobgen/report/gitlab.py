"""Findings for GitLab's code quality widget."""

from __future__ import annotations

from typing import Any

from jobgen.model.finding import Severity
from jobgen.report import Report, filenames
from jobgen.report.entries import RANK, ReportEntry, entries
from jobgen.report.fingerprints import fingerprints
from jobgen.report.strictjson import listing

MOST = 25_000
"""More than anybody reads in a merge request, and about ten megabytes."""
_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(report: Report) -> str:
    """One JSON list, the worst first; what is too much is counted in its last item."""
    told = entries(report)
    pairs = sorted(zip(told, fingerprints(told), strict=True), key=lambda pair: RANK[pair[0].finding.severity])
    items = [_item(entry, fingerprint) for entry, fingerprint in pairs[:MOST]]
    return listing([*items, *_rest(report, len(pairs) - MOST)]) + "\n"


def _item(entry: ReportEntry, fingerprint: str) -> dict[str, Any]:
    finding = entry.finding
    notes = [f"{place}: {message}" for place, message in finding.related]
    return {
        "description": "; ".join([entry.told, *notes]),
        "check_name": finding.rule,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": filenames.relative(finding.location.file),
            "lines": {"begin": max(finding.location.line, 1)},
        },
    }


def _rest(report: Report, left: int) -> list[dict[str, Any]]:
    if left <= 0:
        return []
    return [
        {
            "description": f"and {left} more findings, which this report has no room for",
            "check_name": "too-many-findings",
            "fingerprint": "too-many-findings",
            "severity": "info",
            "location": {"path": filenames.relative(report.findings[0].location.file), "lines": {"begin": 1}},
        }
    ]
