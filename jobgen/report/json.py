"""Findings for programs: one versioned JSON document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.model import Finding, Severity


def render(findings: Sequence[Finding], counts: Mapping[str, int]) -> str:
    """All findings, and how much was looked at."""
    totals = {f"{severity.value}s": sum(found.severity is severity for found in findings) for severity in Severity}
    summary = {**counts, **totals, "suppressed": 0}
    document = {"version": 1, "findings": [_entry(finding) for finding in findings], "summary": summary}
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _entry(finding: Finding) -> dict[str, Any]:
    mark, identity = finding.mark, finding.object
    return {
        "rule": finding.rule,
        "category": finding.category,
        "severity": finding.severity.value,
        "message": finding.message,
        "file": mark.file,
        "line": mark.line,
        "column": mark.column,
        "endLine": mark.end_line or mark.line,
        "endColumn": mark.end_column or mark.column,
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
