"""`jobgen doctor`: show what was found, and what to do next."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from jobgen.cli.doctor import NOTE, OK, PROBLEM, Check
from jobgen.cli.doctor.run import run_checks
from jobgen.cli.result import ExitCode, Result
from jobgen.cli.terminal import has_color, terminal_width
from jobgen.report.escape import visible
from jobgen.report.summary import pluralize

_COLORS = {OK: 32, NOTE: 33, PROBLEM: 31}
_MIN_TEXT = 40


@click.command("doctor")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def command(directory: Path, *, format_: str) -> Result:
    """Show what jobgen finds on this machine and in this repository, and what to do next.

    The exit code is 1 if something must be done. Notes are advice and do not change it.
    """
    checks = run_checks(directory, os.environ)
    failed = any(check.status == PROBLEM for check in checks)
    code = ExitCode.ERRORS if failed else ExitCode.OK
    if format_ == "json":
        return Result(code, _to_json(checks))
    lines = "".join(f"{line}\n" for line in _format_lines(checks, terminal_width(), color=has_color()))
    return Result(code, lines, f"{_summarize(checks)}\n")


def _to_json(checks: Sequence[Check]) -> str:
    listed = [{**check._asdict(), "facts": dict(check.facts)} for check in checks]
    is_ok = all(check.status != PROBLEM for check in checks)
    return json.dumps({"version": 1, "ok": is_ok, "checks": listed}, ensure_ascii=False, indent=2) + "\n"


def _format_lines(checks: Sequence[Check], width: int | None, *, color: bool) -> Iterator[str]:
    """Yield the lines of a table; on a terminal, long texts are wrapped below their begin."""
    names = max(len(check.name) for check in checks)
    states = max(map(len, _COLORS))
    indent = " " * (states + names + 4)
    for check in checks:
        state = f"{check.status:<{states}}"
        shown = f"\033[{_COLORS[check.status]}m{state}\033[0m" if color else state
        first, *rest = _wrap(visible(check.found), width, len(indent))
        yield f"{shown}  {check.name:<{names}}  {first}"
        yield from (f"{indent}{line}" for line in rest)
        if check.next:
            yield f"{indent}→ {visible(check.next)}"


def _wrap(text: str, width: int | None, indent: int) -> list[str]:
    if width is None:
        return [text]
    return textwrap.wrap(text, max(width - indent, _MIN_TEXT), break_long_words=False, break_on_hyphens=False) or [""]


def _summarize(checks: Sequence[Check]) -> str:
    problems = [check for check in checks if check.status == PROBLEM]
    notes = sum(1 for check in checks if check.status == NOTE)
    # Without a job there is nothing to lint.
    advice = problems or [check for check in checks if check.name == "jobs" and check.status == NOTE]
    counts = f"{pluralize(len(problems), 'problem')}, {pluralize(notes, 'note')}"
    return f"{counts}; next: {visible(advice[0].next) if advice else 'jobgen lint'}"
