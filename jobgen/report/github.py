"""Findings for GitHub Actions: annotations on the lines of a change, and a page for the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from jobgen.model.finding import Severity
from jobgen.report import Report, concise, filenames, text, totals
from jobgen.report.entries import ReportEntry, entries, suppressed, worst_first
from jobgen.report.markdown import code, inline

_EACH = 10
"""GitHub shows this many annotations of a type for a step, and drops the rest without a word."""
_MOST = 1024 * 1024
"""A step's summary with more bytes is refused as a whole."""
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def render(report: Report) -> str:
    """As many annotations as GitHub shows, the worst first; the rest go to the log, and a notice counts them."""
    told = worst_first(entries(report))
    shown, left = _split(told, _EACH)
    if left:
        shown, left = _split(told, _EACH - 1)  # one notice is needed for the count
    commands = [_annotation(entry) for entry in shown]
    return "".join(f"{line}\n" for line in (*commands, *_rest(left)))


def summary(report: Report) -> str:
    """A page of Markdown for `$GITHUB_STEP_SUMMARY`: as much as fits, the worst first."""
    head = f"### jobgen lint\n\n{inline(totals.closing(report))}\n"
    silent = suppressed(report) if report.show_suppressed else []
    rows = [_row(entry) for entry in (*worst_first(entries(report)), *silent)]
    if not rows:
        return head
    top = f"\n<details open><summary>{_things(len(rows))}</summary>\n\n| | place | what | rule |\n|---|---|---|---|\n"
    room = _MOST - len((head + top).encode()) - 200  # for what is said below the table
    fitting = _fitting(rows, room)
    left = len(rows) - fitting
    more = f"\nand {left} more, which do not fit here; the log has them\n" if left else ""
    return f"{head}{top}{''.join(rows[:fitting])}{more}\n</details>\n"


def _split(told: Sequence[ReportEntry], notices: int) -> tuple[list[ReportEntry], list[ReportEntry]]:
    room = {Severity.ERROR: _EACH, Severity.WARNING: _EACH, Severity.INFO: notices}
    shown: list[ReportEntry] = []
    left: list[ReportEntry] = []
    for entry in told:
        room[entry.finding.severity] -= 1
        (shown if room[entry.finding.severity] >= 0 else left).append(entry)
    return shown, left


def _annotation(entry: ReportEntry) -> str:
    finding, location = entry.finding, entry.finding.location
    properties: dict[str, str | int] = {"file": filenames.relative(location.file), "line": location.line}
    if location.end_line > location.line:  # columns mean something only within one line
        properties["endLine"] = location.end_line
    else:
        properties |= {"endLine": location.line, "col": location.column}
        if location.end_column > location.column:
            properties["endColumn"] = location.end_column
    notes = [f"{place}: {message}" for place, message in finding.related]
    return _command(_COMMANDS[finding.severity], "\n".join([entry.told, *notes]), {**properties, "title": finding.rule})


def _command(name: str, message: str, properties: dict[str, str | int]) -> str:
    spelt = ",".join(f"{key}={_escaped(str(value), _PROPERTY)}" for key, value in properties.items())
    return f"::{name}{' ' if spelt else ''}{spelt}::{_escaped(message, _DATA)}"


def _escaped(words: str, table: dict[str, str]) -> str:
    lines = "\n".join(map(text.visible, words.split("\n")))
    return "".join(table.get(char, char) for char in lines)


def _rest(left: Sequence[ReportEntry]) -> list[str]:
    """What is not shown as annotations: folded in the log, where no word of it can be a command."""
    if not left:
        return []
    lines = [text.visible(line) for entry in left for line in concise.lines(entry)]
    token = sha256("\n".join(lines).encode()).hexdigest()  # nobody can write it into what it is made of
    count = text.summary(entry.finding for entry in left)
    notice = _command("notice", f"and {count} more: GitHub shows {_EACH} annotations of a type, the log has all", {})
    return [f"::group::{count} more", f"::stop-commands::{token}", *lines, f"::{token}::", "::endgroup::", notice]


def _row(entry: ReportEntry) -> str:
    finding = entry.finding
    word = "suppressed" if entry.by else finding.severity.value
    notes = [f"{place}: {message}" for place, message in finding.related]
    notes += [entry.silence] if entry.by else []
    what = "<br>".join(map(inline, (entry.told, *notes)))
    return f"| {word} | {code(str(finding.location))} | {what} | {code(finding.rule)} |\n"


def _fitting(rows: Iterable[str], room: int) -> int:
    """How many rows there is room for."""
    fitting = 0
    for row in rows:
        room -= len(row.encode())
        if room < 0:
            break
        fitting += 1
    return fitting


def _things(number: int) -> str:
    return f"{number} finding{'' if number == 1 else 's'}"
