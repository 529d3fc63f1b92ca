"""Findings in the Test Anything Protocol, version 14: a test point each, details in YAML."""

from __future__ import annotations

from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.reports import Report
from jobgen.reports.entries import describe_scope, entries, suppressed_entries
from jobgen.reports.escape import dump_json, visible
from jobgen.reports.formats import FormatInfo

FORMAT = FormatInfo("TAP harnesses", "one test point", "skipped test points")

_SPECIAL = lazy_pattern(r"([\\#])")


def render(report: Report) -> str:
    """Return test points: errors are `not ok`, warnings and infos `TODO`, which does not fail, the rest is skipped."""
    found = sorted([*entries(report), *suppressed_entries(report)], key=lambda entry: entry.finding.location)
    lines = ["TAP version 14", f"1..{len(found) + 1}", f"ok 1 - {_escape(describe_scope(report))}"]
    for number, entry in enumerate(found, 2):
        finding, location = entry.finding, entry.finding.location
        description = _escape(f"{finding.rule} {location}")
        if entry.by:
            lines.append(f"ok {number} - {description} # SKIP {_escape(entry.suppression_note)}")
        elif finding.severity is Severity.ERROR:
            lines.append(f"not ok {number} - {description}")
        else:
            lines.append(f"not ok {number} - {description} # TODO {finding.severity.value}")
        details: dict[str, object] = {
            "message": finding.message,
            "severity": finding.severity.value,
            "category": finding.category,
            "file": location.file,
            "line": location.line,
            "column": location.column,
            "environments": entry.environments,
            "objects": [str(one) for one in entry.objects],
            "pointers": entry.pointers,
            "related": [f"{other}: {message}" for other, message in finding.related],
        }
        kept = {key: value for key, value in details.items() if value or key == "message"}
        # JSON is valid YAML.
        lines += ["  ---", *(f"  {key}: {dump_json(value, indent=None)}" for key, value in kept.items()), "  ..."]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(text))
