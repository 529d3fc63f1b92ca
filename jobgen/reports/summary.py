"""Findings as plain lines, and the totals of a lint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from jobgen.model.finding import Finding, Severity
from jobgen.reports import Report
from jobgen.reports.entries import RANK, ReportEntry, count_entries, count_suppressed_entries, group_findings
from jobgen.reports.escape import visible

JUDGED_AS_IS = "object"


def format_findings(findings: Iterable[Finding]) -> str:
    """Return one line for each finding, with all its environments, followed by its related locations."""
    return "".join(map(_format_entry, group_findings(findings)))


def _format_entry(entry: ReportEntry) -> str:
    finding = entry.finding
    lines = [f"{finding.location}: {finding.severity.value}: {entry.message} [{finding.rule}]"]
    lines += [f"    {related.location}: {related.message}" for related in finding.related]
    return "".join(f"{visible(line)}\n" for line in lines)


def count_severities(findings: Iterable[Finding]) -> str:
    """Return `2 errors, 1 warning`; empty without findings. One in several environments counts once, as in a lint."""
    return _format_counts(Counter(entry.finding.severity for entry in group_findings(findings)))


def _format_counts(counts: Counter[Severity]) -> str:
    return ", ".join(pluralize(counts[severity], severity.value) for severity in Severity if counts[severity])


def summarize(report: Report) -> str:
    """Return the last line of a lint, without a newline: what was checked and how much was found."""
    counts: Counter[Severity] = Counter()
    for (_, severity), count in count_entries(report).items():
        counts[severity] += count
    found = _format_counts(counts) or "nothing found"
    suppressed = count_suppressed_entries(report).total()
    share = f"{report.shard.shard}: " if report.shard else ""
    parts = [
        f"{share}{describe_scope(report)}: {found}",
        f"{suppressed} suppressed" if suppressed else "",
        _skips(report),
    ]
    return "; ".join(filter(None, parts))


def _skips(report: Report) -> str:
    """Return how many files were not read, and why: `3 skipped (2 hidden, 1 Helm chart)`."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(report.skipped.items()))
    return f"{sum(report.skipped.values())} skipped ({reasons})" if reasons else ""


def list_taken(report: Report) -> list[tuple[str, str, str]]:
    """Return the path of each file, what it was taken for, and why; those that are judged as they are if asked for."""
    return [
        (path, sort, why)
        for path, (sort, why) in sorted(report.taken.items())
        if report.explain_files or sort != JUDGED_AS_IS
    ]


def describe_files(report: Report) -> str:
    """Return a line for each file: its path, what it was taken for, and why."""
    return "".join(f"{visible(f'{path}: {sort}: {why}')}\n" for path, sort, why in list_taken(report))


def describe_scope(report: Report) -> str:
    """Return what was checked: `214 objects of 120 files in 3 environments checked by 131 rules`."""
    environments = len([name for name in report.environments if name])
    within = f" in {pluralize(environments, 'environment')}" if environments else ""
    rules = f" by {pluralize(len(report.rules), 'rule')}" if report.rules else ""
    files = f" of {pluralize(report.files, 'file')}"
    return f"{pluralize(report.objects, 'object')}{files}{within} checked{rules}"


def count_rules(report: Report) -> str:
    """Return how often each rule found something, the most frequent first, one line for each rule."""
    counts = {(rule, severity.value): count for (rule, severity), count in count_entries(report).items()}
    counts |= {(rule, "suppressed"): count for rule, count in count_suppressed_entries(report).items()}
    rows = sorted(counts.items(), key=lambda row: (-row[1], _rank(row[0][1]), row[0][0]))
    digits = max((len(str(count)) for count in counts.values()), default=0)
    width = max((len(severity) for _, severity in counts), default=0)
    return "".join(f"{count:>{digits}}  {severity:<{width}}  {visible(rule)}\n" for (rule, severity), count in rows)


def _rank(severity: str) -> int:
    return RANK[Severity(severity)] if severity != "suppressed" else len(RANK)


def pluralize(count: int, noun: str) -> str:
    """Return `1 object`, `2 objects`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
