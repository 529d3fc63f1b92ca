"""Findings for programs: one versioned JSON document, described by docs/report_v1.json."""

from __future__ import annotations

from typing import Any

from jobgen.model.finding import Finding, Severity
from jobgen.report import Report
from jobgen.report.strictjson import dumps


def render(report: Report) -> str:
    """Every finding in every environment, and how much was looked at."""
    document: dict[str, Any] = {"version": 1, "findings": [_entry(finding) for finding in report.findings]}
    if report.show_suppressed:
        document["suppressed"] = [
            {**_entry(finding), "reason": reason, "by": by} for finding, reason, by in report.suppressed
        ]
    return dumps({**document, "summary": _summary(report)}) + "\n"


def _summary(report: Report) -> dict[str, int]:
    totals = {f"{severity.value}s": sum(one.severity is severity for one in report.findings) for severity in Severity}
    return {
        "files": report.files,
        "objects": report.objects,
        "environments": len([name for name in report.environments if name]),
        "rules": len(report.rules),
        **totals,
        "suppressed": len(report.suppressed),
    }


def _entry(finding: Finding) -> dict[str, Any]:
    location, identity = finding.location, finding.object
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
        "object": identity
        and {
            "apiVersion": identity.api_version,
            "kind": identity.kind,
            "namespace": identity.namespace,
            "name": identity.name,
        },
        "env": finding.env,
        "pointer": finding.pointer,
        "related": [
            {"file": place.file, "line": place.line, "column": place.column, "message": message}
            for place, message in finding.related
        ],
        "fixable": finding.fixable,
    }
