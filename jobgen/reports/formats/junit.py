"""Findings as test results in JUnit XML: a suite for each file, a case for each finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from jobgen.model.finding import Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.reports import Report
from jobgen.reports.entries import ReportEntry, entries, summarize, suppressed_entries
from jobgen.reports.escape import relative_path, visible
from jobgen.reports.formats import FormatInfo

FORMAT = FormatInfo("Jenkins, GitLab, Azure", "one test case", "skipped test cases")

_TABLE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
# Other invisible characters are escaped: XML 1.0 forbids most of them, even as references.
_WHITESPACE = lazy_pattern(r"([\t\n\r])")


class TestCase(NamedTuple):
    """A test case: its XML lines without the end tag, and its outcome."""

    lines: list[str]
    failed: bool = False
    skipped: bool = False


def render(report: Report) -> str:
    """Return XML in which errors fail, warnings and infos pass, and suppressed findings are skipped."""
    found = sorted(
        [*entries(report), *suppressed_entries(report)], key=lambda entry: (_file(entry), entry.finding.location)
    )
    # A case that passes, so that a report without findings shows what was checked.
    summary = f"    <system-out>{_xml(summarize(report))}</system-out>"
    checked = TestCase(['  <testcase classname="jobgen" name="what was checked" time="0">', summary])
    suites = [("jobgen", [checked])]
    for file, group in groupby(found, key=_file):
        # Readers identify cases by name.
        seen: Counter[str] = Counter()
        cases: list[TestCase] = []
        for entry in group:
            name = _name(entry)
            seen[name] += 1
            cases.append(_make_case(entry, file, f"{name} ({seen[name]})" if seen[name] > 1 else name))
        suites.append((file, cases))
    return _write(suites, "jobgen lint")


def _write(suites: Sequence[tuple[str, list[TestCase]]], name: str) -> str:
    body: list[str] = []
    for suite, cases in suites:
        body.append(f'<testsuite name="{_xml(suite)}" {_counts(cases)}>')
        body += [line for case in cases for line in (*case.lines, "  </testcase>")]
        body.append("</testsuite>")
    head = f'<testsuites name="{_xml(name)}" {_counts([case for _, cases in suites for case in cases])}>'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *body, "</testsuites>"]) + "\n"


def render_tests(name: str, results: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return XML with a suite and a case for each tested file; a file with errors fails."""
    suites: list[tuple[str, list[TestCase]]] = []
    for file, errors in results:
        lines = [f'  <testcase classname="{_xml(file)}" name="{_xml(file)}" file="{_xml(file)}" time="0">']
        if errors:
            text = _xml("\n".join(errors))
            lines.append(f'    <failure message="{_xml(errors[0])}" type="expectation">{text}</failure>')
        suites.append((file, [TestCase(lines, failed=bool(errors))]))
    return _write(suites, name)


def _file(entry: ReportEntry) -> str:
    return relative_path(entry.finding.location.file)


def _counts(cases: list[TestCase]) -> str:
    failures, skipped = sum(case.failed for case in cases), sum(case.skipped for case in cases)
    return f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}" time="0"'


def _name(entry: ReportEntry) -> str:
    """Return rule, object and pointer, which stay the same when lines move."""
    # One object has its namespace in its name, also if an overlay sets it.
    subjects = [str(one) for one in entry.objects] if len(entry.objects) == 1 else entry.subjects
    about = subjects[:1]
    about += [f"and {len(subjects) - 1} more"] if len(subjects) > 1 else []
    about += [f"at {pointer}" for pointer in entry.pointers[:1]]
    return " ".join([entry.finding.rule + ":" * bool(about), *about])


def _make_case(entry: ReportEntry, file: str, name: str) -> TestCase:
    finding = entry.finding
    place = f'file="{_xml(file)}" line="{finding.location.line}"'
    head = f'  <testcase classname="{_xml(file)}" name="{_xml(name)}" {place} time="0">'
    notes = [f"{location}: {message}" for location, message in finding.related]
    text = _xml("\n".join([f"{finding.location}: {finding.severity.value}: {entry.message}", *notes]))
    if entry.by:
        skipped = f'    <skipped message="{_xml(entry.suppression_note)}">{text}</skipped>'
        return TestCase([head, skipped], skipped=True)
    if finding.severity is Severity.ERROR:
        failure = f'    <failure message="{_xml(entry.message)}" type="{_xml(finding.rule)}">{text}</failure>'
        return TestCase([head, failure], failed=True)
    return TestCase([head, f"    <system-out>{text}</system-out>"])


def _xml(text: str) -> str:
    """Escape text for an element or an attribute."""
    if not text.isprintable():
        parts = _WHITESPACE.split(text)
        text = "".join(part if _WHITESPACE.match(part) else visible(part) for part in parts)
    return text.translate(_TABLE)
