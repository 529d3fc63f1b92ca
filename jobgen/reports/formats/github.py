"""Findings for GitHub Actions: annotations on the lines of a change, and the job summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from jobgen.model.finding import Severity
from jobgen.reports import Report
from jobgen.reports.entries import ReportEntry, entries, suppressed_entries, worst_first
from jobgen.reports.escape import markdown_code, markdown_text, relative_path, visible
from jobgen.reports.formats import FormatInfo
from jobgen.reports.formats.concise import entry_lines
from jobgen.reports.summary import count_severities, pluralize, summarize

FORMAT = FormatInfo(
    "GitHub Actions", "one annotation", "in the job summary, with `--show-suppressed`", names_files_from_top=True
)
_MAX_ANNOTATIONS = 10
"""GitHub shows this many annotations of a type for each step, and silently drops the rest."""
_MAX_SUMMARY_BYTES = 1024 * 1024
"""GitHub rejects a longer summary of a step."""
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def render(report: Report) -> str:
    """Return as many annotations as GitHub shows, the worst first; the rest go to the log, and a notice counts them."""
    found = worst_first(entries(report))
    shown, left = _split(found, _MAX_ANNOTATIONS)
    if left:
        shown, left = _split(found, _MAX_ANNOTATIONS - 1)  # one notice is needed for the count
    commands = [_annotation(report, entry) for entry in shown]
    return "".join(f"{line}\n" for line in (*commands, *_log_lines(left)))


def summary(report: Report) -> str:
    """Return Markdown for `$GITHUB_STEP_SUMMARY`: as much as fits, the worst first."""
    head = f"### jobgen lint\n\n{markdown_text(summarize(report))}\n"
    suppressed = suppressed_entries(report) if report.show_suppressed else []
    rows = [_table_row(report, entry) for entry in (*worst_first(entries(report)), *suppressed)]
    if not rows:
        return head
    opening = f"\n<details open><summary>{pluralize(len(rows), 'finding')}</summary>\n\n"
    table = f"{opening}| | location | message | rule |\n|---|---|---|---|\n"
    room = _MAX_SUMMARY_BYTES - len((head + table).encode()) - 200  # for the lines below the table
    fitting = _count_fitting(rows, room)
    left = len(rows) - fitting
    more = f"\nand {left} more that do not fit here; see the log\n" if left else ""
    return f"{head}{table}{''.join(rows[:fitting])}{more}\n</details>\n"


def _split(found: Sequence[ReportEntry], notices: int) -> tuple[list[ReportEntry], list[ReportEntry]]:
    room = {Severity.ERROR: _MAX_ANNOTATIONS, Severity.WARNING: _MAX_ANNOTATIONS, Severity.INFO: notices}
    shown: list[ReportEntry] = []
    left: list[ReportEntry] = []
    for entry in found:
        room[entry.finding.severity] -= 1
        (shown if room[entry.finding.severity] >= 0 else left).append(entry)
    return shown, left


def _annotation(report: Report, entry: ReportEntry) -> str:
    finding, location = entry.finding, report.from_top(entry.finding.location)
    properties: dict[str, str | int] = {"file": relative_path(location.file), "line": location.line}
    if location.end_line > location.line:  # columns are valid only within one line
        properties["endLine"] = location.end_line
    else:
        properties |= {"endLine": location.line, "col": location.column}
        if location.end_column > location.column:
            properties["endColumn"] = location.end_column
    notes = [f"{report.from_top(other)}: {message}" for other, message in finding.related]
    return _command(
        _COMMANDS[finding.severity], "\n".join([entry.message, *notes]), {**properties, "title": finding.rule}
    )


def _command(name: str, message: str, properties: dict[str, str | int]) -> str:
    listed = ",".join(f"{key}={_escape(str(value), _PROPERTY)}" for key, value in properties.items())
    return f"::{name}{' ' if listed else ''}{listed}::{_escape(message, _DATA)}"


def _escape(text: str, table: dict[str, str]) -> str:
    lines = "\n".join(map(visible, text.split("\n")))
    return "".join(table.get(char, char) for char in lines)


def _log_lines(left: Sequence[ReportEntry]) -> list[str]:
    """Return the entries that are not annotations: folded in the log, where no text of theirs can be a command."""
    if not left:
        return []
    lines = [visible(line) for entry in left for line in entry_lines(entry)]
    token = sha256("\n".join(lines).encode()).hexdigest()  # no line can contain its own hash
    count = count_severities(entry.finding for entry in left)
    notice = _command(
        "notice", f"and {count} more: GitHub shows {_MAX_ANNOTATIONS} annotations of a type; the log has all", {}
    )
    return [f"::group::{count} more", f"::stop-commands::{token}", *lines, f"::{token}::", "::endgroup::", notice]


def _table_row(report: Report, entry: ReportEntry) -> str:
    finding = entry.finding
    severity = "suppressed" if entry.by else finding.severity.value
    notes = [f"{report.from_top(location)}: {message}" for location, message in finding.related]
    notes += [entry.suppression_note] if entry.by else []
    message = "<br>".join(map(markdown_text, (entry.message, *notes)))
    place = markdown_code(str(report.from_top(finding.location)))
    return f"| {severity} | {place} | {message} | {markdown_code(finding.rule)} |\n"


def _count_fitting(rows: Iterable[str], room: int) -> int:
    """Return how many rows fit."""
    fitting = 0
    for row in rows:
        room -= len(row.encode())
        if room < 0:
            break
        fitting += 1
    return fitting
