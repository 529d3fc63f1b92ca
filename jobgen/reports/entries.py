"""The entries of a report: the same finding in several environments is one entry, with one fingerprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from itertools import chain
from typing import NamedTuple, TypeVar

from jobgen.model.finding import AFFECTS, Finding, Identity, Severity, find_wrong_values
from jobgen.model.rule_names import original_rule_name
from jobgen.reports import Report, Suppressed

Value = TypeVar("Value", str, Identity)
_LAYERS = ("overlays/", "teams/")
"""Folders of files whose values apply to several jobs."""
_MAX_NAMED = 3
RANK = {severity: rank for rank, severity in enumerate(Severity)}


class ReportEntry(NamedTuple):
    """Findings with the same message at the same location."""

    finding: Finding
    """The first of them."""
    environments: tuple[str, ...] = ()
    objects: tuple[Identity, ...] = ()
    pointers: tuple[str, ...] = ()
    by: str = ""
    """`comment` or `baseline` if it is suppressed; else empty."""
    reason: str = ""

    @property
    def message(self) -> str:
        """The message, with the objects and environments it applies to."""
        within = f"in {', '.join(self.environments)}" if self.environments else ""
        where = " ".join(filter(None, (self._name_objects(), within)))
        return f"{self.finding.message} ({where})" if where else self.finding.message

    def _name_objects(self) -> str:
        """The objects, if there are several, or if the location does not show which one it is."""
        subjects = self.subjects
        if AFFECTS in self.finding.message:
            return ""
        if self.finding.location.file.startswith(_LAYERS):
            few = subjects[:_MAX_NAMED] if len(subjects) > _MAX_NAMED + 1 else subjects
            return ", ".join(few) + (f" and {len(subjects) - len(few)} others" if len(few) < len(subjects) else "")
        return f"{len(subjects)} objects" if len(subjects) > 1 else ""

    @property
    def subjects(self) -> list[str]:
        """The affected objects, each once, regardless of the namespace that an environment sets."""
        if not self.environments:  # then the namespace is the object's own
            return [str(one) for one in self.objects]
        return list(dict.fromkeys(str(one._replace(namespace="")) for one in self.objects))

    @property
    def suppression_note(self) -> str:
        """What suppresses it, and why."""
        return f"suppressed by {self.by}: {self.reason or 'no reason given'}"


def entries(report: Report) -> list[ReportEntry]:
    """Return the findings that are not suppressed, by location."""
    return _merge(Suppressed(finding, "", "") for finding in report.findings)


def group_findings(findings: Iterable[Finding]) -> list[ReportEntry]:
    """Return findings as entries, in the order of the first finding of each."""
    return list(map(_make_entry, _group(Suppressed(finding, "", "") for finding in findings)))


def suppressed_entries(report: Report) -> list[ReportEntry]:
    """Return the suppressed findings, by location."""
    return _merge(report.suppressed)


def shown_entries(report: Report) -> list[ReportEntry]:
    """Return all entries to show, by location; suppressed ones only if the report shows them."""
    suppressed = suppressed_entries(report) if report.show_suppressed else []
    return sorted([*entries(report), *suppressed], key=lambda entry: entry.finding.location)


def worst_first(several: Sequence[ReportEntry]) -> list[ReportEntry]:
    """Sort errors before warnings before infos, each by location."""
    return sorted(several, key=lambda entry: RANK[entry.finding.severity])


def count_entries(report: Report) -> Counter[tuple[str, Severity]]:
    """Return how many entries that are not suppressed each rule has at each severity."""
    groups = _group(Suppressed(finding, "", "") for finding in report.findings)
    return Counter((group[0].finding.rule, group[0].finding.severity) for group in groups)


def count_suppressed_entries(report: Report) -> Counter[str]:
    """Return how many suppressed entries each rule has."""
    return Counter(group[0].finding.rule for group in _group(report.suppressed))


def _merge(several: Iterable[Suppressed]) -> list[ReportEntry]:
    return sorted(map(_make_entry, _group(several)), key=_sort_key)


def _group(several: Iterable[Suppressed]) -> Collection[list[Suppressed]]:
    """Group findings that differ only in environment, object or pointer: one edit fixes them."""
    groups: dict[object, list[Suppressed]] = {}
    for one in several:
        finding = one.finding
        key = (finding.location, finding.severity, finding.rule, finding.message, finding.related, one.by, one.reason)
        groups.setdefault(key, []).append(one)
    return groups.values()


def _make_entry(group: list[Suppressed]) -> ReportEntry:
    findings = sorted((one.finding for one in group), key=_finding_sort_key)
    environments = [found.env for found in findings if found.env]
    objects = [found.object for found in findings if found.object]
    pointers = [found.pointer for found in findings if found.pointer]
    return ReportEntry(
        findings[0], _unique(environments), _unique(objects), _unique(pointers), group[0].by, group[0].reason
    )


def _unique(several: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(several)) if len(several) > 1 else tuple(several)


def _finding_sort_key(finding: Finding) -> tuple[object, ...]:
    return finding.env, finding.object or (), finding.pointer, finding.category, not finding.fixable


def _sort_key(entry: ReportEntry) -> tuple[object, ...]:
    finding = entry.finding
    related = tuple(chain.from_iterable((*location, message) for location, message in finding.related))
    return finding.location, RANK[finding.severity], finding.rule, finding.message, related, entry.by, entry.reason


def fingerprints(several: Sequence[ReportEntry]) -> list[str]:
    """Return a unique fingerprint for each entry that stays the same when lines move and messages are reworded.

    It is made of the rule's first name, the object and the pointer, or the file and the values at fault; entries that
    share these are numbered in order.
    """
    seen: Counter[str] = Counter()
    found = []
    for entry in several:
        digest = _digest(entry)
        seen[digest] += 1
        found.append(f"{digest}:{seen[digest]}")
    return found


def _digest(entry: ReportEntry) -> str:
    parts = (original_rule_name(entry.finding.rule), *_subject(entry))
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _subject(entry: ReportEntry) -> tuple[str, ...]:
    """Return the object without what an environment changes of it, or else the file; and the pointer."""
    names = {(one.api_version.rpartition("/")[0], one.kind, one.name) for one in entry.objects}
    if len(names) != 1:
        values = () if names else find_wrong_values(entry.finding.message)
        return ("file", entry.finding.location.file, *entry.pointers[:1], *values)
    # An overlay may set the namespace, so it distinguishes objects only where there are no overlays.
    namespace = "" if entry.environments else entry.objects[0].namespace
    return ("object", *names.pop(), namespace, entry.finding.pointer)
