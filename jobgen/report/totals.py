"""How much was looked at, and how much was found."""

from __future__ import annotations

from collections import Counter

from jobgen.model.finding import Severity
from jobgen.report import Report, text
from jobgen.report.entries import RANK, entries, suppressed


def closing(report: Report) -> str:
    """One line that always says what was checked, without a newline."""
    found = text.summary(entry.finding for entry in entries(report)) or "nothing found"
    silent = len(suppressed(report))
    return f"{checked(report)}: {found}{f'; {silent} suppressed' if silent else ''}"


def checked(report: Report) -> str:
    """What was looked at: `214 objects in 3 environments checked by 131 rules`."""
    environments = len([name for name in report.environments if name])
    within = f" in {_count(environments, 'environment')}" if environments else ""
    checkers = f" by {_count(len(report.rules), 'rule')}" if report.rules else ""
    return f"{_count(report.objects, 'object')}{within} checked{checkers}"


def statistics(report: Report) -> str:
    """How often each rule found something, the most frequent first."""
    told = Counter((entry.finding.rule, entry.finding.severity.value) for entry in entries(report))
    told.update((entry.finding.rule, "suppressed") for entry in suppressed(report))
    rows = sorted(told.items(), key=lambda row: (-row[1], _rank(row[0][1]), row[0][0]))
    digits = max((len(str(count)) for count in told.values()), default=0)
    words = max((len(word) for _, word in told), default=0)
    return "".join(f"{count:>{digits}}  {word:<{words}}  {text.visible(rule)}\n" for (rule, word), count in rows)


def _rank(word: str) -> int:
    return RANK[Severity(word)] if word != "suppressed" else len(RANK)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
