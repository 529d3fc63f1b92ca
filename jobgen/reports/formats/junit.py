"""Findings as test results in JUnit XML: a suite for each file, a case for each finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.reports import Report
from jobgen.reports.entries import ReportEntry, entries, suppressed_entries
from jobgen.reports.escape import dump_json, relative_path, visible
from jobgen.reports.formats import FormatInfo
from jobgen.reports.shard_part import SHARD_PROPERTY, ShardPart
from jobgen.reports.summary import summarize

FORMAT = FormatInfo("Jenkins, GitLab, Azure", "one test case", "skipped test cases")

_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_TABLE = str.maketrans(_SPECIAL)
# Other invisible characters are escaped: XML 1.0 forbids most of them, even as references.
_WHITESPACE = lazy_pattern(r"([\t\n\r])")


class TestCase(NamedTuple):
    """A test case: its XML lines without the end tag, and its outcome."""

    name: str
    lines: list[str]
    failed: bool = False
    skipped: bool = False


def render(report: Report) -> str:
    """Return XML in which errors fail, warnings and infos pass, and suppressed findings are skipped."""
    found = sorted(
        [*entries(report), *suppressed_entries(report)], key=lambda entry: (_file(entry), entry.finding.location)
    )
    suites = [("jobgen", [_summary_case(report)])]
    for file, group in groupby(found, key=_file):
        suites.append((file, list(_cases(file, group))))
    cases = [case for _, several in suites for case in several]
    body = [line for name, several in suites for line in _suite(name, several)]
    if report.shard:
        body[1:1] = write_shard(report.shard)
    head = f'<testsuites name="jobgen lint" {_counts(cases)}>'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *body, "</testsuites>"]) + "\n"


def write_shard(part: ShardPart) -> list[str]:
    """Return the lines of a suite that say which share of a run this is."""
    value = _xml(dump_json(part.to_plain(), indent=None))
    return ["  <properties>", f'    <property name="{SHARD_PROPERTY}" value="{value}"/>', "  </properties>"]


def render_tests(name: str, results: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return XML with a suite and a case for each tested file; a file with errors fails."""
    suites = [(file, [_to_case(file, errors)]) for file, errors in results]
    body = [line for file, cases in suites for line in _suite(file, cases)]
    head = f'<testsuites name="{_xml(name)}" {_counts([case for _, cases in suites for case in cases])}>'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *body, "</testsuites>"]) + "\n"


def _to_case(file: str, errors: Sequence[str]) -> TestCase:
    head = f'  <testcase classname="{_xml(file)}" name="{_xml(file)}" file="{_xml(file)}" time="0">'
    if not errors:
        return TestCase(file, [head])
    failure = f'    <failure message="{_xml(errors[0])}" type="expectation">{_xml(chr(10).join(errors))}</failure>'
    return TestCase(file, [head, failure], failed=True)


def _file(entry: ReportEntry) -> str:
    return relative_path(entry.finding.location.file)


def _summary_case(report: Report) -> TestCase:
    """Return a case that passes, so that a report without findings shows what was checked."""
    system_out = f"    <system-out>{_xml(summarize(report))}</system-out>"
    return TestCase(
        "what was checked", ['  <testcase classname="jobgen" name="what was checked" time="0">', system_out]
    )


def _suite(name: str, cases: list[TestCase]) -> Iterator[str]:
    yield f'<testsuite name="{_xml(name)}" {_counts(cases)}>'
    for case in cases:
        yield from case.lines
        yield "  </testcase>"
    yield "</testsuite>"


def _counts(cases: list[TestCase]) -> str:
    failures = sum(case.failed for case in cases)
    skipped = sum(case.skipped for case in cases)
    return f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}" time="0"'


def _cases(file: str, group: Iterable[ReportEntry]) -> Iterator[TestCase]:
    """Return the cases of a file, with unique names: readers identify cases by name."""
    seen: Counter[str] = Counter()
    for entry in group:
        name = _name(entry)
        seen[name] += 1
        yield _case(entry, file, f"{name} ({seen[name]})" if seen[name] > 1 else name)


def _case(entry: ReportEntry, file: str, name: str) -> TestCase:
    finding = entry.finding
    place = f'file="{_xml(file)}" line="{finding.location.line}"'
    head = f'  <testcase classname="{_xml(file)}" name="{_xml(name)}" {place} time="0">'
    text = "\n".join([f"{finding.location}: {finding.severity.value}: {entry.message}", *_notes(entry)])
    if entry.by:
        return TestCase(
            name, [head, f'    <skipped message="{_xml(entry.suppression_note)}">{_xml(text)}</skipped>'], skipped=True
        )
    if finding.severity is Severity.ERROR:
        failure = f'    <failure message="{_xml(entry.message)}" type="{_xml(finding.rule)}">{_xml(text)}</failure>'
        return TestCase(name, [head, failure], failed=True)
    return TestCase(name, [head, f"    <system-out>{_xml(text)}</system-out>"])


def _name(entry: ReportEntry) -> str:
    """Return rule, object and pointer, which stay the same when lines move."""
    # One object has its namespace in its name, also if an overlay sets it.
    subjects = [str(one) for one in entry.objects] if len(entry.objects) == 1 else entry.subjects
    about = subjects[:1]
    about += [f"and {len(subjects) - 1} more"] if len(subjects) > 1 else []
    about += [f"at {pointer}" for pointer in entry.pointers[:1]]
    return " ".join([entry.finding.rule + ":" * bool(about), *about])


def _notes(entry: ReportEntry) -> Iterator[str]:
    for location, message in entry.finding.related:
        yield f"{location}: {message}"


def _xml(text: str) -> str:
    """Escape text for an element or an attribute."""
    shown = text if text.isprintable() else "".join(map(_escape_invisible, _WHITESPACE.split(text)))
    return shown.translate(_TABLE)


def _escape_invisible(part: str) -> str:
    return part if _WHITESPACE.match(part) else visible(part)
