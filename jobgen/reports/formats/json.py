"""Findings for programs: one versioned JSON document, described by docs/report_v1.json."""

from __future__ import annotations

from jobgen.model.finding import Finding, Severity
from jobgen.reports import Report, name_rule_page, to_plain_identity
from jobgen.reports.entries import list_taken
from jobgen.reports.escape import dump_json
from jobgen.reports.formats import FormatInfo

FORMAT = FormatInfo("programs", "one entry for each environment", "counted; listed with `--show-suppressed`")


def render(report: Report) -> str:
    """Return every finding in every environment, and the totals."""
    document: dict[str, object] = {"version": 1, "findings": [_finding(finding) for finding in report.findings]}
    if report.show_suppressed:
        document["suppressed"] = [
            {**_finding(finding), "reason": reason, "by": by} for finding, reason, by in report.suppressed
        ]
    if files := list_taken(report):
        document["files"] = [{"file": path, "takenFor": sort, "why": why} for path, sort, why in files]
    document["summary"] = {
        "files": report.files,
        "objects": report.objects,
        "environments": len([name for name in report.environments if name]),
        "rules": len(report.rules),
        **{f"{severity.value}s": sum(one.severity is severity for one in report.findings) for severity in Severity},
        "suppressed": len(report.suppressed),
        "skipped": dict(sorted(report.skipped.items())),
    }
    return dump_json(document) + "\n"


def _finding(finding: Finding) -> dict[str, object]:
    location = finding.location
    return {
        "rule": finding.rule,
        "category": finding.category,
        "severity": finding.severity.value,
        "message": finding.message,
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "endLine": location.end_line or location.line,
        "endColumn": location.end_column or location.column,
        "object": to_plain_identity(finding.object),
        "env": finding.env,
        "pointer": finding.pointer,
        "related": [
            {"file": other.file, "line": other.line, "column": other.column, "message": message}
            for other, message in finding.related
        ],
        "fixable": finding.fixable,
        **({"page": page} if (page := name_rule_page(finding.rule)) else {}),
        **({"alsoReportedBy": list(finding.also_reported_by)} if finding.also_reported_by else {}),
    }
