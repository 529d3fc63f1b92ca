"""Findings as they are told: the same fault in several environments is one entry, and entries have one order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from jobgen.model.finding import Finding, Identity, Severity
from jobgen.report import Report, Suppressed

Seen = TypeVar("Seen", str, Identity)
RANK = {severity: rank for rank, severity in enumerate(Severity)}


class ReportEntry(NamedTuple):
    """Findings that say the same of the same place."""

    finding: Finding
    """The first of them."""
    environments: tuple[str, ...] = ()
    objects: tuple[Identity, ...] = ()
    pointers: tuple[str, ...] = ()
    by: str = ""
    """By whose word it is suppressed; empty if it is not."""
    reason: str = ""

    @property
    def told(self) -> str:
        """The message, and where it is true."""
        several = f"{len(self.subjects)} objects" if len(self.objects) > 1 and len(self.subjects) > 1 else ""
        within = f"in {', '.join(self.environments)}" if self.environments else ""
        where = " ".join(filter(None, (several, within)))
        return f"{self.finding.message} ({where})" if where else self.finding.message

    @property
    def subjects(self) -> list[str]:
        """The objects that it is about, each once, whatever namespace an environment gives it."""
        if not self.environments:  # then a namespace is the object's own
            return [str(one) for one in self.objects]
        return list(dict.fromkeys(str(one._replace(namespace="")) for one in self.objects))

    @property
    def silence(self) -> str:
        """Why it is suppressed."""
        return f"suppressed by {self.by}: {self.reason or 'no reason given'}"


def entries(report: Report) -> list[ReportEntry]:
    """What was found, by place."""
    return _merged(Suppressed(finding, "", "") for finding in report.findings)


def suppressed(report: Report) -> list[ReportEntry]:
    """What was found and is suppressed, by place."""
    return _merged(report.suppressed)


def worst_first(several: Sequence[ReportEntry]) -> list[ReportEntry]:
    """Errors, then warnings, then infos, each by place."""
    return sorted(several, key=lambda entry: RANK[entry.finding.severity])


def _merged(several: Iterable[Suppressed]) -> list[ReportEntry]:
    """One entry for all that differ only in environment, object or pointer: they are mended in one place."""
    groups: dict[object, list[Suppressed]] = {}
    for one in several:
        finding = one.finding
        seen = (finding.location, finding.severity, finding.rule, finding.message, finding.related, one.by, one.reason)
        groups.setdefault(seen, []).append(one)
    return sorted(map(_entry, groups.values()), key=_place)


def _entry(group: list[Suppressed]) -> ReportEntry:
    findings = sorted((one.finding for one in group), key=_whole)
    environments = [found.env for found in findings if found.env]
    objects = [found.object for found in findings if found.object]
    pointers = [found.pointer for found in findings if found.pointer]
    return ReportEntry(findings[0], _once(environments), _once(objects), _once(pointers), group[0].by, group[0].reason)


def _once(several: Sequence[Seen]) -> tuple[Seen, ...]:
    return tuple(dict.fromkeys(several)) if len(several) > 1 else tuple(several)


def _whole(finding: Finding) -> tuple[object, ...]:
    return finding.env, finding.object or (), finding.pointer, finding.category, not finding.fixable


def _place(entry: ReportEntry) -> tuple[object, ...]:
    finding = entry.finding
    related = tuple(chain.from_iterable((*place, message) for place, message in finding.related))
    return finding.location, RANK[finding.severity], finding.rule, finding.message, related, entry.by, entry.reason
