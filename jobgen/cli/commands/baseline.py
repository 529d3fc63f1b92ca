"""`jobgen lint --baseline`: what was known before is not told again."""

from __future__ import annotations

from pathlib import Path

from jobgen.cli.commands import ExitCode, Result, error_result, pluralize
from jobgen.cli.commands.scope import LintRequest, LintResult
from jobgen.model.finding import Finding, Severity
from jobgen.repo import layout
from jobgen.repo.atomic import replace_file
from jobgen.report import Suppressed, baseline


def write_baseline(path: Path, linted: LintResult) -> Result:
    """Write all that was found into a baseline."""
    try:
        replace_file(path, baseline.to_text(linted.findings).encode(), linted.root)
    except OSError as fault:
        return error_result(ExitCode.USAGE, f"`{path}` cannot be written: {fault.strerror}")
    return Result(ExitCode.OK, err=f"{pluralize(len(linted.findings), 'finding')} written to {path}\n")


def apply_baseline(
    asked: LintRequest, file: str, linted: LintResult, *, fix_steps: bool
) -> tuple[list[Finding], list[Suppressed]] | Result:
    """The findings that a baseline does not know, and those that it does; what was mended is taken out if asked for."""
    found = layout.read_path(asked.directory / file, file, linted.root)
    if found.finding:
        return error_result(ExitCode.USAGE, f"`{file}`: {found.finding.message}")
    try:
        written = found.content.decode()
    except UnicodeDecodeError:
        return error_result(ExitCode.USAGE, f"`{file}` is not UTF-8")
    try:
        new, old, left = baseline.split(linted.findings, baseline.parse(written))
    except baseline.BaselineError as fault:
        return error_result(ExitCode.USAGE, f"`{file}`: {fault}")
    # What was not looked at, or could not be judged, has not been mended.
    partly = asked.paths or asked.envs or any(finding.severity is Severity.ERROR for finding in new)
    if partly:
        left.clear()
    if left and fix_steps:
        try:
            replace_file(asked.directory / file, baseline.without(written, left).encode(), linted.root)
        except OSError as fault:
            return error_result(ExitCode.USAGE, f"`{file}` cannot be written: {fault.strerror}")
    else:
        new += baseline.stale(left, written, file)
    return new, [Suppressed(finding, "was there before", "baseline") for finding in old]
