"""Findings for GitHub Actions: annotations on the lines of a change, and the job summary."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from jobgen.model.finding import Severity
from jobgen.reports import Report
from jobgen.reports.entries import (
    ReportEntry,
    count_severities,
    entries,
    pluralize,
    summarize,
    suppressed_entries,
    worst_first,
)
from jobgen.reports.escape import markdown_code, markdown_text, relative_path, visible
from jobgen.reports.formats import FormatInfo
from jobgen.reports.formats.concise import entry_lines

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
    lines: list[str] = []
    for entry in shown:
        finding, location = entry.finding, report.from_top(entry.finding.location)
        properties: dict[str, str | int] = {"file": relative_path(location.file), "line": location.line}
        if location.end_line > location.line:  # columns are valid only within one line
            properties["endLine"] = location.end_line
        else:
            properties |= {"endLine": location.line, "col": location.column}
            if location.end_column > location.column:
                properties["endColumn"] = location.end_column
        text = "\n".join([entry.message, *_list_notes(report, entry)])
        lines.append(_command(_COMMANDS[finding.severity], text, {**properties, "title": finding.rule}))
    if left:
        # Folded in the log, no text of the others can be a command.
        rest = [visible(line) for entry in left for line in entry_lines(entry)]
        token = sha256("\n".join(rest).encode()).hexdigest()  # no line can contain its own hash
        count = count_severities(entry.finding for entry in left)
        message = f"and {count} more: GitHub shows {_MAX_ANNOTATIONS} annotations of a type; the log has all"
        lines += [f"::group::{count} more", f"::stop-commands::{token}", *rest, f"::{token}::", "::endgroup::"]
        lines.append(_command("notice", message, {}))
    return "".join(f"{line}\n" for line in lines)


def _list_notes(report: Report, entry: ReportEntry) -> list[str]:
    return [f"{report.from_top(location)}: {message}" for location, message in entry.finding.related]


def summary(report: Report) -> str:
    """Return Markdown for `$GITHUB_STEP_SUMMARY`: as much as fits, the worst first."""
    head = f"### jobgen lint\n\n{markdown_text(summarize(report))}\n"
    suppressed = suppressed_entries(report) if report.show_suppressed else []
    found = [*worst_first(entries(report)), *suppressed]
    if not found:
        return head
    opening = f"\n<details open><summary>{pluralize(len(found), 'finding')}</summary>\n\n"
    table = f"{opening}| | location | message | rule |\n|---|---|---|---|\n"
    room = _MAX_SUMMARY_BYTES - len((head + table).encode()) - 200  # for the lines below the table
    rows: list[str] = []
    for entry in found:
        severity = "suppressed" if entry.by else entry.finding.severity.value
        notes = [*_list_notes(report, entry), *([entry.suppression_note] if entry.by else ())]
        message = "<br>".join(map(markdown_text, (entry.message, *notes)))
        place = markdown_code(str(report.from_top(entry.finding.location)))
        row = f"| {severity} | {place} | {message} | {markdown_code(entry.finding.rule)} |\n"
        room -= len(row.encode())
        if room < 0:
            break
        rows.append(row)
    left = len(found) - len(rows)
    more = f"\nand {left} more that do not fit here; see the log\n" if left else ""
    return f"{head}{table}{''.join(rows)}{more}\n</details>\n"


def _split(found: Sequence[ReportEntry], notices: int) -> tuple[list[ReportEntry], list[ReportEntry]]:
    room = {Severity.ERROR: _MAX_ANNOTATIONS, Severity.WARNING: _MAX_ANNOTATIONS, Severity.INFO: notices}
    shown: list[ReportEntry] = []
    left: list[ReportEntry] = []
    for entry in found:
        room[entry.finding.severity] -= 1
        (shown if room[entry.finding.severity] >= 0 else left).append(entry)
    return shown, left


def _command(name: str, message: str, properties: dict[str, str | int]) -> str:
    listed = ",".join(f"{key}={_escape(str(value), _PROPERTY)}" for key, value in properties.items())
    return f"::{name}{' ' if listed else ''}{listed}::{_escape(message, _DATA)}"


def _escape(text: str, table: dict[str, str]) -> str:
    lines = "\n".join(map(visible, text.split("\n")))
    return "".join(table.get(char, char) for char in lines)
