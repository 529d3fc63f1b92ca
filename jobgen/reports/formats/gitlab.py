"""Findings for GitLab's code quality widget."""

from __future__ import annotations

from jobgen.model.data import Location
from jobgen.model.finding import Severity
from jobgen.reports import Report
from jobgen.reports.entries import RANK, entries, fingerprints
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
    items: list[dict[str, object]] = []
    for entry, fingerprint in pairs[:MAX_ITEMS]:
        finding = entry.finding
        notes = [f"{report.from_top(location)}: {message}" for location, message in finding.related]
        items.append(
            {
                "description": "; ".join([entry.message, *notes]),
                "check_name": finding.rule,
                "fingerprint": fingerprint,
                "severity": _SEVERITIES[finding.severity],
                "location": _locate(report, finding.location, max(finding.location.line, 1)),
            }
        )
    left = len(pairs) - MAX_ITEMS
    if left > 0:
        items.append(
            {
                "description": f"and {left} more findings that exceed the limit of this report",
                "check_name": "too-many-findings",
                "fingerprint": "too-many-findings",
                "severity": "info",
                "location": _locate(report, report.findings[0].location, 1),
            }
        )
    return dump_json_list(items) + "\n"


def _locate(report: Report, location: Location, line: int) -> dict[str, object]:
    return {"path": relative_path(report.from_top(location).file), "lines": {"begin": line}}
