"""Findings for people: one line each, places that editors and terminals can open."""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.model.finding import Finding, Severity


def render(findings: Iterable[Finding]) -> str:
    """All findings, and below each the places it speaks of."""
    return "".join(_lines(finding) for finding in findings)


def _lines(finding: Finding) -> str:
    env = f" (in {finding.env})" if finding.env else ""
    lines = [f"{finding.location}: {finding.severity.value}: {finding.message}{env} [{finding.rule}]"]
    lines += [f"    {related.location}: {related.message}" for related in finding.related]
    return "".join(f"{visible(line)}\n" for line in lines)


def visible(line: str) -> str:
    """The line with what would move the cursor or break the line escaped: names of files and values are not ours."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def summary(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 warning`, or nothing."""
    counts = dict.fromkeys(Severity, 0)
    for finding in findings:
        counts[finding.severity] += 1
    words = [f"{count} {severity.value}{'s' if count > 1 else ''}" for severity, count in counts.items() if count]
    return ", ".join(words)
