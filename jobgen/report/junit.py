"""Findings as test results, for whatever reads JUnit's XML: a suite for each file, a case for each finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.report import Report, filenames, totals
from jobgen.report.entries import ReportEntry, entries, suppressed
from jobgen.report.text import visible

_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_TABLE = str.maketrans(_SPECIAL)
# All else that nobody can see is spelt out: not even as references may most of it stand in XML 1.0.
_KEPT = lazy_pattern(r"([\t\n\r])")


class _Case(NamedTuple):
    name: str
    lines: list[str]
    failed: bool = False
    skipped: bool = False


def render(report: Report) -> str:
    """Errors fail, warnings and infos pass with words, suppressed findings are skipped."""
    told = sorted([*entries(report), *suppressed(report)], key=lambda entry: (_file(entry), entry.finding.location))
    suites = [("jobgen", [_checked(report)])]
    for file, group in groupby(told, key=_file):
        suites.append((file, list(_cases(file, group))))
    cases = [case for _, several in suites for case in several]
    body = [line for name, several in suites for line in _suite(name, several)]
    head = f'<testsuites name="jobgen lint" {_counts(cases)}>'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *body, "</testsuites>"]) + "\n"


def _file(entry: ReportEntry) -> str:
    return filenames.relative(entry.finding.location.file)


def _checked(report: Report) -> _Case:
    """A case that passes: a report without findings still says what was checked."""
    system_out = f"    <system-out>{_xml(totals.closing(report))}</system-out>"
    return _Case("what was checked", ['  <testcase classname="jobgen" name="what was checked" time="0">', system_out])


def _suite(name: str, cases: list[_Case]) -> Iterator[str]:
    yield f'<testsuite name="{_xml(name)}" {_counts(cases)}>'
    for case in cases:
        yield from case.lines
        yield "  </testcase>"
    yield "</testsuite>"


def _counts(cases: list[_Case]) -> str:
    failures = sum(case.failed for case in cases)
    skipped = sum(case.skipped for case in cases)
    return f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}" time="0"'


def _cases(file: str, group: Iterable[ReportEntry]) -> Iterator[_Case]:
    """No two of one name: readers tell cases apart by it."""
    seen: Counter[str] = Counter()
    for entry in group:
        name = _name(entry)
        seen[name] += 1
        yield _case(entry, file, f"{name} ({seen[name]})" if seen[name] > 1 else name)


def _case(entry: ReportEntry, file: str, name: str) -> _Case:
    finding = entry.finding
    place = f'file="{_xml(file)}" line="{finding.location.line}"'
    head = f'  <testcase classname="{_xml(file)}" name="{_xml(name)}" {place} time="0">'
    said = "\n".join([f"{finding.location}: {finding.severity.value}: {entry.told}", *_notes(entry)])
    if entry.by:
        return _Case(name, [head, f'    <skipped message="{_xml(entry.silence)}">{_xml(said)}</skipped>'], skipped=True)
    if finding.severity is Severity.ERROR:
        failure = f'    <failure message="{_xml(entry.told)}" type="{_xml(finding.rule)}">{_xml(said)}</failure>'
        return _Case(name, [head, failure], failed=True)
    return _Case(name, [head, f"    <system-out>{_xml(said)}</system-out>"])


def _name(entry: ReportEntry) -> str:
    """Rule and object, and where in it: what stays when lines move."""
    about = entry.subjects[:1]
    about += [f"and {len(entry.subjects) - 1} more"] if len(entry.subjects) > 1 else []
    about += [f"at {pointer}" for pointer in entry.pointers[:1]]
    return " ".join([entry.finding.rule + ":" * bool(about), *about])


def _notes(entry: ReportEntry) -> Iterator[str]:
    for place, message in entry.finding.related:
        yield f"{place}: {message}"


def _xml(words: str) -> str:
    """The words as text or in an attribute; what XML has no place for is spelt out."""
    shown = words if words.isprintable() else "".join(map(_spelt, _KEPT.split(words)))
    return shown.translate(_TABLE)


def _spelt(part: str) -> str:
    return part if _KEPT.match(part) else visible(part)
