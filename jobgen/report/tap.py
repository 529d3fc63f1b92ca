"""Findings in the Test Anything Protocol, version 14: a test point each, details in YAML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.report import Report, totals
from jobgen.report.entries import ReportEntry, entries, suppressed
from jobgen.report.strictjson import dumps
from jobgen.report.text import visible

_SPECIAL = lazy_pattern(r"([\\#])")


def render(report: Report) -> str:
    """Errors are not ok; warnings and infos are still to do, which fails no run; suppressed findings are skipped."""
    told = sorted([*entries(report), *suppressed(report)], key=lambda entry: entry.finding.location)
    lines = ["TAP version 14", f"1..{len(told) + 1}", f"ok 1 - {_escaped(totals.checked(report))}"]
    for number, entry in enumerate(told, 2):
        lines += _point(number, entry)
    return "\n".join(lines) + "\n"


def _point(number: int, entry: ReportEntry) -> Iterator[str]:
    finding = entry.finding
    what = _escaped(f"{finding.rule} {finding.location}")
    if entry.by:
        yield f"ok {number} - {what} # SKIP {_escaped(entry.silence)}"
    elif finding.severity is Severity.ERROR:
        yield f"not ok {number} - {what}"
    else:
        yield f"not ok {number} - {what} # TODO {finding.severity.value}"
    yield "  ---"
    # JSON as strict as ours is YAML, too.
    yield from (f"  {key}: {dumps(value, indent=None)}" for key, value in _details(entry).items())
    yield "  ..."


def _details(entry: ReportEntry) -> dict[str, Any]:
    finding, location = entry.finding, entry.finding.location
    details = {
        "message": finding.message,
        "severity": finding.severity.value,
        "category": finding.category,
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "environments": entry.environments,
        "objects": [str(one) for one in entry.objects],
        "pointers": entry.pointers,
        "related": [f"{place}: {message}" for place, message in finding.related],
    }
    return {key: value for key, value in details.items() if value or key == "message"}


def _escaped(words: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(words))
